// Duties: leader actions, leaving, downing, tombstones and their notes (MEM-1, MEM-5, MEM-8).

package membership

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// age is when this node first met a tombstone, on its own clock. Wall clocks of leaders are not compared.
type age struct {
	id    peer.ID
	since time.Duration
}

// refreshAges brings the ages in line with the tombstones of a new state.
func (m *Machine) refreshAges() {
	old := m.ages
	if len(m.st.Tombs) == 0 && len(old) == 0 {
		return
	}
	if slices.EqualFunc(old, m.st.Tombs, func(a age, t members.Tombstone) bool { return a.id == t.ID }) {
		return
	}
	next := make([]age, 0, len(m.st.Tombs))
	for _, t := range m.st.Tombs {
		for len(old) > 0 && old[0].id.Less(t.ID) {
			old = old[1:]
		}
		a := age{t.ID, m.now}
		if len(old) > 0 && old[0].id == t.ID {
			a = old[0]
		}
		next = append(next, a)
	}
	m.ages = next
}

func (m *Machine) ageOf(id peer.ID) time.Duration {
	i, ok := slices.BinarySearchFunc(m.ages, id, func(a age, id peer.ID) int { return a.id.Compare(id) })
	if !ok {
		return 0
	}
	return m.now - m.ages[i].since
}

// expiry returns which tombstones may be forgotten: those past their retention, and the oldest of a table that is
// fuller than half its bound, so that two halves can still unite.
func (m *Machine) expiry() func(peer.ID) bool {
	limit := m.cfg.TombstoneRetention
	if n := len(m.ages) - cluster.MaxTombstones/2; n > 0 {
		since := make([]time.Duration, 0, len(m.ages))
		for _, a := range m.ages {
			since = append(since, a.since)
		}
		slices.Sort(since)
		limit = min(limit, m.now-since[n])
	}
	return func(id peer.ID) bool { return m.ageOf(id) > limit }
}

// leaderTick looks at the duties again, which change with time only for tombstones, and at the node's own isolation.
func (m *Machine) leaderTick() {
	m.in(timerLeader, m.cfg.LeaderInterval)
	m.dirty = true
	if !m.isolated() {
		m.watchConvergence()
	}
}

// orphanFor is how long an orphan lets others like it know, before it ends: three rounds of gossip.
const orphanFor = 3 * time.Second

// orphaned reports whether this node is what is left of a cluster whose members are all Down, without ever having been
// one of them. It admits nobody any more, or those who join would keep that cluster, and this, alive for ever; it tells
// the others like it, and ends.
func (m *Machine) orphaned() bool {
	switch is := m.st.Orphaned(); {
	case is && !m.timers[timerOrphan].on:
		m.in(timerOrphan, orphanFor)
	case !is && m.timers[timerOrphan].on:
		m.stop(timerOrphan) // somebody lives after all
	}
	return m.timers[timerOrphan].on
}

// duties acts as the leader, if this node is it: all of it under convergence, only weakly up without for long.
func (m *Machine) duties() {
	if m.orphaned() {
		return
	}
	if m.st.Leader(m.self) != m.self {
		m.unstuck()
		return
	}
	var next *members.State
	var removed []cluster.Member
	if members.Converged(m.st, m.self, m.exited) {
		m.unstuck()
		if !m.st.AllUp || len(m.st.Tombs) > 0 {
			letIn := m.named() && m.cfg.minimums().met(m.st.Members)
			next, removed = members.Lead(m.st, m.self, m.exited, m.expiry(), letIn)
		}
	} else {
		next = m.weakenWhenStuck()
	}
	if next == nil {
		if next = m.pruneClock(); next != nil {
			m.install(next, true)
		}
		return
	}
	m.install(next, true)
	for _, r := range removed {
		if r.Status == cluster.Exiting && r.ID != m.self {
			m.tellRemoved(r.ID)
		}
	}
}

// leave takes this node out: Leaving now, the rest follows from gossip. Before it is admitted it just ends, unless a
// member may have admitted it already: then it leaves as soon as it knows.
func (m *Machine) leave() {
	switch m.phase {
	case idle, probing:
		m.end(EndLeft, m.self, "left before it was admitted")
	case pending:
		m.join.leave = true
	case member:
		if st := m.st.Status(m.self); st.CanBecome(cluster.Leaving) {
			d := m.st.Draft()
			d.SetStatus(m.self, cluster.Leaving)
			m.install(d.Commit(m.self), true)
		}
	}
}

// down marks a member Down and tells it at once.
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

// downAll marks those of ids Down that are members and not Down yet, in one change, and tells them.
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

// forgetExits drops those who confirmed their exit and are members no more.
func (m *Machine) forgetExits() {
	kept := m.exited[:0]
	for _, id := range m.exited {
		if m.st.Has(id) {
			kept = append(kept, id)
		}
	}
	m.exited = kept
}

// startExit: this node knows that its leaving is known to all. What it hosted was given back before it left, so it
// is done at once; it says so to who leads without it until it is told that it was removed.
func (m *Machine) startExit() {
	if m.exiting {
		return
	}
	m.exiting = true
	m.exited.Add(m.self)
	m.dirty = true
	m.in(timerExitEnd, m.cfg.ExitTimeout)
	m.sendExitDone()
}

// sendExitDone tells the leader of the remaining members and the one who leads if that one goes as well.
func (m *Machine) sendExitDone() {
	m.in(timerExit, m.cfg.ProbeInterval)
	rest := slices.DeleteFunc(slices.Clone(m.st.Members), func(o cluster.Member) bool { return o.ID == m.self })
	for range 2 {
		l := cluster.Leader(rest, m.st.Unreachable, m.self, "")
		if l.IsZero() {
			return
		}
		e := m.toward(l)
		m.post(l, wire.KindExitDone, func(b []byte) []byte { return appendEnvelope(b, e) })
		rest = slices.DeleteFunc(rest, func(o cluster.Member) bool { return o.ID == l })
	}
}

func (m *Machine) onExitDone(from peer.ID, body []byte) error {
	e, err := readExitDone(body)
	if err != nil || !m.addressed(e) || m.tellRemoved(from) {
		return err
	}
	if m.st.Has(from) && m.exited.Add(from) {
		m.dirty = true
	}
	return nil
}

// tellRemoved sends a note to a removed incarnation, and reports whether id is one.
func (m *Machine) tellRemoved(id peer.ID) bool {
	t, dead := m.st.Tomb(id)
	if !dead {
		return false
	}
	n := noteBody{m.toward(id), t, uint64(m.ageOf(id) / time.Millisecond), m.st.UpCount(), m.st.LowestUp()}
	m.post(id, wire.KindRemovedNote, func(b []byte) []byte { return appendNote(b, n) })
	return true
}

func (m *Machine) onNote(from peer.ID, body []byte) error {
	n, err := readNote(body)
	if err != nil || !m.addressed(n.envelope) {
		return err
	}
	m.removedBy(from, n.tomb, n.up, n.lowest, time.Duration(min(n.age, 1<<40))*time.Millisecond)
	return nil
}
