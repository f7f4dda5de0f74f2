// Command shadows keeps the shadows of devices: what each was set to be, what it last said it is, and what is between
// the two. It is a service over HTTP; a device is an entity, and its record lies in a store that refuses late owners.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith"
)

// shadow is one device: an entity, with one owner in the cluster and one call at a time.
type shadow struct {
	Version           int
	Desired, Reported map[string]string
	Delta             map[string]string // what the device has yet to do
	Online            bool
	store             store
}

const silence = time.Minute // after which a device that reports nothing is offline

// Receive takes what is desired or reported of the device, or nothing, and answers with its shadow.
func (s *shadow) Receive(c *kith.Context, payload []byte) error {
	if _, ok := c.Timer(); ok {
		s.Online = false
		return nil
	}
	var patch shadow
	if err := json.Unmarshal(payload, &patch); err != nil {
		return err
	}
	maps.Copy(s.Desired, patch.Desired)
	maps.Copy(s.Reported, patch.Reported)
	s.Delta = maps.Clone(s.Desired)
	maps.DeleteFunc(s.Delta, func(k, v string) bool { return s.Reported[k] == v })
	if len(patch.Reported) > 0 {
		s.Online = true
		if err := c.SetTimer("silent", silence, nil); err != nil {
			return err
		}
	}
	news := min(1, len(patch.Desired)+len(patch.Reported))
	s.Version += news
	b, err := json.Marshal(s)
	if err == nil && news > 0 {
		if err = s.store.Save(c.ID, c.Fence, b); err != nil {
			c.Passivate() // what it holds is not what is stored: the next message claims the record anew
		}
	}
	if err != nil || !c.Asked() {
		return err
	}
	return c.Reply(b)
}

func (s *shadow) Stop(*kith.Context) {} // what was answered is saved

// shadows is the type: an entity claims its record before its first message.
func shadows(st store) kith.EntityType {
	return kith.EntityType{Name: "shadow", IdleAfter: time.Hour, Open: func(c *kith.Context) (kith.Handler, error) {
		s := &shadow{Desired: map[string]string{}, Reported: map[string]string{}, store: st}
		b, err := st.Claim(c.ID, c.Fence)
		if err == nil && len(b) > 0 {
			err = json.Unmarshal(b, s)
		}
		s.Online = false // until it reports here
		return s, err
	}}
}

// api serves GET /devices/ID, PATCH /devices/ID with {"Desired": {...}} or {"Reported": {...}}, and GET /ready.
func api(node *kith.Node, devices *kith.Region) http.Handler {
	mux := http.NewServeMux()
	device := func(w http.ResponseWriter, r *http.Request) {
		patch := json.RawMessage("{}")
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&patch); err != nil && r.Method == "PATCH" {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		answer, err := devices.Ask(ctx, r.PathValue("id"), patch) // wherever the device lives
		switch {
		case err == nil:
			_, _ = w.Write(answer)
		case errors.Is(err, kith.ErrHandler):
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case kith.MayHaveRun(err): // nobody knows: the client looks at Version
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
		default: // nothing was done: the client may try again
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
	mux.HandleFunc("GET /devices/{id}", device)
	mux.HandleFunc("PATCH /devices/{id}", device)
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if h := node.Health(); !h.Ready() {
			http.Error(w, h.State.String()+": "+h.Reason, http.StatusServiceUnavailable)
		}
	})
	return mux
}

func main() {
	seeds, dir := flag.String("seeds", "", "addresses of other nodes"), flag.String("store", ".", "folder of records")
	listen, web := flag.String("listen", "127.0.0.1:0", "for nodes"), flag.String("http", "127.0.0.1:0", "for clients")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop() // not before: an orchestrator may send SIGTERM twice
	node, err := kith.Start(ctx, kith.Config{Name: "shadows", Listen: *listen, JoinTimeout: 40 * time.Second,
		Seeds: strings.FieldsFunc(*seeds, func(r rune) bool { return r == ',' }), Logger: slog.Default()})
	check(err)
	devices, err := node.Register(shadows(store(*dir)))
	check(err)
	socket, err := net.Listen("tcp", *web)
	check(err)
	server := &http.Server{Handler: api(node, devices), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(socket) }()
	check(node.Ready(ctx))
	log.Printf("serving http://%s as %s", socket.Addr(), node.Addr())
	select {
	case <-ctx.Done():
		bounded, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		check(errors.Join(server.Shutdown(bounded), node.Leave(bounded))) // requests first, then the shards
	case <-node.Done(): // cut off, or downed: a supervisor starts it again
		check(node.Err())
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
