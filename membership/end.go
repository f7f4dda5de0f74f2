// End: how the membership of a node is over.

package membership

import "github.com/kith-io/kith/peer"

// end is the end: no deadline, no further mail. The last view has this node removed, or Down.
func (m *Machine) end(kind EndKind, by peer.ID, reason string) {
	if m.phase == ended {
		return
	}
	m.phase, m.stale = ended, true
	m.timers = [timerCount]timer{}
	m.over = &Ended{Kind: kind, By: by, At: m.now, Reason: reason}
	if m.st != nil && kind != EndDowned && m.st.Has(m.self) {
		m.st = m.st.Without(m.self)
	}
}
