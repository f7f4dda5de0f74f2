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

// The kinds of Event. Snapshot is the first of every stream.
const (
	Snapshot          EventKind = 0
	MemberRemoved               = membership.MemberRemoved
	MemberJoined                = membership.MemberJoined
	MemberUp                    = membership.MemberUp
	MemberLeft                  = membership.MemberLeft
	MemberExited                = membership.MemberExited
	MemberDowned                = membership.MemberDowned
	UnreachableMember           = membership.UnreachableMember
	ReachableMember             = membership.ReachableMember
	LeaderChanged               = membership.LeaderChanged
	RoleLeaderChanged           = membership.RoleLeaderChanged
	MemberWeaklyUp              = membership.MemberWeaklyUp

	MemberPreparingForShutdown = membership.MemberPreparingForShutdown
	MemberReadyForShutdown     = membership.MemberReadyForShutdown

	MemberQuarantined = membership.MemberQuarantined
	SelfIndicted      = membership.SelfIndicted

	MetadataChanged     = membership.MetadataChanged
	ConvergenceBlocked  = membership.ConvergenceBlocked
	ConvergenceRestored = membership.ConvergenceRestored
	TwinCluster         = membership.TwinCluster
	SplitCluster        = membership.SplitCluster
	SettingsDiffer      = membership.SettingsDiffer
	FormingHeld         = membership.FormingHeld
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
