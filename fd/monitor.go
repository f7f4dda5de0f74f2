// Monitor: which nodes one node probes, which probe it, and what each direction says.

package fd

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// leaveNotices is how often a peer hears at least that no further probe will come: the mail may be lost, or be behind a
// probe that it has overtaken.
const leaveNotices = 3

// Monitor holds the peers between which and this node probes travel, by identity: a new incarnation starts afresh. Make
// it with NewMonitor.
type Monitor struct {
	self     peer.ID
	settings Settings
	factory  Factory
	expected time.Duration
	n        int

	members   peer.Set  // shared with the caller that gave it
	watched   []watch   // sorted by identity
	losses    []loss    // links to targets lost within the last second, the newest at the end
	strangers []loss    // links to other members that were lost, until one of these is heard again
	asked     listening // members that are probed and not judged

	verdict forecast
}

// forecast is what NextVerdict has worked out, until something changes. When that is asked for is no input of a node:
// a flight record leaves it out.
type forecast struct {
	at    time.Duration
	ok    bool
	valid bool
}

// watch is one peer. It is kept while one of the two directions is, or a leave notice is owed.
type watch struct {
	id          peer.ID
	answers     line          // its answers to our probes, while it is a target
	probes      line          // its probes, and other signs of life; nothing heard while it does not probe us
	target      bool          // we probe it
	wanted      bool          // by our part of the ring, or because it accuses us; false: watched until it answers
	due         time.Duration // when an unanswered peer counts as heard once
	waiting     bool          // due is set
	answered    bool          // it has answered since it is a target
	leaveNotice int           // last probes still to be sent at least
	untold      bool          // none of the last probes was answered yet: more of them follow
	broken      evidence
}

// NewMonitor returns a monitor of self that watches n neighbours with detectors that f makes. A peer that never
// answered counts as heard once when expected has passed since it was first probed, so that its silence is noticed.
func NewMonitor(self peer.ID, s Settings, f Factory, expected time.Duration, n int) *Monitor {
	return &Monitor{self: self, settings: s, factory: f, expected: expected, n: n}
}

func (m *Monitor) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(m.watched, id, func(w watch, id peer.ID) int { return w.id.Compare(id) })
}

func (m *Monitor) get(id peer.ID) *watch {
	if i, ok := m.find(id); ok {
		return &m.watched[i]
	}
	return nil
}

func (m *Monitor) make(id peer.ID) *watch {
	i, ok := m.find(id)
	if !ok {
		m.watched = slices.Insert(m.watched, i, watch{id: id})
	}
	return &m.watched[i]
}

// SetRing gives the members and their ring (of which references are kept), those that watch nobody, and others to
// watch: those that accuse this node, for only our probes can show these that they are wrong, and those of Ring.Across.
// Targets are our neighbours on the ring and these others. Those that no longer are targets are forgotten when they
// answer; else they stay until they do or are no members.
func (m *Monitor) SetRing(now time.Duration, members peer.Set, ring Ring, absent Absent, others peer.Set) {
	m.verdict.valid, m.members = false, members
	wanted := ring.Receivers(m.self, absent, m.n)
	for _, id := range others {
		if id != m.self && members.Has(id) {
			wanted.Add(id)
		}
	}
	kept := m.watched[:0]
	for _, w := range m.watched {
		if !members.Has(w.id) {
			continue
		}
		if w.wanted = wanted.Has(w.id); !w.wanted && w.target && w.answering(now) {
			w.release()
		}
		if w.target || w.wanted || w.probes.heard() || w.owesNotice() {
			kept = append(kept, w)
		}
	}
	clear(m.watched[len(kept):])
	m.watched = kept
	m.strangers = slices.DeleteFunc(m.strangers, func(l loss) bool { return !members.Has(l.id) })
	for _, id := range wanted {
		w := m.make(id)
		w.target, w.wanted, w.leaveNotice, w.untold = true, true, 0, false
	}
}

// answering reports whether a target's answers count as alive.
func (w *watch) answering(now time.Duration) bool { return w.answers.available(now) && !w.broken.acted }

// release ends the probing of a peer, which will hear of that.
func (w *watch) release() {
	w.target, w.wanted, w.waiting, w.answered, w.answers, w.broken = false, false, false, false, line{}, evidence{}
	w.leaveNotice, w.untold = leaveNotices, true
}

// owesNotice reports whether the peer is to hear again that no further probe will come. One that has not heard it, as a
// cut may outlast any number of notices, would expect probes for good, and accuse this node as soon as gossip is rare.
func (w *watch) owesNotice() bool { return w.leaveNotice > 0 || w.untold }

// Targets appends every peer that gets a heartbeat, sorted, to into.
func (m *Monitor) Targets(into []peer.ID) []peer.ID {
	for i := range m.watched {
		if m.watched[i].target {
			into = append(into, m.watched[i].id)
		}
	}
	return into
}

// Doubted appends the targets with answers more than half an interval late and that are not unavailable yet, sorted, to
// into. What was lost on one connection holds up all that is behind it; such a peer is to be probed on another way,
// too, before it is accused.
func (m *Monitor) Doubted(now time.Duration, into []peer.ID) []peer.ID {
	for i := range m.watched {
		w := &m.watched[i]
		if w.target && w.answers.heard() && !w.answers.told && w.answers.silence(now) >= m.settings.Interval*3/2 {
			into = append(into, w.id)
		}
	}
	return into
}

// Late appends the peers that have not shown for two intervals that they live, in one direction or the other, and that
// are not unavailable yet, sorted, to into. Most of them are held up; some of them are gone, and it is too early to
// say.
func (m *Monitor) Late(now time.Duration, into []peer.ID) []peer.ID {
	for i := range m.watched {
		w := &m.watched[i]
		if w.target && w.answers.late(now, m.settings.Interval) || w.probes.late(now, m.settings.Interval) {
			into = append(into, w.id)
		}
	}
	return into
}

// Unmet appends our neighbours on the ring of which nothing has come since this node began to watch them, and that are
// not unavailable yet, sorted, to into. Whether they live nobody here knows: those before them on the ring may have
// been lost together with them.
func (m *Monitor) Unmet(into []peer.ID) []peer.ID {
	for i := range m.watched {
		if w := &m.watched[i]; w.target && w.wanted && !w.answered && !w.answers.told && !w.probes.heard() {
			into = append(into, w.id)
		}
	}
	return into
}

// Unheard appends the peers with a last answer older than d, sorted, to into. Unlike a verdict it does not ask what the
// detectors have learned, nor whether this node ran meanwhile.
func (m *Monitor) Unheard(now, d time.Duration, into []peer.ID) []peer.ID {
	for i := range m.watched {
		if w := &m.watched[i]; w.target && w.answers.heard() && now-w.answers.last > d {
			into = append(into, w.id)
		}
	}
	return into
}

// Listen gives the members that this node is to probe beside its targets, from now on: members that others judge, but
// that it has to know to be still there. At most 16 are taken, in the order of ids; those that are among them already
// stay; a target, or an id that is no member, counts for none of Asked and Unanswered. ids is not kept.
func (m *Monitor) Listen(now time.Duration, ids peer.Set) { m.asked.follow(now, ids) }

// Asked appends the members that Listen named and that are no targets, in no order, to into. They do not expect further
// probes, so they need no notice when these end.
func (m *Monitor) Asked(into []peer.ID) []peer.ID {
	for _, a := range m.asked {
		if m.asks(a.id) {
			into = append(into, a.id)
		}
	}
	return into
}

// asks reports whether this node probes a member that it listens to only for that.
func (m *Monitor) asks(id peer.ID) bool {
	w := m.get(id)
	return id != m.self && m.members.Has(id) && (w == nil || !w.target)
}

// Unanswered appends those of Asked from which nothing has arrived for two intervals, those that this node accuses left
// out, in no order, to into.
func (m *Monitor) Unanswered(now time.Duration, into []peer.ID) []peer.ID {
	for _, a := range m.asked {
		w := m.get(a.id)
		if m.asks(a.id) && (w == nil || !w.probes.told) && now-a.last >= 2*m.settings.Interval {
			into = append(into, a.id)
		}
	}
	return into
}

// LeaveNotices appends the peers that are to hear now, by a last probe, that no more will come, sorted, to into. Each
// is named a few times, and on until Noticed or until it is no member.
func (m *Monitor) LeaveNotices(into []peer.ID) []peer.ID {
	for i := range m.watched {
		if w := &m.watched[i]; w.owesNotice() {
			w.leaveNotice = max(w.leaveNotice-1, 0)
			into = append(into, w.id)
		}
	}
	return into
}

// Noticed records that id has answered a last probe: it knows that no more will come.
func (m *Monitor) Noticed(id peer.ID) {
	if w := m.get(id); w != nil {
		w.untold = false
	}
}

// Sent notes that every target was probed at now.
func (m *Monitor) Sent(now time.Duration) {
	for i := range m.watched {
		w := &m.watched[i]
		if w.target && !w.answers.heard() && !w.waiting {
			w.due, w.waiting = now+m.expected, true
		}
	}
}

// Heard records that the answer of id arrived at the given stamp. Of a peer that is no target it is a sign of life; one
// that is a target only because it was silent is released, being alive.
func (m *Monitor) Heard(id peer.ID, arrived time.Duration) {
	m.heardFrom(id, arrived)
	w := m.get(id)
	if w == nil || !w.target {
		return
	}
	m.verdict.valid = false
	if !w.wanted {
		w.release()
		return
	}
	w.waiting, w.answered = false, true
	w.answers.heartbeat(m.factory, m.settings, arrived)
	w.broken.cleared(arrived)
}

// Probed records that a probe of id arrived at the given stamp: from now on its probes are expected. A peer that is no
// member is ignored.
func (m *Monitor) Probed(id peer.ID, arrived time.Duration) {
	m.heardFrom(id, arrived)
	if id == m.self || !m.members.Has(id) {
		return
	}
	m.verdict.valid = false
	w := m.make(id)
	w.probes.heartbeat(m.factory, m.settings, arrived)
	w.broken.cleared(arrived)
}

// Parted records the last probe of id: it is not to be expected to probe us any more.
func (m *Monitor) Parted(id peer.ID, arrived time.Duration) {
	m.heardFrom(id, arrived)
	if w := m.get(id); w != nil {
		m.verdict.valid = false
		w.probes = line{}
		w.broken.cleared(arrived)
	}
}

// Sign records another sign of life of id that arrived at the given stamp. It proves the way from it to us only,
// so it counts beside its probes, and not as an answer.
func (m *Monitor) Sign(id peer.ID, arrived time.Duration) {
	m.heardFrom(id, arrived)
	if w := m.get(id); w != nil {
		m.verdict.valid = false
		w.probes.sign(arrived)
		w.broken.cleared(arrived)
	}
}

// Forgive takes a time in which this node did not run, up to now, out of every silence: a node that did not listen
// heard nothing.
func (m *Monitor) Forgive(now, pause time.Duration) {
	m.verdict.valid = false
	for i := range m.watched {
		w := &m.watched[i]
		w.answers.forgive(now, pause)
		w.probes.forgive(now, pause)
		if w.waiting {
			w.due += pause
		}
	}
	m.asked.forgive(now, pause)
}

// Tick counts peers as heard once that were due to answer by now and did not.
func (m *Monitor) Tick(now time.Duration) {
	for i := range m.watched {
		w := &m.watched[i]
		if w.waiting && w.due <= now {
			w.waiting, m.verdict.valid = false, false
			w.answers.heartbeat(m.factory, m.settings, w.due)
		}
	}
}

// Next returns when Tick next has something to do.
func (m *Monitor) Next() (deadline time.Duration, ok bool) {
	for i := range m.watched {
		if w := &m.watched[i]; w.waiting && (!ok || w.due < deadline) {
			deadline, ok = w.due, true
		}
	}
	return deadline, ok
}

// Phi returns the suspicion level of id at now, the worse of both directions, for display; 0 for a peer that is not
// watched.
func (m *Monitor) Phi(id peer.ID, now time.Duration) float64 {
	w := m.get(id)
	if w == nil {
		return 0
	}
	return max(w.answers.phi(now), w.probes.phi(now))
}
