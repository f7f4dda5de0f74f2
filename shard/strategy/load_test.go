// LoadAware by table: when it waits, hot shards, weights, homes for shards that have none (SHD-6).

package strategy

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/route"
)

// loaded returns a view of regions with shards of these rates.
func loaded(rates ...[]uint32) *View {
	var sizes []int
	for _, list := range rates {
		sizes = append(sizes, len(list))
	}
	v := sized(sizes...)
	for _, list := range rates {
		for _, n := range list {
			v.Loads = append(v.Loads, Load{Rate: n})
		}
	}
	return v
}

// One move, of the one shard that makes it even.
func TestLoadAwareTakesTheRightShard(t *testing.T) {
	v := loaded([]uint32{10, 50, 30, 60}, []uint32{40, 50})
	moves, err := LoadAware{}.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, []Move{{2, node(0), node(1)}}, moves)
	v.Limit = 0
	moves, err = LoadAware{}.Rebalance(v)
	require.NoError(t, err)
	require.Empty(t, moves)
}

// Where one move brings a region back to the edge of the tolerance no more than two are made, though it takes four to
// have it well within (SHD-6).
func TestLoadAwareMovesFew(t *testing.T) {
	v := loaded(slices.Repeat([]uint32{10}, 111), slices.Repeat([]uint32{10}, 89))
	require.LessOrEqual(t, len(settle(t, LoadAware{}, v)), 2)
	require.LessOrEqual(t, uneven(v), 0.1+1e-9)
}

// It waits for what it has begun, for figures, and for figures that are newer than the last move.
func TestLoadAwareWaits(t *testing.T) {
	uneven := func() *View { return loaded([]uint32{10, 10, 10, 10}, nil) }
	for name, change := range map[string]func(v *View){
		"figures from before the last move": func(v *View) { v.Since, v.Moved = 9*time.Second, 10*time.Second },
		"no figures":                        func(v *View) { v.Loads = nil },
		"nothing but zeros":                 func(v *View) { v.Loads = make([]Load, 4) },
		"one moves":                         func(v *View) { v.Moving = []Move{{0, node(0), node(1)}} },
		"a rolling update":                  func(v *View) { v.Regions[1].AppVersion = "2" },
		"nobody else":                       func(v *View) { v.Regions[1].NotReady = true },
		"nobody":                            func(v *View) { v.Regions[0].NotReady, v.Regions[1].Draining = true, true },
	} {
		v := uneven()
		change(v)
		moves, err := LoadAware{}.Rebalance(v)
		require.NoError(t, err)
		require.Empty(t, moves, name)
	}
	v := uneven()
	v.Since, v.Moved = 10*time.Second, 10*time.Second
	moves, err := LoadAware{Limit: 1}.Rebalance(v)
	require.NoError(t, err)
	require.Len(t, moves, 1)
	moves, err = LoadAware{}.Rebalance(v)
	require.NoError(t, err)
	require.Len(t, moves, 2)
}

// A shard with more than the mean gets a region of its own, two of them one each, and the others share the rest.
func TestLoadAwareWithHotShards(t *testing.T) {
	ones := func(n int, hot ...uint32) []uint32 { return append(hot, slices.Repeat([]uint32{1}, n)...) }
	v := loaded(ones(60, 1000), ones(20), ones(10))
	settle(t, LoadAware{}, v)
	require.Equal(t, route.ShardID(0), v.Regions[0].Shards[0])
	require.LessOrEqual(t, v.Regions[0].Count, 1+4, "a tenth of the mean of the others may stay")
	require.InDelta(t, v.Regions[1].Count, v.Regions[2].Count, 8)

	v = loaded(ones(60, 1000, 900), ones(20), nil)
	settle(t, LoadAware{}, v)
	hot := map[route.ShardID]int{}
	for i := range v.Regions {
		for _, s := range v.Regions[i].Shards {
			if s < 2 {
				hot[s] = i
			}
		}
	}
	require.NotEqual(t, hot[0], hot[1])
	require.GreaterOrEqual(t, v.Regions[3-hot[0]-hot[1]].Count, 72)

	v = loaded([]uint32{1000}, nil, nil)
	require.Empty(t, settle(t, LoadAware{}, v), "one shard is as even as it gets anywhere")
}

// Two shards change places where no single one would do.
func TestLoadAwareSwaps(t *testing.T) {
	v := loaded([]uint32{40, 40, 40}, []uint32{25, 25, 30})
	moves, err := LoadAware{}.Rebalance(v)
	require.NoError(t, err)
	require.Len(t, moves, 2)
	apply(t, v, moves)
	require.LessOrEqual(t, uneven(v), 0.1)
}

// Weights decide which figure counts; figures that are huge do not overflow.
func TestLoadAwareWeights(t *testing.T) {
	v := sized(2, 2)
	v.Loads = []Load{{HandlerTime: 9, Rate: 5}, {HandlerTime: 9, Rate: 5},
		{HandlerTime: 1, Rate: 5}, {HandlerTime: 1, Rate: 5}}
	moves, err := LoadAware{Weights: Weights{Rate: 1}}.Rebalance(v)
	require.NoError(t, err)
	require.Empty(t, moves)
	moves, err = LoadAware{Weights: Weights{HandlerTime: 1}}.Rebalance(v)
	require.NoError(t, err)
	require.NotEmpty(t, moves)

	huge := Load{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32}
	v.Loads = []Load{huge, huge, huge, {}}
	heavy := LoadAware{Weights: Weights{1 << 40, 1 << 40, -1, 0}}
	moves, err = heavy.Rebalance(v)
	require.NoError(t, err)
	require.Empty(t, moves, "three that are alike, at two regions")
	w := heavy.weighing()
	for range 3 {
		w.add(huge)
	}
	require.Equal(t, uint64(2*MaxWeight*(scale/3)), w.of(huge)/10*10+w.of(huge)%10)
}

// A shard without a home goes where the least load is, those under way counted as the mean, newer versions first.
func TestLoadAwareAllocates(t *testing.T) {
	v := sized(4, 2, 1)
	for i, rate := range []uint32{40, 100, 60} {
		r := &v.Regions[i]
		r.Shards, r.Load, r.Measured = nil, Load{Rate: rate}, r.Count
	}
	v.Shards = 1000
	given := map[int]int{}
	for s := route.ShardID(7); s < 17; s++ { // a shard has 28 in the mean
		to, err := LoadAware{}.Allocate(v, s)
		require.NoError(t, err)
		require.True(t, v.Give(s, to))
		for i := range v.Regions {
			if v.Regions[i].ID == to {
				given[i]++
			}
		}
	}
	require.Equal(t, map[int]int{0: 4, 1: 2, 2: 4}, given)
	v.Regions[1].AppVersion = "1.1"
	to, err := LoadAware{}.Allocate(v, 20)
	require.NoError(t, err)
	require.Equal(t, node(1), to)
	for i := range v.Regions {
		v.Regions[i].Status = cluster.Leaving
	}
	_, err = LoadAware{}.Allocate(v, 20)
	require.ErrorIs(t, err, ErrNoRegion)
	to, err = LoadAware{}.Allocate(sized(3, 1, 2), 9)
	require.NoError(t, err)
	require.Equal(t, node(1), to, "nothing is measured: the fewest shards")
}

// A shard without a home goes to a node that is not strained, though it has more; to any where most are. What waits in
// mailboxes has no weight by itself (PRT-5).
func TestLoadAwareAndNodes(t *testing.T) {
	v := loaded([]uint32{10}, []uint32{50}, []uint32{90})
	for i := range v.Regions {
		v.Regions[i].Load, v.Regions[i].Measured = v.Loads[i], 1
	}
	home := func(want int) {
		t.Helper()
		id, err := LoadAware{}.Allocate(v, 3)
		require.NoError(t, err)
		require.Equal(t, node(want), id)
	}
	home(0)
	v.Regions[0].Node.Collector = StrainedCollector
	home(1)
	v.Regions[1].Node.Processor = StrainedProcessor // most are: as if none were
	home(0)

	v = loaded([]uint32{10, 10}, []uint32{10, 10})
	for i := range v.Loads {
		v.Loads[i].Queued = uint32(i) * 1 << 20
	}
	moves, err := LoadAware{}.Rebalance(v)
	require.NoError(t, err)
	require.Empty(t, moves)
	moves, err = LoadAware{Weights: Weights{Queued: 1}}.Rebalance(v)
	require.NoError(t, err)
	require.NotEmpty(t, moves)
}
