// Delivery reasons and errors: why a message was not accepted, or an ask not answered. One sentinel per reason, the
// same number on the wire.

package route

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/internal/base/enum"
)

// Reason is why an envelope or an ask failed, as replies and refusals carry it. Zero is success.
type Reason uint16

// The reasons. Numbers stand on the wire and are never reused.
const (
	OK            Reason = 0
	NotOwner      Reason = 1  // the receiver does not own the shard under that fence
	NotRegistered Reason = 2  // the receiver has not registered the type
	MailboxFull   Reason = 3  // the entity's mailbox is full; of a node of wire version 1 also 19 to 21
	HandlerFailed Reason = 4  // Receive returned an error; the payload of the reply is its text
	HandlerPanic  Reason = 5  // Receive panicked
	TimedOut      Reason = 6  // no answer within the time limit
	PeerLost      Reason = 7  // the connection or the node was lost before an answer came
	LinkFull      Reason = 8  // the link to the owner is over its bound
	ParkFull      Reason = 9  // the shard's parking queue is full
	Stopped       Reason = 10 // the node is stopping or has stopped
	TooLarge      Reason = 11 // payload over the limit
	BadID         Reason = 12 // entity id empty or too long, or a daemon's, which takes no messages
	NoReply       Reason = 13 // Receive returned without a reply or a detach
	Suspended     Reason = 14 // the node has suspended itself
	BadPayload    Reason = 15 // a codec refused the payload
	ShardStopping Reason = 16 // the shard is being stopped at its owner
	AsksFull      Reason = 17 // too many asks under way on this node
	Crashed       Reason = 18 // the entity was ended by a panic and is not made again yet; since wire version 2
	BudgetFull    Reason = 19 // the node's budget for all mailboxes is used up; since wire version 2
	TableFull     Reason = 20 // the shard holds as many entities as it may; since wire version 2
	QueueFull     Reason = 21 // too much waits for the worker or loop of the shard; since wire version 2
	Expired       Reason = 22 // the caller's time was over before the ask was handled; since wire version 4
	NoHost        Reason = 23 // no member of the cluster hosts the type; since wire version 4
	Abandoned     Reason = 24 // it waited on a node that ended, or lost the shard; since wire version 4
	LostInFlight  Reason = 25 // its connection broke or its owner was lost: handled or not; since wire version 4
	NewFailed     Reason = 26 // New or Open made no handler, so nothing was handled; since wire version 4
	HandlerNamed  Reason = 27 // HandlerFailed with an identity: its payload is that of Named; since wire version 9
	reasonCount          = 28
)

// One error per reason; match with errors.Is. What is returned wraps them with the peer, the bound or the id.
var (
	ErrNotOwner      = errors.New("kith: not the owner under that fence")
	ErrNotRegistered = errors.New("kith: type not registered at the receiver")
	ErrMailboxFull   = errors.New("kith: mailbox full")
	ErrHandler       = errors.New("kith: handler returned an error")
	ErrPanic         = errors.New("kith: handler panicked")
	ErrTimeout       = errors.New("kith: no answer in time")
	ErrPeerLost      = errors.New("kith: peer lost before it answered")
	ErrLinkFull      = errors.New("kith: link full")
	ErrParkFull      = errors.New("kith: parking queue full")
	ErrStopped       = errors.New("kith: node stopped")
	ErrTooLarge      = errors.New("kith: payload too large")
	ErrBadID         = errors.New("kith: bad entity id")
	ErrBadShard      = errors.New("kith: the shard function gives no shard of the type")
	ErrNoReply       = errors.New("kith: handler gave no reply")
	ErrSuspended     = errors.New("kith: node suspended")
	ErrBadPayload    = errors.New("kith: payload refused by codec")
	ErrShardStopping = errors.New("kith: shard is stopping")
	ErrAsksFull      = errors.New("kith: too many asks under way")
	ErrCrashed       = errors.New("kith: entity crashed and is not made again yet")
	// The next three match ErrMailboxFull too.
	ErrBudgetFull = fmt.Errorf("%w: budget of the node", ErrMailboxFull)
	ErrTableFull  = fmt.Errorf("%w: too many entities in the shard", ErrMailboxFull)
	ErrQueueFull  = fmt.Errorf("%w: queue of an event loop or worker", ErrMailboxFull)
	ErrNoHost     = errors.New("kith: no member hosts the type")
	ErrNewFailed  = errors.New("kith: entity could not be made")
	// ErrExpired matches ErrTimeout too, ErrAbandoned ErrStopped, ErrLostInFlight ErrPeerLost.
	ErrExpired      = fmt.Errorf("%w: expired before it was handled", ErrTimeout)
	ErrAbandoned    = fmt.Errorf("%w: abandoned before it was handled", ErrStopped)
	ErrLostInFlight = fmt.Errorf("%w: lost in flight, handled or not", ErrPeerLost)
	// ErrHandlerNamed matches ErrHandler too.
	ErrHandlerNamed = fmt.Errorf("%w with an identity", ErrHandler)
)

var reasonErrs = [reasonCount]error{
	NotOwner: ErrNotOwner, NotRegistered: ErrNotRegistered, MailboxFull: ErrMailboxFull, HandlerFailed: ErrHandler,
	HandlerPanic: ErrPanic, TimedOut: ErrTimeout, PeerLost: ErrPeerLost, LinkFull: ErrLinkFull, ParkFull: ErrParkFull,
	Stopped: ErrStopped, TooLarge: ErrTooLarge, BadID: ErrBadID, NoReply: ErrNoReply, Suspended: ErrSuspended,
	BadPayload: ErrBadPayload, ShardStopping: ErrShardStopping, AsksFull: ErrAsksFull, Crashed: ErrCrashed,
	BudgetFull: ErrBudgetFull, TableFull: ErrTableFull, QueueFull: ErrQueueFull,
	Expired: ErrExpired, NoHost: ErrNoHost, Abandoned: ErrAbandoned, LostInFlight: ErrLostInFlight,
	NewFailed: ErrNewFailed, HandlerNamed: ErrHandlerNamed,
}

var reasonNames = [reasonCount]string{
	OK: "ok", NotOwner: "not-owner", NotRegistered: "not-registered", MailboxFull: "mailbox-full",
	HandlerFailed: "handler-failed", HandlerPanic: "handler-panic", TimedOut: "timed-out", PeerLost: "peer-lost",
	LinkFull: "link-full", ParkFull: "park-full", Stopped: "stopped", TooLarge: "too-large", BadID: "bad-id",
	NoReply: "no-reply", Suspended: "suspended", BadPayload: "bad-payload", ShardStopping: "shard-stopping",
	AsksFull: "asks-full", Crashed: "crashed", BudgetFull: "budget-full", TableFull: "table-full",
	QueueFull: "queue-full", Expired: "expired", NoHost: "no-host", Abandoned: "abandoned",
	LostInFlight: "lost-in-flight", NewFailed: "new-failed", HandlerNamed: "handler-named",
}

// Reasons is how many reasons there are, OK included: the size of a table by reason.
const Reasons = int(reasonCount)

// Spoken returns r as a peer of that wire version knows it: a reason that came later is replaced by the nearest that is
// there. Version zero, not known yet, counts as ours: peers of another one are rare, and an answer that they do not
// understand runs into its caller's time limit.
func (r Reason) Spoken(version uint16) Reason {
	if version == 0 || version >= 9 {
		return r
	}
	if r == HandlerNamed {
		return HandlerFailed // with NamedText as its payload
	}
	if version >= 4 {
		return r
	}
	switch r {
	case Expired, NoHost:
		return TimedOut
	case Abandoned:
		return Stopped
	case LostInFlight:
		return PeerLost
	case NewFailed:
		return HandlerPanic
	}
	if version > 1 {
		return r
	}
	switch r {
	case Crashed:
		return HandlerPanic
	case BudgetFull, TableFull, QueueFull:
		return MailboxFull
	}
	return r
}

// Known reports whether r is a reason of this version.
func (r Reason) Known() bool { return r < reasonCount }

// String names the reason as logs and counters do.
func (r Reason) String() string { return enum.Name(reasonNames[:], r, "reason") }

// MarshalText gives the name.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (r *Reason) UnmarshalText(text []byte) error { return enum.Parse(r, text) }

// Err returns the sentinel of r, nil for OK. The text of a HandlerFailed answer is wrapped by ReplyError.
func (r Reason) Err() error {
	if r.Known() {
		return reasonErrs[r]
	}
	return fmt.Errorf("kith: unknown delivery reason %d", uint16(r))
}

// ReasonOf returns the reason of the sentinel that err wraps (the highest number, if several: later ones tell more), or
// OK for nil and HandlerFailed for any other error.
func ReasonOf(err error) Reason {
	if err == nil {
		return OK
	}
	for r := Reason(reasonCount - 1); r > OK; r-- {
		if errors.Is(err, reasonErrs[r]) {
			return r
		}
	}
	return HandlerFailed
}
