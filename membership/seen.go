// Seen: who is known to have seen the present state, for those who ask from outside.

package membership

import (
	"time"

	"github.com/kith-io/kith/peer"
)

// ReconfirmCommand makes a version of the state with the same content that only this node has seen: whoever is found to
// have seen it has heard from this node since. Errors: ErrNotMember.
type ReconfirmCommand struct{}

func (ReconfirmCommand) command() {}

func (m *Machine) reconfirm() error {
	if m.phase != member {
		return ErrNotMember
	}
	m.install(m.st.Draft().Commit(m.self), true)
	return nil
}

// Late appends the members that have not shown for two heartbeat intervals that they live, and that nobody here accuses
// yet, sorted, to into, and returns it.
func (m *Machine) Late(now time.Duration, into []peer.ID) []peer.ID {
	if m.phase != member {
		return into
	}
	return m.watch.monitor.Late(now, into)
}

// Unheard appends the members that this node probes and whose last answer is older than d, whatever this node did
// meanwhile, sorted, to into, and returns it.
func (m *Machine) Unheard(now, d time.Duration, into []peer.ID) []peer.ID {
	if m.phase != member {
		return into
	}
	return m.watch.monitor.Unheard(now, d, into)
}

// Seen appends to into those of ids that are known to have seen the state which the newest view shows, and returns it.
// It costs a search for each id.
func (m *Machine) Seen(ids peer.Set, into []peer.ID) []peer.ID {
	if m.st == nil {
		return into
	}
	for _, id := range ids {
		if i := m.st.Index(id); i >= 0 && m.st.Seen.Has(i) {
			into = append(into, id)
		}
	}
	return into
}
