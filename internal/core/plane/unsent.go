// Unsent: frames that a slot or a link gives up, and the target to notify of each.

package plane

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Unsent says what a frame was that a node gives up, and so where that is reported: none goes without a word.
type Unsent uint8

// What a frame was.
const (
	UnsentOther Unsent = iota // no message of a user: nobody waits for it
	UnsentReply               // counted: the asker has a time limit
	UnsentLarge               // it stands for a large message: that ends, and its sender is notified
	UnsentAsk                 // the asker here is answered with the reason
	UnsentTell                // counted, and reported as not delivered
)

// ClassifyUnsent parses a whole frame that goes nowhere any more into e, if it is an envelope, and says what it was. e
// is a view of the frame.
func ClassifyUnsent(frame []byte, e *wire.Envelope) Unsent {
	switch wire.KindOf(frame) {
	case wire.KindReply:
		return UnsentReply
	case wire.KindEnvelope:
	default:
		return UnsentOther
	}
	if wire.ParseEnvelope(frame, e) != nil {
		return UnsentOther
	}
	switch NotifyTargetOf(e.Flags) {
	case NotifyTransfer:
		return UnsentLarge
	case NotifyAsker:
		return UnsentAsk
	}
	return UnsentTell
}

// WhyUnsent is the reason for what a link gives up: its peer is gone for good, or this node ends, and what it has
// accepted goes unhandled.
func WhyUnsent(ended bool) route.Reason {
	if ended {
		return route.Abandoned
	}
	return route.PeerLost
}
