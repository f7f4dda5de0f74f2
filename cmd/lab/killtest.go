// lab kill-test: real node processes on loopback, one of them killed, and how long the others take to say so.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/env"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// killCmd is the flags of lab kill-test.
type killCmd struct {
	Nodes    int  `default:"10" help:"Node processes, 2 to 64."`
	Rounds   int  `default:"10" help:"How often a cluster is formed and one of its processes killed, 1 to 1000."`
	Progress bool `help:"Show progress although stderr is not a terminal."`
	Verbose  bool `short:"v" help:"Show the logs of the node processes on stderr."`
}

// Validate is called by the parser.
func (c *killCmd) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 2 && c.Nodes <= 64, "--nodes must be 2 to 64")
	errs.Must(c.Rounds >= 1 && c.Rounds <= 1000, "--rounds must be 1 to 1000")
	return errs.Err()
}

// killResult is the last line. Times are from the signal until the first and until the last of the other processes had
// read the event that the killed one is unreachable.
type killResult struct {
	Nodes       int       `json:"nodes"`
	Rounds      int       `json:"rounds"`
	FirstP50    float64   `json:"first_p50_s"`
	AllP50      float64   `json:"all_p50_s"`
	AllMax      float64   `json:"all_max_s"`
	First       []float64 `json:"first_s"` // of each round, in order
	All         []float64 `json:"all_s"`
	WallSeconds float64   `json:"wall_seconds"`
}

// killLimit is how long the others may take: silence alone decides within it.
const killLimit = 30 * time.Second

// formLimit is how long a cluster may take to form, and upEvery how often a node is asked for its members meanwhile.
const (
	formLimit = 30 * time.Second
	upEvery   = 50 * time.Millisecond
)

// settleTime is what a formed cluster gets to dial the connections of its monitoring ring.
const settleTime = 2 * time.Second

// Run forms a cluster, kills one process, and does so again.
func (c *killCmd) Run(e *env.Env) error {
	ctx, stop := cli.Interruptible()
	defer stop()
	progress := cli.NewProgress(e.Stderr, c.Progress)
	out := killResult{Nodes: c.Nodes, Rounds: c.Rounds}
	began := time.Now()
	for round := range c.Rounds {
		f, a, err := c.round(ctx, e, 1+round%(c.Nodes-1))
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		progress.Printf("round %d of %d: first after %.3f s, all after %.3f s", round+1, c.Rounds, f, a)
		out.First, out.All = append(out.First, f), append(out.All, a)
	}
	all := slices.Sorted(slices.Values(out.All))
	first := slices.Sorted(slices.Values(out.First))
	out.FirstP50, out.AllP50, out.AllMax = first[len(first)/2], all[len(all)/2], all[len(all)-1]
	out.WallSeconds = cli.Seconds(began)
	return cli.Line(e.Stdout, "kill", out)
}

// round forms a cluster and kills its victim-th process, which is never the first, the seed of the others.
func (c *killCmd) round(ctx context.Context, e *env.Env, victim int) (first, all float64, err error) {
	nodes, addrs, err := c.form(ctx, e)
	defer func() { fleet.Kill(nodes) }()
	if err != nil {
		return 0, 0, err
	}
	cli.Pause(ctx, settleTime)
	limited, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	dead := nodes[victim]
	others := slices.Delete(slices.Clone(nodes), victim, victim+1)
	end := killReply{addrs[victim]}
	if err := fleet.Tell(limited, others, "lookout", end); err != nil {
		return 0, 0, err
	}
	at := time.Now()
	if err := dead.Process().Kill(); err != nil {
		return 0, 0, fmt.Errorf("kill: %w", err)
	}
	noticed, err := fleet.Ask[noticedReply](limited, others, "noticed", cli.None{})
	if err != nil {
		return 0, 0, err
	}
	for i, n := range noticed {
		took := time.Duration(n.UnixNano - at.UnixNano()).Seconds()
		if all = max(all, took); i == 0 || took < first {
			first = took
		}
	}
	return first, all, nil
}

// killChildCmd has no flags: everything comes by calls.
type killChildCmd struct{}

// Run answers calls until the parent is gone; then the process ends, however its node stands.
func (*killChildCmd) Run(e *env.Env) error {
	c := &killNode{logs: e.Stderr}
	return c.node.Serve(e.Stdin, e.Stdout, cli.Ops{"start": cli.Op(c.start), "up": cli.Op(c.up),
		"lookout": cli.Op(c.lookOut), "noticed": cli.Op(c.noticed)})
}

// killNode is the state of such a process. start comes before every other call.
type killNode struct {
	logs    io.Writer
	node    fleet.Node
	lookout lookout
}

// killArgs is the seeds of a node; killReply the address of one.
type (
	killArgs  struct{ Seeds []string }
	killReply struct{ Addr string }
)

func (c *killNode) start(ctx context.Context, a killArgs) (r killReply, err error) {
	c.node.Node, err = kith.Start(ctx, kith.Config{Name: "kill", Listen: "127.0.0.1:0", Seeds: a.Seeds,
		Logger: slog.New(slog.NewTextHandler(c.logs, nil))})
	if err != nil {
		return r, err
	}
	return killReply{Addr: c.node.Addr().String()}, nil
}

// up returns how many members the node sees Up.
func (c *killNode) up(context.Context, cli.None) (int, error) {
	return c.node.View().CountUp(), c.node.Err()
}

// form starts the processes and waits until each sees all of them Up. It returns those that were started, and where
// their nodes listen.
func (c *killCmd) form(ctx context.Context, e *env.Env) (nodes []*cli.Child, addrs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, formLimit)
	defer cancel()
	o := e.Self("kill-child", c.Verbose)
	for i := range c.Nodes {
		o.Name = fleet.Name(i)
		n, err := cli.Start(o)
		if err != nil {
			return nodes, addrs, err
		}
		nodes = append(nodes, n)
		var r killReply
		// The first is a cluster of one, which the others join.
		if err := n.Call(ctx, "start", killArgs{addrs[:min(i, 1)]}, &r); err != nil {
			return nodes, addrs, err
		}
		addrs = append(addrs, r.Addr)
	}
	up := func(ctx context.Context) ([]int, error) { return fleet.Ask[int](ctx, nodes, "up", cli.None{}) }
	if _, err := fleet.Until(ctx, upEvery, up, func(up []int) bool { return slices.Min(up) == c.Nodes }); err != nil {
		return nodes, addrs, fmt.Errorf("the cluster did not form: %w", err)
	}
	return nodes, addrs, nil
}

// lookout waits in a node process until its node publishes that the member at an address is unreachable.
type lookout struct {
	once sync.Once
	seen chan struct{}
	at   time.Time // set before seen is closed
}

// noticedReply is when that was, by the wall clock that all processes of a host share.
type noticedReply struct{ UnixNano int64 }

// start begins to read events, and returns when the first, the snapshot, was read: whatever comes later is noticed.
func (l *lookout) start(node *kith.Node, addr string) error {
	ready := make(chan error, 1)
	l.seen = make(chan struct{})
	go func() {
		read := false
		for ev := range node.Events(context.Background()) {
			if !read {
				read = true
				ready <- nil
			}
			if ev.Kind == kith.UnreachableMember && ev.Member.ID.Addr.String() == addr {
				l.at = time.Now()
				close(l.seen)
				return
			}
		}
		if !read {
			ready <- errors.New("the node has ended")
		}
	}()
	return <-ready
}

func (c *killNode) lookOut(_ context.Context, a killReply) (cli.None, error) {
	err := errors.New("there is a lookout already")
	c.lookout.once.Do(func() { err = c.lookout.start(c.node.Node, a.Addr) })
	return cli.None{}, err
}

func (c *killNode) noticed(ctx context.Context, _ cli.None) (noticedReply, error) {
	select {
	case <-c.lookout.seen:
		return noticedReply{c.lookout.at.UnixNano()}, nil
	case <-ctx.Done():
		return noticedReply{}, ctx.Err()
	}
}
