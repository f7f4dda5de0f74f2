// Command dispatch is a service of drivers, riders and trips on many processes: docs/dispatch.md.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
	_ "modernc.org/sqlite"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/admin"
	"github.com/kith-io/kith/bootstrap"
	"github.com/kith-io/kith/discovery"
	"github.com/kith-io/kith/gateway"
	otelkith "github.com/kith-io/kith/otel"
	"github.com/kith-io/kith/service"
	"github.com/kith-io/kith/sqlfence"
)

var tracer = otelkith.New(otelkith.Config{})

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

// declare makes a node run the city. A request's trace goes on through all entities.
func (m city) declare(n *kith.Node) error {
	_, err := n.Singleton(tracer.Singleton(m.match()))
	_, err2 := n.Daemons(prices())
	for _, t := range m.types() {
		_, err3 := n.Register(tracer.Type(t))
		err = errors.Join(err, err3)
	}
	return errors.Join(err, err2)
}

// front is what clients see: PUT requests, each of which may be repeated.
func front(n *kith.Node) http.Handler {
	mux := http.NewServeMux()
	ride := func(r *http.Request) *Ride { return &Ride{r.FormValue("rider"), r.FormValue("zone")} }
	serve(mux, "PUT /drivers/{id}", n, online, func(r *http.Request) *Online { return &Online{r.FormValue("zone")} })
	serve(mux, "PUT /trips/{id}", n, request, ride)
	serve(mux, "PUT /trips/{id}/finish", n, finish, func(*http.Request) *None { return &None{} })
	return otelhttp.NewHandler(mux, "dispatch")
}

// serve asks the entity of the path.
func serve[M, R any](mux *http.ServeMux, path string, n *kith.Node, m kith.Message[M, R], of func(*http.Request) *M) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		v, err := m.Ask(tracer.From(r.Context(), n), r.PathValue("id"), of(r))
		if err != nil {
			gateway.WriteError(w, err)
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
	to := flag.String("traces", "", "URL of what takes traces by OTLP, as http://127.0.0.1:4318; empty: nothing")
	flag.Parse()
	if *peers != "" {
		find, err := discovery.File(*peers)
		if err != nil {
			log.Fatal(err)
		}
		cfg.Bootstrap = &bootstrap.Config{Discovery: find, Listen: *contact}
	}
	service.Main(cfg, func(ctx context.Context, n *kith.Node) error {
		if *to != "" {
			out, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(*to))
			if err != nil {
				return err
			}
			spans := trace.NewTracerProvider(trace.WithBatcher(out))
			defer spans.Shutdown(context.WithoutCancel(ctx))
			otel.SetTracerProvider(spans)
		}
		m, err := open(ctx, *file)
		if err = errors.Join(err, m.declare(n)); err != nil {
			return err
		}
		return service.Serve(ctx, &http.Server{Addr: *door, Handler: front(n), ReadHeaderTimeout: 5 * time.Second})
	})
}
