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

// TestHandOffsAreTurnedBack: a hand-off to a member that drains goes the other way where the old instance ends first,
// since either may have it; where the old node forwards it goes on, since both may have one, and one handles; that of
// other kinds is given up. Where the old node drains too, or is no member that stays, it goes on. Found by storms
// 12700001141 and 12800000622 (PRT-4).
func TestHandOffsAreTurnedBack(t *testing.T) {
	members := nodes(1, 2, 3)
	pending := func(way cluster.Handoff) Table {
		d := cluster.PartitionDefinition{Path: "a", Count: Exactly(1), Handoff: way}
		table, err := Table(nil).Define(d, at(3))
		require.NoError(t, err)
		table, err = table.Plan(members, 1, nil).Move("a", 0, at(2), at(3))
		require.NoError(t, err)
		table = table.Plan(members, 1, nil)
		require.Equal(t, at(2), table[0].Changes[0].To)
		return table
	}
	buffers := cluster.Handoff{Old: cluster.OldDrops, New: cluster.NewBuffers}
	for _, way := range []cluster.Handoff{cluster.Stateless, cluster.Ordered, buffers} {
		up := pending(way).Plan(members, 2, nil, at(2))
		require.Equal(t, []peer.ID{at(1)}, up[0].Instances, "%v", way)
		require.Empty(t, up[0].Changes)
	}
	on := pending(cluster.Handoff{Old: cluster.OldForwards})
	require.Equal(t, on, on.Plan(members, 2, nil, at(2)))
	arrived := on.Complete(on[0].Changes[0]).Plan(members, 2, nil, at(2))
	require.Equal(t, []peer.ID{at(2)}, arrived[0].Instances)
	require.Empty(t, arrived[0].Changes)

	table := pending(cluster.Lossy)
	back := table.Plan(members, 2, nil, at(2))
	require.Equal(t, []peer.ID{at(2)}, back[0].Instances)
	require.Equal(t, []cluster.PartitionChange{{Path: "a", From: at(2), To: at(1), Epoch: table[0].Epoch + 1, Writer: 2}},
		back[0].Changes)
	require.Equal(t, table[0].Epoch+1, back[0].Epoch)
	require.Equal(t, back, back.Plan(members, 2, nil, at(2)))
	require.Equal(t, back, back.Plan(members, 2, nil, at(1), at(2)), "not to and fro")
	done := back.Complete(back[0].Changes[0]).Plan(members, 2, nil, at(2))
	require.Equal(t, []peer.ID{at(1)}, done[0].Instances)
	require.Empty(t, done[0].Changes)

	require.Equal(t, table, table.Plan(members, 2, nil, at(1), at(2)))
	complete := table.Complete(table[0].Changes[0]).Plan(members, 2, nil, at(2))
	require.Equal(t, []peer.ID{at(2)}, complete[0].Instances)
	require.Empty(t, complete[0].Changes)
	members[0].Status = cluster.Leaving
	require.Equal(t, table, table.Plan(members, 2, nil, at(2)))
	members[0].Status = cluster.Down
	gone := table.Plan(members, 2, nil, at(2))
	require.Equal(t, []peer.ID{at(2)}, gone[0].Instances)
	require.Empty(t, gone[0].Changes)
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
