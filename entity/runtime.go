// Runtime and Origin: the two small interfaces by which a stepped shard reaches the world.

package entity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/route"
)

// Origin is where a message came from and where its answer goes. The driver's links and its table of asks implement it,
// and so does the simulator. Reply is safe for concurrent use, never blocks, copies payload, and returns an error when
// there is no room or the caller is gone. It never calls back into a shard, for a shard calls it under its lock too. An
// ask may be answered twice (a ReplyToken used again, a panic after Detach): the caller takes the first answer.
type Origin interface {
	Reply(corr uint64, reason route.Reason, payload []byte) error
}

// Runtime is what a shard and its Contexts need of the package that drives them. Its methods are called while a handler
// runs: by Worker and Inline handlers on the goroutine that steps the shard, by Blocking ones without any lock of the
// shard held.
type Runtime interface {
	// Tell sends a message to an entity of the named type, as Region.Tell does, with headers or nil. It never runs the
	// receiver's handler on the caller's stack.
	Tell(headers []byte, typ, id string, payload []byte) error
	// Ask asks and waits at most d. Only Blocking handlers may call it.
	Ask(headers []byte, d time.Duration, typ, id string, payload []byte) ([]byte, error)
	// Report takes what operators want to know: a panic, a slow handler. A GaveUp is reported by the caller that steps the
	// shard: it must not lead back into the shard before Report returns.
	Report(Incident)
	// Unhandled takes an accepted message, no timer's, that ends without a handler having got it, because of why:
	// route.NewFailed, route.Crashed when its entity was given up, or route.Abandoned when the shard was abandoned before
	// its turn came. An ask has been answered. It may be called under the shard's lock and must not lead back into the
	// shard before it returns; payload is valid until then.
	Unhandled(e *Entity, why route.Reason, ask bool, payload []byte)
	// Shards returns on how many shards of the type this node's Type.MaxActive is divided, at least 1. It is called
	// when an entity of a type with such a bound is made.
	Shards() int
	// Calling and Returned enclose calls into handlers, so that the runtime can name one that does not return: Stop and
	// HandOver of every type, Keep.Run, and each step of a type that gives SlowAfter. Like handlers, calls of several
	// Blocking entities run at once.
	Calling(e *Entity, what Call)
	Returned(e *Entity, what Call)
	// Suspended reports whether this node has suspended itself: handlers that are running should come to an end, no
	// other is called. It is safe for concurrent use.
	Suspended() bool
	// Context returns what a handler is given as its context.Context: it ends with a suspension of the node, a stop of the
	// shard and its loss, and, unless limit is zero, at limit on the clock of Now; of an ask (from is not nil) also when
	// its asker gives up. It is safe for concurrent use.
	Context(limit time.Duration, from Origin, corr uint64) context.Context
	// Answered says that a handler has returned that was given the context of an ask, and has not detached it.
	Answered(from Origin, corr uint64)
	// Now is monotonic time since the node's start, the clock of the now that the shard is given: at least as much as any
	// that was given before it was called. Timers count from it, so it must never lag. It is called once for
	// each timer that is set and for asks that wait behind others of a run, and may be called from several goroutines at
	// once.
	Now() time.Duration
	// Slewed is a clock by which calls are timed. It is called twice for every Worker and Inline message that Deliver
	// takes, to find slow handlers (around Hand the runtime looks itself), and may be called from several goroutines at
	// once: make it cheap. A value that is refreshed every few milliseconds will do. After the process stood still it lags
	// and catches up by small steps, so that no call looks slow for it: nothing else may be measured with it.
	Slewed() time.Duration
	// Wall is what handlers see as the time of day: time.Now, virtual in a simulation. It may be called from several
	// goroutines at once.
	Wall() time.Time
}

// Call says what Runtime.Calling announces.
type Call uint8

// The calls.
const (
	StepCall     Call = 1 // all that a message, or the end of an instance, leads to; the others lie within one
	StopCall     Call = 2 // Handler.Stop
	HandOverCall Call = 3 // Stateful.HandOver
	RunCall      Call = 4 // Keep.Run: it is to end when its shard stops or is lost
	HostedCall   Call = 5 // Type.Hosted, likewise; a runtime calls it by itself
)

var callNames = []string{StepCall: "step", StopCall: "stop", HandOverCall: "hand-over", RunCall: "run",
	HostedCall: "hosted"}

// String names the call.
func (c Call) String() string { return enum.Name(callNames, c, "call") }

// MarshalText gives the name.
func (c Call) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (c *Call) UnmarshalText(text []byte) error { return enum.Parse(c, text) }

// Incident is something that operators want to know about a handler.
type Incident struct {
	Type, ID string // the ID is empty for a call of Type.Hosted
	Shard    route.ShardID
	Fence    route.Fence // under which the entity lives, for StopHangs, and of a call of Type.Hosted, else zero
	Mode     Mode
	Kind     IncidentKind
	// Took is how long the call took or, while it Running, has taken so far, for Slow and StopHangs; how long the node is
	// suspended, for Overrun; how long the entity is given up, for GaveUp: zero when the next message may make it again.
	Took    time.Duration
	Running bool // the call has not returned
	// Dropped is how many tells waited and were dropped, Answered how many asks that waited were answered with
	// route.ErrCrashed, for GaveUp.
	Dropped, Answered int
	// Text is for Panicked the value and its stack, for StopHangs the word of StopCall, HandOverCall, RunCall or
	// HostedCall, for a failure the error; MaxIncidentText bytes.
	Text string
	Err  error // for StateLost why, else nil
	// Missed is how many incidents of this kind and type were only counted since the one before this: when many come,
	// a runtime reports a part of them.
	Missed uint64
}

// String says what happened in a line, as a log or an error shows it; of a stack only its first line.
func (i Incident) String() string {
	var b strings.Builder
	b.WriteString(i.Kind.String())
	if i.Type != "" {
		fmt.Fprintf(&b, ": %s", i.Type)
		if i.ID != "" {
			fmt.Fprintf(&b, " %q", i.ID)
		}
		fmt.Fprintf(&b, " (shard %d)", i.Shard)
	}
	if i.Took > 0 {
		fmt.Fprintf(&b, " for %v", i.Took)
	}
	if i.Running {
		b.WriteString(", still running")
	}
	if i.Dropped > 0 || i.Answered > 0 {
		fmt.Fprintf(&b, ", %d tells dropped, %d asks answered", i.Dropped, i.Answered)
	}
	if text, _, _ := strings.Cut(i.Text, "\n"); text != "" {
		fmt.Fprintf(&b, ": %s", text)
	}
	if i.Err != nil {
		fmt.Fprintf(&b, ": %v", i.Err)
	}
	if i.Missed > 0 {
		fmt.Fprintf(&b, " (and %d like it before)", i.Missed)
	}
	return b.String()
}

// IncidentKind says what happened.
type IncidentKind uint8

// The kinds of incident.
const (
	Panicked IncidentKind = 1 // New, Open, Receive, Stop, Hosted or a daemon panicked, or ended its goroutine
	Slow     IncidentKind = 2 // a call took longer than the type's SlowAfter
	Overrun  IncidentKind = 3 // a Blocking call, or Hosted, did not return when the node suspended itself
	GaveUp   IncidentKind = 4 // a panic or failed New stopped it: under RestartStop, or the last of more than MaxRestarts
	Stalled  IncidentKind = 5 // a worker or event loop (Mode tells) stands still for a second; Text is its stack
	// Silent: a connection to another node (Text names it) hears nothing: what was sent on it is not acknowledged by the
	// system there, for Took while it is Running; it is being made anew. Reported once more when that is over.
	Silent IncidentKind = 6
	// NewFailed: Type.Open returned an error (Text), or no handler came of it or of New. A panic in them is a Panicked.
	NewFailed IncidentKind = 7
	// DaemonFailed: a daemon returned an error (Text); it begins again after its rest.
	DaemonFailed IncidentKind = 8
	// StateLost: what a Stateful handler was to hand over, or had handed over, in a move of its shard reaches no next
	// instance. Err says why: ErrStateTooLarge and those beside it.
	StateLost IncidentKind = 9
	// RecallFailed: Type.Remembered returned an error or panicked, or named no id of this shard (Text).
	RecallFailed IncidentKind = 11
	// StopHangs: Stop, HandOver, or Run of a daemon or Hosted after their context has ended (Text), has not returned in
	// time: a move's DrainTime, a leave's LeaveTimeout, the loss of the shard, or 10 s where there is none of these; none
	// is reported before it has had a second. Reported once for each call, while it Running: the entity lives nowhere else
	// until it returns.
	StopHangs IncidentKind = 12
)

var incidentNames = []string{Panicked: "panicked", Slow: "slow", Overrun: "overrun", GaveUp: "gave-up",
	Stalled: "stalled", Silent: "silent", NewFailed: "new-failed", DaemonFailed: "daemon-failed",
	StateLost: "state-lost", RecallFailed: "recall-failed", StopHangs: "stop-hangs"}

// String names the kind.
func (k IncidentKind) String() string { return enum.Name(incidentNames, k, "incident") }

// MarshalText gives the name.
func (k IncidentKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *IncidentKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// SlowAfter is how long a Worker or Inline call may take before it is reported, unless the type says otherwise.
const SlowAfter = 10 * time.Millisecond

// MaxIncidentText is the most bytes of an Incident's text.
const MaxIncidentText = 8 << 10

// Message is one message to one entity as the host takes it. ID and Payload are views that the host copies when it
// keeps them. From is nil for a tell.
type Message struct {
	From    Origin
	Corr    uint64
	Hash    uint64 // HashID of ID, when the caller has it already; zero: it does not
	Parked  bool   // was parked or transferred: never refused for a full mailbox
	ID      []byte
	Payload []byte
	// Limit is the moment, on the clock of Runtime.Now, from which on no caller waits for the answer to an ask: no handler
	// is called for it any more. Zero: none is known.
	Limit time.Duration
	// Headers are what the sender has given with the message, at most 4 KiB; nil: nothing.
	Headers []byte
	// Sender, if not nil, hears when the mailbox is full, and when it is not any more; the message is taken all the same.
	// Modes other than Blocking do not look at it, nor does a message with a Loan, which no mailbox refuses.
	Sender Sender
	// Here says that Sender is on this node: nothing of its messages is under way when the mailbox is full, so a message
	// is refused with MailboxFull then, and Sender hears of room, rather than taken beyond the bound. It does not take the
	// room that others wait for.
	Here bool
	// Loan, if not nil, gives Payload to a Blocking entity without a copy. Other modes do not look at it.
	Loan *Loan
}

// Loan is a payload that the host keeps as it is until its entity has handled it or it is dropped, instead of copying
// it. It counts against the bound of the node's part that gives it, not against mailbox and budget, and so is not
// refused for them.
type Loan struct {
	// Release is called once, if Deliver accepted the message, when the payload is not needed any more. It may be called
	// under the shard's lock.
	Release func()
}
