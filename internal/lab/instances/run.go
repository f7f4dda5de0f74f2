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
	"github.com/kith-io/kith/internal/lab/chaos"
)

// Config says what is run.
type Config struct {
	Nodes     int     // processes, 3 to 16
	Instances int     // of each partition, below Nodes
	Moves     int     // of each partition, by hand
	Rate      float64 // messages a second of each process to each instance
	Kill      bool    // a process that hosts, at the end
	Cut       bool    // a process that hosts off from all others, behind that
	Net       string  // how: one of chaos.Nets

	Child    cli.Options // how a child is started
	Progress *cli.Progress
}

// Validate returns all faults joined, or nil.
func (c *Config) Validate() error {
	var errs cli.Faults
	errs.Must(c.Nodes >= 3 && c.Nodes <= 16, "--nodes must be 3 to 16")
	errs.Must(c.Instances >= 1 && c.Instances < c.Nodes-1, "--instances must be 1 to all nodes less two")
	errs.Must(c.Moves >= 0 && c.Moves <= 1000, "--moves must be 0 to 1000")
	errs.Must(!c.Cut || c.Nodes >= 4, "--cut wants four --nodes: three are left, and two sides of one size do not go on")
	errs.Must(slices.Contains(chaos.Nets, c.Net), "--net: %q is none of %v", c.Net, chaos.Nets)
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
	net     *chaos.Network
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
	net, err := chaos.NewNetwork(cfg.Net, cfg.Nodes+1)
	if err != nil {
		return nil, err
	}
	c := &crew{cfg: &cfg, net: net, zero: zero, clock: cli.NewClock(zero)}
	defer func() {
		defer net.Close() // behind the processes
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
	if cfg.Cut {
		if err := c.cutOff(ctx, r); err != nil {
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
	listen, advertise, err := c.net.Start(n, &o)
	if err != nil {
		return err
	}
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
	if err := p.Call(ctx, "start", startArgs{seeds, listen, advertise, n, c.cfg.Instances, c.zero}, &p.addr); err != nil {
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
	first, err := c.back(ctx, hosts, victim.addr, at)
	if err != nil {
		return err
	}
	for was, since := range first { // maxima
		a := r.Handoffs[was.Path]
		a.KillGap = max(a.KillGap, millis(since-at))
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

// cutOff cuts a process that hosts off from all others, under traffic, waits until its instances live elsewhere, and
// holds what it handled meanwhile against that.
func (c *crew) cutOff(ctx context.Context, r *Result) error {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	hosts, err := c.whole(ctx, c.cfg.Instances)
	if err != nil {
		return err
	}
	before, err := c.ask(ctx)
	if err != nil {
		return err
	}
	victim := c.at(busiest(hosts))
	n := slices.Index(c.all, victim)
	if err := fleet.Tell(ctx, c.live(), "begin", c.cfg.Rate); err != nil {
		return err
	}
	cli.Pause(ctx, time.Second)
	at := c.clock.Now()
	if err := c.net.CutOff(n); err != nil {
		return err
	}
	victim.gone = true
	defer victim.Kill()
	first, err := c.back(ctx, hosts, victim.addr, at)
	if err != nil {
		return err
	}
	err = errors.Join(victim.Call(ctx, "end", cli.None{}, nil), victim.Call(ctx, "report", cli.None{}, &c.reports[n]))
	if err != nil {
		return err
	}
	c.cfg.Progress.Printf("%s was cut off for %.1f s", victim.Name(), (c.clock.Now() - at).Seconds())
	for was, since := range first { // maxima
		a := r.Handoffs[was.Path]
		a.CutGap = max(a.CutGap, millis(since-at))
		for _, l := range c.reports[n].Lives {
			if l.to == was {
				a.CutOverlap = max(a.CutOverlap, millis(l.Last-since))
			}
		}
	}
	last := Result{Handoffs: map[string]*Account{}}
	if err := c.settle(ctx, &last); err != nil {
		return err
	}
	for path, a := range last.Handoffs { // into a map
		r.Handoffs[path].CutLost = a.Lost - account(path, before).Lost
	}
	return nil
}

// busiest returns where an ordered instance is, and of the others those of the most paths.
func busiest(hosts map[string][]string) (best string) {
	most := -1
	for _, addr := range hosts["ordered"] {
		n := 0
		for _, list := range hosts { // a count
			if slices.Contains(list, addr) {
				n++
			}
		}
		if n > most {
			best, most = addr, n
		}
	}
	return best
}

// back waits until each instance of the node at addr has got messages elsewhere, and returns since when each does.
func (c *crew) back(ctx context.Context, hosts map[string][]string, addr string, at time.Duration) (
	map[to]time.Duration, error) {
	since := map[to]time.Duration{}
	for {
		all, err := c.ask(ctx)
		if err != nil {
			return nil, err
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
				since[to{path, slot}] = first
			}
		}
		if missing == 0 {
			return since, nil
		}
		if !cli.Pause(ctx, 200*time.Millisecond) {
			return nil, fmt.Errorf("instances of the lost node did not come back: %w", ctx.Err())
		}
	}
}
