// Scaling out: nodes join a cluster under load, and how soon shards are even, at what price; and a fresh start of many.

package rolling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
)

// ScaleConfig says what scales out.
type ScaleConfig struct {
	Config               // Nodes are those at the end; Rounds, Together, Pause, Stall, Link, TLS and State do not count
	From   int           // nodes at the begin
	Steady time.Duration // how long is measured before the others join
	Even   time.Duration // shards must be even so long after the first of the joining processes was started
	Times  int           // asks may take so many times as long meanwhile, at p99
	Fresh  int           // nodes of the fresh start; 0: none is measured
	Within time.Duration // so long after the last of them is Up shards must be within a tenth of the mean
}

// ErrMissed is wrapped by the errors of ScaleOut that say what must not be.
var ErrMissed = errors.New("scaling out missed its bounds")

// keptWorkers is how many daemons there are in a fresh start, beside the entities, whose shards are kept alive too.
const keptWorkers = 100

// evenLimit is how long is waited for what has missed its time.
const evenLimit = 10 * time.Minute

// Validate returns all faults joined, or nil.
func (c *ScaleConfig) Validate() error {
	c.Rounds, c.Together = 1, 1
	errs := []error{c.Config.Validate()}
	check := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	check(c.From >= 1 && c.From < c.Nodes, "--from must be at least 1 and below --nodes")
	check(c.Steady >= 100*time.Millisecond && c.Steady <= time.Hour, "--steady must be 100ms to 1h")
	check(c.Even > 0, "--even must be more than 0")
	check(c.Times >= 1, "--times must be at least 1")
	check(c.Fresh == 0 || c.Fresh >= 2 && c.Fresh <= 16, "--fresh must be 0, or 2 to 16")
	check(c.Within > 0, "--within must be more than 0")
	return errors.Join(errs...)
}

// Scaled is the last line. Times are in the unit that their name ends with; those of the joining nodes count from when
// the first of their processes was started.
type Scaled struct {
	From        int     `json:"from"`
	Nodes       int     `json:"nodes"`
	Entities    int     `json:"entities"`
	Shards      uint32  `json:"shards"`
	Used        int     `json:"used_shards"` // to which something is sent, so that they live somewhere
	Rate        float64 `json:"rate"`        // messages a second, asks among them
	Up          float64 `json:"up_s"`        // until every process saw all of them Up
	Even        float64 `json:"even_s"`      // until no node had two shards more than another
	Hosted      []int   `json:"shards_per_node"`
	Moves       int     `json:"moves"`
	Needed      int     `json:"moves_needed"`
	MovedTwice  int     `json:"moved_twice"` // shards
	Aborted     int     `json:"aborted"`
	SteadyP99   float64 `json:"ask_steady_p99_ms"`
	ScalingP99  float64 `json:"ask_scaling_p99_ms"` // from the start of the processes until it was even
	ScalingMax  float64 `json:"ask_scaling_max_ms"`
	AfterP99    float64 `json:"ask_after_p99_ms"` // of all nodes, as long as before
	Times       float64 `json:"p99_times"`        // scaling as a multiple of steady
	AskErrors   uint64  `json:"ask_errors"`
	SteadyLate  float64 `json:"machine_steady_late_p99_ms"`  // of naps of a process that has nothing to do
	ScalingLate float64 `json:"machine_scaling_late_p99_ms"` // likewise
	Account
	Fresh *Fresh `json:"fresh,omitempty"`
}

// Fresh is a start of many nodes at once, whose shards are kept alive. Times count from when the last was Up.
type Fresh struct {
	Nodes   int      `json:"nodes"`
	Shards  uint32   `json:"shards"`
	Workers int      `json:"daemons"`
	Form    float64  `json:"form_s"`              // from the first process until every one saw all Up
	Even    *float64 `json:"even_s"`              // negative: before that; null: not within the time
	Hosted  []int    `json:"shards_per_node"`     // when the time was over
	Kept    []int    `json:"daemons_per_node"`    // likewise
	Off     float64  `json:"off_percent"`         // the most that any of them is off the mean
	Most    int      `json:"most_shards_at_once"` // that one node ever had
	Moves   int      `json:"moves"`
}

// ScaleOut measures, and returns an error that wraps ErrMissed when the result says what must not be.
func ScaleOut(ctx context.Context, cfg ScaleConfig) (*Scaled, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Scaled{From: cfg.From, Nodes: cfg.Nodes, Entities: cfg.Entities, Shards: cfg.Shards, Used: cfg.used()}
	if err := cfg.grow(ctx, r); err != nil {
		return nil, err
	}
	if cfg.Fresh > 0 {
		var err error
		if r.Fresh, err = cfg.fresh(ctx); err != nil {
			return r, fmt.Errorf("fresh start: %w", err)
		}
	}
	return r, r.verdict(&cfg)
}

// used returns how many shards have an entity.
func (c *ScaleConfig) used() int {
	all := map[kith.ShardID]bool{}
	for i := range c.Entities {
		all[kith.ShardOf(entityID(i), c.Shards)] = true
	}
	return len(all)
}

// grow has nodes join a cluster under load.
func (s *ScaleConfig) grow(ctx context.Context, r *Scaled) error {
	ctx, cancel := context.WithCancel(ctx) // ends the naps
	defer cancel()
	cfg := s.Config
	c, err := newCrew(&cfg)
	if err != nil {
		return err
	}
	defer c.end()
	spare := slices.Clone(c.all[s.From:s.Nodes])
	defer func() { c.all = append(c.all, spare...) }() // those that were not started are ended, too
	c.all = slices.Delete(c.all, s.From, s.Nodes)
	cfg.Nodes = s.From
	late := &naps{late: newTimes().took}
	if err := s.steady(ctx, c, r, late); err != nil {
		return err
	}
	began := c.clock.Now()
	c.all, spare = slices.Insert(c.all, s.From, spare...), nil
	cfg.Nodes = s.Nodes
	if err := s.join(ctx, c, r, began); err != nil {
		return err
	}
	scaling, err := c.lap(ctx, c.all)
	if err != nil {
		return err
	}
	r.ScalingP99, r.ScalingMax, r.ScalingLate = p99(scaling), millis(time.Duration(scaling.Max())), p99(late.told())
	r.moved(c.facts, s.From)
	cfg.Progress.Printf("up after %.2f s, even after %.2f s: %v, %d moves", r.Up, r.Even, r.Hosted, r.Moves)
	after, err := c.over(ctx, s.Steady, late)
	if err != nil {
		return err
	}
	r.AfterP99, r.Times = p99(after), r.ScalingP99/max(r.SteadyP99, 0.001)
	seconds := c.clock.Now().Seconds()
	t, err := c.settle(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	var whole Result
	whole.messages(t)
	r.Account, r.AskErrors = whole.Account, c.failed
	r.Rate = float64(int64((float64(t.Sent) + float64(c.took.TotalCount())) / seconds))
	return nil
}

// steady forms the cluster, starts the load, and measures it for a while.
func (s *ScaleConfig) steady(ctx context.Context, c *crew, r *Scaled, late *naps) error {
	if err := c.form(ctx); err != nil {
		return err
	}
	go late.take(ctx)
	if err := c.send(ctx); err != nil {
		return err
	}
	if _, err := c.until(ctx, evenAmong(r.Used), nil); err != nil {
		return err
	}
	cli.Pause(ctx, steadyTime)
	took, err := c.over(ctx, s.Steady, late)
	if err != nil {
		return err
	}
	r.SteadyP99, r.SteadyLate = p99(took), p99(late.told())
	c.facts = nil
	return nil
}

// join starts the processes that join, and waits until all shards are even.
func (s *ScaleConfig) join(ctx context.Context, c *crew, r *Scaled, began time.Duration) (err error) {
	for _, p := range c.all[s.From:s.Nodes] {
		if err := c.start(ctx, p); err != nil {
			return err
		}
	}
	r.Hosted, err = c.until(ctx, evenAmong(r.Used), func(all []status) {
		if r.Up == 0 && !slices.ContainsFunc(all, func(x status) bool { return x.Up != len(all) }) {
			r.Up = (c.clock.Now() - began).Seconds()
		}
	})
	r.Even = (c.clock.Now() - began).Seconds()
	return err
}

// over returns what asks took within so long.
func (c *crew) over(ctx context.Context, d time.Duration, late *naps) (*hdrhistogram.Histogram, error) {
	if _, err := c.lap(ctx, c.all); err != nil {
		return nil, err
	}
	late.told()
	cli.Pause(ctx, d)
	return c.lap(ctx, c.all)
}

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
	for shown := time.Now(); ; {
		all, err := c.status(ctx)
		if err != nil {
			return nil, err
		}
		if look != nil {
			look(all)
		}
		hosted := make([]int, c.cfg.Nodes)
		for i := range hosted {
			hosted[i] = all[i].Hosted
		}
		if ok(hosted) {
			return hosted, nil
		}
		if time.Since(shown) > time.Second {
			shown = time.Now()
			c.cfg.Progress.Printf("%.1f s: shards %v", c.clock.Now().Seconds(), hosted)
		}
		if !cli.Pause(limited, 20*time.Millisecond) {
			return nil, fmt.Errorf("shards are not even: %v: %w", hosted, limited.Err())
		}
	}
}

// moved makes the figures of the moves.
func (r *Scaled) moved(facts []fact, from int) {
	for _, n := range r.Hosted[from:] {
		r.Needed += n
	}
	_, r.Moves, r.Aborted = phasesOf(facts)
	times := map[kith.ShardID]int{}
	for _, f := range facts {
		if f.What != kith.MoveDone {
			continue
		}
		if times[f.Shard]++; times[f.Shard] == 2 {
			r.MovedTwice++
		}
	}
}

func p99(h *hdrhistogram.Histogram) float64 { return millis(time.Duration(h.ValueAtQuantile(99))) }

// fresh starts nodes that know each other's addresses, at once, with shards that are kept alive.
func (s *ScaleConfig) fresh(ctx context.Context) (*Fresh, error) {
	cfg := s.Config
	cfg.Nodes, cfg.Kept = s.Fresh, keptWorkers
	c, err := newCrew(&cfg)
	if err != nil {
		return nil, err
	}
	defer c.end()
	c.all = c.all[:s.Fresh] // nobody only sends
	r := &Fresh{Nodes: s.Fresh, Shards: s.Shards, Workers: keptWorkers}
	began := c.clock.Now()
	for _, p := range c.all { // one right after the other: the first forms the cluster
		if err := c.start(ctx, p); err != nil {
			return nil, err
		}
	}
	var up, even time.Duration
	for {
		all, err := c.status(ctx)
		if err != nil {
			return nil, err
		}
		now := c.clock.Now()
		if up == 0 && !slices.ContainsFunc(all, func(x status) bool { return x.Up != s.Fresh }) {
			up = now
		}
		r.Hosted, r.Kept = r.Hosted[:0], r.Kept[:0]
		for _, x := range all {
			r.Hosted, r.Kept = append(r.Hosted, x.Hosted), append(r.Kept, x.Kept)
		}
		r.Most = max(r.Most, slices.Max(r.Hosted))
		r.Off = max(off(r.Hosted, int(s.Shards)), off(r.Kept, keptWorkers))
		if r.Off > 10 {
			even = 0
		} else if even == 0 {
			even = now
			cfg.Progress.Printf("%.2f s: shards %v, daemons %v", now.Seconds(), r.Hosted, r.Kept)
		}
		if up > 0 && now >= up+s.Within {
			break
		}
		if now > began+evenLimit {
			return nil, errors.New("not all were Up")
		}
		cli.Pause(ctx, 20*time.Millisecond)
	}
	if _, err := c.lap(ctx, c.all); err != nil {
		return nil, err
	}
	_, r.Moves, _ = phasesOf(c.facts)
	if r.Form = (up - began).Seconds(); even > 0 {
		after := (even - up).Seconds()
		r.Even = &after
	}
	return r, nil
}

// off returns by how many percent of the mean the shards of any node are off it.
func off(hosted []int, shards int) (most float64) {
	mean := float64(shards) / float64(len(hosted))
	for _, n := range hosted {
		most = max(most, 100*(float64(n)-mean)/mean, 100*(mean-float64(n))/mean)
	}
	return most
}

// verdict names what must not be; nil for nothing.
func (r *Scaled) verdict(s *ScaleConfig) error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(r.Even <= s.Even.Seconds(), "even after %.2f s, later than %v", r.Even, s.Even)
	must(r.Times <= float64(s.Times), "asks took %.2f ms at p99 meanwhile, more than %d times %.2f ms (an idle process "+
		"was late by %.2f ms at p99, and by %.2f ms before)", r.ScalingP99, s.Times, r.SteadyP99, r.ScalingLate, r.SteadyLate)
	for _, x := range []struct {
		n    uint64
		what string
	}{{r.Lost, "messages lost"}, {r.Reordered, "reordered"}, {r.Duplicated, "duplicated"},
		{r.Foreign, "received that were never sent"}, {r.AskErrors, "asks without an answer"},
		{uint64(r.MovedTwice), "shards moved twice"}} {
		must(x.n == 0, "%d %s", x.n, x.what)
	}
	if f := r.Fresh; f != nil {
		must(f.Off <= 10, "%v after the fresh start shards are %.0f percent off the mean: %v, and %v of daemons", s.Within,
			f.Off, f.Hosted, f.Kept)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrMissed, errors.Join(errs...))
}
