// Tests of places: one for each shard, whoever asks first, and none for a shard that is only looked for.

package exec

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sparse"
	"github.com/kith-io/kith/route"
)

func TestPlaces(t *testing.T) {
	for _, shards := range []uint32{1, 30, sparse.Flat, sparse.Flat + 1, route.MaxShards} {
		var p Places[int]
		p.Init(shards, func(v *int) { *v = 7 })
		large := shards > sparse.Flat
		if large {
			require.Zero(t, p.Made())
			require.False(t, p.Has(0))
			require.Zero(t, *p.Find(0))
		} else {
			require.Equal(t, int(shards), p.Made())
		}
		made := map[route.ShardID]*int{}
		for i := range min(shards, 1000) {
			s := route.ShardID(uint64(i) * uint64(shards) / uint64(min(shards, 1000)))
			made[s] = p.At(s)
			require.Equal(t, 7, *made[s])
			*made[s] = int(s)
		}
		if large {
			require.Equal(t, len(made), p.Made())
		}
		for s, v := range made {
			require.Same(t, v, p.At(s))
			require.True(t, p.Has(s))
			require.Same(t, v, p.Find(s))
			require.Equal(t, int(s), *v)
		}
		n := 0
		for s, v := range p.All {
			if want, is := made[s]; is {
				require.Same(t, want, v)
				n++
			}
		}
		require.Equal(t, len(made), n)
		for range p.All {
			break
		}
	}
}

// Goroutines that ask for the same shards at the same time get the same places, while the table grows under them.
func TestPlacesForMany(t *testing.T) {
	const shards, askers = 5000, 8
	var p Places[int]
	p.Init(route.MaxShards, nil)
	var all [askers][shards]*int
	var done sync.WaitGroup
	for a := range all {
		done.Go(func() {
			for i := range all[a] {
				s := route.ShardID(i * 200)
				all[a][i] = p.At(s)
				if p.Find(s) != all[a][i] {
					t.Error("not found where it was made")
				}
			}
		})
	}
	done.Wait()
	for a := range all {
		require.Equal(t, all[0], all[a])
	}
	require.Equal(t, shards, p.Made())
}
