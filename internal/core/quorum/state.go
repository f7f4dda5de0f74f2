// State: commands and effects of a machine, and what it is made of.

package quorum

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// Command is a local wish: MembersCommand, GetCommand or PutCommand.
type Command interface{ isCommand() }

// GetCommand reads a key. Its Outcome has this Number, which is not 0 and is used once.
type GetCommand struct {
	Number uint64
	Key    []byte
}

// PutCommand writes a key on top of what Context names, which came with an Outcome; an empty one knows of nothing.
// Register pays no heed to it. Key and Data belong to the machine from now on.
type PutCommand struct {
	Number  uint64
	Key     []byte
	Data    []byte
	Context gossip.Clock
	Delete  bool
}

func (MembersCommand) isCommand() {}
func (GetCommand) isCommand()     {}
func (PutCommand) isCommand()     {}

// Outcome ends a request. Entry has all values that none replaces, deletions left out, and Context their clock.
type Outcome struct {
	Number  uint64
	Entry   Entry
	Context gossip.Clock
	Err     error
}

// Effects is what a machine wants done: messages, and outcomes to be told.
type Effects struct {
	Sends []Mail
	Done  []Outcome
}

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
