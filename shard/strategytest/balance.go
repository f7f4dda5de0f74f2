// The laws about repeated rebalancing: it ends, nothing goes back and forth, limits and time.

package strategytest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

func insert(moves []strategy.Move, m strategy.Move) []strategy.Move {
	i, _ := slices.BinarySearchFunc(moves, m, func(a, b strategy.Move) int { return cmp.Compare(a.Shard, b.Shard) })
	return slices.Insert(moves, i, m)
}

func limited(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		v := scattered(rng)
		for _, limit := range []int{0, 1, 3} {
			v.Limit = limit
			if moves, err := fresh().Rebalance(v.Clone()); err != nil || len(moves) > limit {
				return fmt.Errorf("%d moves, %w; at most %d may begin", len(moves), err, limit)
			}
		}
		return nil
	})
}

func held(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		for _, h := range []strategy.Hold{strategy.Paused, strategy.Shutdown, strategy.Unstable, strategy.Updating} {
			v := scattered(rng)
			v.Hold = h
			if moves, err := fresh().Rebalance(v); err != nil || len(moves) > 0 {
				return fmt.Errorf("%d moves, %w, while it is %v", len(moves), err, h)
			}
		}
		v := scattered(rng)
		if v.Regions[rng.IntN(len(v.Regions))].AppVersion = "0.9"; v.Holds() != strategy.Updating {
			return nil // it is the only one
		}
		if moves, err := fresh().Rebalance(v); err != nil || len(moves) > 0 {
			return fmt.Errorf("%d moves, %w, while versions differ", len(moves), err)
		}
		return nil
	})
}

// content: where a strategy itself has put shards of one load, evenly loaded regions, nothing has to move.
func content(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		regions := 1 + rng.IntN(10)
		v, c := blank(regions*(10+rng.IntN(30)), regions), fresh()
		b := v.Clone()
		for _, s := range rng.Perm(int(v.Shards)) {
			id, err := c.Allocate(b, route.ShardID(s))
			if errors.Is(err, strategy.ErrNoRegion) {
				continue
			}
			if err != nil || !v.Give(route.ShardID(s), id) {
				return fmt.Errorf("shard %d to %v: %w", s, id, err)
			}
			r := b.Region(id)
			r.Count++
			r.Measured++
			r.Load.Rate += 100
		}
		v.Loads = slices.Repeat([]strategy.Load{{Rate: 100}}, int(v.Shards))
		if moves, err := c.Rebalance(v); err != nil || len(moves) > 0 {
			return fmt.Errorf("%d moves, %w, of %d shards at %d regions", len(moves), err, v.Shards, regions)
		}
		return nil
	})
}

// settle carries out rounds until there is one without moves, and shows each move. At most so many rounds.
func settle(c strategy.Strategy, v *strategy.View, rounds int, show func(strategy.Move) error) error {
	for range rounds {
		moves, err := c.Rebalance(v.Clone())
		if err != nil || len(moves) == 0 {
			return err
		}
		for _, m := range moves {
			if !v.Apply(m) {
				return fmt.Errorf("%v cannot be carried out", m)
			}
			if err := show(m); err != nil {
				return err
			}
		}
		v.Now += time.Minute
		v.Moved, v.Since = v.Now-30*time.Second, v.Now-20*time.Second
	}
	return fmt.Errorf("moves after %d rounds of %d shards", rounds, v.Shards)
}

// ends: there are no more rounds than shards, and then none for as long as nothing changes.
func ends(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		c, v := fresh(), scattered(rng)
		v.Limit = 1 + rng.IntN(30)
		moved := 0
		count := func(strategy.Move) error { moved++; return nil }
		if err := settle(c, v, int(v.Shards)+2, count); err != nil {
			return err
		}
		for moved = 0; v.Now < 3*time.Hour; v.Now += 10 * time.Minute {
			if err := settle(c, v, 2, count); err != nil || moved > 0 {
				return fmt.Errorf("%d moves after it had ended, %w", moved, err)
			}
		}
		return nil
	})
}

// oneWay: on the way to balance no shard comes back to where it was.
func oneWay(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		c, v := fresh(), scattered(rng)
		v.Limit = 1 + rng.IntN(30)
		was := map[route.ShardID][]peer.ID{}
		return settle(c, v, int(v.Shards)+2, func(m strategy.Move) error {
			if was[m.Shard] = append(was[m.Shard], m.From); slices.Contains(was[m.Shard], m.To) {
				return fmt.Errorf("shard %d comes back to %v", m.Shard, m.To)
			}
			return nil
		})
	})
}

// steady: figures that vary by 3 % move nothing once the balance has had time to get away from where it begins to move.
func steady(fresh func() strategy.Strategy) error {
	return each(func(rng *rand.Rand) error {
		c, v := fresh(), scattered(rng)
		const rounds = 60
		for round := range rounds {
			n := v.Clone()
			for i := range n.Loads {
				n.Loads[i].Rate += uint32(rng.IntN(int(n.Loads[i].Rate/17)+1)) - n.Loads[i].Rate/34
			}
			moves, err := c.Rebalance(n)
			if err != nil || round > rounds/2 && len(moves) > 0 {
				return fmt.Errorf("%d moves in round %d, %w", len(moves), round, err)
			}
			for _, m := range moves {
				v.Apply(m)
			}
		}
		return nil
	})
}

// odd: no regions, one region, one shard, none with a home, loads of zero or as large as they get.
func odd(fresh func() strategy.Strategy) error {
	huge := strategy.Load{Entities: 1<<32 - 1, Rate: 1<<32 - 1, HandlerTime: 1<<32 - 1}
	for _, shape := range [][2]int{{1, 0}, {1, 1}, {1, 5}, {100, 0}, {100, 1}, {100, 5}} {
		for name, loads := range map[string][]strategy.Load{"none": nil, "zero": make([]strategy.Load, shape[0]),
			"huge": slices.Repeat([]strategy.Load{huge}, shape[0])} { // each alone: no order
			v := blank(shape[0], shape[1])
			if v.Loads = loads; shape[1] > 1 {
				for s := range shape[0] / 2 {
					v.Give(route.ShardID(s), Node(s%2))
				}
			}
			if _, err := strategy.Check(fresh()).Rebalance(v); err != nil {
				return fmt.Errorf("%d shards, %d regions, loads %s: %w", shape[0], shape[1], name, err)
			}
			if _, err := fresh().Allocate(bare(v), 0); err != nil && !errors.Is(err, strategy.ErrNoRegion) {
				return fmt.Errorf("%d shards, %d regions: %w", shape[0], shape[1], err)
			}
		}
	}
	return nil
}

// within: a type of 100,000 shards at 100 regions.
func within(limit time.Duration) func(fresh func() strategy.Strategy) error {
	return func(fresh func() strategy.Strategy) error {
		done := make(chan error, 1)
		go func() { done <- safely(large, fresh) }()
		timeout := time.NewTimer(limit)
		defer timeout.Stop()
		select {
		case err := <-done:
			return err
		case <-timeout.C:
			return fmt.Errorf("%d shards at 100 regions take more than %v", MaxShards, limit)
		}
	}
}

func large(fresh func() strategy.Strategy) error {
	const regions = 100
	c, v := fresh(), blank(MaxShards, regions)
	b := v.Clone()
	for s := range route.ShardID(MaxShards) {
		id, err := c.Allocate(b, s)
		if errors.Is(err, strategy.ErrNoRegion) {
			continue
		}
		if err != nil || !v.Give(s, id) {
			return fmt.Errorf("shard %d to %v: %w", s, id, err)
		}
		b.Region(id).Count++
	}
	v.Regions = append(v.Regions, blank(1, regions+1).Regions[regions])
	v.Loads = slices.Repeat([]strategy.Load{{Rate: 100}}, MaxShards)
	for range 10 {
		moves, err := c.Rebalance(v)
		if err != nil {
			return err
		}
		for _, m := range moves {
			v.Apply(m)
		}
	}
	return nil
}
