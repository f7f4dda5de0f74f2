// The worker: a process with one kith node that sends, receives and measures on command.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/bench"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// workerCmd has no flags: everything comes by calls.
type workerCmd struct{}

// sinkRole is the role of the processes that host entities; the sender does not have it.
const sinkRole = "sink"

// execs names the execution modes as flags and types do.
var execs = map[string]kith.Mode{"inline": kith.Inline, "worker": kith.Worker, "blocking": kith.Blocking}

// Run answers calls until the parent is gone; then the process ends, whatever is under way.
func (*workerCmd) Run(e *env.Env) error {
	w := &worker{log: e.Stderr, sinks: map[string]*bench.Sink{}, regions: map[string]*kith.Region{}}
	return w.node.Serve(e.Stdin, e.Stdout, cli.Ops{
		"start": cli.Op(w.start), "await": cli.Op(w.await), "flush": cli.Op(w.flush), "load": cli.Op(w.load),
		"stop":  cli.Op(w.stop),
		"usage": cli.Op(w.usage), "ages": cli.Op(w.ages), "leave": cli.Op(w.node.Depart),
		"heap":  cli.Op(w.heap),
		"micro": cli.Op(w.micro), "route": cli.Op(w.route),
		"listen": cli.Op(w.listen), "bulk": cli.Op(w.bulk), "bulked": cli.Op(w.bulked), "ping": cli.Op(w.ping),
		"link-listen": cli.Op(w.linkListen), "link-send": cli.Op(w.linkSend), "link-count": cli.Op(w.linkCount),
		"hold": cli.Op(w.hold), "fill": cli.Op(w.fill), "held": cli.Op(w.held),
		"target": cli.Op(w.target), "beats": cli.Op(w.beats),
		"profile": cli.Op(w.profile), "profiled": cli.Op(w.profiled),
		"press-join": cli.Op(w.press.join), "press-know": cli.Op(w.press.know), "press-slow": cli.Op(w.press.slow),
		"press":       cli.Op(w.press.load),
		"press-watch": cli.Op(w.press.watch), "press-look": cli.Op(w.press.look), "press-peak": cli.Op(w.press.peak),
		"press-cost": cli.Op(w.press.cost),
	})
}

// worker is the state of the process.
type worker struct {
	log     io.Writer
	node    fleet.Node
	sinks   map[string]*bench.Sink // by execution mode; set by start
	regions map[string]*kith.Region
	idle    *bench.Idle // of loadgen idle, and their region
	filled  *kith.Region
	press   pressing      // of loadgen pressure
	report  *cli.Reporter // of loadgen serve
	timed   int           // one of so many calls is timed for it
	refused atomic.Uint64 // tells that were accepted and came back as undelivered

	mu        sync.Mutex
	stopLoad  context.CancelFunc // of the last load
	profiling *bench.Profile
	received  chan bulkReply
	links     *bench.LinkSink
	trips     *bench.Latency // round trips of heartbeats since beats was called last
}

type (
	startArgs struct {
		Name   string // of the cluster; empty: "loadgen"
		Listen string // empty: a free loopback port
		Seeds  []string
		Host   bool // host entities
		Shards uint32
		TLS    fleet.Files
		Poll   time.Duration // Config.PollFor

		Beat time.Duration // period of heartbeats

		Insecure bool // a listen address that is not loopback, without TLS
		Observed bool // measured, and with an admin interface
		Contact  bool // with a contact point, by which it forms a cluster of its own
	}
	startReply struct{ Addr, Admin, Contact string }
)

func (w *worker) start(ctx context.Context, a startArgs) (startReply, error) {
	cfg := kith.Config{TLS: a.TLS.TLS(), Name: cmp.Or(a.Name, clusterName), Listen: cmp.Or(a.Listen, "127.0.0.1:0"),
		Insecure: a.Insecure, Seeds: a.Seeds, PollFor: a.Poll,
		Logger:      slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Undelivered: func(u kith.Undelivered) { w.refused.Add(u.Count); w.press.reported(u) }}
	cfg.Membership.HeartbeatInterval = a.Beat
	if a.Host {
		cfg.Roles = []string{sinkRole}
	}
	if w.report != nil {
		w.report.Times(&cfg, w.timed)
	}
	var o *observed
	var err error
	if a.Observed {
		if o, err = observe(&cfg); err != nil {
			return startReply{}, err
		}
	}
	var node *kith.Node
	var contact string
	if a.Contact {
		node, contact, err = find(ctx, cfg)
	} else {
		node, err = kith.Start(ctx, cfg)
	}
	if err != nil {
		return startReply{}, err
	}
	w.node.Node, w.press.node = node, node
	for name, mode := range execs {
		w.sinks[name] = bench.NewSink()
		if w.regions[name], err = node.Register(w.sinks[name].Type("sink-"+name, a.Shards, mode, sinkRole)); err != nil {
			return startReply{}, err
		}
	}
	w.press.beside = w.regions["inline"]
	at := startReply{Addr: node.Addr().String(), Contact: contact}
	if o != nil {
		at.Admin, err = o.serve(node, a.TLS)
	}
	return at, err
}

type awaitArgs struct{ Up int }

// await waits until this node sees that many members Up.
func (w *worker) await(ctx context.Context, a awaitArgs) (cli.None, error) {
	for w.node.View().CountUp() < a.Up {
		select {
		case <-ctx.Done():
			return cli.None{}, ctx.Err()
		case <-w.node.Done():
			return cli.None{}, w.node.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return cli.None{}, nil
}

type (
	loadArgs struct {
		Exec   string
		Load   bench.Load
		Beside string // mode of the entities that large messages go to meanwhile; empty: none do
	}
	flushArgs struct {
		Exec     string
		Entities int
	}
)

// region returns the region of an execution mode.
func (w *worker) region(exec string) (*kith.Region, error) {
	if r := w.regions[exec]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("no entities of mode %q", exec)
}

// flushReply is how many messages have reached the entities' handlers.
type flushReply struct{ Count uint64 }

// flush makes all entities known, and what was sent to them counted.
func (w *worker) flush(ctx context.Context, a flushArgs) (flushReply, error) {
	region, err := w.region(a.Exec)
	if err != nil {
		return flushReply{}, err
	}
	n, err := bench.Counted(ctx, region, a.Entities)
	return flushReply{n}, err
}

// loadReply is a bench.Result with its histogram encoded.
type loadReply struct {
	Sent, Failed uint64
	FirstErr     string
	Took         time.Duration
	Latency      []byte
	Late         []byte            // with a rate
	Large        bench.LargeResult // beside it
}

func (w *worker) load(ctx context.Context, a loadArgs) (loadReply, error) {
	region, err := w.region(a.Exec)
	if err != nil {
		return loadReply{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.stopLoad = cancel
	w.mu.Unlock()
	large, err := w.beside(ctx, a.Beside)
	if err != nil {
		return loadReply{}, err
	}
	r, err := a.Load.Run(ctx, region)
	if err != nil {
		return loadReply{}, err
	}
	out := loadReply{Sent: r.Sent, Failed: r.Failed, FirstErr: r.FirstErr, Took: r.Took}
	if out.Large, err = large(); err != nil {
		return loadReply{}, err
	}
	if r.Late != nil {
		if out.Late, err = r.Late.Encode(); err != nil {
			return loadReply{}, err
		}
	}
	if r.Latency != nil {
		out.Latency, err = r.Latency.Encode()
	}
	return out, err
}

// beside begins a stream of large messages to entities of a mode, and returns what ends it and tells what it moved.
func (w *worker) beside(ctx context.Context, exec string) (end func() (bench.LargeResult, error), err error) {
	if exec == "" {
		return func() (r bench.LargeResult, err error) { return r, nil }, nil
	}
	region, err := w.region(exec)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		r   bench.LargeResult
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan outcome, 1)
	go func() {
		r, err := bench.Large(ctx, region)
		done <- outcome{r, err}
	}()
	return func() (bench.LargeResult, error) {
		cancel()
		o := <-done
		return o.r, o.err
	}, nil
}

// stop ends the load under way, if there is one, before its time.
func (w *worker) stop(context.Context, cli.None) (cli.None, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopLoad != nil {
		w.stopLoad()
	}
	return cli.None{}, nil
}

// usageReply is what the process used so far and how many messages of a mode reached its handlers.
type usageReply struct {
	bench.Usage
	Count, Refused uint64
}

type execArgs struct{ Exec string }

func (w *worker) usage(_ context.Context, a execArgs) (usageReply, error) {
	u := usageReply{Refused: w.refused.Load()}
	if s := w.sinks[a.Exec]; s != nil {
		u.Count = s.Count()
	}
	u.Usage = bench.Now()
	return u, nil
}

// ages returns the ages of stamped messages since the last call, as an encoded histogram.
func (w *worker) ages(_ context.Context, a execArgs) ([]byte, error) {
	s := w.sinks[a.Exec]
	if s == nil {
		return nil, fmt.Errorf("no entities of mode %q", a.Exec)
	}
	return s.Ages().Encode()
}

func (w *worker) heap(context.Context, cli.None) (uint64, error) { return bench.LiveHeap(), nil }

func (w *worker) micro(context.Context, cli.None) (bench.Figures, error) {
	return bench.Micro(w.regions["worker"]), nil
}

func (w *worker) route(ctx context.Context, a execArgs) (bench.Figures, error) {
	region, err := w.region(a.Exec)
	if err != nil {
		return nil, err
	}
	return bench.Route(ctx, region)
}

type (
	profileArgs struct{ Dir, Prefix string }
	addrReply   struct{ Addr string }
)

func (w *worker) profile(_ context.Context, a profileArgs) (cli.None, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.profiling != nil {
		return cli.None{}, errors.New("a profile is being recorded already")
	}
	var err error
	w.profiling, err = bench.StartProfile(a.Dir, a.Prefix)
	return cli.None{}, err
}

func (w *worker) profiled(context.Context, cli.None) (cli.None, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.profiling == nil {
		return cli.None{}, errors.New("no profile is being recorded")
	}
	err := w.profiling.Stop()
	w.profiling = nil
	return cli.None{}, err
}

// dialLoopback connects to another worker.
func dialLoopback(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}
