// Tests of members that drain and instances of partitions: which node says so, and what the leader makes of it.

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// drains returns the members that drain, as all show them; false while they differ.
func (w *world) drains() (peer.Set, bool) {
	var first peer.Set
	for i, a := range w.alive() {
		word, _ := a.view.MetadataValue(partition.DrainKey)
		ids := partition.ReadDrains(word)
		if i > 0 && !first.Equal(ids) {
			return nil, false
		}
		first = ids
	}
	return first, true
}

func (w *world) untilDrains(ids ...peer.ID) {
	w.until(20*time.Second, "known who drains", func() bool {
		is, ok := w.drains()
		return ok && is.Equal(ids) && w.settled()
	})
}

// TestLeaderKnowsDrainers: a member that drains says so once somebody has defined a partition; the leader gives it no
// instance, neither a new one nor that of a leaver, until it takes that back (PRT-4).
func TestLeaderKnowsDrainers(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(4)
	w.do(all[1], DrainsCommand{true})
	w.run(3 * time.Second)
	w.untilDrains()
	w.do(all[3], defined("a", 4))
	w.untilDrains(all[1].id)
	p := w.table("a")
	if p.SlotOf(all[1].id) >= 0 { // the leader had placed it before it heard
		w.do(all[1], UndefineCommand{"a"})
	}
	w.do(all[3], defined("b", 4))
	require.Equal(t, []peer.ID{all[0].id, all[2].id, all[3].id}, w.placed("b", 3).Instances)
	require.Equal(t, 4, w.placed("b", 3).Wanted)

	w.do(all[1], DrainsCommand{})
	require.Equal(t, 0, w.placed("b", 4).SlotOf(all[0].id))
	w.untilDrains()
}

// TestMembersDrainAtOnce: those that write at once all stand in the end; those that are gone do not (PRT-4).
func TestMembersDrainAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(5)
	w.do(all[0], defined("a", 1))
	w.placed("a", 1)
	for _, a := range all[1:] {
		w.do(a, DrainsCommand{true})
	}
	w.untilDrains(all[1].id, all[2].id, all[3].id, all[4].id)
	w.crash(all[2])
	w.do(all[0], DownCommand{ID: all[2].id})
	w.do(all[4], LeaveCommand{})
	w.do(all[3], DrainsCommand{})
	w.untilDrains(all[1].id)
	_, is := all[0].view.Member(all[2].id)
	require.False(t, is)
}

// TestDrainsFindNoRoom: without a place among the metadata, or where a program has written the key, nobody is known to
// drain, and nothing else changes (PRT-4, MEM-12).
func TestDrainsFindNoRoom(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(2)
	for i := range cluster.MaxMetadata {
		w.do(all[0], SetMetadataCommand{Key: string(rune('a'+i%26)) + string(rune('a'+i/26)), Value: []byte{1}})
	}
	w.do(all[0], defined("a", 1))
	w.placed("a", 1)
	w.do(all[1], DrainsCommand{true})
	w.run(3 * time.Second)
	w.untilDrains()
}
