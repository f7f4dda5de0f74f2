// Seen: who is known to have seen the present state, for those who ask from outside.

package membership

import "github.com/kith-io/kith/peer"

// Seen appends to into those of ids that are known to have seen the state which the newest view shows, and returns it.
// It costs a search for each id.
func (m *Machine) Seen(ids peer.Set, into []peer.ID) []peer.ID {
	if m.st == nil {
		return into
	}
	for _, id := range ids {
		if i := m.st.index(id); i >= 0 && m.st.seen.Has(i) {
			into = append(into, id)
		}
	}
	return into
}
