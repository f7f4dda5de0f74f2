// Doubt: a decision that hangs on members that may be gone: nobody can say yet (MEM-10).

package sbr

import (
	"slices"

	"github.com/kith-io/kith/peer"
)

// indirectly reports whether members are sent away because they are indirectly connected, and nobody is asked.
func indirectly(m *Machine) bool {
	c := &m.cfg
	return c.Strategy == KeepMajority || c.Strategy == StaticQuorum || c.Strategy == KeepOldest ||
		c.Strategy == LeaseMajority && m.founded
}

// doubted returns the members that may be gone: this node cannot say yet. They are those that are late, and those in
// contact that are late here, or not heard at all: such a member may have been back for a moment only. And a quiet
// member that accuses one in contact: it may have taken that back just before it stood still.
func (m *Machine) doubted() peer.Set {
	list := m.late.Clone()
	for _, id := range m.contact {
		if x, ok := m.view.Member(id); ok && id != m.self && counts(x.Status) &&
			(slices.Contains(m.silent, id) || m.accuses(id)) {
			list.Add(id)
		}
	}
	for _, a := range m.view.Accusations {
		if x, ok := m.view.Member(a.Observer); ok && a.Observer != m.self && counts(x.Status) && m.contact.Has(a.Subject) &&
			slices.Contains(m.quiet, a.Observer) {
			list.Add(a.Observer)
		}
	}
	return list
}

// hangs reports whether it depends on the doubted members if others go: with them go members that accuse them, or that
// they accuse, and that are above suspicion without them. lives says that this node lives in both cases. A member above
// suspicion that is not late carries the decision out: where there is none, nobody waits for it.
func (m *Machine) hangs() (lives, ok bool) {
	if !indirectly(m) {
		return false, false
	}
	doubted := m.doubted()
	if len(doubted) == 0 {
		return false, false
	}
	s := m.situation()
	s.Late = m.late
	d, x := m.cfg.Decide(s), m.cfg.Decide(m.without(doubted))
	if !x.Lives || d.next.IsZero() {
		return false, false
	}
	others := func(down peer.Set) (list peer.Set) {
		for _, id := range down {
			if !doubted.Has(id) {
				list = append(list, id)
			}
		}
		return list
	}
	return d.Lives, !slices.Equal(others(d.Down), others(x.Down))
}
