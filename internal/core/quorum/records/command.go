// Commands, outcomes and effects of a machine.

package records

import (
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Command is a local wish: one of the types below. Numbers are not 0 and are used once: the Outcome has that of its
// command. What a command points to belongs to the machine from now on.
type Command interface{ isCommand() }

// MembersCommand says which replicas there are, by the ids of their disks, and which of them answer. Sets are those on
// the disks: an owner only begins a change of set where a member is missing in All for Config.ReplaceAfter. A disk that
// leaves is missing in All, and answers.
type MembersCommand struct{ All, Up peer.Set }

// FoundCommand founds the store: set 1 of each of its groups, 1 to 256. It is given to one member, once in the life of
// a store; the others learn of it. With a Store that is not zero it may be given to each member, and again, if all are
// given the same: then what they are given has to be written down elsewhere, once.
type FoundCommand struct {
	Store  uint64 // tells one founding from another; zero: one is drawn
	Groups []peer.Set
}

// ClaimCommand makes Fence that of a shard. Its Outcome has Last and Floor.
type ClaimCommand struct {
	Number uint64
	Shard  Shard
	Fence  route.Fence
}

// CommitCommand writes all or none, as the owner under Fence: 1 to 100 writes.
type CommitCommand struct {
	Number uint64
	Shard  Shard
	Fence  route.Fence
	Writes []Write
}

// ForgetCommand takes marks away that are older than By, the oldest first, at most Most, 1 to 10,000. Its Outcome has
// Count.
type ForgetCommand struct {
	Number uint64
	Shard  Shard
	Fence  route.Fence
	By     int64 // milliseconds since 1970
	Most   int
}

// ReadCommand asks the state of a shard, as the owner under Fence: a majority says that there is no higher one, after
// the command was given. With a Fence of zero it is asked of the newest of a majority, and what is written meanwhile
// may be seen or not.
type ReadCommand struct {
	Number uint64
	Shard  Shard
	Fence  route.Fence
	Query  Query
}

// ChangeCommand changes the set of a shard, as the owner under Fence.
type ChangeCommand struct {
	Number uint64
	Shard  Shard
	Fence  route.Fence
	Set    peer.Set
}

func (MembersCommand) isCommand() {}
func (FoundCommand) isCommand()   {}
func (ClaimCommand) isCommand()   {}
func (CommitCommand) isCommand()  {}
func (ForgetCommand) isCommand()  {}
func (ReadCommand) isCommand()    {}
func (ChangeCommand) isCommand()  {}

// Outcome ends a command that has a number. With ErrTimeout what was asked may take place later, or has.
type Outcome struct {
	Number uint64
	Err    error
	Last   route.Fence // of the owner before
	Count  int
	Answer Answer
}

// Effects is what a machine wants done: messages, and outcomes to report.
type Effects struct {
	Sends []Mail
	Done  []Outcome
}

// Stats counts.
type Stats struct {
	Shards   int    // that the disk holds
	Owners   int    // at this node
	Requests int    // under way
	Bytes    int    // of commits that wait
	Copies   int    // under way, from and to this disk
	Entries  uint64 // that owners of this node have decided
	Commits  uint64 // in these
	Cared    uint64 // times that this node has claimed a shard for its set alone: nobody owned it
	Copied   uint64 // histories that this disk has taken whole
	Refused  uint64 // messages that were no messages, or of another store
	Failed   uint64 // commits that the disk refused
	Damaged  uint64 // times that a shard on this disk could not be read
	Diverged uint64 // replicas that hold another history under one stamp: a fault of this package
}
