// Duties: leader actions, leaving, downing, tombstones and their notes (MEM-1, MEM-5, MEM-8); the clock, and the
// metadata of the application (GOS-2, MEM-12).

package membership

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// leading is what a machine does as the leader, and what it must know to do it.
type leading struct {
	*core
	beliefs  *beliefs
	blocking *blocking

	exited     peer.Set      // members that confirmed their exit
	stuckUntil time.Duration // when leading without convergence lets members in weakly; 0: no such stretch
	recorded   Record        // what the runtime has written down
	unnamed    time.Duration // when members are let in that it does not name; 0: none waits

	planned   gossip.Digest             // the version with a partition table as it should be
	seated    gossip.Digest             // the version with a list of seats as it should be
	completed []cluster.PartitionChange // that this node has handed over, while the table has them
	gaveUp    bool                      // this node leaves and has waited long enough: it says so of all it hosts
	drains    bool                      // this node drains: the leader is to give it no instances
}

// leaderTick looks at the duties again, which change with time only for tombstones, and at the node's own isolation.
func (l *leading) leaderTick() {
	l.in(timerLeader, l.cfg.LeaderInterval)
	l.dirty = true
	if !l.beliefs.isolated() {
		l.blocking.watchConvergence()
	}
}

// orphanFor is how long an orphan lets others like it know, before it ends: three rounds of gossip.
const orphanFor = 3 * time.Second

// orphaned reports whether this node is a joiner left over from a cluster with all members Down. It admits nobody any
// more, or newcomers would keep that cluster, and this node, alive for ever; it notifies the others like it, and ends.
func (l *leading) orphaned() bool {
	switch is := l.st.Orphaned(); {
	case is && !l.timers[timerOrphan].on:
		l.in(timerOrphan, orphanFor)
	case !is && l.timers[timerOrphan].on:
		l.stop(timerOrphan) // a member lives after all
	}
	return l.timers[timerOrphan].on
}

// duties acts as the leader, if this node is it: all of it under convergence, only weakly up without for long.
func (l *leading) duties() {
	if l.orphaned() {
		return
	}
	if l.st.Leader(l.self) != l.self {
		l.unstuck()
		return
	}
	var next *members.State
	var removed []cluster.Member
	if members.Converged(l.st, l.self, l.exited) {
		l.unstuck()
		if !l.st.AllUp || len(l.st.Tombs) > 0 || len(l.st.Parts) > 0 && l.planned != l.st.Digest {
			l.planned = l.st.Digest
			letIn := l.named() && l.cfg.minimums().met(l.st.Members)
			expired := l.ages.expiry(l.cfg.TombstoneRetention, l.now, l.keeps)
			next, removed = members.Lead(l.st, l.self, l.exited, expired, letIn)
		}
	} else {
		next = l.weakenWhenStuck()
	}
	if next == nil {
		next = l.reseat()
	}
	if next == nil {
		next = l.pruneClock()
	}
	if next == nil {
		return
	}
	l.install(next, true)
	for _, r := range removed {
		if r.Status == cluster.Exiting && r.ID != l.self {
			l.beliefs.tellRemoved(r.ID)
		}
	}
}

// keeps reports whether a removed incarnation is not to be forgotten yet: it was Down, and seats have yet to prove its
// end. Once it is forgotten nobody does, no word of an operator covers it, and its shards would wait for good.
func (l *leading) keeps(id peer.ID) bool {
	t, _ := l.st.Tomb(id)
	return l.cfg.Electorate.Voters > 0 && unproven(t)
}

// reseat returns the next version, in which this leader has changed the list of seats, nil for none. All that are not
// Down have to have seen the state: an owner that still goes by the list before the last one could be proven ended by
// the next.
func (l *leading) reseat() *members.State {
	if l.cfg.Electorate.Voters == 0 || l.seated == l.st.Digest || !members.Converged(l.st, l.self, l.exited) ||
		!l.st.SeenByAll(l.exited) {
		return nil
	}
	l.seated = l.st.Digest
	return members.Reseat(l.st, l.self, l.cfg.Electorate.Voters, l.cfg.Electorate.Role)
}

// down marks a member Down and notifies it at once.
func (m *Machine) down(id peer.ID, cause cluster.Cause) error {
	if m.phase != member {
		return ErrNotMember
	}
	if id.Inc == 0 {
		i := slices.IndexFunc(m.st.Members, func(o cluster.Member) bool { return o.ID.Addr == id.Addr })
		if i < 0 {
			return fmt.Errorf("%w: nobody at %s", ErrUnknownMember, id.Addr)
		}
		if at := m.st.At(id.Addr); !at.IsZero() {
			id = at
		} else {
			id = m.st.Members[i].ID
		}
	}
	if m.st.Status(id) == cluster.Removed {
		return fmt.Errorf("%w: %s", ErrUnknownMember, id)
	}
	return m.downAll([]peer.ID{id}, cause)
}

// downAll marks those of ids Down that are members and not Down yet, in one change, and notifies them.
func (m *Machine) downAll(ids []peer.ID, cause cluster.Cause) error {
	if m.phase != member {
		return ErrNotMember
	}
	if cause == cluster.CauseNone {
		cause = cluster.CauseOperator
	}
	d := m.st.Draft()
	var told []peer.ID
	for _, id := range ids {
		if st := m.st.Status(id); st != cluster.Removed && st != cluster.Down {
			d.SetDown(id, m.self, cause)
			told = append(told, id)
		}
	}
	if len(told) == 0 {
		return nil
	}
	m.install(d.Commit(m.self), true)
	for _, id := range told {
		if id != m.self {
			m.sendGossip(id, nil)
		}
	}
	return nil
}

// forgetExits drops the nodes that confirmed their exit and are no longer members.
func (l *leading) forgetExits() {
	kept := l.exited[:0]
	for _, id := range l.exited {
		if l.st.Has(id) {
			kept = append(kept, id)
		}
	}
	l.exited = kept
}

func (l *leading) onExitDone(from peer.ID, body []byte) error {
	e, err := readExitDone(body)
	if err != nil || !l.addressed(e) || l.beliefs.tellRemoved(from) {
		return err
	}
	if l.st.Has(from) && l.exited.Add(from) {
		l.dirty = true
	}
	return nil
}

// tellRemoved sends a note to a removed incarnation, and reports whether id is one.
func (b *beliefs) tellRemoved(id peer.ID) bool {
	t, dead := b.st.Tomb(id)
	if !dead {
		return false
	}
	n := noteBody{b.toward(id), t, uint64(b.ages.of(id, b.now) / time.Millisecond), b.st.UpCount(), b.st.LowestUp()}
	b.post(id, wire.KindRemovedNote, func(b []byte) []byte { return appendNote(b, n) })
	return true
}

func (b *beliefs) onNote(from peer.ID, body []byte) error {
	n, err := readNote(body)
	if err != nil || !b.addressed(n.envelope) {
		return err
	}
	b.removedBy(from, n.tomb, n.up, n.lowest, time.Duration(min(n.age, 1<<40))*time.Millisecond)
	return nil
}

// pruneClock returns the version without the entries that are the oldest and too many, nil when there are none or not
// every member has seen the present one.
//
// The leader prunes only when every member has seen the version, as a change of its own that names the version which it
// pruned. A node that holds that version, or held it lately, drops the same entries before it compares, so the pruned
// version is newer for it. For any other node the two are concurrent and the entries come back, which costs only bytes.
// A clock without an entry only says less than is true: a node that has the leader's entry for the pruning has all that
// was pruned. A node with a pruned entry counts on from its own count.
func (l *leading) pruneClock() *members.State {
	many := len(l.st.Clock) - l.cfg.ClockEntries
	if l.cfg.ClockEntries <= 0 || many <= 0 || !l.st.Seen.Full() {
		return nil
	}
	var old []entryAge
	for _, a := range l.ages.entries {
		if a.entry.ID != l.self && l.now-a.since >= l.cfg.ClockEntryAge {
			old = append(old, a)
		}
	}
	sort.SliceStable(old, func(i, k int) bool { return old[i].since < old[k].since })
	var gone peer.Set
	for _, a := range old[:min(many, len(old))] {
		gone.Add(a.entry.ID)
	}
	if len(gone) == 0 {
		return nil
	}
	return l.st.PruneEntries(gone, l.self)
}

// DefineCommand defines a partition, or defines it anew: how many instances it has, which members may host one, and how
// one is handed over. The last writer wins. The leader does the rest when all members have seen it. Errors:
// ErrNotMember, ErrOldMember, and those of package cluster: ErrBadPath, ErrBadCount, ErrBadHandoff, ErrBadDefinition,
// ErrPartitionsFull.
type DefineCommand struct{ Definition cluster.PartitionDefinition }

// UndefineCommand takes the definition of a partition back; its instances end. Errors: ErrNotMember,
// cluster.ErrUnknownPartition.
type UndefineCommand struct{ Path string }

// MoveInstanceCommand asks the leader to have one instance handed over to another member. Errors: ErrNotMember, and
// those of package cluster: ErrUnknownPartition, ErrBadDefinition, ErrMovePending.
type MoveInstanceCommand struct {
	Path string
	Slot int
	To   peer.ID
}

// CompleteCommand says that this node, which is the change's From, has handed the instance over. A change that the
// table does not have (any more) is ignored. It is said again by itself when a later version of the table has the
// change pending. Errors: ErrNotMember, ErrBadCommand for a change of another node.
type CompleteCommand struct{ Change cluster.PartitionChange }

// OldWireCommand says that ID speaks a wire version that knows no partition table. While it is a member nothing is
// defined here, and it is not admitted once something is.
type OldWireCommand struct{ ID peer.ID }

// DrainsCommand says whether this node drains: then the leader gives it no instance of a partition and hands none to
// it. It is gossiped once somebody has defined a partition and this node is Up. Before the node is a member it counts
// for later.
type DrainsCommand struct{ On bool }

func (DefineCommand) command()       {}
func (DrainsCommand) command()       {}
func (UndefineCommand) command()     {}
func (MoveInstanceCommand) command() {}
func (CompleteCommand) command()     {}
func (OldWireCommand) command()      {}

// ErrOldMember is returned by a DefineCommand while a member speaks a wire version without partitions.
var ErrOldMember = errors.New("membership: a member speaks an older wire version, which knows no partitions")

// changeTable carries out one of the commands for the partition table.
func (m *Machine) changeTable(cmd Command) (err error) {
	if m.phase != member {
		return ErrNotMember
	}
	t := m.st.Parts
	switch c := cmd.(type) {
	case DefineCommand:
		for _, id := range m.older {
			if m.st.Has(id) {
				return fmt.Errorf("%w: %s", ErrOldMember, id)
			}
		}
		t, err = t.Define(c.Definition, m.self)
	case UndefineCommand:
		t, err = t.Undefine(c.Path, m.self)
	case MoveInstanceCommand:
		t, err = t.Move(c.Path, c.Slot, c.To, m.self)
	case CompleteCommand:
		if c.Change.From != m.self {
			return fmt.Errorf("%w: a change of %s", ErrBadCommand, c.Change.From)
		}
		m.leading.completed = append(m.leading.completed, c.Change)
		m.dirty = true // follow completes it
	}
	if next := m.st.WithPartitions(t, m.self); err == nil && next != nil {
		m.install(next, true)
	}
	return err
}

// announce says in the state whether this node drains. Another one that does so at the same time may have written what
// stands now, so it is looked at whenever the state has changed.
func (l *leading) announce() {
	if next := l.st.WithDrain(l.self, l.drains); next != nil {
		l.install(next, true)
	}
}

// complete marks in the table what this node has handed over. A leader that had not heard of it may have written a
// later version of the table, and a merge takes that; so it is looked at whenever the state has changed.
func (l *leading) complete() {
	if len(l.completed) == 0 && !l.gaveUp {
		return
	}
	kept, t := l.completed[:0], l.st.Parts
	for i := range t {
		for _, c := range t[i].Changes {
			if c.From != l.self {
				continue
			}
			done := l.gaveUp
			for _, is := range l.completed {
				done = done || partition.SameChange(is, c)
			}
			if done {
				kept = append(kept, c)
			}
		}
	}
	for _, c := range kept {
		t = t.Complete(c)
	}
	if l.completed = kept; len(kept) == 0 {
		l.completed = nil
	}
	if next := l.st.WithPartitions(t, l.self); next != nil {
		l.install(next, true)
	}
}

// SetMetadataCommand sets one key of the metadata that the cluster's state carries; an empty value deletes it. The last
// writer wins: of two at once, one, everywhere the same. Errors: ErrNotMember, ErrBadMetadata, ErrMetadataFull.
type SetMetadataCommand struct {
	Key   string
	Value []byte
}

func (SetMetadataCommand) command() {}

// setMetadata writes one key into the state.
func (m *Machine) setMetadata(c SetMetadataCommand) error {
	switch {
	case m.phase != member:
		return ErrNotMember
	case c.Key == "" || len(c.Key) > cluster.MaxMetadataKey:
		return fmt.Errorf("%w: key of %d bytes, must have 1 to %d", ErrBadMetadata, len(c.Key), cluster.MaxMetadataKey)
	case len(c.Value) > cluster.MaxMetadataValue:
		return fmt.Errorf("%w: value of %d bytes, at most %d", ErrBadMetadata, len(c.Value), cluster.MaxMetadataValue)
	}
	next, err := m.st.WithMetadata(c.Key, string(c.Value), m.self)
	if next != nil {
		m.install(next, true)
	}
	return err
}

// ErrBadMetadata is returned by a SetMetadataCommand for a key or value out of bounds.
var ErrBadMetadata = errors.New("membership: bad metadata")
