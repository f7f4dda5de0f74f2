// The run: a cluster under load in which each process leaves and comes again in turn, and the account of it.

package rolling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
)

// Run restarts the processes of a cluster of its own and makes the account. When ctx ends no further one is restarted.
// The error wraps ErrFailed when the result says what must not be; without a result nothing was measured.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := newCrew(&cfg)
	if err != nil {
		return nil, err
	}
	defer c.end()
	if err := c.form(ctx); err != nil {
		return nil, err
	}
	r := &Result{Nodes: cfg.Nodes, Entities: cfg.Entities, Shards: cfg.Shards}
	began := c.clock.Now()
	napping, wake := context.WithCancel(context.Background())
	late := &naps{late: fleet.NewTimes()}
	go late.take(napping)
	err = c.send(ctx)
	if err == nil {
		err = c.roll(ctx, r)
	}
	wake()
	if err != nil {
		return nil, err
	}
	r.Seconds = float64((c.clock.Now() - began).Milliseconds()) / 1000
	r.late(late.told())
	t, err := c.settle(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	r.asks(c.took, c.failed)
	r.messages(t)
	r.moves(c.facts)
	r.HealthyDowned = len(c.downed)
	if r.States, err = c.states(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return r, r.verdict(cfg.Rounds, cfg.Bound)
}

// roll restarts one process after the other.
func (c *crew) roll(ctx context.Context, r *Result) error {
	cli.Pause(ctx, steadyTime)
	if err := c.steady(ctx); err != nil {
		return err
	}
	var turn []*process
	var leaves, joins []time.Duration
	for n := 0; n < c.cfg.Rounds && ctx.Err() == nil; {
		if len(turn) == 0 {
			turn = c.pass(n / c.cfg.Nodes)
		}
		some := turn[:min(c.cfg.Together, len(turn), c.cfg.Rounds-n)]
		turn = turn[len(some):]
		if slices.Contains(some, c.oldest()) {
			r.Coordinators++
		}
		left, joined, err := c.restart(context.WithoutCancel(ctx), some, n)
		if err != nil {
			return fmt.Errorf("restart %d, of %s: %w", n+1, names(some), err)
		}
		n, r.Restarts = n+len(some), r.Restarts+len(some)
		leaves, joins = append(leaves, left), append(joins, joined)
		cli.Pause(ctx, c.cfg.Pause)
	}
	r.restarts(leaves, joins)
	cli.Pause(ctx, steadyTime)
	return nil
}

// steady tells what asks take before anything is restarted.
func (c *crew) steady(ctx context.Context) error {
	list, err := c.status(ctx)
	if err != nil {
		return err
	}
	took, err := c.lap(ctx, c.all)
	if err != nil {
		return err
	}
	shards := ""
	for i, p := range c.hosts() {
		shards += fmt.Sprintf(" %s:%d", p.name, list[i].Hosted)
	}
	c.cfg.Progress.Printf("shards%s; asks p50 %.2f ms, p99.9 %.2f ms, max %.2f ms", shards,
		millis(time.Duration(took.ValueAtQuantile(50))), millis(time.Duration(took.ValueAtQuantile(99.9))),
		millis(time.Duration(took.Max())))
	return nil
}

// pass returns the order in which processes are restarted next, each once: the oldest member first, which coordinates
// each time, and in every second pass the youngest first, which coordinates at the end alone.
func (c *crew) pass(n int) []*process {
	list := slices.SortedFunc(slices.Values(c.hosts()), func(a, b *process) int { return cmp.Compare(a.born, b.born) })
	if n%2 == 1 {
		slices.Reverse(list)
	}
	return list
}

// oldest returns the process of the oldest member that hosts.
func (c *crew) oldest() *process {
	return slices.MinFunc(c.hosts(), func(a, b *process) int { return cmp.Compare(a.born, b.born) })
}

// names lists processes for people.
func names(list []*process) string {
	all := make([]string, len(list))
	for i, p := range list {
		all[i] = p.name
	}
	return strings.Join(all, " and ")
}

// handOn makes processes stop their senders; those of others take their place.
func (c *crew) handOn(ctx context.Context, list []*process) error {
	for _, p := range list {
		senders := p.senders
		if err := c.silence(ctx, p); err != nil {
			return err
		}
		for range senders {
			if err := c.sendFrom(ctx, c.fewest(list), 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// restart has processes hand on their senders, leave, and end; and others join at the same addresses. It returns how
// long the leave took, and the rest until all see the new ones Up.
func (c *crew) restart(ctx context.Context, list []*process, n int) (left, joined time.Duration, err error) {
	if err := c.handOn(ctx, list); err != nil {
		return 0, 0, err
	}
	at := c.clock.Now()
	limited, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	goOn := c.stall(list)
	defer goOn()
	err = fleet.Each(list, func(_ int, p *process) error { return p.child.Call(limited, "leave", cli.None{}, nil) })
	if err != nil {
		return 0, 0, err
	}
	left = c.clock.Now() - at
	facts := len(c.facts)
	for _, p := range list {
		if err := c.close(ctx, p); err != nil {
			return 0, 0, err
		}
	}
	for _, p := range list {
		if err := c.start(ctx, p); err != nil {
			return 0, 0, err
		}
	}
	if err := c.complete(ctx, joinLimit); err != nil {
		return 0, 0, fmt.Errorf("not all see it Up again: %w", err)
	}
	joined = c.clock.Now() - at - left
	took, err := c.lap(ctx, c.all)
	if err != nil {
		return 0, 0, err
	}
	m, moves, _ := phasesOf(c.facts[facts:])
	most := func(list []time.Duration) float64 { return millis(quantile(list, 1000)) }
	c.cfg.Progress.Printf("restart %d of %d at %.3f s: %s left in %.2f s, up again after %.2f s; "+
		"asks p99.9 %.1f ms, max %.1f ms; %d moves, max %.1f ms: mark %.1f, stop %.1f, start %.1f",
		n+len(list), c.cfg.Rounds, at.Seconds(), names(list), left.Seconds(), joined.Seconds(),
		millis(time.Duration(took.ValueAtQuantile(99.9))), millis(time.Duration(took.Max())), moves,
		most(m.whole), most(m.mark), most(m.stop), most(m.start))
	return left, joined, nil
}

// stall stops a bystander of those that leave, each time another one, for the time that is set. What it returns waits
// until that is over.
func (c *crew) stall(leave []*process) (wait func()) {
	others := slices.DeleteFunc(slices.Clone(c.hosts()), func(p *process) bool { return slices.Contains(leave, p) })
	if c.cfg.Stall == 0 || len(others) == 0 {
		return func() {}
	}
	p := others[c.stalled%len(others)]
	c.stalled++
	done := make(chan struct{})
	if err := p.child.Process().Signal(syscall.SIGSTOP); err != nil {
		c.cfg.Progress.Printf("%s could not be stopped: %v", p.name, err)
	}
	go func() {
		defer close(done)
		time.Sleep(c.cfg.Stall)
		if err := p.child.Process().Signal(syscall.SIGCONT); err != nil {
			c.cfg.Progress.Printf("%s could not go on: %v", p.name, err)
		}
	}()
	return func() { <-done }
}

// close ends a process after its node has left, and keeps what it has noted.
func (c *crew) close(ctx context.Context, p *process) error {
	if _, err := c.lap(ctx, []*process{p}); err != nil {
		return err
	}
	var r ledger.Report
	if err := p.Call(ctx, "report", cli.None{}, &r); err != nil {
		return err
	}
	c.reports = append(c.reports, r)
	if c.cfg.State > 0 {
		var lives map[string][]Life
		if err := p.Call(ctx, "lives", cli.None{}, &lives); err != nil {
			return err
		}
		c.lives = append(c.lives, lives)
	}
	c.gone += ledger.Compare(nil, r).Foreign
	return p.child.Close(fleet.CloseGrace)
}

// settle stops all senders, waits for what is under way, and holds what was sent against what came.
func (c *crew) settle(ctx context.Context) (ledger.Tally, error) {
	for _, p := range c.all {
		if err := c.silence(ctx, p); err != nil {
			return ledger.Tally{}, err
		}
	}
	if _, err := c.lap(ctx, c.all); err != nil {
		return ledger.Tally{}, err
	}
	if err := fleet.Drain(ctx, ledger.Compare(c.sent).Sent, c.cfg.Progress, c.came); err != nil {
		return ledger.Tally{}, err
	}
	reports, err := fleet.Ask[ledger.Report](ctx, c.all, "report", cli.None{})
	return ledger.Compare(c.sent, append(reports, c.reports...)...), err
}

// came returns how many messages have come.
func (c *crew) came(ctx context.Context) (uint64, error) {
	list, err := fleet.Ask[uint64](ctx, c.all, "counts", cli.None{})
	came := c.gone
	for _, n := range list {
		came += n
	}
	return came, err
}

// states follows the entities' states, once no move is on its way any more; nil where they carry none.
func (c *crew) states(ctx context.Context) (*States, error) {
	if c.cfg.State == 0 {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		now, err := fleet.Ask[map[string][]Life](ctx, c.all, "lives", cli.None{})
		if err != nil {
			return nil, err
		}
		s := &States{StateBytes: c.cfg.State}
		if s.compare(append(now, c.lives...)) || !cli.Pause(limited, 50*time.Millisecond) {
			return s, nil
		}
	}
}
