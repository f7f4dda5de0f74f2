// The least-shard strategy by table and by law (SHD-6).

package shard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// regions builds loads of the given sizes; shards are numbered in the order of allocation.
func regions(sizes ...int) ([]load, [][]route.ShardID) {
	var loads []load
	var owned [][]route.ShardID
	next := route.ShardID(0)
	for i, n := range sizes {
		loads = append(loads, load{id: peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: 1}, shards: n})
		var list []route.ShardID
		for range n {
			list = append(list, next)
			next++
		}
		owned = append(owned, list)
	}
	return loads, owned
}

func TestRebalanceTable(t *testing.T) {
	for _, c := range []struct {
		name              string
		sizes             []int
		absolute, percent int
		want              []route.ShardID
	}{
		{"nothing", []int{0, 0}, 20, 10, nil},
		{"even", []int{2, 2, 2}, 20, 100, nil},
		{"one apart", []int{2, 3}, 20, 100, nil},
		{"a new region takes the oldest of those above the optimum", []int{4, 4, 0}, 20, 100, []route.ShardID{0, 4}},
		{"the relative limit", []int{10, 10, 0}, 20, 10, []route.ShardID{0, 1}},
		{"the absolute limit", []int{100, 0}, 20, 100, []route.ShardID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
			16, 17, 18, 19}},
		{"at least one", []int{4, 0}, 20, 10, []route.ShardID{0}},
		{"second phase: at the optimum while one lacks two", []int{2, 2, 2, 0}, 20, 100, []route.ShardID{0}},
	} {
		loads, owned := regions(c.sizes...)
		require.Equal(t, c.want, rebalance(loads, owned, c.absolute, c.percent), c.name)
	}
}

// Moving what each round names, to the most suitable region, ends with regions at most one apart.
func TestRebalanceConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 40), 1, 8).Draw(t, "sizes")
		loads, owned := regions(sizes...)
		for round := 0; ; round++ {
			require.Less(t, round, 400)
			moves := rebalance(loads, owned, rebalanceAbsolute, rebalancePercent)
			if len(moves) == 0 {
				break
			}
			require.LessOrEqual(t, len(moves), rebalanceAbsolute)
			for _, s := range moves {
				for i := range owned {
					for j, o := range owned[i] {
						if o == s {
							owned[i] = append(append([]route.ShardID{}, owned[i][:j]...), owned[i][j+1:]...)
							loads[i].shards--
							break
						}
					}
				}
				to := mostSuitable(loads)
				for i := range loads {
					if &loads[i] == to {
						owned[i] = append(owned[i], s)
						loads[i].shards++
					}
				}
			}
		}
		least, most := 1<<30, 0
		for i := range owned {
			least, most = min(least, len(owned[i])), max(most, len(owned[i]))
		}
		require.LessOrEqual(t, most-least, 1)
	})
}

func TestSuitability(t *testing.T) {
	loads, _ := regions(3, 1, 1, 0)
	loads[3].leaving = true
	require.Equal(t, &loads[1], mostSuitable(loads), "fewest shards, then identity, never one that leaves")
	require.Negative(t, loads[0].suits(loads[3]))
	require.Positive(t, loads[3].suits(loads[0]))
	require.Zero(t, loads[0].suits(loads[0]))
}

func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	err := Config{RetryInterval: -1, MaxTypes: -1, TakeoverTime: -1}.Validate()
	require.ErrorContains(t, err, "RetryInterval")
	require.ErrorContains(t, err, "MaxTypes")
	require.ErrorContains(t, err, "TakeoverTime")
	require.Error(t, Config{RetryInterval: 5, RetryMax: 4}.Validate())
	require.Equal(t, DefaultTakeoverTime, Config{}.withDefaults().TakeoverTime)
}
