// The shapes that others see of the courier: which nodes are members, commands that go in, effects that come out.

package courier

import (
	"errors"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// ErrBadCommand is returned by Do for a command of another kind.
var ErrBadCommand = errors.New("courier: unknown command")

// Standing is what the membership says of a peer.
type Standing uint8

// The standings of a peer.
const (
	Absent    Standing = iota // no member, or no member any more
	Lost                      // Down: nothing is sent to it, what it says last is still taken
	Condemned                 // given up: this node holds it quarantined
	Doubted                   // a member that is unreachable, or not Up yet: mail waits, its silence does not count
	Present                   // a member that is reachable and has come Up
)

// Roster is the present membership: the standing of a peer, which must not change while the Roster is in use, and for
// how long, while it is Present, a peer may acknowledge nothing before it is given up. Zero: for ever.
type Roster struct {
	Of          Standings
	GiveUpAfter time.Duration
}

// Standings tells the standing of a peer.
type Standings interface{ Of(id peer.ID) Standing }

// GaveUp says that a peer acknowledged nothing for too long, and why in words. Alike is how many others have
// acknowledged nothing for more than half as long: a node that is about to give up many peers is likelier at fault
// itself.
type GaveUp struct {
	ID     peer.ID
	Reason string
	Alike  int
}

// Delivery is one message, in the order of its sender. Body is valid as long as the frame that was handed to Handle.
type Delivery struct {
	Kind wire.Kind
	Body []byte
}

// Command is a wish of the composition: one of FollowCommand, PostCommand, PlainCommand, ForgiveCommand.
type Command interface{ command() }

// FollowCommand brings a new membership.
type FollowCommand struct{ Roster Roster }

// PostCommand sends a message to a member; its body is copied. Errors: ErrBadKind, and a *FullError or ErrNoPeer, which
// mean that it will not be sent. A message that can wait finds room in a quarter of the window only, and no event
// reports when it does not: the caller keeps it and tries again.
type PostCommand struct {
	Mail    peer.Mail
	CanWait bool
}

// PlainCommand says that a peer does not know segments: an earlier version of the protocol. What is outstanding goes to
// it bare, once, and so does everything later.
type PlainCommand struct{ ID peer.ID }

// ForgiveCommand begins every peer's silence anew: this node took the fault for its own.
type ForgiveCommand struct{}

func (FollowCommand) command()  {}
func (PostCommand) command()    {}
func (PlainCommand) command()   {}
func (ForgiveCommand) command() {}

// Effects is what one or more verbs ask for. The composition carries out Delivered and GaveUp itself, within the step;
// Mail and Full are for the runtime. Slices and bodies are valid until the next verb.
type Effects struct {
	Mail      []peer.Mail
	Full      []*FullError // the first message to a peer that found no room, until there was room again
	Delivered []Delivery   // messages to take now, in this order
	GaveUp    []GaveUp     // peers to give up
	Closed    []peer.Mail  // notices that are not acknowledged and never will be, by receiver
}
