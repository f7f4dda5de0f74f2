// Bound: how long a node goes on without the answers of a side that would live (MEM-10).
//
// What detectors call a silence depends on what they have learned, and time in which this node did not run is forgiven.
// The takeover time of the others knows nothing of that. So a node stops, accused or not, if it would not live without
// the members that have not answered for as long as the longest silence and the longest patience together.
//
// It asks this of silence alone. That members which answer do not hear each other has its own time: the decision gives
// accusers the time to take their word back, and comes, or this node stops, before unrest may last for longer.

package sbr

import (
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// Bound is how old the last answer of a member may be before it counts as lost for whether this node goes on.
func (m *Machine) Bound() time.Duration {
	limit, ok := m.cfg.unstableFor(m.stable)
	if !ok {
		limit = m.stable * 7 / 4
	}
	return m.cfg.Silence + limit
}

// bind stops this node, or lets it go on, by the members that have not answered for that long. Accused members are left
// to the decision.
func (m *Machine) bind(ids []peer.ID) {
	m.unheard = m.unheard[:0]
	if m.cfg.Strategy == Off || m.cfg.Strategy == UnsafeAutoDown || m.view == nil {
		return
	}
	self, ok := m.view.SelfMember()
	if !ok || !counts(self.Status) {
		return
	}
	for _, id := range ids {
		if x, ok := m.view.Member(id); ok && counts(x.Status) {
			m.unheard.Add(id)
		}
	}
	switch bound := len(m.unheard) > 0 && !m.cfg.Decide(unsaid(m.without(m.unheard))).Lives; {
	case bound:
		m.bound = true
		m.suspend("those without whom it would not live have not answered for too long")
	case m.bound:
		m.bound = false
		m.heal()
	}
}

// unsaid takes the words about members in contact, and about this node, out of a situation that has its own slice of
// accusations: all members that a path leads to count on this side, and none is indirectly connected. A member under
// quarantine is lost still.
func unsaid(s Situation) Situation {
	s.Accusations = slices.DeleteFunc(s.Accusations, func(a membership.Accusation) bool {
		return !a.Quarantined && (a.Subject == s.Self || s.Contact.Has(a.Subject))
	})
	return s
}
