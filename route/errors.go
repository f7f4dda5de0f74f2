// Typed errors of delivery: each says which bound is full and how much it holds, or at which node something failed, and
// matches the error of its reason.

package route

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/peer"
)

// ErrAskCancelled is the cause of the end of a handler's context when the asker has given up (entity.Context.Context).
var ErrAskCancelled = errors.New("kith: whoever asked has given up")

// LinkFullError says that what waits to be sent to a peer has reached its bound, so many bytes. It matches ErrLinkFull.
type LinkFullError struct {
	Peer  peer.ID
	Limit int // bytes that may wait for one data connection (Config.LinkBuffer)
}

// Error names the peer and the bound.
func (e *LinkFullError) Error() string {
	return fmt.Sprintf("%v: %d bytes wait for %s", ErrLinkFull, e.Limit, e.Peer)
}

// Unwrap returns ErrLinkFull.
func (e *LinkFullError) Unwrap() error { return ErrLinkFull }

// LinkBudgetError says that the buffers of all data connections together have reached their bound. It matches
// ErrLinkFull.
type LinkBudgetError struct {
	Peer  peer.ID // to which a message could not be sent
	Limit int     // bytes that the buffers of this node may hold (Config.LinkBudget)
}

// Error names the peer and the budget.
func (e *LinkBudgetError) Error() string {
	return fmt.Sprintf("%v: the budget of %d bytes for all links is used up, for %s", ErrLinkFull, e.Limit, e.Peer)
}

// Unwrap returns ErrLinkFull.
func (e *LinkBudgetError) Unwrap() error { return ErrLinkFull }

// ParkFullError says that what waits for the home of a shard to become known has reached a bound. It matches
// ErrParkFull.
type ParkFullError struct {
	Bound string // which: "messages of the shard", "bytes of the shard" or "bytes of all shards" (Sharding.ParkBytes)
	Limit int
}

// Error names the bound.
func (e *ParkFullError) Error() string {
	return fmt.Sprintf("%v: %d %s", ErrParkFull, e.Limit, e.Bound)
}

// Unwrap returns ErrParkFull.
func (e *ParkFullError) Unwrap() error { return ErrParkFull }

// BulkFullError says that the large messages that wait to be sent have reached a bound. It matches ErrLinkFull.
type BulkFullError struct {
	Bound string // which: "large messages" or "bytes of large messages" (Config.BulkBudget)
	Limit int
	Peer  peer.ID // to which they are to be sent; zero for a bound on those to all peers together
}

// Error names the bound and the peer.
func (e *BulkFullError) Error() string {
	to := ""
	if e.Peer != (peer.ID{}) {
		to = fmt.Sprintf(" to %v", e.Peer)
	}
	return fmt.Sprintf("%v: %d %s wait to be sent%s", ErrLinkFull, e.Limit, e.Bound, to)
}

// Unwrap returns ErrLinkFull.
func (e *BulkFullError) Unwrap() error { return ErrLinkFull }

// AsksFullError says that as many asks are under way on this node as may be. It matches ErrAsksFull.
type AsksFullError struct {
	Limit int // Config.MaxAsks
}

// Error names the bound.
func (e *AsksFullError) Error() string {
	return fmt.Sprintf("%v: %d on this node", ErrAsksFull, e.Limit)
}

// Unwrap returns ErrAsksFull.
func (e *AsksFullError) Unwrap() error { return ErrAsksFull }

// HeadersError says that more headers were given with a message than may be. It matches ErrTooLarge.
type HeadersError struct{ Size, Limit int } // bytes

// Error names both.
func (e *HeadersError) Error() string {
	return fmt.Sprintf("%v: %d bytes of headers, at most %d", ErrTooLarge, e.Size, e.Limit)
}

// Unwrap returns ErrTooLarge.
func (e *HeadersError) Unwrap() error { return ErrTooLarge }

// RefusedError says that a node, this one or another, did not take a message because a bound of it is reached. It
// matches the error of its reason: ErrMailboxFull and the three that refine it, ErrTooLarge, ErrSuspended, ErrLinkFull.
type RefusedError struct {
	Peer   peer.ID // the node that has the bound
	Type   string  // of the entity; empty where the bound is not that of a type
	Reason Reason  // which bound
	Limit  int     // its value there, in Reason.Unit; zero when the peer did not tell: wire version 1
}

// Error names the peer, the type and the bound.
func (e *RefusedError) Error() string {
	about := ""
	if e.Type != "" {
		about = fmt.Sprintf(" of type %q", e.Type)
	}
	if e.Limit == 0 {
		return fmt.Sprintf("%v:%s at %v", e.Reason.Err(), about, e.Peer)
	}
	return fmt.Sprintf("%v: %d %s%s at %v", e.Reason.Err(), e.Limit, e.Reason.Unit(), about, e.Peer)
}

// Unwrap returns the error of the reason.
func (e *RefusedError) Unwrap() error { return e.Reason.Err() }

// PeerError says at which node a message or an ask failed for a reason that comes from no bound: it was lost, or did
// not answer in time. It matches the error of its reason.
type PeerError struct {
	Peer   peer.ID
	Type   string // of the entity
	Reason Reason
}

// Error names the reason, the type and the peer.
func (e *PeerError) Error() string {
	return fmt.Sprintf("%v: type %q at %v", e.Reason.Err(), e.Type, e.Peer)
}

// Unwrap returns the error of the reason.
func (e *PeerError) Unwrap() error { return e.Reason.Err() }

// UnansweredError says which entity has not answered an ask that waited for it: its time was over, or the node that it
// went to was lost. It wraps the error of the reason: ErrTimeout, ErrExpired, or ErrPeerLost.
type UnansweredError struct {
	Type, ID string
	// Owner is the node that was asked, or where the entity lived last while it has no home; zero: it is not known here.
	Owner peer.ID
	// Lost: the owner does not answer, or is lost, as the asker's node knows. ServedIn is how long, from the end of the
	// ask, until what lived there may be served elsewhere at the earliest; zero: nobody decides, an operator has to.
	Lost     bool
	ServedIn time.Duration
	Err      error
}

// Error says what Err does, names the entity, and says when it is served again.
func (e *UnansweredError) Error() string {
	s := fmt.Sprintf("%v: id %.64q of type %.64q", e.Err, e.ID, e.Type)
	switch {
	case !e.Lost:
		return s
	case e.ServedIn == 0:
		return s + fmt.Sprintf("; %v, where it lives, is silent: it waits until that is heard again, or an operator downs it",
			e.Owner)
	}
	return s + fmt.Sprintf("; %v, where it lived, is silent: it is served again in %v at the earliest", e.Owner,
		e.ServedIn.Round(time.Millisecond))
}

// Unwrap returns Err.
func (e *UnansweredError) Unwrap() error { return e.Err }

// Unanswered reports whether no answer came of an ask that ended for r.
func Unanswered(r Reason) bool { return r == TimedOut || r == Expired || r == PeerLost }

// boundUnits says what the limit of a reason counts; a reason that is not here comes from no bound.
var boundUnits = [reasonCount]string{
	MailboxFull: "bytes wait for the entity",
	BudgetFull:  "bytes wait for all entities of the node",
	TableFull:   "entities live in the shard",
	QueueFull:   "bytes wait for an event loop or worker",
	LinkFull:    "bytes of large messages wait",
	TooLarge:    "bytes are the most",
	Suspended:   "bytes wait for its word",
}

// Unit returns what the limit of a RefusedError with reason r counts, in words that follow the number; empty for a
// reason that comes from no bound.
func (r Reason) Unit() string {
	if !r.Known() {
		return ""
	}
	return boundUnits[r]
}

// Undelivered reports messages of Tell that were accepted here and not delivered. Err says why. No count is ever left
// out: when messages fail in more shards at once than are kept apart, the rest comes in reports with NoShard as their
// Shard.
type Undelivered struct {
	Type    string   // of their entities; empty when they are of several types, or it is not known
	Shard   ShardID  // NoShard when they are of several shards, or it is not known
	Reason  Reason   // LostInFlight: they left, and whether they were handled nobody knows
	Peer    peer.ID  // the node that refused them or was lost, this one included; zero: they had not left for any
	Limit   int      // the bound that is reached there, as RefusedError has it; zero without one, or when it is not known
	Count   uint64   // messages since the last report of this kind
	Samples []string // ids of at most four of them; none when they are not known
}

// Err returns why, matching one of the errors of delivery: a *RefusedError, which names the node and the bound, when a
// bound is reached there, else a *PeerError if it concerns a node.
func (u *Undelivered) Err() error {
	switch {
	case u.Reason.Unit() != "" && u.Peer != peer.ID{}:
		return &RefusedError{u.Peer, u.Type, u.Reason, u.Limit}
	case u.Peer != peer.ID{}:
		return &PeerError{u.Peer, u.Type, u.Reason}
	}
	return u.Reason.Err()
}

// AbandonedError says that a node ended with messages that it had accepted and nobody will handle, and names their
// types. It matches ErrAbandoned. Each tell among them was reported to Config.Undelivered of that node, each caller of
// an ask by its answer.
type AbandonedError struct {
	Types    []AbandonedType // those of which there were some, in the order of their registration
	Handlers int             // handlers that had not returned when the node ended: workers, loops and Blocking entities
}

// AbandonedType counts the messages of one type.
type AbandonedType struct {
	Type        string
	Tells, Asks uint64
}

// Total counts the messages of all types.
func (e *AbandonedError) Total() (n uint64) {
	for _, t := range e.Types {
		n += t.Tells + t.Asks
	}
	return n
}

// Error counts them by type.
func (e *AbandonedError) Error() string {
	s := fmt.Sprintf("%v: %s", ErrAbandoned, counted(e.Total(), "message"))
	for i, t := range e.Types {
		sep := ","
		if i == 0 {
			sep = ":"
		}
		s += fmt.Sprintf("%s %s %s and %s", sep, t.Type, counted(t.Tells, "tell"), counted(t.Asks, "ask"))
	}
	if e.Handlers > 0 {
		s += "; not returned: " + counted(uint64(e.Handlers), "handler")
	}
	return s
}

func counted(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Unwrap returns ErrAbandoned.
func (e *AbandonedError) Unwrap() error { return ErrAbandoned }
