// Tests of members that drain: what the leader makes of them, and how they stand in the metadata (PRT-4).

package partition

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
)

// TestPlanGivesNothingToDrainers: no empty slot, no hand-off and no move goes to a member that drains; it keeps what it
// has until it asks for a move, and the number of instances stays as it was (PRT-4).
func TestPlanGivesNothingToDrainers(t *testing.T) {
	members := nodes(1, 2, 3)
	table := define(t, nil, "a", Exactly(2)).Plan(members, 1, nil, at(1))
	require.Equal(t, []peer.ID{at(2), at(3)}, table[0].Instances)
	require.Equal(t, table, table.Plan(members, 1, nil, at(2)), "it asks for a move itself")

	full := define(t, table, "a", Exactly(3)).Plan(members, 1, nil, at(1))
	require.Equal(t, []peer.ID{at(2), at(3)}, full[0].Instances, "the third waits")
	require.Equal(t, 3, full[0].Wanted)
	full = full.Plan(members, 1, nil)
	require.Equal(t, []peer.ID{at(2), at(3), at(1)}, full[0].Instances, "it does not drain any more")

	wish, err := table.Move("a", 0, at(1), at(2))
	require.NoError(t, err)
	refused := wish.Plan(members, 1, nil, at(1))
	require.Empty(t, refused[0].Changes)
	require.Equal(t, refused[0].Version, refused[0].Heeded)

	moving := wish.Plan(members, 1, nil)
	require.Equal(t, at(1), moving[0].Changes[0].To)
	back := moving.Plan(members, 1, nil, at(1))
	require.Empty(t, back[0].Changes, "it would never be ready")
	require.Equal(t, table[0].Instances, back[0].Instances)
	require.Equal(t, back, back.Plan(members, 1, nil, at(1)))

	members[1].Status = cluster.Leaving
	members = append(members, nodes(4)...)
	leaves := table.Plan(members, 1, nil, at(1))
	require.Equal(t, at(4), leaves[0].Changes[0].To)
	given := leaves.Plan(members, 1, nil, at(1), at(4))
	require.Equal(t, peer.ID{}, given[0].Changes[0].To, "nobody is left that may")
}

// TestEvenSparesDrainers: what a plan has placed is not spread over members that drain (PRT-3, PRT-4).
func TestEvenSparesDrainers(t *testing.T) {
	var table Table
	for _, path := range []string{"a", "b", "c", "d"} {
		table = define(t, table, path, Exactly(1))
	}
	table = table.Plan(nodes(1, 2, 3), 1, nil, at(2))
	for i := range table {
		require.NotEqual(t, at(2), table[i].Instances[0])
	}
}

// TestDrainsGoldenBytes: the bytes are frozen; what is no such value names nobody (PRT-4, CARD-4).
func TestDrainsGoldenBytes(t *testing.T) {
	b, ok := AppendDrains(nil, nil)
	require.True(t, ok)
	require.Empty(t, b)
	ids := peer.Set{at(1), at(2)}
	b, ok = AppendDrains(nil, ids)
	require.True(t, ok)
	require.Equal(t, "02"+hex.EncodeToString(peer.AppendID(peer.AppendID(nil, at(1)), at(2))), hex.EncodeToString(b))
	require.Equal(t, ids, ReadDrains(b))
	for n := range b {
		require.Empty(t, ReadDrains(b[:n]))
	}
	require.Empty(t, ReadDrains(append(b, 0)))
	require.Empty(t, ReadDrains([]byte("by me")))
	twice := peer.AppendID(peer.AppendID([]byte{2}, at(2)), at(1))
	require.Empty(t, ReadDrains(twice), "out of order")

	many := peer.Set{}
	for i := 1; ok; i++ {
		require.Less(t, i, cluster.MaxMetadataValue)
		many.Add(at(i))
		b, ok = AppendDrains(b[:0], many)
	}
	require.Empty(t, b)
	many.Remove(many[0])
	_, ok = AppendDrains(nil, many)
	require.True(t, ok)
}

func FuzzDrains(f *testing.F) {
	b, _ := AppendDrains(nil, peer.Set{at(1), at(2)})
	f.Add(b)
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		ids := ReadDrains(b)
		spent.Within(t, before, 128*len(b))
		again, ok := AppendDrains(nil, ids)
		require.True(t, ok)
		if len(ids) > 0 {
			require.Equal(t, b, again)
		}
	})
}
