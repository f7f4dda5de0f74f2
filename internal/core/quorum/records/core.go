// Core: what the two halves of a machine share: its time, its disk's id, and the messages between them.

package records

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
)

const never = time.Duration(1<<63 - 1)

// letter is a message that has come.
type letter struct {
	from peer.ID
	x    *message
}

// core is what both halves of a machine stand on.
type core struct {
	cfg     Config
	rng     *rand.Rand
	now     time.Duration
	due     time.Duration // when to be ticked again, at the latest
	ident   identity
	found   found
	inbox   []letter // for the replica, at the next Sync
	local   []letter // for the owners, from the replica of this node
	effects Effects
	stats   Stats
}

// send sends a message, to this node too.
func (m *core) send(to peer.ID, x *message) {
	if to == m.ident.id {
		m.inbox = append(m.inbox, letter{to, x})
		return
	}
	m.effects.Sends = append(m.effects.Sends, Mail{to, x.append(nil, m.found.store)})
}

// reply sends an answer, to an owner of this node too.
func (m *core) reply(to peer.ID, x *message) {
	if to == m.ident.id {
		m.local = append(m.local, letter{to, x})
		return
	}
	m.send(to, x)
}

// wake has the machine be ticked at a time.
func (m *core) wake(at time.Duration) { m.due = min(m.due, at) }

// expired reports whether a time has come, and has the machine be ticked at it otherwise.
func (m *core) expired(at time.Duration) bool {
	if m.now >= at {
		return true
	}
	m.wake(at)
	return false
}
