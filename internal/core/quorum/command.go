// Commands and effects of a machine.

package quorum

import (
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// Command is a local wish: MembersCommand, GetCommand or PutCommand.
type Command interface{ isCommand() }

// MembersCommand says which replicas there are, by the ids of their disks, and which of them answer.
type MembersCommand struct{ All, Up peer.Set }

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

// Outcome ends a request. Entry has all values that none replaces, deletions left out, and Context their clock; of a
// write, as they are at the replica that made it.
type Outcome struct {
	Number  uint64
	Entry   Entry
	Context gossip.Clock
	Own     *Versioned // of a write: its value, or its deletion
	Err     error
	Have    int // of ErrTimeout: replicas that have answered or acknowledged, as far as this broker knows
	Need    int // and how many had to
}

// Effects is what a machine wants done: messages, and outcomes to report.
type Effects struct {
	Sends []Mail
	Done  []Outcome
}
