// Tests of Oldest: which region gets a shard, what moves where, and what does not.

package strategy_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/shard/strategytest"
)

func TestOldestIsConformant(t *testing.T) {
	strategytest.Run(t, func() strategy.Strategy { return strategy.Oldest{} })
}

// aged is a view of members that came Up in another order than that of their identities.
func aged(numbers ...uint32) *strategy.View {
	v := &strategy.View{Shards: 3, Limit: 10}
	for i, n := range numbers {
		v.Regions = append(v.Regions, strategy.Region{ID: strategytest.Node(i), Status: cluster.Up, UpNumber: n})
	}
	return v
}

// TestOldestChooses: the lowest up-number among the eligible, whatever they have and whatever they run (SHD-2).
func TestOldestChooses(t *testing.T) {
	v := aged(7, 3, 5)
	v.Regions[1].Count, v.Regions[1].Shards = 2, []route.ShardID{0, 1}
	v.Regions[0].AppVersion = "9.0.0"
	to, err := strategy.Oldest{}.Allocate(v, 2)
	require.NoError(t, err)
	require.Equal(t, strategytest.Node(1), to)
	v.Regions[1].Draining = true // it leaves: the next oldest
	to, err = strategy.Oldest{}.Allocate(v, 2)
	require.NoError(t, err)
	require.Equal(t, strategytest.Node(2), to)
	for i := range v.Regions {
		v.Regions[i].NotReady = true
	}
	_, err = strategy.Oldest{}.Allocate(v, 2)
	require.ErrorIs(t, err, strategy.ErrNoRegion)
}

// TestOldestMovesHome: what lives elsewhere moves to the oldest, within the limit, and nothing moves when it is there.
func TestOldestMovesHome(t *testing.T) {
	v := aged(7, 3, 5)
	require.True(t, v.Give(0, strategytest.Node(0)))
	require.True(t, v.Give(1, strategytest.Node(2)))
	require.True(t, v.Give(2, strategytest.Node(1)))
	moves, err := strategy.Oldest{}.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, []strategy.Move{{Shard: 0, From: strategytest.Node(0), To: strategytest.Node(1)},
		{Shard: 1, From: strategytest.Node(2), To: strategytest.Node(1)}}, moves)
	v.Limit = 1
	moves, err = strategy.Oldest{}.Rebalance(v)
	require.NoError(t, err)
	require.Len(t, moves, 1)
	v.Moving = moves
	v.Limit = 10
	moves, err = strategy.Oldest{}.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, route.ShardID(1), moves[0].Shard, "the other moves already")
	require.Len(t, moves, 1)
	v.Regions[1].Status = cluster.Leaving
	moves, err = strategy.Oldest{}.Rebalance(v)
	require.NoError(t, err)
	for _, m := range moves {
		require.Equal(t, strategytest.Node(2), m.To, "of a leaver nothing moves for balance, nor to it")
	}
}

// TestOldestStays: a younger member that comes, however little it has, moves nothing.
func TestOldestStays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		v := aged(rng.Uint32N(5) + 1)
		for s := range route.ShardID(3) {
			v.Give(s, strategytest.Node(0))
		}
		v.Regions = append(v.Regions, aged(1, v.Regions[0].UpNumber+1+rng.Uint32N(5)).Regions[1])
		moves, err := strategy.Check(strategy.Oldest{}).Rebalance(v)
		require.NoError(t, err)
		require.Empty(t, moves)
	}
}
