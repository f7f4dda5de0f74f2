// Tests of sets and of the mail arena against plain models.

package peer

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSetModel runs random additions and removals against a map.
func TestSetModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SliceOfN(genID(), 0, 6).Draw(t, "start")
		kept := slices.Clone(start)
		s := SetOf(start...)
		require.Equal(t, kept, start, "SetOf must not sort its argument")
		model := map[ID]bool{}
		for _, id := range start {
			model[id] = true
		}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			id := genID().Draw(t, "id")
			before := s.Clone()
			if rapid.Bool().Draw(t, "add") {
				require.Equal(t, !model[id], s.Add(id))
				model[id] = true
			} else {
				require.Equal(t, model[id], s.Remove(id))
				delete(model, id)
			}
			require.Equal(t, before.Has(id) == s.Has(id), before.Equal(s))
			require.Equal(t, model[id], s.Has(id))
			require.True(t, slices.Equal(slices.SortedFunc(maps.Keys(model), ID.Compare), s))
			require.Equal(t, slices.Index(s, id), s.Index(id))
		}
	})
}

// TestSetZero holds that the zero value is an empty set.
func TestSetZero(t *testing.T) {
	var s Set
	id := ID{MustAddr("a:1"), 1}
	require.False(t, s.Has(id))
	require.False(t, s.Remove(id))
	require.Equal(t, -1, s.Index(id))
	require.True(t, s.Equal(SetOf()))
	require.True(t, s.Add(id))
	require.False(t, s.Add(id))
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Has(id) }))
}

// TestArena holds that bodies stay whole while the arena grows, that a view cannot reach into the next body, and that a
// reset arena allocates nothing.
func TestArena(t *testing.T) {
	var a Arena
	var views [][]byte
	var want []string
	for i := range 100 {
		body := string(rune('a'+i%26)) + "-body"
		views = append(views, a.End(append(a.Begin(), body...)))
		want = append(want, body)
	}
	for i, view := range views {
		require.Equal(t, want[i], string(view))
		require.Equal(t, len(view), cap(view))
	}
	require.Empty(t, a.End(a.Begin()))
	require.Panics(t, func() { a.End(nil) }, "an End without its Begin")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		a.Reset()
		a.End(append(a.Begin(), "some body"...))
	}))
}
