// Tests of the rules of one state: scenarios 4 to 7, 9 and 16 of the reference, the laws of the merge, up-numbers
// (MEM-3, MEM-4, MEM-5, GOS-3, FD-3).

package membership

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
)

func viewOf(self string, members []string, pairs ...string) *cluster.View {
	s := stateOf(members, "", pairs...)
	v := &cluster.View{Self: nid(self), Members: s.Members, Unreachable: s.Unreachable.Clone()}
	v.Unreachable.Remove(v.Self)
	v.Leader = v.RoleLeader("")
	return v
}

func names(events []Event) string {
	out := ""
	for _, e := range events {
		switch e.Kind {
		case LeaderChanged, RoleLeaderChanged:
			out += e.Kind.String() + " " + e.Role + e.Leader.Addr.Host() + "; "
		default:
			out += e.Kind.String() + " " + e.Member.ID.Addr.Host() + " " + e.Previous.String() + "; "
		}
	}
	return out
}

// Scenario 16: events are the difference of two views, in address order.
func TestScenario16Events(t *testing.T) {
	for _, c := range []struct {
		old, next *cluster.View
		want      string
	}{
		{viewOf("a", []string{"a up"}), viewOf("a", []string{"a up", "b up", "e joining"}),
			"member-up b removed; member-joined e removed; "},
		{viewOf("a", []string{"a joining", "b up", "c up"}),
			viewOf("a", []string{"a up", "b up", "c leaving", "e joining"}),
			"member-up a joining; member-left c up; member-joined e removed; leader-changed a; "},
		{viewOf("a", []string{"a up", "d exiting"}), viewOf("a", []string{"a up"}), "member-removed d exiting; "},
		{viewOf("b", []string{"a up", "b up", "c up"}, "c->b", "c->a"), viewOf("b", []string{"a up", "b up", "c up"}),
			"reachable-member a up; leader-changed a; "},
		{viewOf("b", []string{"a up", "b up"}), viewOf("b", []string{"a up", "b up"}, "b->a", "a->b"),
			"unreachable-member a up; leader-changed b; "},
		{viewOf("c", []string{"a leaving", "b exiting", "c up"}),
			viewOf("c", []string{"a exiting", "b exiting", "c up"}),
			"member-exited a leaving; leader-changed c; "},
		{nil, viewOf("a", []string{"a up", "b down"}),
			"member-up a removed; member-downed b removed; leader-changed a; "},
	} {
		require.Equal(t, c.want, names(diff(nil, c.old, c.next)))
	}
	// A restart at the same address within one diff: the old incarnation's removal comes first.
	old := viewOf("a", []string{"a up", "b up"})
	next := viewOf("a", []string{"a up", "b up"})
	next.Members = slices.Clone(next.Members)
	next.Members[1].ID.Inc = 99
	events := diff(nil, old, next)
	require.Equal(t, []EventKind{MemberRemoved, MemberUp}, kindsOf(events))
	require.Equal(t, cluster.Removed, events[0].Member.Status)
	require.Equal(t, cluster.Up, events[0].Previous)
	require.Equal(t, uint64(99), events[1].Member.ID.Inc)

	old, next = viewOf("a", []string{"a up", "b up"}), viewOf("a", []string{"a up", "b up"})
	next.Members = slices.Clone(next.Members)
	next.Members[1].Roles = []string{"x", "y"}
	require.Equal(t, "role-leader-changed xb; role-leader-changed yb; ", names(diff(nil, old, next)))
}
