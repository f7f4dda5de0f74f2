// State: what a machine is made of.

package quorum

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
)

// Machine is the broker and the replica of one node. It is not safe for concurrent use.
type Machine struct {
	shelf
	ring
	desk
	rng     *rand.Rand
	now     time.Duration
	heard   time.Duration // when another replica was last heard of
	inbox   []letter      // that Sync handles
	roundAt time.Duration
	settled time.Duration // no request is under way by then that knew other members
	effects Effects
}

// send sends a message, to this replica too.
func (m *Machine) send(to peer.ID, x *message) {
	if to == m.ident.id {
		m.inbox = append(m.inbox, letter{to, x})
		return
	}
	m.effects.Sends = append(m.effects.Sends, Mail{to, x.append(nil)})
}
