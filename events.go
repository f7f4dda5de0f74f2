// Events: changes of membership as a stream that begins with a snapshot.

package kith

import (
	"context"
	"iter"

	"github.com/kith-io/kith/internal/driver"
	"github.com/kith-io/kith/membership"
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
	MetadataChanged             = membership.MetadataChanged // some key of View.Metadata was set or deleted

	MemberPreparingForShutdown = membership.MemberPreparingForShutdown
	MemberReadyForShutdown     = membership.MemberReadyForShutdown
)

// The kinds of Event that come without a change of the View.
const (
	ConvergenceBlocked  = membership.ConvergenceBlocked  // no convergence for 20 s, and again each 60 s
	ConvergenceRestored = membership.ConvergenceRestored // there is convergence again
	SelfIndicted        = membership.SelfIndicted        // this node gave up on most members, so the fault is its own
	TwinCluster         = membership.TwinCluster         // a seed belongs to another cluster of this name: Event.Twin
	SplitCluster        = membership.SplitCluster        // two sides of this cluster live and have removed each other
	SettingsDiffer      = membership.SettingsDiffer      // a join was let through with other settings: Event.Detail
	FormingHeld         = membership.FormingHeld         // this node remembers a cluster and forms none: Event.Detail
	NodeSuspended       = membership.NodeSuspended       // this node handles no message any more: Event.Detail says why
	NodeResumed         = membership.NodeResumed         // this node handles messages again, after Event.For
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
