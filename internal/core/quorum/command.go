// Commands and effects of a machine.

package quorum

import (
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// Command is a local wish: MembersCommand, GetCommand, PutCommand or LookCommand.
type Command interface{ isCommand() }

// MembersCommand says which replicas there are, by the ids of their disks, and which of them answer. Those that leave
// hold no group any more, and are there to be read from.
type MembersCommand struct{ All, Up, Leaving peer.Set }

// Stay returns those that do not leave.
func (c *MembersCommand) Stay() (stay peer.Set) {
	for _, id := range c.All {
		if !c.Leaving.Has(id) {
			stay = append(stay, id)
		}
	}
	return stay
}

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

// LookCommand asks all replicas of a key what they have, and changes nothing: no replica is repaired. Its Outcome has
// Looks, one for each replica, when all that are up have answered, or after Timeout, and as Entry all values together.
type LookCommand struct {
	Number uint64
	Key    []byte
}

func (MembersCommand) isCommand() {}
func (GetCommand) isCommand()     {}
func (PutCommand) isCommand()     {}
func (LookCommand) isCommand()    {}

// Outcome ends a request. Entry has all values that none replaces, deletions left out, and Context their clock; of a
// write, as they are at the replica that made it.
type Outcome struct {
	Number  uint64
	Entry   Entry
	Context gossip.Clock
	Own     *Versioned // of a write: its value, or its deletion
	Err     error
	Have    int    // of ErrTimeout: replicas that have answered or acknowledged, as far as this broker knows
	Need    int    // and how many had to
	Looks   []Look // of a LookCommand
}

// Look is what one replica of a key has.
type Look struct {
	Disk     peer.ID
	Up       bool
	Answered bool
	Lacking  bool  // it has yet to read what others hold of the key's group
	Behind   bool  // it lacks something that another replica has
	Hints    int   // writes of the key that wait for it here
	Entry    Entry // what it has, deletions among it
}

// Effects is what a machine wants done: messages, and outcomes to report.
type Effects struct {
	Sends []Mail
	Done  []Outcome
}

// LeaveCommand has the disk of this node hand on what it has to others, or takes that back: then it reads anew what it
// has missed. An error of the disk delays it.
type LeaveCommand struct{ On bool }

// SpareCommand says that what else is on this disk, and has been given Members, needs none of those that leave.
type SpareCommand struct{}

func (LeaveCommand) isCommand() {}
func (SpareCommand) isCommand() {}
