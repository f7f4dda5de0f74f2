// Deputies: the extra targets of a gossip round, options of the early specification (GOS-9).

package membership

import (
	"slices"

	"github.com/kith-io/kith/gossip"
)

// extraTargets sends what a round sends to an unreachable member and to a deputy as well, each by chance. reached is
// the position of the round's own target, -1 when there was none.
func (m *Machine) extraTargets(reached int) {
	if m.cfg.Deputies <= 0 && !m.cfg.GossipToUnreachable {
		return
	}
	self := m.st.Index(m.self)
	unreachable := len(m.st.Unreachable)
	if m.st.Unreachable.Has(m.self) {
		unreachable--
	}
	live := len(m.st.Members) - 1 - unreachable
	if m.cfg.GossipToUnreachable && gossip.Chance(m.rng, gossip.ToUnreachable(unreachable, live)) {
		k := gossip.Choose(m.rng, len(m.st.Unreachable), 0, func(k int) bool { return m.st.Unreachable[k] != m.self }, nil)
		if k >= 0 {
			m.sendStatus(m.st.Unreachable[k])
		}
	}
	m.scratch = m.st.Deputies(m.st.Leader(m.self), m.cfg.Deputies, m.scratch[:0])
	p := gossip.ToDeputy(len(m.scratch), live, unreachable, slices.Contains(m.scratch, reached))
	m.scratch = slices.DeleteFunc(m.scratch, func(i int) bool { return i == self || i == reached })
	if len(m.scratch) > 0 && gossip.Chance(m.rng, p) {
		m.sendStatus(m.st.Members[m.scratch[m.rng.IntN(len(m.scratch))]].ID)
	}
}
