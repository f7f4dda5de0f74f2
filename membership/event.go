// Event: what changed between two views, in a defined order (MEM-3).

package membership

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/enum"
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

	MetadataChanged EventKind = 14 // some key of View.Metadata was set or deleted; after the leader

	MemberQuarantined EventKind = 15 // unreachable for good, as By says; after the reachable (FD-4)

	PartitionsChanged EventKind = 16 // View.Partitions is another one; after the metadata

	// Without a change of the view:

	ConvergenceBlocked  EventKind = 32 // no convergence for 20 s, and again each 60 s; Convergence says why
	ConvergenceRestored EventKind = 33 // after a ConvergenceBlocked; Convergence.For is how long there was none
	SelfSuspected       EventKind = 34 // this node would have quarantined most members, so it took the fault for its own
	DuplicateCluster    EventKind = 35 // a seed belongs to another cluster of this name; Duplicate says which
	SettingsDiffer      EventKind = 36 // a join was let through with other settings (Config.LenientSettings); see Detail

	FormingHeld EventKind = 40 // no cluster is found, and this node forms none for what is remembered; see Detail

	SplitCluster EventKind = 41 // By lives on another side of this cluster: the two have removed each other; see Duplicate

	NotUpYet EventKind = 42 // after 10 s, and again each 60 s, until this node is Up; Waiting says what it waits for

	NodeSuspended EventKind = 43 // this node handles no message any more, or has one more reason to; Detail says why
	NodeResumed   EventKind = 44 // this node handles messages again, after For; Detail says why

	ClusterFormed EventKind = 45 // this node has formed the cluster; Detail says why it did
	JoinPutOff    EventKind = 46 // By is not let in for now: a member and it do not hear each other; Detail says which

	OutageOver EventKind = 47 // Member answers again, or what lived there may be served elsewhere; Detail says which
)

var eventNames = [...]string{1: "member-removed", "member-joined", "member-up", "member-left", "member-exited",
	"member-downed", "unreachable-member", "reachable-member", "leader-changed", "role-leader-changed",
	"member-weakly-up", "member-preparing-for-shutdown", "member-ready-for-shutdown", "metadata-changed",
	"member-quarantined", "partitions-changed", 32: "convergence-blocked", "convergence-restored", "self-indicted",
	"twin-cluster", "settings-differ", 40: "forming-held", "split-cluster", "not-up-yet", "node-suspended", "node-resumed",
	"cluster-formed", "join-put-off", "outage-over"}

// OfView reports whether the kind is a difference between two views. Others come without a new view.
func (k EventKind) OfView() bool { return k < ConvergenceBlocked }

// String names the kind as logs do.
func (k EventKind) String() string { return enum.Name(eventNames[:], k, "event") }

// MarshalText gives the name.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *EventKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// Event is one change. Member is set for member events, Previous is its status before as known here; Leader and Role
// are set for leader events (Leader zero: none). Member.Cause and Member.By say why it was downed and by which member,
// also when it is removed.
type Event struct {
	Kind     EventKind
	Member   cluster.Member
	Previous cluster.Status
	Last     cluster.Status // for MemberRemoved: the status with which it went, Exiting or Down
	Leader   peer.ID
	Role     string

	Convergence *Convergence // for the events of convergence
	// By is for MemberQuarantined the observer, for SplitCluster the node met, maybe by address alone, and for JoinPutOff
	// the joiner.
	By        peer.ID
	Why       string     // for MemberQuarantined, on the observer itself, and SelfSuspected: the reason given
	Duplicate *Duplicate // for DuplicateCluster; for SplitCluster this cluster itself, and where it was met
	Detail    string     // in words, of the kinds from DuplicateCluster on
	Waiting   *Waiting   // for NotUpYet

	For time.Duration // for NodeResumed: how long no message was handled; for OutageOver: how long it took
}

// Reason says why a member was downed, removed or quarantined, or why this node indicted itself; empty for every other
// event.
func (e Event) Reason() string {
	switch e.Kind {
	case MemberDowned:
		return why(cluster.Down, e.Member.Cause, e.Member.By)
	case MemberRemoved:
		return why(e.Last, e.Member.Cause, e.Member.By)
	case MemberQuarantined:
		return fmt.Sprintf("quarantined by %s%s", e.By, colon(e.Why))
	case SelfSuspected:
		return fmt.Sprintf("would have quarantined most members, the last of them %s%s", e.Member.ID, colon(e.Why))
	}
	return ""
}

// colon puts a reason behind what it explains.
func colon(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// explain adds to the events of removed members what their tombstones say of their end, which this node may have
// learnt together with the removal, and to quarantines of this node the reason that it was given.
func (m *Machine) explain(events []Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case MemberRemoved:
			if t, ok := m.st.Tomb(e.Member.ID); ok {
				e.Last, e.Member.Cause, e.Member.By = t.Last, t.Cause, t.By
			}
		case MemberQuarantined:
			for _, w := range m.watch.whys {
				if w.id == e.Member.ID && e.By == m.self {
					e.Why = w.reason
				}
			}
		}
	}
}

// why says how a member with this last status ended.
func why(last cluster.Status, cause cluster.Cause, by peer.ID) string {
	switch {
	case last == cluster.Exiting:
		return "it left"
	case last != cluster.Down:
		return ""
	case cause == cluster.CauseReplaced:
		return fmt.Sprintf("replaced by %s", by)
	case cause == cluster.CauseProvenDead:
		return fmt.Sprintf("it handles nothing any more: %s got the lock of its process, or has ended its session lease", by)
	case by.IsZero():
		return "downed"
	}
	return fmt.Sprintf("downed by %s (%s)", by, cause)
}

// String prints the event as one line.
func (e Event) String() string {
	switch e.Kind {
	case MetadataChanged, PartitionsChanged:
		return e.Kind.String()
	case MemberQuarantined, SelfSuspected:
		return fmt.Sprintf("%s %s (%s)", e.Kind, e.Member.ID, e.Reason())
	case LeaderChanged:
		return fmt.Sprintf("%s %s", e.Kind, e.Leader)
	case ConvergenceBlocked:
		return fmt.Sprintf("%s for %v by %v", e.Kind, e.Convergence.For, e.Convergence.Blockers)
	case DuplicateCluster, SplitCluster, SettingsDiffer, FormingHeld, NotUpYet, NodeSuspended, ClusterFormed, JoinPutOff:
		return fmt.Sprintf("%s: %s", e.Kind, e.Detail)
	case NodeResumed:
		return fmt.Sprintf("%s after %v: %s", e.Kind, e.For, e.Detail)
	case OutageOver:
		return fmt.Sprintf("%s %s after %v: %s", e.Kind, e.Member.ID, e.For.Round(time.Millisecond), e.Detail)
	case ConvergenceRestored:
		return fmt.Sprintf("%s after %v", e.Kind, e.Convergence.For)
	case RoleLeaderChanged:
		return fmt.Sprintf("%s %s %s", e.Kind, e.Role, e.Leader)
	}
	if e.Kind == UnreachableMember || e.Kind == ReachableMember {
		return fmt.Sprintf("%s %s", e.Kind, e.Member.ID)
	}
	if why := e.Reason(); why != "" {
		return fmt.Sprintf("%s %s (was %s): %s", e.Kind, e.Member.ID, was(e.Previous), why)
	}
	return fmt.Sprintf("%s %s (was %s)", e.Kind, e.Member.ID, was(e.Previous))
}

// was is the status before an event in words: one that had been removed, or never was there, is not known.
func was(s cluster.Status) string {
	if s == cluster.Removed {
		return "unknown"
	}
	return s.String()
}
