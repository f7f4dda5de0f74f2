// Tests of sets and tables: laws against a plain map, and what they take of memory.

package sparse

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// anywhere draws shards that often meet: in one page, in neighbouring ones, and at the end.
func anywhere() *rapid.Generator[route.ShardID] {
	return rapid.Custom(func(t *rapid.T) route.ShardID {
		base := rapid.SampledFrom([]uint32{0, 1000, 5000, route.MaxShards - 130}).Draw(t, "base")
		return route.ShardID(base + rapid.Uint32Range(0, 129).Draw(t, "offset"))
	})
}

func members(s *Set, from route.ShardID) (list []route.ShardID) {
	for m := range s.From(from) {
		list = append(list, m)
	}
	return list
}

// A set holds what was added and not removed, in rising order.
func TestSetLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		model := map[route.ShardID]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			n := anywhere().Draw(t, "shard")
			if rapid.Bool().Draw(t, "add") {
				require.Equal(t, !model[n], s.Add(n))
				model[n] = true
			} else {
				require.Equal(t, model[n], s.Remove(n))
				delete(model, n)
			}
			require.Equal(t, model[n], s.Has(n))
			require.Equal(t, len(model), s.Len())
		}
		want := slices.Sorted(maps.Keys(model))
		require.True(t, slices.Equal(want, members(&s, 0)))
		from := anywhere().Draw(t, "from")
		at, _ := slices.BinarySearch(want, from)
		require.True(t, slices.Equal(want[at:], members(&s, from)))
		s.Clear()
		require.Zero(t, s.Len())
		require.Empty(t, members(&s, 0))
	})
}

// A set may be changed while it is walked: what is removed does not come any more.
func TestSetChangesWhileItIsWalked(t *testing.T) {
	var s Set
	for _, n := range []route.ShardID{500, 0, 63, 64, 5000} {
		s.Add(n)
	}
	var got []route.ShardID
	for n := range s.All {
		got = append(got, n)
		s.Remove(n)
		s.Remove(63)
		s.Remove(500)
		s.Add(1 << 19)
	}
	require.Equal(t, []route.ShardID{0, 64, 5000, 1 << 19}, got)
	require.Equal(t, 1, s.Len(), "the one that was added again and again")
}

// A table holds what was written, whether its shards are few or many, and only looking makes nothing.
func TestTableLaws(t *testing.T) {
	for _, shards := range []uint32{Flat, route.MaxShards} {
		rapid.Check(t, func(t *rapid.T) {
			tab := NewTable[int](shards)
			before := tab.Made()
			model := map[route.ShardID]int{}
			for range rapid.IntRange(0, 40).Draw(t, "steps") {
				n := route.ShardID(uint32(anywhere().Draw(t, "shard")) % shards)
				switch rapid.IntRange(0, 2).Draw(t, "what") {
				case 0:
					v := rapid.IntRange(1, 9).Draw(t, "value")
					*tab.At(n) = v
					model[n] = v
				case 1:
					require.Equal(t, model[n], tab.Peek(n))
				default:
					tab.Drop(n)
					delete(model, n)
				}
			}
			got, last := map[route.ShardID]int{}, -1
			for n, v := range tab.All {
				require.Greater(t, int(n), last)
				if last = int(n); *v != 0 {
					got[n] = *v
				}
			}
			require.Equal(t, model, got)
			if shards > Flat {
				require.Equal(t, len(model), tab.Made())
			} else {
				require.Equal(t, before, tab.Made())
			}
		})
	}
}

// Of a type of a million shards a hundred that are used cost a few kilobytes.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var s Set
	tab := NewTable[[7]uint64](route.MaxShards)
	for i := range 100 {
		n := route.ShardOf(string(rune('a'+i)), route.MaxShards)
		s.Add(n)
		tab.At(n)[0] = 1
		tab.Peek(n + 1)
		s.Has(n + 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(64<<10))
	require.Equal(t, 100, tab.Made())
	require.Equal(t, 100, s.Len())
}
