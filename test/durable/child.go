// The child: one node process with the entities of a run, and the door at which callers from outside ask them. It
// answers calls on stdin.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/quorum/disk"
	"github.com/kith-io/kith/quorum/pebble"
	"github.com/kith-io/kith/store"
)

// startArgs says how a node is started.
type startArgs struct {
	Name        string // of the node, in the names of its files
	Sender      int    // number of the process
	Nodes       int    // of the run
	Listen      string
	Advertise   string
	Seeds       []string
	Dir         string
	Engine      string
	Source      string // what the engine opens
	Break       string
	Shards      uint32
	StableAfter time.Duration
	Idle        time.Duration // until an entity without messages is put away
	Zero        time.Duration // of the run's clock
}

// startReply says where the node and its door are.
type startReply struct{ Addr, Door string }

// How long things may take in a child.
const (
	joinTime  = 40 * time.Second
	leaveTime = 20 * time.Second
	askTime   = 10 * time.Second
)

// child is the state of the process.
type child struct {
	stderr io.Writer
	node   fleet.Node
	desks  desks
	post   *delivery.Producer
	store  store.Store
	engine disk.Engine    // the node's disk
	values *quorum.Values // of the engine that is the nodes' disks
	close  func() error   // of the store
	log    *slog.Logger
	left   chan error // what Leave has returned
}

// serveChild answers calls until the parent has gone.
func serveChild(stdin io.Reader, stdout, stderr io.Writer) error {
	c := &child{stderr: stderr, left: make(chan error, 1)}
	err := c.node.Serve(stdin, stdout, cli.Ops{"start": cli.Op(c.start), "status": cli.Op(c.status),
		"leave": cli.Op(c.leave), "drain": cli.Op(c.drain), "waiting": cli.Op(c.waiting), "records": cli.Op(c.records)})
	if c.close != nil {
		err = errors.Join(err, c.close())
	}
	return err
}

// start starts the node.
func (c *child) start(ctx context.Context, a startArgs) (r startReply, err error) {
	clock := cli.NewClock(a.Zero)
	c.log = slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, x slog.Attr) slog.Attr {
			if len(groups) == 0 && x.Key == slog.TimeKey {
				return slog.String(slog.TimeKey, fmt.Sprintf("%.3f", clock.Now().Seconds()))
			}
			return x
		}}))
	f, err := os.OpenFile(filepath.Join(a.Dir, fmt.Sprintf("store-%d.notes", a.Sender)),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return r, err
	}
	j, err := openJournal(a.Dir, a.Sender, clock)
	if err != nil {
		return r, err
	}
	by, err := c.open(ctx, &a) // one that is a server, or a file, before anybody hears of the node
	if err != nil {
		return r, err
	}
	c.node.Node, err = kith.Start(ctx, kith.Config{Name: "durable", Listen: a.Listen, Advertise: a.Advertise, Seeds: a.Seeds,
		Logger: c.log, JoinTimeout: joinTime, LeaveTimeout: leaveTime, Directory: filepath.Join(a.Dir, "keep-"+a.Name),
		Resolver: kith.Resolver{StableAfter: a.StableAfter}, Sharding: kith.Sharding{ProcessDeathIsProof: true}})
	if err != nil {
		return r, err
	}
	if a.Engine == quorumEngine {
		if err := c.openDisk(&a); err != nil {
			return r, err
		}
	}
	s := &noting{Store: lying(c.store, by, a.Break), clock: clock, f: f}
	if c.desks, err = enlist(c.node.Node, s, a.Shards, a.Idle, a.Break); err != nil {
		return r, err
	}
	if c.post, err = employ(c.node.Node, s, j, a.Idle, a.Break); err != nil {
		return r, err
	}
	if err := c.node.Ready(ctx); err != nil {
		return r, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	go func() { _ = (&http.Server{Handler: c.door(), ReadHeaderTimeout: time.Minute}).Serve(ln) }()
	go c.end()
	return startReply{c.node.Addr().String(), ln.Addr().String()}, nil
}

// open opens a store that is none of the node's own.
func (c *child) open(ctx context.Context, a *startArgs) (by forcer, err error) {
	if a.Engine == quorumEngine {
		c.engine, err = pebble.Open(a.Source, pebble.Options{FS: roomOf(a.Source)})
		return unforced{}, err
	}
	c.store, by, c.close, err = openStore(ctx, a.Engine, a.Source)
	return by, err
}

// openDisk opens the disk of the node.
func (c *child) openDisk(a *startArgs) (err error) {
	if c.values, err = openDisk(c.node.Node, c.engine, a.Nodes); err != nil {
		return err
	}
	c.store, c.close = c.values.Fenced(), c.values.Close
	return nil
}

// The exit codes of a child.
const (
	codeLeft   = 0
	codeEnded  = 3 // its cluster ended it
	codeNeeded = 4 // it has left, and others need its disk still
)

// end ends the process with the membership of its node.
func (c *child) end() {
	<-c.node.Done()
	<-c.node.ShutdownDone()
	code := codeEnded
	if c.node.ShutdownReason() == kith.ReasonLeft {
		code = codeLeft
		if errors.Is(<-c.left, kith.ErrDisksNeeded) {
			code = codeNeeded
		}
	}
	c.log.Warn("process ends", "code", code, "reason", fmt.Sprint(c.node.Err()))
	os.Exit(code)
}

// leave makes the node leave; the process ends when that is over.
func (c *child) leave(context.Context, cli.None) (cli.None, error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*leaveTime)
		defer cancel()
		c.left <- c.node.Leave(ctx)
	}()
	return cli.None{}, nil
}

// status is what a process tells of itself.
type status struct {
	Up      int    // members that it sees Up and reachable
	Others  int    // members that it sees otherwise
	Stopped string // why a type is stopped here
	Disk    holds  // where the store is the nodes' disks
}

// status tells it.
func (c *child) status(context.Context, cli.None) (s status, err error) {
	if c.post == nil {
		return s, errors.New("not started")
	}
	v := c.node.View()
	for _, m := range v.Members {
		if m.Status == kith.Up && v.Reachable(m.ID) {
			s.Up++
		} else {
			s.Others++
		}
	}
	if c.values != nil {
		v := c.values.Stats()
		s.Disk = holds{v.Disks, v.Lacking, v.Shards}
	}
	if err := errors.Join(c.desks.bank.Err(), c.desks.registers.Err(), c.post.Err()); err != nil {
		s.Stopped = err.Error()
	}
	return s, c.node.Err()
}

// outcome is what became of an ask.
type outcome string

// The outcomes.
const (
	done     outcome = "done"
	rejected outcome = "rejected" // by the handler: nothing of it is stored
	refused  outcome = "refused"  // it has had no effect, and will not
	unknown  outcome = "unknown"
)

// reply is what a caller gets.
type reply struct {
	Outcome outcome
	Value   int64
	Error   string `json:",omitempty"`
}

// told returns what a caller gets.
func told(v int64, err error) reply {
	switch {
	case err == nil:
		return reply{Outcome: done, Value: v}
	case errors.Is(err, durable.ErrRejected), errors.Is(err, durable.ErrTooLarge):
		return reply{rejected, 0, err.Error()}
	case !kith.MayHaveRun(err):
		return reply{refused, 0, err.Error()}
	}
	return reply{unknown, 0, err.Error()}
}

// door answers callers from outside.
func (c *child) door() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /"+bankType+"/{id}", answering(c.desks.bank))
	mux.HandleFunc("POST /"+registerType+"/{id}", answering(c.desks.registers))
	mux.HandleFunc("POST /"+queueName+"/{id}", sending(c.post))
	mux.HandleFunc("GET /dead", listing(c.post))
	return mux
}

// request is what a caller asks.
type request[M any] struct {
	Key     string `json:",omitempty"` // of AskOnce; empty: Ask
	Message M
}

// answering asks entities.
func answering[M any](e *durable.Entities[M, int64]) http.HandlerFunc {
	return answers(func(ctx context.Context, id string, q *request[M]) (int64, error) {
		if q.Key == "" {
			return e.Ask(ctx, id, &q.Message)
		}
		return e.AskOnce(ctx, q.Key, id, &q.Message)
	})
}

// answers has done what a caller asks, and answers with what it gets.
func answers[M any](do func(ctx context.Context, id string, q *request[M]) (int64, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		var m request[M]
		if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, 1<<16)).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// Not the request's: the asker from outside may be gone, which takes nothing back.
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		v, err := do(ctx, q.PathValue("id"), &m)
		_ = json.NewEncoder(w).Encode(told(v, err))
	}
}
