// The child: one node process that hosts or only sends. It answers calls on stdin.

package rolling

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// startArgs says how a node is started.
type startArgs struct {
	Job
	Listen string
	Seeds  []string
	TLS    fleet.Files   `json:",omitzero"`
	Hosts  bool          // it has the role of those that host
	Zero   time.Duration // of the run's clock
	Spaces bool          `json:",omitempty"` // it has a network of its own
}

// child is the state of the process. start comes before every other call.
type child struct {
	stderr io.Writer
	ledger *ledger.Ledger
	lives  lives
	facts  *facts
	naps   naps
	load   *load
	node   fleet.Node
}

// Child answers calls until the parent has closed stdin, or has gone.
func Child(stdin io.Reader, stdout, stderr io.Writer) error {
	c := &child{stderr: stderr, naps: naps{late: fleet.NewTimes()}}
	return c.node.Serve(stdin, stdout, cli.Ops{"start": cli.Op(c.start), "status": cli.Op(c.status),
		"counts": cli.Op(c.counts), "begin": cli.Op(c.begin), "end": cli.Op(c.end), "lap": cli.Op(c.lap),
		"report": cli.Op(c.report), "lives": cli.Op(c.told), "leave": cli.Op(c.leave), "pause": cli.Op(c.pause)})
}

func (c *child) start(ctx context.Context, a startArgs) (cli.None, error) {
	if c.node.Node != nil {
		return cli.None{}, errors.New("started already")
	}
	clock := cli.NewClock(a.Zero)
	c.ledger, c.facts = ledger.New(clock.Now), &facts{clock: clock, over: make(chan struct{})}
	cfg := kith.Config{Name: clusterName, Listen: a.Listen, Seeds: a.Seeds, LeaveTimeout: leaveTime,
		TLS: a.TLS.TLS(), JoinTimeout: joinLimit, Logger: slog.New(slog.NewTextHandler(c.stderr, nil))}
	cfg.Insecure = a.Spaces
	if a.Hosts {
		cfg.Roles = []string{hostRole}
	}
	if a.Large > 0 {
		cfg.MaxPayload = maxPayload
	}
	node, err := kith.Start(ctx, cfg)
	if err != nil {
		return cli.None{}, err
	}
	region, err := node.Register(entityType(c.ledger, &c.lives, &a.Job))
	if err != nil {
		return cli.None{}, errors.Join(err, node.Close())
	}
	if a.Kept > 0 {
		idle := func(ctx context.Context, _ *kith.Context, _ int) error { <-ctx.Done(); return nil }
		if _, err := node.Daemons(kith.Daemons{Name: daemonsName, N: a.Kept, Role: hostRole, Run: idle}); err != nil {
			return cli.None{}, errors.Join(err, node.Close())
		}
	}
	c.node.Node, c.load = node, newLoad(region, clock, &a.Job)
	go c.facts.read(node)
	go c.facts.watch(node)
	go c.naps.take(context.Background())
	return cli.None{}, nil
}

// status is what the parent asks for while it waits, many times a second and beside what is measured: it has to cost
// next to nothing.
type status struct {
	Up      int // members that are, in this node's view
	Members int
	Hosted  int // shards of the entities
	Kept    int // daemons
}

func (c *child) status(context.Context, cli.None) (status, error) {
	if err := c.node.Err(); err != nil {
		return status{}, err
	}
	v := c.node.View()
	s := status{Up: v.CountUp(), Members: len(v.Members)}
	for _, t := range c.node.Stats().Types {
		if t.Name == daemonsName {
			s.Kept = t.Hosted
			continue
		}
		s.Hosted += t.Hosted
	}
	return s, nil
}

// counts returns how many messages have come. It locks the page of each entity in turn: for when no time is measured.
func (c *child) counts(context.Context, cli.None) (uint64, error) {
	if err := c.node.Err(); err != nil {
		return 0, err
	}
	return c.ledger.Total(), nil
}

func (c *child) begin(_ context.Context, list []sender) (cli.None, error) {
	for _, s := range list {
		if err := c.load.begin(s); err != nil {
			return cli.None{}, err
		}
	}
	return cli.None{}, nil
}

// end stops all senders of this process and says what they have sent.
func (c *child) end(context.Context, cli.None) (ledger.SentCounts, error) { return c.load.end(), nil }

// lapReply is what has happened since the last lap.
type lapReply struct {
	Took   []byte // a histogram of nanoseconds
	Failed uint64
	Errs   map[string]uint64
	Slow   []slowAsk
	Facts  []fact
	Downed []string      // members that were, as this node has seen
	Late   time.Duration // the latest nap of the process
}

func (c *child) lap(context.Context, cli.None) (lapReply, error) {
	t := c.load.take()
	b, err := fleet.EncodeTimes(t.took)
	return lapReply{b, t.failed, t.errs, t.slow, c.facts.take(), c.facts.lost(),
		time.Duration(c.naps.told().Max())}, err
}

// report returns the ledger of this process, also of entities that have moved on.
func (c *child) report(context.Context, cli.None) (ledger.Report, error) {
	return c.ledger.Report(), nil
}

// told returns the instances that lived in this process.
func (c *child) told(context.Context, cli.None) (map[string][]Life, error) {
	return c.lives.told(), nil
}

// leave returns when the node is removed and has ended. What the end gave up shows in the ledgers.
func (c *child) leave(ctx context.Context, none cli.None) (cli.None, error) {
	_, err := c.node.Depart(ctx, none)
	if err == nil {
		<-c.facts.over
	}
	return none, err
}

// pause has nothing move for balance, or lets it.
func (c *child) pause(ctx context.Context, on bool) (cli.None, error) {
	if on {
		return cli.None{}, c.node.PauseRebalancing(ctx)
	}
	return cli.None{}, c.node.ResumeRebalancing(ctx)
}
