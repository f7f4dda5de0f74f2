// Stats: the counters of a node, as one snapshot.

package kith

import (
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/stats"
)

// Stats is a snapshot of a node's counters since its start (Node.Stats). It is the caller's.
type Stats struct {
	Uptime             time.Duration   // since the start of the node
	Suspension         SuspensionStats // the times in which no message was handled here
	StepAge            time.Duration   // how long ago the control goroutine last stepped
	LongestStall       time.Duration   // of this process, in the last five to ten minutes (docs/failover.md)
	Envelopes          uint64          // that loops and workers took, also to refuse them; Types has what handlers got
	AsksUnderway       int             // asks of this node that wait for their answers
	AsksLate           uint64          // answers that came when nobody waited any more
	AsksForeign        uint64          // answers of nodes that were not asked: the asks go on waiting
	BusyEntities       int64           // Blocking entities that have a goroutine
	LargeUnderway      int             // large messages of this node that are not over
	LargeBytes         int64           // copies of them, of Config.BulkBudget
	MailboxBytes       int64           // that wait for Blocking entities, of Config.MailboxBudget
	ControlDropped     uint64          // control frames that found the inbox full
	ControlLost        uint64          // control frames that could not be queued for their peer
	InvalidFrames      uint64          // frames that peers sent and that made no sense
	RepliesLost        uint64          // answers that found no room on the way to the caller
	CallbackPanics     uint64          // functions of the embedder, no handlers, that panicked (docs/execution.md)
	UnreportedRefusals uint64          // refused messages, unknown, or maybe unknown, to their sender
	Unregistered       uint64          // messages refused because their type is not registered here
	LogDropped         uint64          // records that found no room in front of Config.Logger
	LogStalled         time.Duration   // how long Config.Logger has been busy with one record; zero: with none
	Types              []TypeStats     // in the order of their registration
	Transport          stats.Transport // connections, links, large messages
	Courier            CourierStats    // control messages
	Members            MemberStats     // what membership made of what it received
	Sharding           ShardingStats   // moves of shards, and control messages that were not followed
	Replicated         ReplicatedStats // replicated values (package replicated)
	Watches            WatchStats      // entities that watch one another (docs/watches.md)
	Values             []ValuesStats   // stores of values on the disks of N members (package quorum)
}

// The parts of Stats (packages stats, membership and shard), and what is measured for Config.Latency.
type (
	// TypeStats concerns one type on this node.
	TypeStats = stats.Type
	// LeaseStats is where the lease of a singleton stands on this node.
	LeaseStats = stats.Lease
	// LeaseWait is a singleton that waits on a node for its lease.
	LeaseWait = stats.LeaseWait
	// PressureStats concerns senders that wait for room, and the mailboxes of a type that have none.
	PressureStats = stats.Pressure
	// TransportStats concerns connections.
	TransportStats = stats.Transport
	// Outage is a member that does not answer, or was lost, and when what lived there is served again (Health.Outages).
	Outage = stats.Outage
	// SuspensionStats concerns suspensions.
	SuspensionStats = stats.Suspension
	// SessionStats concerns the session lease of a node (SuspensionStats.Session).
	SessionStats = stats.Session
	// TenureStats concerns the tenure of a node (SuspensionStats.Tenure).
	TenureStats = stats.Tenure
	// TenureSeat is one seat of its electorate.
	TenureSeat = stats.Seat
	// PeerStats concerns one peer: its links and its round trip.
	PeerStats = stats.Peer
	// LinkStats concerns one data connection to a peer.
	LinkStats = stats.Link
	// CourierStats concerns control messages. Outstanding is what is not acknowledged yet, Full counts what found no room,
	// GaveUp how often a reachable peer acknowledged nothing for too long.
	CourierStats = stats.Courier
	// MemberStats counts what membership made of what it received.
	MemberStats = membership.Stats
	// ShardingStats counts moves of shards, and control messages of sharding that were not followed.
	ShardingStats = shard.Counters
	// ReplicatedStats concerns replicated values.
	ReplicatedStats = stats.Replicated
	// ValuesStats concerns one store of package quorum on this node.
	ValuesStats = stats.Values
	// WatchStats concerns watches of entities.
	WatchStats = stats.Watches
	// Measure says what a duration given to Config.Latency is.
	Measure = stats.Measure
)

// The measures of Config.Latency.
const (
	HandlerTime = stats.HandlerTime // one message worked off where its entity lives: found, handled, answered
	AskTime     = stats.AskTime     // from an ask of this node to its answer, on whichever node that was given
)
