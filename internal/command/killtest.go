// kith kill-test: real node processes on loopback, one of them killed, and how long the others take to say so.

package command

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// killCmd is the flags of kith kill-test.
type killCmd struct {
	Nodes    int  `default:"10" help:"Node processes, 2 to 64."`
	Rounds   int  `default:"10" help:"How often a cluster is formed and one of its processes killed, 1 to 1000."`
	Progress bool `help:"Show progress although stderr is not a terminal."`
	Verbose  bool `short:"v" help:"Show the logs of the node processes on stderr."`
}

// Validate is called by the parser.
func (c *killCmd) Validate() error {
	var errs []error
	if c.Nodes < 2 || c.Nodes > 64 {
		errs = append(errs, errors.New("--nodes must be 2 to 64"))
	}
	if c.Rounds < 1 || c.Rounds > 1000 {
		errs = append(errs, errors.New("--rounds must be 1 to 1000"))
	}
	return errors.Join(errs...)
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

// settleTime is what a formed cluster gets to dial the connections of its monitoring ring.
const settleTime = 2 * time.Second

// Run forms a cluster, kills one process, and does so again.
func (c *killCmd) Run(e *env) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	progress := cli.NewProgress(e.stderr, c.Progress)
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
	out.WallSeconds = seconds(began)
	return cli.Line(e.stdout, "kill", out)
}

// round forms a cluster and kills its victim-th process, which is never the first, the seed of the others.
func (c *killCmd) round(ctx context.Context, e *env, victim int) (first, all float64, err error) {
	cmd := &devCmd{Nodes: c.Nodes, Shards: 1, Steady: true, Verbose: c.Verbose}
	d := &dev{cmd: cmd, progress: cli.NewProgress(e.stderr, false)}
	defer d.kill()
	if err := d.form(ctx, e); err != nil {
		return 0, 0, err
	}
	cli.Pause(ctx, settleTime)
	limited, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	dead := d.nodes[victim]
	others := slices.Delete(slices.Clone(d.nodes), victim, victim+1)
	var self startReply
	if err := dead.Call(limited, "address", cli.None{}, &self); err != nil {
		return 0, 0, err
	}
	err = each(others, func(_ int, n *cli.Child) error { return n.Call(limited, "lookout", self, nil) })
	if err != nil {
		return 0, 0, err
	}
	at := time.Now()
	if err := dead.Process().Kill(); err != nil {
		return 0, 0, fmt.Errorf("kill: %w", err)
	}
	noticed := make([]noticedReply, len(others))
	err = each(others, func(i int, n *cli.Child) error { return n.Call(limited, "noticed", cli.None{}, &noticed[i]) })
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

func (c *childNode) lookOut(_ context.Context, a startReply) (cli.None, error) {
	err := errors.New("there is a lookout already")
	c.lookout.once.Do(func() { err = c.lookout.start(c.node, a.Addr) })
	return cli.None{}, err
}

func (c *childNode) noticed(ctx context.Context, _ cli.None) (noticedReply, error) {
	select {
	case <-c.lookout.seen:
		return noticedReply{c.lookout.at.UnixNano()}, nil
	case <-ctx.Done():
		return noticedReply{}, ctx.Err()
	}
}

func (c *childNode) address(context.Context, cli.None) (startReply, error) {
	return startReply{Addr: c.node.Addr().String()}, nil
}
