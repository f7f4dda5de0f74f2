// Tests of the partition table in the gossiped state: which node changes it, and when (PRT-1).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

func defined(path string, n int) DefineCommand {
	return DefineCommand{cluster.PartitionDefinition{Path: path, Count: partition.Exactly(n)}}
}

// table returns the partition of a path as all show it; nil while they differ.
func (w *world) table(path string) *cluster.Partition {
	var first *cluster.Partition
	for _, a := range w.alive() {
		p := partition.Table(a.view.Partitions).Of(path)
		if p == nil || first != nil && !partition.Same(first, p) {
			return nil
		}
		first = p
	}
	return first
}

// placed waits until all show so many instances of a path and nothing pending.
func (w *world) placed(path string, n int) *cluster.Partition {
	var p *cluster.Partition
	w.until(20*time.Second, path+" placed", func() bool {
		p = w.table(path)
		return p != nil && p.Has() == n && len(p.Changes) == 0
	})
	return p
}

// TestDefinitionIsPlaced: any node defines, the leader places when all have seen it, and all are notified (PRT-1).
func TestDefinitionIsPlaced(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(4)
	for _, a := range all {
		a.events = nil
	}
	w.do(all[2], defined("a/b", 3))
	w.do(all[2], defined("a/b", 3))
	require.Empty(t, all[2].view.Partitions[0].Instances, "it is no leader")
	p := w.placed("a/b", 3)
	require.Equal(t, all[2].id, p.DefinedBy)
	require.Equal(t, uint64(1), p.Epoch)
	require.Equal(t, all[0].view.Members[0].UpNumber, p.Writer, "the leader wrote it")
	w.until(10*time.Second, "settled", w.settled)
	for _, a := range all {
		require.Contains(t, kindsOf(a.events), PartitionsChanged)
		require.NotContains(t, kindsOf(a.events), MetadataChanged)
	}
	require.ErrorIs(t, all[0].m.Do(w.now, defined("a//b", 3)), cluster.ErrBadPath)
	require.ErrorIs(t, all[0].m.Do(w.now, UndefineCommand{"b"}), cluster.ErrUnknownPartition)
	require.ErrorIs(t, newWorld(t, 1).start(9).m.Do(0, defined("a", 1)), ErrNotMember)

	w.do(all[1], UndefineCommand{"a/b"})
	w.until(10*time.Second, "its instances end", func() bool {
		for _, a := range all {
			if len(a.view.Partitions[0].Changes) != 3 {
				return false
			}
		}
		return true
	})
	for _, a := range all {
		w.completeAll(a)
	}
	w.until(10*time.Second, "it is gone", func() bool { return len(all[3].view.Partitions) == 0 && w.settled() })
}

// completeAll makes a node complete what it is to hand over, as far as it knows.
func (w *world) completeAll(a *actor) {
	for _, p := range a.view.Partitions {
		for _, c := range p.Changes {
			if c.From == a.id && !c.Complete {
				w.do(a, CompleteCommand{c})
			}
		}
	}
}

// TestLeaverHandsOver: a member that leaves is Exiting only when no instance and no change names it; the change is
// completed by the old node alone (PRT-1, PRT-4, MEM-8).
func TestLeaverHandsOver(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	w.do(all[0], defined("a", 2))
	p := w.placed("a", 2)
	leaver := w.find(p.Instances[0])
	w.do(leaver, LeaveCommand{})
	var c cluster.PartitionChange
	w.until(5*time.Second, "a change", func() bool {
		p := w.table("a")
		if p != nil && len(p.Changes) == 1 {
			c = p.Changes[0]
		}
		return p != nil && len(p.Changes) == 1
	})
	require.Equal(t, leaver.id, c.From)
	w.run(4 * time.Second)
	self, _ := leaver.view.SelfMember()
	require.Equal(t, cluster.Leaving, self.Status, "it hosts an instance")
	other := w.find(c.To)
	require.ErrorIs(t, other.m.Do(w.now, CompleteCommand{c}), ErrBadCommand)
	w.do(leaver, CompleteCommand{c})
	w.until(10*time.Second, "left", func() bool { return leaver.ended != nil && w.settled() })
	require.Equal(t, EndLeft, leaver.ended.Kind)
	require.Equal(t, []peer.ID{c.To, p.Instances[1]}, w.placed("a", 2).Instances)
}

// TestLeaverDoesNotWaitForEver: what nobody hands over keeps a member no longer than its time limit (MEM-8).
func TestLeaverDoesNotWaitForEver(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	w.do(all[0], defined("a", 3))
	p := w.placed("a", 3)
	leaver := w.find(p.Instances[1])
	w.do(leaver, LeaveCommand{})
	took := w.until(30*time.Second, "left", func() bool { return leaver.ended != nil && w.settled() })
	require.GreaterOrEqual(t, took, DefaultExitTimeout)
	require.Equal(t, 2, w.placed("a", 2).Has())
	require.Equal(t, 3, w.placed("a", 2).Wanted)
}

// TestInstanceOfALostNodeIsReplaced: in the version in which it goes (PRT-1).
func TestInstanceOfALostNodeIsReplaced(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(4)
	w.do(all[0], defined("a", 3))
	p := w.placed("a", 3)
	w.crash(w.find(p.Instances[1]))
	w.do(w.alive()[0], DownCommand{ID: p.Instances[1]})
	w.until(20*time.Second, "replaced", func() bool {
		now := w.table("a")
		return now != nil && now.Has() == 3 && now.SlotOf(p.Instances[1]) < 0
	})
	now := w.table("a")
	require.Equal(t, p.Instances[0], now.Instances[0])
	require.Equal(t, p.Instances[2], now.Instances[2])
	w.until(20*time.Second, "settled", w.settled)
}

// TestMovesByHand: a programmer moves an instance from any node (PRT-5).
func TestMovesByHand(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	w.do(all[0], defined("a", 1))
	p := w.placed("a", 1)
	require.ErrorIs(t, all[0].m.Do(w.now, MoveInstanceCommand{"a", 1, all[2].id}), cluster.ErrUnknownPartition)
	w.do(all[1], MoveInstanceCommand{"a", 0, all[2].id})
	w.until(10*time.Second, "a change", func() bool {
		p := w.table("a")
		return p != nil && len(p.Changes) == 1
	})
	w.completeAll(w.find(p.Instances[0]))
	w.until(10*time.Second, "moved", func() bool {
		p := w.table("a")
		return p != nil && len(p.Changes) == 0 && p.Instances[0] == all[2].id
	})
}

// TestCompletionIsSaidAgain: a leader that had not heard of it writes a later version of the table, in which the change
// is pending; then the old node says it again (PRT-4).
func TestCompletionIsSaidAgain(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	w.do(all[0], defined("a", 1))
	p := w.placed("a", 1)
	from := w.find(p.Instances[0])
	w.do(all[1], MoveInstanceCommand{"a", 0, all[2].id})
	w.until(10*time.Second, "a change", func() bool {
		p := w.table("a")
		return p != nil && len(p.Changes) == 1
	})
	later := w.table("a")
	table := partition.Table{*later}
	table[0].Epoch++
	w.completeAll(from)
	require.True(t, from.m.st.Parts[0].Changes[0].Complete)
	w.do(from, OldWireCommand{}) // any verb
	from.m.install(from.m.st.WithPartitions(partition.Merge(from.m.st.Parts, table), all[0].id), true)
	require.False(t, from.m.st.Parts[0].Changes[0].Complete)
	w.do(from, OldWireCommand{})
	require.True(t, from.m.st.Parts[0].Changes[0].Complete)
	require.Equal(t, later.Epoch+1, from.m.st.Parts[0].Epoch)
}

// TestOldMembersAndPartitions: while a member speaks a wire version without partitions nothing is defined, and once
// something is, none is admitted (PRT-1).
func TestOldMembersAndPartitions(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	w.do(all[0], OldWireCommand{all[2].id})
	require.ErrorIs(t, all[0].m.Do(w.now, defined("a", 1)), ErrOldMember)
	w.do(all[1], defined("a", 1)) // it has not met it
	w.placed("a", 1)
	late := w.start(4)
	for _, a := range all {
		w.do(a, OldWireCommand{late.id})
	}
	w.join(late, 1, 2, 3)
	w.until(20*time.Second, "refused", func() bool { return late.ended != nil })
	require.Equal(t, EndJoinRefused, late.ended.Kind)
	require.Contains(t, late.ended.Reason, "partitions")
}
