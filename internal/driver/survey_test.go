// The pages of an answer to a survey.

package driver

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/survey"
	"github.com/kith-io/kith/route"
)

// In whatever order a node comes upon its shards, the pages of an answer name each once, by number.
func TestPagesOfAnAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, survey.MaxShards - 1, survey.MaxShards, survey.MaxShards + 1, 5*survey.MaxShards + 7} {
		var want, got []route.ShardID
		for _, s := range rng.Perm(2 * n)[:n] {
			want = append(want, route.ShardID(s))
		}
		orders := [][]route.ShardID{slices.Clone(want), slices.Sorted(slices.Values(want))}
		orders = append(orders, slices.Clone(orders[1]))
		slices.Reverse(orders[2])
		slices.Sort(want)
		for _, order := range orders {
			got = got[:0]
			from, more := route.ShardID(0), true
			for more {
				page := firstShards{from: from, upTo: route.NoShard}
				for _, s := range order {
					page.add(survey.Shard{ID: s})
				}
				require.LessOrEqual(t, len(page.list), 2*survey.MaxShards)
				var list []survey.Shard
				list, more = page.end()
				require.True(t, !more || len(list) == survey.MaxShards)
				for _, s := range list {
					got = append(got, s.ID)
					from = s.ID + 1
				}
			}
			require.True(t, slices.Equal(want, got), "%d shards", n)
		}
	}
}
