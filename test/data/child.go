// The child: one node process with a disk, and the door at which callers from outside ask its stores. It answers calls
// on stdin.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/quorum"
	"github.com/kith-io/kith/quorum/pebble"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// startArgs says how a node is started.
type startArgs struct {
	Listen, Advertise string
	Seeds             []string
	Dir               string // of its disk
	Break             string
	Zero              time.Duration // of the run's clock
	Founders          int
	HandOn            bool // each leave is for good
	Plain             bool // its files are those of the system, without faults
}

// startReply says where the node's door is.
type startReply struct{ Door string }

// askTime bounds one access.
const askTime = 8 * time.Second

// child is the state of the process.
type child struct {
	stderr io.Writer
	node   fleet.Node
	disk   *disk
	broken string
	epoch  uint64 // of what is measured

	registers, siblings *quorum.Values // the first has fenced records beside

	mu  sync.Mutex
	was map[string]reply // by key: what was read before the last
}

// serveChild answers calls until the parent has gone.
func serveChild(stdin io.Reader, stdout, stderr io.Writer) error {
	c := &child{stderr: stderr, was: map[string]reply{}}
	return c.node.Serve(stdin, stdout, cli.Ops{"start": cli.Op(c.start), "status": cli.Op(c.status),
		"power": cli.Op(c.power), "ready": cli.Op(c.ready), "measure": cli.Op(c.measure),
		"drain": cli.Op(c.drain), "leave": cli.Op(c.leave)})
}

// start starts the node.
func (c *child) start(ctx context.Context, a startArgs) (r startReply, err error) {
	clock := cli.NewClock(a.Zero)
	log := slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, x slog.Attr) slog.Attr {
			if len(groups) == 0 && x.Key == slog.TimeKey {
				return slog.String(slog.TimeKey, fmt.Sprintf("%.3f", clock.Now().Seconds()))
			}
			return x
		}}))
	c.broken, c.disk = a.Break, newDisk(a.Dir)
	c.node.Node, err = kith.Start(ctx, kith.Config{Name: "data", Listen: a.Listen, Advertise: a.Advertise, Seeds: a.Seeds,
		Logger: log, LeaveTimeout: handOnTime, Resolver: kith.Resolver{Strategy: kith.ResolverOff},
		Membership: kith.MembershipConfig{AcceptablePause: 2 * time.Second, SeedTimeout: 2 * time.Second}})
	if err != nil {
		return r, err
	}
	if c.registers, err = c.open("registers", &a, quorum.Register); err != nil {
		return r, err
	}
	if c.siblings, err = c.open("siblings", &a, quorum.Siblings); err != nil {
		return r, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	go func() { _ = (&http.Server{Handler: c.door(), ReadHeaderTimeout: time.Minute}).Serve(ln) }()
	return startReply{ln.Addr().String()}, nil
}

func (c *child) open(name string, a *startArgs, mode quorum.Mode) (*quorum.Values, error) {
	o := pebble.Options{FS: c.disk, MemTable: 256 << 10} // tables soon, for faults to harm
	if a.Plain {
		o = pebble.Options{}
	}
	engine, err := pebble.Open(filepath.Join(a.Dir, name), o)
	if err != nil {
		return nil, err
	}
	return quorum.Open(c.node.Node, quorum.Store{Name: name, Engine: engine, Mode: mode, Founders: a.Founders,
		ReplaceAfter: 5 * time.Minute, Timeout: time.Second, HandOn: a.HandOn})
}

// status is what a process says of itself.
type status struct {
	Up        int // members that it sees Up and reachable
	Others    int // members that it sees otherwise
	Registers quorum.Stats
	Siblings  quorum.Stats
}

func (c *child) status(context.Context, cli.None) (s status, err error) {
	if c.siblings == nil {
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
	s.Registers, s.Siblings = c.registers.Stats(), c.siblings.Stats()
	return s, c.node.Err()
}

// power ends the process as a loss of power does: what was not synced is gone, in part.
func (c *child) power(context.Context, cli.None) (cli.None, error) {
	c.disk.lose(rand.New(rand.NewPCG(rand.Uint64(), 1)))
	return cli.None{}, syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
}

// outcome is what became of an access.
type outcome string

// The outcomes.
const (
	done    outcome = "done"
	refused outcome = "refused" // it has had no effect, and will not
	unknown outcome = "unknown"
)

// request is what a caller asks.
type request struct {
	Kind    string // get, put: of registers; read, add: of siblings; load, commit: of fenced records
	Key     string
	Data    []byte
	Version []byte
	Shard   uint32
	Fence   uint64
	Claim   bool
}

// reply is what a caller gets.
type reply struct {
	Outcome outcome
	Values  [][]byte
	Version []byte
	Error   string `json:",omitempty"`
	Fenced  bool   // another owner has claimed the shard, or nobody has under this fence
}

// door answers callers from outside.
func (c *child) door() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m request
		if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, 1<<20)).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// Not the request's: the caller may be gone, which takes nothing back.
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		defer cancel()
		_ = json.NewEncoder(w).Encode(c.lies(&m, func() reply { return c.answer(ctx, &m) }))
	})
}

// lies is where mistakes are planted.
func (c *child) lies(m *request, f func() reply) reply {
	switch {
	case c.broken == "forget" && (m.Kind == "put" || m.Kind == "add" || m.Kind == "commit") && rand.IntN(4) == 0:
		return reply{Outcome: done}
	case c.broken == "stale" && (m.Kind == "get" || m.Kind == "read" || m.Kind == "load"):
		r := f()
		c.mu.Lock()
		defer c.mu.Unlock()
		key := fmt.Sprint(m.Kind, m.Key, m.Shard)
		was, known := c.was[key]
		c.was[key] = r
		if known && rand.IntN(4) == 0 {
			return was
		}
		return r
	}
	return f()
}

func (c *child) answer(ctx context.Context, m *request) reply {
	switch m.Kind {
	case "get", "read":
		r, err := c.of(m.Kind).Get(ctx, []byte(m.Key))
		return told(r, err)
	case "put", "add":
		r, err := c.of(m.Kind).Put(ctx, []byte(m.Key), m.Data, m.Version)
		return told(r, err)
	case "load", "commit":
		return c.fenced(ctx, m)
	}
	return reply{Outcome: refused, Error: "no such kind"}
}

func (c *child) of(kind string) *quorum.Values {
	if kind == "get" || kind == "put" {
		return c.registers
	}
	return c.siblings
}

// told returns what a caller of values gets.
func told(r quorum.Reading, err error) reply {
	x := reply{Outcome: done, Values: r.Values, Version: r.Version}
	if err != nil {
		x = reply{Outcome: refused, Error: err.Error()}
		for _, is := range []error{quorum.ErrTooFew, quorum.ErrSiblings, quorum.ErrClosed, context.DeadlineExceeded} {
			if errors.Is(err, is) {
				x.Outcome = unknown
			}
		}
	}
	return x
}

// fenced reads or writes the only record of a shard.
func (c *child) fenced(ctx context.Context, m *request) reply {
	s, sh, f := c.registers.Fenced(), store.Shard{Type: "r", N: route.ShardID(m.Shard)}, route.MakeFence(m.Fence, 1, 1)
	failed := func(err error, o outcome) reply {
		return reply{Outcome: o, Error: err.Error(),
			Fenced: errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrStoreWentBack)}
	}
	if m.Claim {
		if _, err := s.Claim(ctx, sh, f); err != nil {
			return failed(err, refused)
		}
	}
	list, err := s.Load(ctx, sh, f, "a")
	if err != nil {
		return failed(err, refused)
	}
	w := store.Write{Record: store.Record{ID: "a", Version: 1, State: m.Data}, New: true}
	x := reply{Outcome: done}
	if len(list) > 0 {
		w.Version, w.New = list[0].Version+1, false
		x.Values = [][]byte{list[0].State}
	}
	if m.Kind == "load" {
		return x
	}
	for i := range w.Nonce {
		w.Nonce[i] = byte(rand.Uint32())
	}
	if err := s.Commit(ctx, sh, f, w); err != nil {
		if errors.Is(err, store.ErrUnknown) {
			return failed(err, unknown)
		}
		return failed(err, refused)
	}
	return reply{Outcome: done}
}
