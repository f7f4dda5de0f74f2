// Events: changes of membership as a stream that begins with a snapshot.

package kith

import (
	"context"
	"iter"
	"time"

	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// Event is one change of membership, or a Snapshot. Kind and the fields that go with it are membership.Event's.
type Event struct {
	membership.Event
	// View is the snapshot of the Snapshot, or the one that this change led to. Never nil.
	View *View
	// Missed, in a Snapshot, says that the reader was too slow and changes before it were dropped.
	Missed bool
}

// String prints the event as one line.
func (e Event) String() string { return driver.Event(e).String() }

// EventKind says what an Event reports.
type EventKind = membership.EventKind

// The kinds of Event that come with a change of the View. Snapshot is the first of every stream.
const (
	Snapshot          EventKind = 0
	MemberJoined                = membership.MemberJoined
	MemberWeaklyUp              = membership.MemberWeaklyUp
	MemberUp                    = membership.MemberUp
	MemberLeft                  = membership.MemberLeft        // became Leaving
	MemberExited                = membership.MemberExited      // became Exiting
	MemberDowned                = membership.MemberDowned      // Event.Reason says why
	MemberRemoved               = membership.MemberRemoved     // is out of the cluster, gone or downed
	UnreachableMember           = membership.UnreachableMember // some member does not hear it any more
	ReachableMember             = membership.ReachableMember   // all hear it again
	MemberQuarantined           = membership.MemberQuarantined // unreachable for good, as Event.By says
	LeaderChanged               = membership.LeaderChanged
	RoleLeaderChanged           = membership.RoleLeaderChanged
	MetadataChanged             = membership.MetadataChanged   // some key of View.Metadata was set or deleted
	PartitionsChanged           = membership.PartitionsChanged // View.Partitions is another one

	MemberPreparingForShutdown = membership.MemberPreparingForShutdown
	MemberReadyForShutdown     = membership.MemberReadyForShutdown
)

// The kinds of Event that come without a change of the View.
const (
	ConvergenceBlocked  = membership.ConvergenceBlocked  // no convergence for 20 s, and again each 60 s
	ConvergenceRestored = membership.ConvergenceRestored // there is convergence again
	SelfSuspected       = membership.SelfSuspected       // this node gave up on most members, so the fault is its own
	DuplicateCluster    = membership.DuplicateCluster    // a seed belongs to another cluster of this name: Event.Duplicate
	SplitCluster        = membership.SplitCluster        // two sides of this cluster live and have removed each other
	SettingsDiffer      = membership.SettingsDiffer      // a join was let through with other settings: Event.Detail
	FormingHeld         = membership.FormingHeld         // this node remembers a cluster and forms none: Event.Detail
	NodeSuspended       = membership.NodeSuspended       // this node handles no message any more: Event.Detail says why
	NodeResumed         = membership.NodeResumed         // this node handles messages again, after Event.For
	ClusterFormed       = membership.ClusterFormed       // this node has formed the cluster: Event.Detail says why
	JoinPutOff          = membership.JoinPutOff          // a newcomer waits: a member and it do not hear each other
	OutageOver          = membership.OutageOver          // Event.Member answers again, or is lost: Event.Detail
	NotUpYet            = membership.NotUpYet            // this node waits to be let in, for 10 s or longer: Event.Waiting
)

// Events yields the changes of membership, beginning with a Snapshot. Nothing after it is missed: a reader that falls
// more than 1,024 events behind gets a fresh Snapshot with Missed set instead. It ends with ctx or with the node, and
// occupies the goroutine that ranges over it.
func (n *Node) Events(ctx context.Context) iter.Seq[Event] {
	changes := n.d.Events(ctx)
	return func(yield func(Event) bool) {
		for e := range changes {
			if !yield(Event(e)) {
				return
			}
		}
	}
}

// ShardEvent is one fact about sharding as this node saw it. Kind and the fields that go with it are shard.Event's.
type ShardEvent struct {
	shard.Event
	Name string    // of the type; empty when it is not registered on this node
	At   time.Time // on this node's clock
}

// String prints the event as one line.
func (e ShardEvent) String() string { return driver.ShardEvent(e).String() }

// ShardEventKind says what a ShardEvent reports.
type ShardEventKind = shard.EventKind

// The kinds of ShardEvent. Those of coordinators and homes, and MoveBegan, MoveDone, MoveAborted and MoveReturned, are
// seen by the node that coordinates the type, MoveMarked, MoveHandedOver and MoveUntaken by the owner that the shard
// leaves.
const (
	// ShardEventsBegin is the first of every stream, and comes again where the reader was too slow: events before it are
	// left out.
	ShardEventsBegin   ShardEventKind = 0
	CoordinatorStarted                = shard.CoordinatorStarted // this node collects reports of what is owned
	CoordinatorReady                  = shard.CoordinatorReady   // all reports are in: it gives shards to owners
	CoordinatorStopped                = shard.CoordinatorStopped // another node coordinates from now on
	ShardAllocated                    = shard.ShardAllocated     // Shard was given to Home under Fence
	ShardReleased                     = shard.ShardReleased      // Shard has no home
	StaleRefused                      = shard.StaleRefused       // an order or report of a lower term or fence
	ShardsWait                        = shard.ShardsWait         // those of a lost member live nowhere before Until
	MoveBegan                         = shard.MoveBegan          // of Shard from Home to To
	MoveMarked                        = shard.MoveMarked         // nobody sends to the owner any more: it stops
	MoveHandedOver                    = shard.MoveHandedOver     // To has what the owner did not work off
	MoveDone                          = shard.MoveDone           // it lives at To
	MoveAborted                       = shard.MoveAborted        // it stays: a sender did not mark in time
	StrategyFault                     = shard.StrategyFault      // the type's strategy is wrong, as Err says
	MoveUntaken                       = shard.MoveUntaken        // To does not take the rest: it comes back, as Err says
	MoveReturned                      = shard.MoveReturned       // it lives at Home again, under the next fence
)

// ShardEvents yields what happens in sharding from now on, on this node alone: to see all of it, read all nodes. It
// begins with ShardEventsBegin; a reader that falls more than 1,024 events behind gets that again instead of what
// waited. It ends with ctx or with the node, and occupies the goroutine that ranges over it.
func (n *Node) ShardEvents(ctx context.Context) iter.Seq[ShardEvent] {
	events := driver.ShardEvents(ctx, n.d)
	return func(yield func(ShardEvent) bool) {
		for e := range events {
			if !yield(ShardEvent(e)) {
				return
			}
		}
	}
}
