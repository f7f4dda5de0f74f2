// The gate: what a suspended, stopping or stopped node does with what would reach a handler (MEM-10).

package plane

import (
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// KeepMost is how many bytes of others' envelopes a node keeps at most, for each of its loops, while its gate is
// closed. Only connections that came and went, each with credit of its own, reach it.
const KeepMost = 64 << 20

// Gate says what closes the way to a node's handlers; zero: nothing does. A runtime that runs handlers on several
// goroutines keeps it in one atomic word.
type Gate uint32

// What closes a gate.
const (
	GateOrdered Gate = 1 << iota // the node's order
	GateNoticed                  // a gap, a sleep, the end of its session lease or tenure, not judged by the node yet
	GateEnded                    // the node has ended, and has reported its last refusals
)

// OpenUntil returns the last moment at which handlers may be called without another step of the node: its last step may
// be older by limit, and its session lease or its tenure counts for nothing from lease on. All in nanoseconds.
func OpenUntil(stepped, limit, lease int64) int64 { return min(stepped+limit, lease-1) }

// Held reports whether no handler may be called at now: the gate is closed, or it is later than until (OpenUntil), so
// that an order may be about to come.
func (g Gate) Held(now, until time.Duration) bool { return g != 0 || now > until }

// Noticed returns the gate when it is found to be later than until, before the node has stepped again.
func (g Gate) Noticed(now, until time.Duration) Gate {
	if now > until {
		return g | GateNoticed
	}
	return g
}

// Judged returns the gate after a step, in which the node has seen the gap before it, if there was one. suspended is
// what the node says; untold: it does not know yet of a sleep.
func Judged(suspended, untold bool) (g Gate) {
	if suspended {
		g |= GateOrdered
	}
	if untold {
		g |= GateNoticed
	}
	return g
}

// GateDecision says what becomes of a frame of another node that meets a closed gate.
type GateDecision uint8

// The treatments.
const (
	GatePass   GateDecision = iota // an answer, an asker that gives up, a parcel: it reaches no handler
	GateQueue                      // waits, in order, and its credit with it: its sender runs out of it
	GateReject                     // refused as Suspended: as much is kept as may be
	Unknown                        // no frame of the data lane
	GateLeave                      // nobody looks at it, and its credit stays away: its sender knows it as lost in flight
)

// AtGate says what becomes of a frame of so many bytes that comes while the gate is closed, or while frames that came
// before it are kept. kept is how many bytes are, most how many may be.
func (g Gate) AtGate(kind wire.Kind, size, kept, most int) GateDecision {
	switch {
	case g&GateEnded != 0:
		return GateLeave
	case kind == wire.KindReply, kind == wire.KindCancel, kind == wire.KindParcel:
		return GatePass
	case kind != wire.KindEnvelope && kind != wire.KindMarker: // a marker stands behind envelopes that are kept
		return Unknown
	case size > most-kept:
		return GateReject
	}
	return GateQueue
}

// Closed is why a node with a closed gate takes no message of its own callers. ended: it has stopped for good.
func Closed(ended bool) route.Reason {
	if ended {
		return route.Stopped
	}
	return route.Suspended
}

// Abandoned is why a host takes nothing that its node has given up without stopping its entities in order: the node has
// ended, and what has come to it goes unhandled, or others own its shard.
func Abandoned(ended bool) route.Reason {
	if ended {
		return route.Abandoned
	}
	return route.NotOwner
}
