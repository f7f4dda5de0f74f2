// Command dispatch is a service of drivers, riders and trips on many processes: docs/dispatch.md.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"time"

	_ "modernc.org/sqlite"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/service"
	"github.com/kith-io/kith/sqlfence"
)

// city is what the entities of a process share.
type city struct {
	db    *sql.DB
	store *sqlfence.Store
}

func open(ctx context.Context, file string) (city, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)")
	if err != nil {
		return city{}, err
	}
	store, err := sqlfence.Open(ctx, db, sqlfence.SQLite)
	_, err2 := db.ExecContext(ctx, "create table if not exists drivers (id text primary key, zone text, trip text)")
	return city{db, store}, errors.Join(err, err2)
}

// declare makes a node run the city.
func (m city) declare(n *kith.Node) error {
	for _, t := range m.types() {
		if _, err := n.Register(t); err != nil {
			return err
		}
	}
	_, err := n.Singleton(m.match())
	_, err2 := n.Daemons(prices())
	return errors.Join(err, err2)
}

// front is what clients see: PUT requests, each of which may be repeated.
func front(n *kith.Node) http.Handler {
	mux := http.NewServeMux()
	serve(mux, "PUT /drivers/{id}", n, online, func(r *http.Request) *Online { return &Online{r.FormValue("zone")} })
	serve(mux, "PUT /trips/{id}", n, request, func(r *http.Request) *Ride {
		return &Ride{r.FormValue("rider"), r.FormValue("zone")}
	})
	serve(mux, "PUT /trips/{id}/finish", n, finish, func(*http.Request) *None { return &None{} })
	return mux
}

// statuses are what an error means to a client; all others are 503.
var statuses = map[kith.ErrorKind]int{kith.KindInvalid: 400, kith.KindNotFound: 404, kith.KindConflict: 409}

// serve asks the entity of the path.
func serve[M, R any](mux *http.ServeMux, path string, n *kith.Node, m kith.Message[M, R], of func(*http.Request) *M) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		v, err := m.Ask(kith.From(r.Context(), n), r.PathValue("id"), of(r))
		if err != nil {
			e := &kith.Error{}
			errors.As(err, &e)
			http.Error(w, err.Error(), cmp.Or(statuses[e.Kind], http.StatusServiceUnavailable))
			return
		}
		_ = json.NewEncoder(w).Encode(v) // else the client is gone
	})
}

func main() {
	cfg := service.Config{Node: kith.Config{Name: "dispatch", JoinTimeout: 40 * time.Second}, Admin: &admin.Config{}}
	flag.StringVar(&cfg.Node.TLS.CertFile, "cert", "", "certificate of this node; with -key and -ca mutual TLS")
	flag.StringVar(&cfg.Node.TLS.KeyFile, "key", "", "its key")
	flag.StringVar(&cfg.Node.TLS.CAFile, "ca", "", "the authority of all nodes")
	flag.StringVar(&cfg.Node.Listen, "listen", "127.0.0.1:0", "address for the other processes")
	flag.StringVar(&cfg.Admin.Listen, "admin", "127.0.0.1:0", "address of probes, dashboard and metrics")
	flag.StringVar(&cfg.AdminToken, "token", "", "file of the token of -admin")
	contact := flag.String("contact", "127.0.0.1:0", "address by which the others find this process, with -peers")
	peers := flag.String("peers", "", "file with the contact addresses of all processes; empty: this one is alone")
	file := flag.String("db", "dispatch.db", "the SQLite file, one for all processes of this machine")
	door := flag.String("http", "127.0.0.1:8080", "address for clients")
	flag.Parse()
	m, err := open(context.Background(), *file)
	if err != nil {
		log.Fatal(err)
	}
	if *peers != "" {
		find, err := discovery.File(*peers)
		if err != nil {
			log.Fatal(err)
		}
		cfg.Bootstrap = &bootstrap.Config{Discovery: find, Listen: *contact}
	}
	service.Main(cfg, func(ctx context.Context, n *kith.Node) error {
		if err := m.declare(n); err != nil {
			return err
		}
		s := &http.Server{Addr: *door, Handler: front(n), ReadHeaderTimeout: 5 * time.Second}
		context.AfterFunc(ctx, func() { _ = s.Shutdown(context.Background()) }) // requests under way end
		service.Ready(ctx)
		if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}
