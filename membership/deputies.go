// Deputies: the extra targets of a gossip round, options of the early specification (GOS-9).

package membership

import (
	"slices"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// deputies appends the positions of the n members after the leader in sorted order, going on at the front behind the
// last, among those who count; the leader is none, and neither is anybody when nobody leads.
func (s *state) deputies(leader peer.ID, n int, into []int) []int {
	first := s.index(leader)
	if first < 0 {
		return into
	}
	for k := 1; k < len(s.members) && n > 0; k++ {
		if i := (first + k) % len(s.members); s.members[i].Status.counts() {
			into = append(into, i)
			n--
		}
	}
	return into
}

// extraTargets sends what a round sends to an unreachable member and to a deputy as well, each by chance. reached is
// the position of the round's own target, -1 when there was none.
func (m *Machine) extraTargets(reached int) {
	if m.cfg.Deputies <= 0 && !m.cfg.GossipToUnreachable {
		return
	}
	self := m.st.index(m.self)
	unreachable := len(m.st.unreachable)
	if m.st.unreachable.Has(m.self) {
		unreachable--
	}
	live := len(m.st.members) - 1 - unreachable
	if m.cfg.GossipToUnreachable && gossip.Chance(m.rng, gossip.ToUnreachable(unreachable, live)) {
		k := gossip.Choose(m.rng, len(m.st.unreachable), 0, func(k int) bool { return m.st.unreachable[k] != m.self }, nil)
		if k >= 0 {
			m.sendStatus(m.st.unreachable[k])
		}
	}
	m.scratch = m.st.deputies(m.st.leader(m.self), m.cfg.Deputies, m.scratch[:0])
	p := gossip.ToDeputy(len(m.scratch), live, unreachable, slices.Contains(m.scratch, reached))
	m.scratch = slices.DeleteFunc(m.scratch, func(i int) bool { return i == self || i == reached })
	if len(m.scratch) > 0 && gossip.Chance(m.rng, p) {
		m.sendStatus(m.st.members[m.scratch[m.rng.IntN(len(m.scratch))]].ID)
	}
}
