// Drain: what waits in a slot goes to the home that is known now, in order.

package plane

import (
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/wire"
)

// Step is what became of the attempt to send one message on that waited in a slot.
type Step uint8

// The steps.
const (
	Sent   Step = iota // it has gone to the home, or is over
	Moving             // it is a large message with its payload on the way to the home: what is behind it waits
	NoRoom             // the home has no room for it just now
	NoHome             // the home is gone for good
	Stale              // it is an ask, and nobody waits for its answer any more: it goes nowhere, and is counted
)

// Drain sends on what waits in a slot with a known home, the oldest first, until send does not take one more, and
// opens the slot when nothing waits. send gets a parsed envelope and its whole frame, stamped with the slot's fence;
// both are valid during the call.
//
// It returns Sent when the slot is open, else the step of the message that it stopped at, which stays at the head:
// after Moving the runtime comes back when the payload is there, after NoRoom when there is room. After NoHome the slot
// does not know its home any more, and the runtime asks the node for another.
func Drain(s *flow.Slot, send func(e *wire.Envelope, frame []byte) Step) Step {
	var e wire.Envelope
	for {
		frame, waits := s.PeekParked()
		if !waits {
			s.OpenIfDrained()
			return Sent
		}
		err := wire.ParseEnvelope(frame, &e)
		invariant.Check(err == nil, "plane: an envelope of our own does not parse")
		switch step := send(&e, frame); step {
		case Sent:
			s.PopParked()
		case Stale:
			s.DropParked()
		case Moving:
			s.Busy()
			return step
		case NoHome:
			s.Reset()
			return step
		default:
			return step
		}
	}
}
