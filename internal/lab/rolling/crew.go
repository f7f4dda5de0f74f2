// The crew: the processes of a run, and what is known of them together.

package rolling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
	"github.com/kith-io/kith/internal/cli/ledger"
	"github.com/kith-io/kith/internal/lab/chaos"
)

// process is the place of one node: an address that is kept, and the process that runs there now.
type process struct {
	name    string
	addr    string
	hosts   bool
	child   *cli.Child
	born    int // rises with each start: the lowest is the oldest member
	senders int // that run there
}

// crew is a running cluster.
type crew struct {
	cfg     *Config
	clock   cli.Clock
	zero    time.Duration
	all     []*process // those that host, then the one that only sends
	release []func()   // of the addresses
	spaces  *chaos.Spaces
	certs   fleet.Certs
	started int
	ids     uint32 // of senders, so far

	sent    ledger.SentCounts
	reports []ledger.Report // of processes that have ended
	gone    uint64          // messages that came to them
	lives   []map[string][]Life
	took    *hdrhistogram.Histogram
	failed  uint64
	facts   []fact
	downed  map[string]bool // members
	stalled int             // bystanders, so far
}

func newCrew(cfg *Config) (*crew, error) {
	c := &crew{cfg: cfg, zero: cli.MachineTime(), sent: ledger.SentCounts{}, downed: map[string]bool{},
		took: fleet.NewTimes()}
	c.clock = cli.NewClock(c.zero)
	if cfg.Link > 0 {
		var err error
		if c.spaces, err = chaos.NewSpaces(cfg.Nodes+1, cfg.Link); err != nil {
			return nil, err
		}
	}
	for i := range cfg.Nodes + 1 {
		addr, err := c.place(i)
		if err != nil {
			c.end()
			return nil, err
		}
		p := &process{name: fleet.Name(i), addr: addr, hosts: i < cfg.Nodes}
		if !p.hosts {
			p.name = "proxy"
		}
		c.all = append(c.all, p)
	}
	if !cfg.TLS {
		return c, nil
	}
	var names []string
	for _, p := range c.all {
		names = append(names, p.name)
	}
	var err error
	if c.certs, err = fleet.NewCerts(names, clusterName); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// place returns the address of a process, which is kept for it.
func (c *crew) place(slot int) (addr string, err error) {
	if c.spaces != nil {
		return c.spaces.Addr(slot)
	}
	addr, release, err := port.Hold()
	if err != nil {
		return "", fmt.Errorf("keep a port: %w", err)
	}
	c.release = append(c.release, release)
	return addr, nil
}

// end ends all processes at once, and gives the addresses back.
func (c *crew) end() {
	for _, p := range c.all {
		if p.child != nil {
			p.child.Kill()
		}
	}
	for _, release := range c.release {
		release()
	}
	if c.spaces != nil {
		if err := c.spaces.Close(); err != nil {
			c.cfg.Progress.Printf("network namespaces: %v", err)
		}
	}
	c.certs.Remove()
}

// hosts returns the processes that host.
func (c *crew) hosts() []*process { return c.all[:c.cfg.Nodes] }

// start starts the process of a place.
func (c *crew) start(ctx context.Context, p *process) error {
	o := c.cfg.Child
	o.Name = p.name
	if c.spaces != nil {
		c.spaces.Wrap(slices.Index(c.all, p), &o)
	}
	child, err := cli.Start(o)
	if err != nil {
		return err
	}
	p.child, p.born = child, c.started
	c.started++
	var seeds []string
	for _, h := range c.hosts() {
		seeds = append(seeds, h.addr)
	}
	return p.Call(ctx, "start", startArgs{Job: c.cfg.Job, Listen: p.addr, Seeds: seeds, Hosts: p.hosts, Zero: c.zero,
		Spaces: c.spaces != nil,
		TLS:    c.certs.Of(p.name)}, nil)
}

// Call asks the process that runs there now, which may take callLimit.
func (p *process) Call(ctx context.Context, op string, args, result any) error {
	return p.child.CallWithin(ctx, callLimit, op, args, result)
}

// status asks processes.
func (c *crew) status(ctx context.Context) ([]status, error) {
	return fleet.Ask[status](ctx, c.all, "status", cli.None{})
}

// form starts the processes, and waits until all see all.
func (c *crew) form(ctx context.Context) error {
	for _, p := range c.all {
		if err := c.start(ctx, p); err != nil {
			return err
		}
		c.cfg.Progress.Printf("%-5s  process %d on %s", p.name, p.child.PID(), p.addr)
	}
	if err := c.complete(ctx, fleet.FormLimit); err != nil {
		return fmt.Errorf("the cluster did not form: %w", err)
	}
	c.cfg.Progress.Printf("%d nodes up after %.1f s", len(c.all), c.clock.Now().Seconds())
	return nil
}

// complete waits until every process sees all of them Up and no other member.
func (c *crew) complete(ctx context.Context, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := fleet.Until(limited, 10*time.Millisecond, c.status, func(list []status) bool {
		return !slices.ContainsFunc(list, func(s status) bool { return s.Up != len(c.all) || s.Members != len(c.all) })
	})
	return err
}

// sendFrom starts so many senders on a process.
func (c *crew) sendFrom(ctx context.Context, p *process, n int) error {
	var list []sender
	each := float64(c.cfg.Senders)
	for range n {
		c.ids++
		list = append(list, sender{ID: c.ids, Tells: (c.cfg.Rate - c.cfg.Asks) / each, Asks: c.cfg.Asks / each})
	}
	p.senders += n
	return p.Call(ctx, "begin", list, nil)
}

// fewest returns the hosting process with the fewest senders, other than some.
func (c *crew) fewest(but []*process) *process {
	var best *process
	for _, p := range c.hosts() {
		if !slices.Contains(but, p) && (best == nil || p.senders < best.senders) {
			best = p
		}
	}
	return best
}

// send starts all senders: one of four on the process that only sends, the rest spread over those that host.
func (c *crew) send(ctx context.Context) error {
	if err := c.sendFrom(ctx, c.all[c.cfg.Nodes], (c.cfg.Senders+3)/4); err != nil {
		return err
	}
	for range c.cfg.Senders - (c.cfg.Senders+3)/4 {
		if err := c.sendFrom(ctx, c.fewest(nil), 1); err != nil {
			return err
		}
	}
	return nil
}

// silence stops the senders of a process in order: each has the answers to all that it asked.
func (c *crew) silence(ctx context.Context, p *process) error {
	var counts ledger.SentCounts
	if err := p.Call(ctx, "end", cli.None{}, &counts); err != nil {
		return err
	}
	p.senders = 0
	maps.Copy(c.sent, counts)
	return nil
}

// lap gathers what asks took since the last lap, and reports those that were slow.
func (c *crew) lap(ctx context.Context, list []*process) (*hdrhistogram.Histogram, error) {
	replies, err := fleet.Ask[lapReply](ctx, list, "lap", cli.None{})
	if err != nil {
		return nil, err
	}
	took := fleet.NewTimes()
	for i, r := range replies {
		if err := fleet.AddTimes(took, r.Took); err != nil {
			return nil, fmt.Errorf("times of %s: %w", list[i].name, err)
		}
		c.failed += r.Failed
		c.facts = append(c.facts, r.Facts...)
		for _, id := range r.Downed {
			c.downed[id] = true
		}
		for _, text := range slices.Sorted(maps.Keys(r.Errs)) {
			c.cfg.Progress.Printf("  %s: %d asks failed: %s", list[i].name, r.Errs[text], text)
		}
		if len(r.Slow) > 0 {
			c.cfg.Progress.Printf("  %s: naps were late by %.0f ms at most", list[i].name, millis(r.Late))
		}
		for _, s := range r.Slow {
			c.cfg.Progress.Printf("  %s: an ask to shard %d, due at %.3f s, took %.0f ms", list[i].name, s.Shard,
				s.Due.Seconds(), millis(s.Took))
		}
	}
	c.took.Merge(took)
	return took, nil
}

// evenLimit is how long is waited for what has missed its time.
const evenLimit = 10 * time.Minute

// over returns what asks took within so long, and until one was answered: on a busy machine that may be later.
func (c *crew) over(ctx context.Context, d time.Duration, late *naps) (*hdrhistogram.Histogram, error) {
	if _, err := c.lap(ctx, c.all); err != nil {
		return nil, err
	}
	late.told()
	cli.Pause(ctx, d)
	took, err := c.lap(ctx, c.all)
	for began := c.clock.Now(); err == nil && took.TotalCount() == 0; took, err = c.lap(ctx, c.all) {
		if c.clock.Now()-began > answerLimit {
			return nil, errNoAnswer
		}
		cli.Pause(ctx, d)
	}
	return took, err
}

// answerLimit is how long is waited for the first answer where none came in the time that is measured.
const answerLimit = time.Minute

// errNoAnswer is what a run ends with when nobody answers its asks.
var errNoAnswer = fmt.Errorf("no ask was answered within %s", answerLimit)

// evenAmong reports whether all shards have a home and no node that hosts has two more than another.
func evenAmong(shards int) func(hosted []int) bool {
	return func(hosted []int) bool {
		sum := 0
		for _, n := range hosted {
			sum += n
		}
		return sum == shards && slices.Max(hosted)-slices.Min(hosted) <= 1
	}
}

// until looks at the hosting nodes until their shards are as wanted, and returns how many each has. Each look is shown.
func (c *crew) until(ctx context.Context, ok func(hosted []int) bool, look func([]status)) ([]int, error) {
	limited, cancel := context.WithTimeout(ctx, evenLimit)
	defer cancel()
	hosted, shown := make([]int, c.cfg.Nodes), time.Now()
	_, err := fleet.Until(limited, 20*time.Millisecond, c.status, func(all []status) bool {
		if look != nil {
			look(all)
		}
		for i := range hosted {
			hosted[i] = all[i].Hosted
		}
		if ok(hosted) {
			return true
		}
		if time.Since(shown) > time.Second {
			shown = time.Now()
			c.cfg.Progress.Printf("%.1f s: shards %v", c.clock.Now().Seconds(), hosted)
		}
		return false
	})
	if err != nil {
		return nil, fmt.Errorf("shards are not even: %v: %w", hosted, err)
	}
	return hosted, nil
}
