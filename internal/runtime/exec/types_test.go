// Tests of places: one for each shard, whichever goroutine asks first, and none for a shard that is only looked for.

package exec

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

func TestPlaces(t *testing.T) {
	for _, shards := range []uint32{1, 30, 64, 65, 5000, 1 << 17, 1<<17 + 1, route.MaxShards} {
		var p Places[int]
		p.Init(shards)
		require.Zero(t, p.Made())
		require.Zero(t, *p.Find(0))
		require.Zero(t, *p.Find(route.ShardID(shards)), "no such shard")
		require.Zero(t, *p.Find(1<<32 - 1), "nor this")
		require.Zero(t, p.Made())
		made := map[route.ShardID]*int{}
		for i := range min(shards, 1000) {
			s := route.ShardID(uint64(i) * uint64(shards) / uint64(min(shards, 1000)))
			made[s] = p.At(s)
			require.Zero(t, *made[s])
			*made[s] = int(s) + 1
		}
		for s, v := range made {
			require.Same(t, v, p.At(s))
			require.Same(t, v, p.Find(s))
			require.Equal(t, int(s)+1, *v)
		}
		n, last := 0, -1
		for s, v := range p.All {
			require.Less(t, uint32(s), shards)
			if shards <= placesOfBlock*mostBlocks {
				require.Greater(t, int(s), last)
				last = int(s)
			}
			if want, is := made[s]; is {
				require.Same(t, want, v)
				n++
			} else {
				require.Zero(t, *v)
			}
		}
		require.Equal(t, len(made), n)
		if shards > placesOfBlock*mostBlocks {
			require.Equal(t, len(made), p.Made())
		}
		require.LessOrEqual(t, p.Made(), placesOfBlock*len(made))
		for range p.All {
			break
		}
	}
}

// Goroutines that ask for the same shards at the same time get the same places, while there come more.
func TestPlacesForMany(t *testing.T) {
	for _, of := range []uint32{1 << 17, route.MaxShards} {
		placesForMany(t, of)
	}
}

func placesForMany(t *testing.T, of uint32) {
	const shards, askers = 5000, 8
	var p Places[int]
	p.Init(of)
	var all [askers][shards]*int
	var done sync.WaitGroup
	for a := range all {
		done.Go(func() {
			for i := range all[a] {
				s := route.ShardID(i * int(of) / shards)
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
}
