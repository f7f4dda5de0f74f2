// Tests of the view: what it refuses, and how plans are carried out in it (SHD-6).

package strategy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/route"
)

func TestViewsThatContradictThemselves(t *testing.T) {
	require.NoError(t, sized(3, 2, 0).Validate())
	for name, spoil := range map[string]func(v *View){
		"no shards":             func(v *View) { v.Shards = 0 },
		"too many shards":       func(v *View) { v.Shards = route.MaxShards + 1 },
		"too many regions":      func(v *View) { v.Regions = make([]Region, cluster.MaxMembers+1) },
		"out of order":          func(v *View) { v.Regions[0], v.Regions[1] = v.Regions[1], v.Regions[0] },
		"a region twice":        func(v *View) { v.Regions[1].ID = v.Regions[0].ID },
		"a shard twice":         func(v *View) { v.Regions[1].Shards[0] = 0 },
		"a shard beyond":        func(v *View) { v.Regions[1].Shards[0] = 5 },
		"a count without list":  func(v *View) { v.Regions[2].Count = 1 },
		"loads of some":         func(v *View) { v.Loads = make([]Load, 4) },
		"moves out of order":    func(v *View) { v.Moving = []Move{{Shard: 2}, {Shard: 1}} },
		"a move twice":          func(v *View) { v.Moving = []Move{{Shard: 2}, {Shard: 2}} },
		"a move of a shard out": func(v *View) { v.Moving = []Move{{Shard: 5}} },
	} {
		v := sized(3, 2, 0)
		spoil(v)
		require.ErrorIs(t, v.Validate(), ErrBadView, name)
	}
}

func TestPlansInAView(t *testing.T) {
	v := sized(2, 0)
	v.Loads, v.Moving = make([]Load, 2), []Move{{Shard: 1}}
	old := v.Clone()
	require.Equal(t, v, old)
	require.True(t, v.Apply(Move{0, node(0), node(1)}))
	require.Equal(t, []int{1, 1}, counts(v))
	require.Equal(t, []int{2, 0}, counts(old), "a clone shares nothing")
	for _, m := range []Move{{0, node(0), node(1)}, {0, node(5), node(1)}, {0, node(1), node(5)}} {
		require.False(t, v.Apply(m), "%v", m)
	}
	require.NoError(t, v.Validate())
	require.True(t, v.IsMoving(1))
	require.False(t, v.IsMoving(0))
	v.Limit = 0
	require.Zero(t, v.Room())
	require.False(t, v.Give(1, node(7)))

	sparse := sized(2, 0)
	sparse.Regions[0].Shards = nil // as Allocate is shown it
	require.True(t, sparse.Give(2, node(0)))
	require.Equal(t, 3, sparse.Regions[0].Count)
	require.Empty(t, sparse.Regions[0].Shards)
}
