// Package strategytest holds what every strategy has to keep, as a suite to run against it (SHD-6).
package strategytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// T takes the findings; *testing.T is one.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Limit is how long a strategy may take in all for the law about time: 100,000 shards at 100 regions, each given a
// home, then a region that comes and ten rounds. It is far above what one of ours takes, so that a busy machine breaks
// no law; a strategy with steps that grow as the square of the shards does not end within it.
const Limit = 30 * time.Second

// law is something that every strategy keeps; it returns what shows that one does not.
type law struct {
	name string
	run  func(fresh func() strategy.Strategy) error
}

var laws = []law{
	{"the same question, the same answer", repeatable}, {"the view stays as it is", untouched},
	{"only who is eligible", eligible}, {"nobody is eligible", nobody}, {"moves can be carried out", lawful},
	{"moves stay within the limit", limited}, {"nothing moves while it is held", held},
	{"what was allocated stays", content}, {"rebalancing ends", ends}, {"no shard comes back", oneWay},
	{"noise moves nothing for ever", steady}, {"odd views", odd}, {"in time", within(Limit)},
}

// Run runs the whole suite against the strategies that fresh makes, each for one type with at most MaxShards shards,
// and reports every law that one breaks, with the seed of the case that shows it.
func Run(t T, fresh func() strategy.Strategy) {
	t.Helper()
	for _, l := range laws {
		if err := safely(l.run, fresh); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
	}
}

// MaxShards is the largest number of shards that the suite shows.
const MaxShards = 100_000

// seeds is how many random cases each law looks at.
const seeds = 40

// safely makes a finding of a panic.
func safely(law func(func() strategy.Strategy) error, fresh func() strategy.Strategy) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %.1000v", p)
		}
	}()
	return law(fresh)
}

// Node returns the identity of the i-th region that the suite shows, counted from 0.
func Node(i int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.%d.%d:7355", i/250, i%250+1)), Inc: uint64(i) + 1}
}

// blank returns a view of that many regions, Up and with one version, where no shard has a home.
func blank(shards, regions int) *strategy.View {
	v := &strategy.View{Now: time.Hour, Shards: uint32(shards), Limit: MaxShards}
	for i := range regions {
		v.Regions = append(v.Regions, strategy.Region{ID: Node(i), Status: cluster.Up, AppVersion: "1.0.0"})
	}
	return v
}

// scattered returns a view with shards that live anywhere, with random loads.
func scattered(rng *rand.Rand) *strategy.View {
	v := blank(1+rng.IntN(300), 1+rng.IntN(10))
	for _, s := range rng.Perm(int(v.Shards)) {
		v.Give(route.ShardID(s), Node(min(rng.IntN(len(v.Regions)), rng.IntN(len(v.Regions)))))
	}
	v.Loads = make([]strategy.Load, v.Shards)
	for i := range v.Loads {
		n := uint32(1000 + rng.IntN(9000))
		v.Loads[i] = strategy.Load{Entities: n / 100, Rate: n, HandlerTime: n * 10}
	}
	return v
}

// spoiled makes some regions, but not all, ineligible in one of several ways.
func spoiled(rng *rand.Rand, v *strategy.View) *strategy.View {
	keep := rng.IntN(len(v.Regions))
	for i := range v.Regions {
		if i == keep {
			continue
		}
		r := &v.Regions[i]
		switch rng.IntN(6) {
		case 0:
			r.NotReady = true
		case 1:
			r.Draining = true
		case 2:
			r.Unreachable = true
		case 3:
			r.Status = []cluster.Status{cluster.Joining, cluster.WeaklyUp, cluster.Leaving, cluster.Exiting,
				cluster.Down}[rng.IntN(5)]
		}
	}
	return v
}

// bare returns what Allocate is shown of a view: no lists of shards, and sums of loads.
func bare(v *strategy.View) *strategy.View {
	c := v.Clone()
	for i := range c.Regions {
		r := &c.Regions[i]
		if v.Loads != nil {
			for _, s := range r.Shards {
				l := v.Loads[s]
				r.Load.Entities, r.Load.Rate = r.Load.Entities+l.Entities, r.Load.Rate+l.Rate
				r.Load.HandlerTime += l.HandlerTime
			}
			r.Measured = len(r.Shards)
		}
		r.Shards = nil
	}
	c.Loads = nil
	return c
}

// each runs a law on many random cases.
func each(run func(rng *rand.Rand) error) error {
	for seed := range uint64(seeds) {
		if err := run(rand.New(rand.NewPCG(seed, 1))); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

// homeless is a shard to allocate in a view: any, since the view of Allocate does not say where shards live.
func homeless(rng *rand.Rand, v *strategy.View) route.ShardID {
	return route.ShardID(rng.IntN(int(v.Shards)))
}

func repeatable(fresh func() strategy.Strategy) error {
	one, other := fresh(), fresh()
	return each(func(rng *rand.Rand) error {
		v := scattered(rng)
		b, s := bare(v), homeless(rng, v)
		for i, c := range []strategy.Strategy{one, other, one} {
			id, err := c.Allocate(b.Clone(), s)
			again, err2 := one.Allocate(b.Clone(), s)
			if id != again || (err == nil) != (err2 == nil) {
				return fmt.Errorf("ask %d: shard %d to %v, %v, and to %v, %v", i, s, id, err, again, err2)
			}
			moves, _ := c.Rebalance(v.Clone())
			if again, _ := one.Rebalance(v.Clone()); !reflect.DeepEqual(moves, again) {
				return fmt.Errorf("ask %d: %d moves, and %d, or others", i, len(moves), len(again))
			}
		}
		return nil
	})
}

func untouched(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		c, v := fresh(), scattered(rng)
		b, s := bare(v), homeless(rng, v)
		before, beforeBare := v.Clone(), b.Clone()
		if _, err := c.Rebalance(v); err != nil {
			return err
		}
		if _, err := c.Allocate(b, s); err != nil && !errors.Is(err, strategy.ErrNoRegion) {
			return err
		}
		if !reflect.DeepEqual(v, before) || !reflect.DeepEqual(b, beforeBare) {
			return errors.New("it changed what it was shown")
		}
		return nil
	})
}

func eligible(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		c, v := fresh(), spoiled(rng, scattered(rng))
		b := bare(v)
		for s := range route.ShardID(min(20, v.Shards)) {
			id, err := c.Allocate(b, s)
			if errors.Is(err, strategy.ErrNoRegion) {
				continue
			}
			if r := v.Region(id); err != nil || r == nil || !r.Eligible() {
				return fmt.Errorf("shard %d is given to %v, which may not be chosen: %w", s, id, err)
			}
			b.Give(s, id)
		}
		return nil
	})
}

func nobody(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		v := scattered(rng)
		for i := range v.Regions {
			v.Regions[i].NotReady = true
		}
		c := fresh()
		if id, err := c.Allocate(bare(v), homeless(rng, v)); !errors.Is(err, strategy.ErrNoRegion) {
			return fmt.Errorf("%v, %w; want ErrNoRegion", id, err)
		}
		if moves, err := c.Rebalance(v); err != nil || len(moves) > 0 {
			return fmt.Errorf("%d moves, %w; want none", len(moves), err)
		}
		return nil
	})
}

// lawful uses the guard as the judge: regions, shards, homes, what moves already.
func lawful(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		v := scattered(rng)
		for i := range v.Regions {
			switch rng.IntN(4) {
			case 0:
				v.Regions[i].NotReady = true
			case 1:
				v.Regions[i].Draining = true
			}
		}
		c := fresh()
		if _, err := strategy.Check(c).Rebalance(v); err != nil {
			return err
		}
		if rng.IntN(2) == 0 { // some move already
			for i := range v.Regions {
				r := &v.Regions[i]
				if to := rng.IntN(len(v.Regions)); len(r.Shards) > 0 && to != i {
					v.Moving = insert(v.Moving, strategy.Move{Shard: r.Shards[0], From: r.ID, To: Node(to)})
				}
			}
		}
		_, err := strategy.Check(c).Rebalance(v)
		return err
	})
}
