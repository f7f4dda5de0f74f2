// The run: processes with partitions under traffic; instances move, nodes join, leave and are killed.

package instances

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// Config says what is run.
type Config struct {
	Nodes     int     // processes, 3 to 16
	Instances int     // of each partition, below Nodes
	Moves     int     // of each partition, by hand
	Rate      float64 // messages a second of each process to each instance
	Kill      bool    // a process that hosts, at the end

	Child    cli.Options // how a child is started
	Progress *cli.Progress
}

// Validate returns all faults joined, or nil.
func (c *Config) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 3 && c.Nodes <= 16, "--nodes must be 3 to 16")
	errs.Must(c.Instances >= 1 && c.Instances < c.Nodes-1, "--instances must be 1 to all nodes less two")
	errs.Must(c.Moves >= 0 && c.Moves <= 1000, "--moves must be 0 to 1000")
	errs.Must(c.Rate > 0 && c.Rate <= 10_000, "--rate must be more than 0 and at most 10000")
	return errs.Err()
}

// How long things may take.
const (
	stepLimit = 60 * time.Second  // a move, a join, a leave
	killLimit = 120 * time.Second // until instances of a killed node live again
	lookEvery = 20 * time.Millisecond
)

// process is one node process.
type process struct {
	*cli.Child
	addr string
	gone bool
}

// crew are the processes, by the numbers of their senders, and the reports of those that are gone.
type crew struct {
	cfg     *Config
	all     []*process
	reports []report // by sender; the zero one of a process that lives
	zero    time.Duration
	clock   cli.Clock
}

// Run makes the account. The error wraps ErrFailed when the result says what must not be; without a result nothing was
// measured.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	zero := cli.MachineTime()
	c := &crew{cfg: &cfg, zero: zero, clock: cli.NewClock(zero)}
	defer func() {
		for _, p := range c.live() {
			p.Kill()
		}
	}()
	for range cfg.Nodes {
		if err := c.start(ctx); err != nil {
			return nil, err
		}
	}
	r := &Result{Nodes: cfg.Nodes, Instances: cfg.Instances, Moves: cfg.Moves, Handoffs: map[string]*Account{}}
	if err := c.planned(ctx, r); err != nil {
		return nil, err
	}
	if cfg.Kill {
		if err := c.killed(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Seconds = c.clock.Now().Seconds()
	return r, r.verdict()
}

func (c *crew) live() (list []*process) {
	for _, p := range c.all {
		if !p.gone {
			list = append(list, p)
		}
	}
	return list
}

// start starts one more process, and waits until all know the instances.
func (c *crew) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	n, o := len(c.all), c.cfg.Child
	o.Name = fleet.Name(n)
	child, err := cli.Start(o)
	if err != nil {
		return err
	}
	p := &process{Child: child}
	var seeds []string
	for _, other := range c.live() {
		seeds = append(seeds, other.addr)
	}
	c.all, c.reports = append(c.all, p), append(c.reports, report{})
	if err := p.Call(ctx, "start", startArgs{seeds, n, c.cfg.Instances, c.zero}, &p.addr); err != nil {
		return err
	}
	if len(c.all) < c.cfg.Nodes {
		return nil
	}
	_, err = c.whole(ctx, c.cfg.Instances)
	return errors.Join(err, fleet.Tell(ctx, c.live(), "known", cli.None{}))
}

// whole waits until no process sees anything being handed over or missing, and all see the same. It returns where the
// instances are.
func (c *crew) whole(ctx context.Context, instances int) (map[string][]string, error) {
	look := func(ctx context.Context) ([]map[string][]string, error) {
		return fleet.Ask[map[string][]string](ctx, c.live(), "hosts", cli.None{})
	}
	seen, err := fleet.Until(ctx, lookEvery, look, func(all []map[string][]string) bool {
		for _, hosts := range all {
			for path := range handoffs { // all of them
				if len(hosts[path]) != instances || !slices.Equal(hosts[path], all[0][path]) {
					return false
				}
			}
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("the instances were not placed: %w: %v", err, seen)
	}
	return seen[0], nil
}

// planned is what loses nothing: moves by hand, a join, a leave.
func (c *crew) planned(ctx context.Context, r *Result) error {
	if err := fleet.Tell(ctx, c.live(), "begin", c.cfg.Rate); err != nil {
		return err
	}
	cli.Pause(ctx, time.Second)
	for n := range c.cfg.Moves {
		if err := c.moves(ctx, n); err != nil {
			return fmt.Errorf("move %d: %w", n+1, err)
		}
	}
	before, err := c.whole(ctx, c.cfg.Instances)
	if err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	after, err := c.whole(ctx, c.cfg.Instances)
	if err != nil {
		return err
	}
	if fmt.Sprint(before) != fmt.Sprint(after) {
		return fmt.Errorf("%w: a join has moved instances: %v, then %v", ErrFailed, before, after)
	}
	c.cfg.Progress.Printf("joined; instances %v", after)
	leaver := c.at(after["ordered"][0])
	if err := c.leave(ctx, leaver); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	cli.Pause(ctx, time.Second)
	return c.settle(ctx, r)
}

// moves moves one instance of each partition to a node that has none of it.
func (c *crew) moves(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	hosts, err := c.whole(ctx, c.cfg.Instances)
	if err != nil {
		return err
	}
	paths := slices.Sorted(maps.Keys(handoffs))
	return fleet.Each(paths, func(_ int, path string) error {
		live := c.live()
		for i := range live {
			if p := live[(n+i)%len(live)]; !slices.Contains(hosts[path], p.addr) {
				return live[0].Call(ctx, "move", moveArgs{to{path, n % c.cfg.Instances}, p.addr}, nil)
			}
		}
		return errors.New("all nodes host one")
	})
}

func (c *crew) at(addr string) *process {
	return c.all[slices.IndexFunc(c.all, func(p *process) bool { return p.addr == addr && !p.gone })]
}

// leave makes a process end its senders, leave, and end.
func (c *crew) leave(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	if err := p.Call(ctx, "end", cli.None{}, nil); err != nil {
		return err
	}
	at := c.clock.Now()
	if err := p.Call(ctx, "leave", cli.None{}, nil); err != nil {
		return err
	}
	c.cfg.Progress.Printf("%s left in %.2f s", p.Name(), (c.clock.Now() - at).Seconds())
	if err := p.Call(ctx, "report", cli.None{}, &c.reports[slices.Index(c.all, p)]); err != nil {
		return err
	}
	p.gone = true
	if err := p.Close(fleet.CloseGrace); err != nil {
		return err
	}
	_, err := c.whole(ctx, c.cfg.Instances)
	return err
}

// ask returns the reports of all processes, by sender.
func (c *crew) ask(ctx context.Context) ([]report, error) {
	all := slices.Clone(c.reports)
	for i, p := range c.all {
		if !p.gone {
			all[i] = report{}
			if err := p.Call(ctx, "report", cli.None{}, &all[i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// settle ends the senders, and waits until all has come or no more does.
func (c *crew) settle(ctx context.Context, r *Result) error {
	if err := fleet.Tell(ctx, c.live(), "end", cli.None{}); err != nil {
		return err
	}
	last, quiet := uint64(0), time.Now()
	for cli.Pause(ctx, 100*time.Millisecond) {
		all, err := c.ask(ctx)
		if err != nil {
			return err
		}
		lost, came := uint64(0), uint64(0)
		for path := range handoffs { // sums
			a := account(path, all)
			r.Handoffs[path] = a
			lost, came = lost+a.Lost, came+a.Handled+a.Returned
		}
		if came > last {
			last, quiet = came, time.Now()
		}
		if lost == 0 || time.Since(quiet) > 3*time.Second {
			return nil
		}
	}
	return ctx.Err()
}

// killed kills a process that hosts, under traffic, and waits until its instances live elsewhere.
func (c *crew) killed(ctx context.Context, r *Result) error {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	hosts, err := c.whole(ctx, c.cfg.Instances)
	if err != nil {
		return err
	}
	victim := c.at(hosts["ordered"][0])
	if err := victim.Call(ctx, "report", cli.None{}, &c.reports[slices.Index(c.all, victim)]); err != nil {
		return err
	}
	before := map[string]uint64{}
	for path := range handoffs { // into a map
		before[path] = r.Handoffs[path].Lost
	}
	others := slices.DeleteFunc(c.live(), func(p *process) bool { return p == victim })
	if err := fleet.Tell(ctx, others, "begin", c.cfg.Rate); err != nil {
		return err
	}
	cli.Pause(ctx, time.Second)
	at := c.clock.Now()
	victim.Kill()
	victim.gone = true
	if err := c.back(ctx, r, hosts, victim.addr, at); err != nil {
		return err
	}
	last := Result{Handoffs: map[string]*Account{}}
	if err := c.settle(ctx, &last); err != nil {
		return err
	}
	for path := range handoffs { // into a map
		r.Handoffs[path].KillLost = last.Handoffs[path].Lost - before[path]
	}
	return nil
}

// back waits until each instance that was killed has got messages elsewhere, and notes how long that took.
func (c *crew) back(ctx context.Context, r *Result, hosts map[string][]string, addr string, at time.Duration) error {
	for {
		all, err := c.ask(ctx)
		if err != nil {
			return err
		}
		missing := 0
		for path, list := range hosts { // each on its own: the order does not show
			slot := slices.Index(list, addr)
			if slot < 0 {
				continue
			}
			first := time.Duration(0)
			for _, rep := range all {
				for _, l := range rep.Lives {
					if l.to == (to{path, slot}) && l.First > at && (first == 0 || l.First < first) {
						first = l.First
					}
				}
			}
			if first == 0 {
				missing++
			} else {
				r.Handoffs[path].KillGap = millis(first - at)
			}
		}
		if missing == 0 {
			return nil
		}
		if !cli.Pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("instances of the killed node did not come back: %w", ctx.Err())
		}
	}
}
