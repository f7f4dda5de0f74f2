// Consistent hashing by law: bounded, the same whatever shard is placed first, and few moves when a region comes or
// goes (SHD-6).

package strategy

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// members returns a view of the regions with these numbers, without homes.
func members(shards int, numbers ...int) *View {
	v := &View{Shards: uint32(shards), Limit: 1 << 20}
	for _, i := range numbers {
		v.Regions = append(v.Regions, Region{ID: node(i), Status: cluster.Up})
	}
	return v
}

func upTo(n int) (numbers []int) {
	for i := range n {
		numbers = append(numbers, i)
	}
	return numbers
}

// hashed returns all homes of a type, its shards wanted in a random order.
func hashed(t require.TestingT, h *ConsistentHash, v *View, rng *rand.Rand) []peer.ID {
	homes := make([]peer.ID, v.Shards)
	for _, s := range rng.Perm(int(v.Shards)) {
		id, err := h.Allocate(v, route.ShardID(s))
		require.NoError(t, err)
		homes[s] = id
		require.True(t, v.Give(route.ShardID(s), id))
	}
	return homes
}

// Types with one key live together, whatever was wanted first; another key spreads otherwise. No region has more than
// its slack, and what was allocated is where it belongs.
func TestConsistentHashLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards, n := rapid.IntRange(1, 400).Draw(t, "shards"), rapid.IntRange(1, 12).Draw(t, "regions")
		slack := rapid.SampledFrom([]int{0, 1, 10, 25, 100, -1}).Draw(t, "slack")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		v := members(shards, upTo(n)...)
		h := &ConsistentHash{Key: "orders", Slack: slack}
		first := hashed(t, h, v, rng)
		second := hashed(t, &ConsistentHash{Key: "orders", Slack: slack}, members(shards, upTo(n)...), rng)
		require.Equal(t, first, second)
		if slack == 0 {
			slack = DefaultSlack
		}
		most := (shards*(100+max(0, slack)) + 100*n - 1) / (100 * n)
		for i := range v.Regions {
			require.LessOrEqual(t, v.Regions[i].Count, most)
		}
		moves, err := h.Rebalance(v)
		require.NoError(t, err)
		require.Empty(t, moves)
	})
	rng := rand.New(rand.NewPCG(1, 1))
	require.NotEqual(t, hashed(t, &ConsistentHash{Key: "a"}, members(100, 0, 1, 2), rng),
		hashed(t, &ConsistentHash{Key: "b"}, members(100, 0, 1, 2), rng))
}

// F-A9 of the reference, its law for another hash: with loads unbounded a region that comes takes shards and no other
// shard moves, and one that goes gives up its own alone. The reference's vectors belong to its own hash (SHD-6).
func TestConsistentHashMovesOnlyWhatItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "regions")
		free := func() *ConsistentHash { return &ConsistentHash{Slack: 1 << 40} }
		rng := rand.New(rand.NewPCG(1, 1))
		before := hashed(t, free(), members(300, upTo(n)...), rng)
		after := hashed(t, free(), members(300, upTo(n+1)...), rng)
		for s := range before {
			if before[s] != after[s] {
				require.Equal(t, node(n), after[s])
			}
		}
	})
}

// With bounded loads few shards beyond these move: in the mean over many clusters less than a tenth more, and never as
// many again.
func TestConsistentHashMovesFew(t *testing.T) {
	needed, moved := 0, 0
	for n := 1; n <= 40; n++ {
		const shards = 1000
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		before := hashed(t, &ConsistentHash{}, members(shards, upTo(n)...), rng)
		grown := members(shards, upTo(n+1)...)
		after := hashed(t, &ConsistentHash{}, grown, rng)
		must, are := grown.Regions[n].Count, 0
		for s := range before {
			if before[s] != after[s] {
				are++
			}
		}
		require.Less(t, are, 2*must, "%d regions", n)
		needed, moved = needed+must, moved+are
	}
	t.Logf("a region comes to, or goes from, 1 to 40: %d moves, %d at least", moved, needed)
	require.Less(t, moved*10, needed*11)
}

// A region that comes gets its shards by moves, as many at a time as the limit says, in the order of the regions and of
// their shards; those that move already are left alone.
func TestConsistentHashRebalances(t *testing.T) {
	v := sized(60, 0)
	h := &ConsistentHash{Limit: 2}
	first, err := h.Rebalance(v)
	require.NoError(t, err)
	require.Len(t, first, 2)
	require.Less(t, first[0].Shard, first[1].Shard)
	v.Moving = first[:1]
	next, err := h.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, first[1:], next)
	v.Moving = nil
	settle(t, Check(h), v)
	require.Greater(t, v.Regions[1].Count, 60/4)
}

// A node that comes back at its address gets back what it had: the address counts, not the incarnation. Where nobody
// may be chosen nobody is.
func TestConsistentHashByAddress(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	v := members(100, 0, 1, 2)
	before := hashed(t, &ConsistentHash{}, v, rng)
	back := members(100, 0, 1, 2)
	back.Regions[1].ID.Inc = 77
	after := hashed(t, &ConsistentHash{}, back, rng)
	for s := range before {
		require.Equal(t, before[s].Addr, after[s].Addr)
	}
	for i := range back.Regions {
		back.Regions[i].NotReady = true
	}
	h := &ConsistentHash{}
	_, err := h.Allocate(back, 1)
	require.ErrorIs(t, err, ErrNoRegion)
	_, err = h.Allocate(v, 100)
	require.ErrorIs(t, err, ErrNoRegion, "a shard that the type does not have")
}

// The homes of a few shards are frozen: a coordinator of a later build must not move them.
func TestConsistentHashVectors(t *testing.T) {
	for slack, want := range map[int][]int{
		DefaultSlack: {0, 1, 0, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 1, 1, 0, 0, 1, 0, 2},
		-1:           {0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 2, 1, 0, 0, 1, 0, 2},
	} {
		v := members(20, 0, 1, 2)
		var homes []int
		for _, id := range hashed(t, &ConsistentHash{Key: "orders", Slack: slack}, v, rand.New(rand.NewPCG(1, 1))) {
			homes = append(homes, slices.IndexFunc(v.Regions, func(r Region) bool { return r.ID == id }))
		}
		require.Equal(t, want, homes)
	}
}
