// Command lobby is the service that docs/tutorial.md builds: rooms of a game, over HTTP, on as many processes as run.
//
//	lobby [--listen=ADDR] [--http=ADDR] [SEED...]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/service"
)

type (
	// Join asks for a seat.
	Join struct{ Player string }
	// Look asks who has one.
	Look struct{}
	// Seen is the answer to both.
	Seen struct{ Players []string }
)

var (
	join = kith.Message[Join, Seen]{Type: "room", Name: "join", Within: 5 * time.Second}
	look = kith.Message[Look, Seen]{Type: "room", Name: "look", Within: 5 * time.Second}

	errFull = kith.NewError("full", kith.KindConflict, "the room has no seat left")
)

const seats = 4

// room is one entity: one owner in the cluster, one call at a time.
type room struct{ players []string }

func newRoom(*kith.Context) (*room, error) { return &room{}, nil }

func (r *room) join(_ *kith.Context, m *Join) (Seen, error) {
	if !slices.Contains(r.players, m.Player) { // to join twice is to join
		if len(r.players) == seats {
			return Seen{}, errFull
		}
		r.players = append(r.players, m.Player)
	}
	return Seen{r.players}, nil
}

func (r *room) look(*kith.Context, *Look) (Seen, error) { return Seen{r.players}, nil }

// give and take carry the players to the next node, when the room moves there.
func (r *room) give(*kith.Context) (*Seen, error) { return &Seen{r.players}, nil }

func (r *room) take(_ *kith.Context, s *Seen) error {
	r.players = s.Players
	return nil
}

func (r *room) Stop(*kith.Context) {}

var rooms = kith.EntityType{Name: "room", IdleAfter: 24 * time.Hour, Typed: kith.Methods(newRoom,
	kith.On(join, (*room).join),
	kith.On(look, (*room).look),
	kith.HandOver(nil, (*room).give, (*room).take))}

// front serves clients. Each process can: rooms are asked wherever they are.
func front(node *kith.Node) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /rooms/{room}/{player}", func(w http.ResponseWriter, q *http.Request) {
		seen, err := join.Ask(kith.From(q.Context(), node), q.PathValue("room"), &Join{q.PathValue("player")})
		answer(w, seen, err)
	})
	mux.HandleFunc("GET /rooms/{room}", func(w http.ResponseWriter, q *http.Request) {
		seen, err := look.Ask(kith.From(q.Context(), node), q.PathValue("room"), &Look{})
		answer(w, seen, err)
	})
	return mux
}

func answer(w http.ResponseWriter, seen Seen, err error) {
	switch {
	case err == nil:
		_ = json.NewEncoder(w).Encode(seen) // the client may have gone
	case errors.Is(err, errFull):
		http.Error(w, errFull.Error(), http.StatusConflict)
	case !kith.MayHaveRun(err):
		http.Error(w, err.Error(), http.StatusServiceUnavailable) // nothing was done: try again
	default:
		http.Error(w, err.Error(), http.StatusGatewayTimeout) // to join again does no harm
	}
}

var (
	listen = flag.String("listen", "127.0.0.1:0", "address for the other processes")
	door   = flag.String("http", "127.0.0.1:8080", "address for clients")
)

func main() {
	flag.Parse()
	service.Main(service.Config{Node: kith.Config{Name: "lobby", Listen: *listen, Seeds: flag.Args(),
		JoinTimeout: 40 * time.Second}}, serve)
}

// serve runs until ctx ends: on Ctrl-C, on SIGTERM, or when the cluster has ended this node.
func serve(ctx context.Context, node *kith.Node) error {
	if _, err := node.Register(rooms); err != nil {
		return err
	}
	if err := node.Ready(ctx); err != nil {
		return err
	}
	s := &http.Server{Addr: *door, Handler: front(node), ReadHeaderTimeout: 5 * time.Second}
	s.BaseContext = func(ln net.Listener) context.Context { // it listens
		log.Printf("rooms on http://%s, I am %s", ln.Addr(), node.Addr())
		return context.Background()
	}
	return service.Serve(ctx, s) // requests under way end
}
