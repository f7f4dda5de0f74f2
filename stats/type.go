// Types: what became of the messages and entities of one type, and what is measured of both.

package stats

import (
	"time"

	"github.com/kith-io/kith/internal/base/enum"
)

// Type is a snapshot of one type on this node. Counts are those since the node's start; what handlers did is up to
// 0.1 s old, that of a Blocking entity up to the end of its run.
type Type struct {
	Name string
	// Kind is what the type was registered as: "entities", "singleton", "daemons", or "pool" for the workers of a pool and
	// the instances of a partition.
	Kind          string
	Shards        uint32
	Hosted        int // shards that live here
	Stopping      int // of them, being stopped
	Known         int // shards with a home that is known here
	ParkedBytes   int64
	ParkedLost    uint64            // parked messages that failed: no home in time, or the type was refused
	Refused       map[string]uint64 // messages to entities here that were refused, by reason; own callers' too
	RefusedRemote uint64            // tells of this node that their receivers refused
	Unsent        uint64            // messages that waited for a node when it was removed or refused us

	Entities     uint64 // that live here, idle ones included
	MailboxBytes uint64 // that wait for them, with entity.RecordOverhead for each message
	Handled      uint64 // messages given to handlers; those of timers are no messages here, nor in Abandoned and Dropped
	NotMade      uint64 // messages for which New or Open made no handler: asks were answered, tells reported
	Failed       uint64 // of them, Receive returned an error
	NoReply      uint64 // asks that were left without a reply
	AnswersLost  uint64 // answers that the caller's side did not take
	Expired      uint64 // asks with a caller that did not wait any more when their turn came here: no handler was called
	Abandoned    uint64 // that this node had accepted and dropped: it ended, or the shard was lost (docs/shutdown.md)
	Made         uint64 // instances that New made
	Passivated   uint64 // instances that were let go because they were idle or asked for it
	Stopped      uint64 // instances that were stopped, for whatever reason
	Evicted      uint64 // idle entities that were let go because of Type.MaxActive
	Crashes      uint64 // instances that a panic ended, or that New failed to make: restarts, when messages follow
	Crashed      uint64 // entities that panicked within Type.RestartWindow, if the type counts panics
	GivenUp      uint64 // entities given up after a panic, as Type.Restart and MaxRestarts say
	Dropped      uint64 // accepted messages dropped with them

	TypeCalls
	TypeTimers
	Pressure Pressure // senders that wait for room
	Lease    Lease    // of a singleton
	States   States   // that Stateful handlers hand over in moves
	Recalls  Recalls  // of entities that Type.Remembered names
}

// TypeCalls is the part of Type that concerns calls into handlers.
type TypeCalls struct {
	Panics, Slow uint64 // that panicked, that took too long
	StopsHung    uint64 // of Stop, HandOver and daemons that were to end, not returned by their deadline: see StopHangs
	Cancels      Cancels
}

// Cancels counts asks that their askers have given up before the time limit, as their contexts had ended.
type Cancels struct {
	Told   uint64 // cancelled asks of this node of which their receivers heard
	Untold uint64 // of which they could not hear: no room on the way, or a wire version before 10
	Ended  uint64 // contexts of handlers here that have ended for it
}

// TypeTimers is the part of Type that concerns timers.
type TypeTimers struct {
	Timers                     uint64 // running
	TimersFired, TimersDropped uint64 // dropped ones were cancelled, or went with their instance or their shard
	// How late the fired ones came, none early: at most so late were half of them, 99 of 100, and all. The first two are
	// bounds of classes of 1, 2, 5, 10 ms and so on. A Blocking entity's timer has come when it is in the mailbox.
	TimersLateP50, TimersLateP99, TimersLateMax time.Duration
}

// States is the part of Type that concerns what Stateful handlers hand over when their shard moves. Over all nodes
// HandedOver is TakenUp, and Lost of what was handed over, and what waits, and what died with a node.
type States struct {
	HandedOver uint64 // by instances here
	TakenUp    uint64 // by instances here, from others
	Lost       uint64 // that reach no next instance, as this node knows: the incident StateLost tells of each
}

// Recalls is the part of Type that concerns entities that Type.Remembered names.
type Recalls struct {
	Waiting int    // shards that live here with a list that was not read to its end yet
	Read    uint64 // lists that were read to their end
	Failed  uint64 // that were not, or named an id that is none of the shard's: the incident RecallFailed tells of each
}

// Pressure is the part of Type that concerns back-pressure: Waits and Waiting count senders on this node, the others
// mailboxes here, up to 0.1 s old. Messages that Tell had refused for a full mailbox are in Type.Refused.
type Pressure struct {
	Waits   uint64 // calls that found no room, wherever, and waited: of TellWait, and of large messages for their budget
	Waiting int    // of them, those that wait now
	Filled  uint64 // times that a mailbox became full for senders that wait; they go on when half of it is free
	Full    int    // mailboxes for which they wait now
}

// Measure says what a duration given to Config.Latency is.
type Measure uint8

// The measures.
const (
	HandlerTime Measure = 1 // one message worked off where its entity lives: found, handled, answered
	AskTime     Measure = 2 // from an ask of this node to its answer, on whichever node that was given
)

var measureNames = []string{HandlerTime: "handler", AskTime: "ask"}

// String names the measure.
func (m Measure) String() string { return enum.Name(measureNames, m, "measure") }

// MarshalText gives the name.
func (m Measure) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (m *Measure) UnmarshalText(text []byte) error { return enum.Parse(m, text) }
