// Bound: how long a node goes on without the answers of a side that would live (MEM-10).
//
// What detectors call a silence depends on what they have learned, and time in which this node did not run is forgiven.
// The takeover time of the others knows nothing of that. So a node stops, accused or not, if it would not live without
// the members that have not answered for as long as the longest silence and the longest patience together.

package sbr

import (
	"time"

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
	switch bound := len(m.unheard) > 0 && !m.livesWithout(m.unheard); {
	case bound:
		m.bound = true
		m.suspend("those without whom it would not live have not answered for too long")
	case m.bound:
		m.bound = false
		m.heal()
	}
}
