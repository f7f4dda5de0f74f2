// Monitor: the detectors of all peers that one node watches.

package fd

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// Monitor holds whom a node watches and a detector for each, by identity: a new incarnation starts afresh. Make it
// with NewMonitor.
type Monitor struct {
	self     peer.ID
	settings Settings
	expected time.Duration
	n        int
	watched  []watch // sorted by identity
}

type watch struct {
	id       peer.ID
	detector Detector
	inRing   bool          // false: left our part of the ring while it was silent; watched until it answers
	due      time.Duration // when an unanswered peer counts as heard once
	waiting  bool          // due is set
}

// NewMonitor returns a monitor of self that watches n neighbours. A peer that never answered counts as heard once
// when expected has passed since it was first probed, so that its silence is noticed.
func NewMonitor(self peer.ID, s Settings, expected time.Duration, n int) *Monitor {
	return &Monitor{self: self, settings: s, expected: expected, n: n}
}

func (m *Monitor) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(m.watched, id, func(w watch, id peer.ID) int { return w.id.Compare(id) })
}

// SetRing tells who the members are and which of them are unreachable, by whatever observer. Peers that no longer are
// our neighbours are forgotten when they are available; else they stay watched until they answer or are no members.
func (m *Monitor) SetRing(now time.Duration, members, unreachable peer.Set) {
	ring := Receivers(m.self, members, unreachable, m.n)
	kept := m.watched[:0]
	for _, w := range m.watched {
		w.inRing = ring.Has(w.id)
		if w.inRing || members.Has(w.id) && !w.detector.Available(&m.settings, now) {
			kept = append(kept, w)
		}
	}
	clear(m.watched[len(kept):])
	m.watched = kept
	for _, id := range ring {
		if i, ok := m.find(id); !ok {
			m.watched = slices.Insert(m.watched, i, watch{id: id, inRing: true})
		}
	}
}

// Targets appends everybody who gets a heartbeat, sorted, to into.
func (m *Monitor) Targets(into []peer.ID) []peer.ID {
	for i := range m.watched {
		into = append(into, m.watched[i].id)
	}
	return into
}

// Sent notes that every target was probed at now.
func (m *Monitor) Sent(now time.Duration) {
	for i := range m.watched {
		w := &m.watched[i]
		if !w.detector.Heard() && !w.waiting {
			w.due, w.waiting = now+m.expected, true
		}
	}
}

// Heard records that the answer of id arrived at the given stamp. One who is not watched is ignored; one who left our
// part of the ring is forgotten, being alive.
func (m *Monitor) Heard(id peer.ID, arrived time.Duration) {
	i, ok := m.find(id)
	if !ok {
		return
	}
	w := &m.watched[i]
	if !w.inRing {
		m.watched = slices.Delete(m.watched, i, i+1)
		return
	}
	w.waiting = false
	w.detector.Heartbeat(&m.settings, arrived)
}

// Tick counts those as heard once who were due to answer by now and did not.
func (m *Monitor) Tick(now time.Duration) {
	for i := range m.watched {
		w := &m.watched[i]
		if w.waiting && w.due <= now {
			w.waiting = false
			w.detector.Heartbeat(&m.settings, w.due)
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

// Available reports whether id counts as alive at now; one who is not watched does.
func (m *Monitor) Available(id peer.ID, now time.Duration) bool {
	i, ok := m.find(id)
	return !ok || m.watched[i].detector.Available(&m.settings, now)
}

// Watching reports whether id is watched.
func (m *Monitor) Watching(id peer.ID) bool {
	_, ok := m.find(id)
	return ok
}

// Phi returns the suspicion level of id at now, for display; 0 for one who is not watched.
func (m *Monitor) Phi(id peer.ID, now time.Duration) float64 {
	if i, ok := m.find(id); ok {
		return m.watched[i].detector.Phi(&m.settings, now)
	}
	return 0
}
