// Scaling out: nodes join a cluster under load, and how soon shards are even, at what price; and a fresh start of many.

package rolling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// keptWorkers is how many daemons there are in a fresh start, beside the entities; their shards are kept alive too.
const keptWorkers = 100

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
	late := &naps{late: fleet.NewTimes()}
	if err := s.steady(ctx, c, r, late); err != nil {
		return err
	}
	began := c.clock.Now()
	c.all, spare = slices.Insert(c.all, s.From, spare...), nil
	cfg.Nodes = s.Nodes
	if s.Apart {
		began, err = s.joinApart(ctx, c, r, late, began)
	} else {
		err = s.join(ctx, c, r, began)
	}
	if err != nil {
		return err
	}
	r.Even = (c.clock.Now() - began).Seconds()
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
	r.Tally, r.AskErrors = t, c.failed
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
	even := evenAmong(r.Used)
	// On a busy machine shards can be even before a process has heard that the last one is Up.
	r.Hosted, err = c.until(ctx, func(hosted []int) bool { return r.Up > 0 && even(hosted) }, func(all []status) {
		if r.Up == 0 && !slices.ContainsFunc(all, func(x status) bool { return x.Up != len(all) }) {
			r.Up = (c.clock.Now() - began).Seconds()
		}
	})
	return err
}

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
