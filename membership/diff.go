// Diff: the next view when something changed, and the events that lead to it (MEM-3).

package membership

import (
	"bytes"
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// nextView returns the view of the current state, nil when it is as the last one.
func (m *Machine) nextView() *cluster.View {
	if m.st == nil {
		return nil
	}
	seq, now := uint64(1), m.phase == member && members.Converged(m.st, m.self, nil)
	m.blocking.followConvergence(now)
	if last := m.view; last != nil {
		if last.Hash == uint64(m.st.Digest) && last.Converged == now {
			return nil
		}
		seq = last.Seq + 1
	}
	v := m.st.TakeView()
	*v = cluster.View{Self: m.self, Seq: seq, ClusterID: m.st.Cluster, Birth: m.st.Birth, Hash: uint64(m.st.Digest),
		Members: m.st.Members, Metadata: m.st.Live, Partitions: m.st.Placed,
		Unreachable: m.st.Unreachable, Accusations: m.st.Accused, Converged: now}
	if v.Unreachable.Has(m.self) {
		v.Unreachable = v.Unreachable.Clone()
		v.Unreachable.Remove(m.self)
	}
	if m.view != nil && m.phase == ended {
		// It accuses nobody any more, which makes nobody reachable that it has lost.
		v.Unreachable = slices.DeleteFunc(m.view.Unreachable.Clone(), func(id peer.ID) bool {
			_, in := v.Member(id)
			return !in
		})
	}
	v.Leader = v.RoleLeader("")
	return v
}

// rolesOf returns all roles of the members, sorted, added to those in into.
func rolesOf(v *cluster.View, into []string) []string {
	if v == nil {
		return into
	}
	for i := range v.Members {
		if i > 0 && sameSlice(v.Members[i].Roles, v.Members[i-1].Roles) {
			continue
		}
		for _, r := range v.Members[i].Roles {
			if at, ok := slices.BinarySearch(into, r); !ok {
				into = slices.Insert(into, at, r)
			}
		}
	}
	return into
}

var statusEvents = [...]EventKind{cluster.Joining: MemberJoined, cluster.WeaklyUp: MemberWeaklyUp, cluster.Up: MemberUp,
	cluster.Leaving: MemberLeft, cluster.Exiting: MemberExited, cluster.Down: MemberDowned,
	cluster.PreparingForShutdown: MemberPreparingForShutdown, cluster.ReadyForShutdown: MemberReadyForShutdown}

// sameSlice reports whether a and b are one and the same list.
func sameSlice[S ~[]T, T any](a, b S) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// diff appends the events from old (nil: nothing) to next: removed members, then members that are new or changed, by
// their present status, then unreachable, reachable, leader, metadata, partitions, role leaders; each group in address
// order. A removed member's event has status Removed and the last status known here; nothing is said of this node's
// reachability.
func diff(events []Event, old, next *cluster.View) []Event {
	if old == nil {
		old = &cluster.View{Self: next.Self}
	}
	events = memberEvents(events, old.Members, next.Members)
	events = reachEvents(events, UnreachableMember, next.Unreachable, old.Unreachable, next)
	events = reachEvents(events, ReachableMember, old.Unreachable, next.Unreachable, next)
	events = quarantineEvents(events, old, next)
	if old.Leader != next.Leader {
		events = append(events, Event{Kind: LeaderChanged, Leader: next.Leader})
	}
	if !sameMetadata(old.Metadata, next.Metadata) {
		events = append(events, Event{Kind: MetadataChanged})
	}
	if !partition.Equal(old.Partitions, next.Partitions) {
		events = append(events, Event{Kind: PartitionsChanged})
	}
	if sameSlice(old.Members, next.Members) && slices.Equal(old.Unreachable, next.Unreachable) {
		return events // leaders follow from these
	}
	for _, role := range rolesOf(next, rolesOf(old, nil)) {
		if l := next.RoleLeader(role); l != old.RoleLeader(role) {
			events = append(events, Event{Kind: RoleLeaderChanged, Role: role, Leader: l})
		}
	}
	return events
}

func sameMetadata(a, b []cluster.Metadata) bool {
	return sameSlice(a, b) || slices.EqualFunc(a, b, func(x, y cluster.Metadata) bool {
		return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
	})
}

// memberEvents appends the events of members that went, then of those that came or changed. Both lists are sorted and
// mostly equal: this runs for each change at each node, so equality is looked at before order.
func memberEvents(events []Event, old, next []cluster.Member) []Event {
	if sameSlice(old, next) {
		return events
	}
	at, stayed, rest := len(events), 0, old
	for i := range next {
		is := &next[i]
		for len(rest) > 0 && !sameID(&rest[0], is) && rest[0].ID.Less(is.ID) {
			rest = rest[1:]
		}
		previous, number := cluster.Removed, is.UpNumber
		if len(rest) > 0 && sameID(&rest[0], is) {
			previous, number = rest[0].Status, rest[0].UpNumber
			rest = rest[1:]
			stayed++
		}
		if previous != is.Status || number != is.UpNumber {
			events = append(events, Event{Kind: statusEvents[is.Status], Member: *is, Previous: previous})
		}
	}
	if stayed == len(old) {
		return events
	}
	return slices.Insert(events, at, removedEvents(old, next)...)
}

func sameID(a, b *cluster.Member) bool { return a.ID.Inc == b.ID.Inc && a.ID == b.ID }

// removedEvents returns the events of those in old that are not in next.
func removedEvents(old, next []cluster.Member) (events []Event) {
	for _, was := range old {
		for len(next) > 0 && !sameID(&next[0], &was) && next[0].ID.Less(was.ID) {
			next = next[1:]
		}
		if len(next) == 0 || !sameID(&next[0], &was) {
			previous := was.Status
			was.Status = cluster.Removed
			events = append(events, Event{Kind: MemberRemoved, Member: was, Previous: previous})
		}
	}
	return events
}

// reachEvents appends an event for each member in these and not in those.
func reachEvents(events []Event, kind EventKind, these, those peer.Set, v *cluster.View) []Event {
	for _, id := range these {
		if m, ok := v.Member(id); ok && !those.Has(id) {
			events = append(events, Event{Kind: kind, Member: m, Previous: m.Status})
		}
	}
	return events
}
