// Event: what changed between two views, in a defined order (MEM-3).

package membership

import (
	"fmt"

	"github.com/kith-io/kith/peer"
)

// EventKind says what happened.
type EventKind uint8

// The kinds of event, in the order in which one step's events come out; members in address order within a kind group:
// removed first, then joined and changed members by address, then unreachable, reachable, leader, role leaders.
const (
	MemberRemoved     EventKind = 1
	MemberJoined      EventKind = 2
	MemberUp          EventKind = 3
	MemberLeft        EventKind = 4 // became Leaving
	MemberExited      EventKind = 5 // became Exiting
	MemberDowned      EventKind = 6
	UnreachableMember EventKind = 7
	ReachableMember   EventKind = 8
	LeaderChanged     EventKind = 9
	RoleLeaderChanged EventKind = 10
	MemberWeaklyUp    EventKind = 11 // with the joined and changed members, as are the next two

	MemberPreparingForShutdown EventKind = 12
	MemberReadyForShutdown     EventKind = 13
)

var eventNames = [...]string{1: "member-removed", "member-joined", "member-up", "member-left", "member-exited",
	"member-downed", "unreachable-member", "reachable-member", "leader-changed", "role-leader-changed",
	"member-weakly-up", "member-preparing-for-shutdown", "member-ready-for-shutdown"}

// String names the kind as logs do.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && k > 0 {
		return eventNames[k]
	}
	return fmt.Sprintf("event-%d", uint8(k))
}

// Event is one change. Member is set for member events, Previous is its status before as known here; Leader and Role
// are set for leader events (Leader zero: none).
type Event struct {
	Kind     EventKind
	Member   Member
	Previous Status
	Leader   peer.ID
	Role     string
}

// String prints the event as one line.
func (e Event) String() string {
	switch e.Kind {
	case LeaderChanged:
		return fmt.Sprintf("%s %s", e.Kind, e.Leader)
	case RoleLeaderChanged:
		return fmt.Sprintf("%s %s %s", e.Kind, e.Role, e.Leader)
	}
	return fmt.Sprintf("%s %s (%s)", e.Kind, e.Member.ID, e.Previous)
}
