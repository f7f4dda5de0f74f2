// Tests of which members a leader lets in: weakly up, minimum numbers, full shutdown (MEM-5, MEM-6, MEM-7; scenario 24
// of the reference).

package membership

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

// standing lists the statuses in a node's view, in address order.
func standing(a *actor) string {
	var out []string
	for _, m := range a.view.Members {
		out = append(out, m.Status.String())
	}
	return strings.Join(out, " ")
}

// Scenario 24: split {1}|{3,4}; node 2 joins 1 and node 5 joins 4. Each side lets its joiner in weakly, and counts four
// members; after healing all five are Up (MEM-6).
func TestScenario24WeaklyUp(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.WeaklyUpAfter = 3 * time.Second
	one, three, four := w.start(1), w.start(3), w.start(4)
	for _, a := range []*actor{one, three, four} {
		w.join(a, 1, 3, 4)
	}
	w.until(10*time.Second, "three up", w.settled)
	w.cut = func(from, to peer.ID) bool {
		return (from.Addr.Compare(addr(2)) <= 0) != (to.Addr.Compare(addr(2)) <= 0)
	}
	w.until(15*time.Second, "split", func() bool {
		return len(one.view.Unreachable) == 2 && len(four.view.Unreachable) == 1
	})
	two, five := w.start(2), w.start(5)
	w.join(two, 1)
	w.join(five, 4)
	w.until(20*time.Second, "weakly up", func() bool {
		return two.view != nil && five.view != nil && standing(one) == "up weakly-up up up" &&
			standing(two) == "up weakly-up up up" && standing(four) == "up up up weakly-up" &&
			standing(five) == "up up up weakly-up"
	})
	for _, a := range []*actor{two, five} {
		m, _ := a.view.SelfMember()
		require.Zero(t, m.UpNumber)
		require.Equal(t, 3, a.view.CountUp(), "weakly up counts nowhere")
		require.Contains(t, kindsOf(a.events), MemberWeaklyUp)
		oldest, ok := a.view.Oldest("")
		require.True(t, ok && oldest.ID != a.id)
	}
	w.cut = nil
	require.Less(t, w.until(20*time.Second, "five up", w.settled), 20*time.Second)
}

// MEM-6: on by default after seven seconds at a stretch, not before; a negative value turns it off.
func TestWeaklyUpAfter(t *testing.T) {
	for _, off := range []bool{false, true} {
		w := newWorld(t, 2)
		if off {
			w.cfg.WeaklyUpAfter = -1
		}
		all := w.cluster(3)
		w.crash(all[2])
		w.until(20*time.Second, "unreachable", func() bool { return len(all[0].view.Unreachable) == 1 })
		began := w.now
		late := w.start(4)
		w.join(late, 1)
		status := func() cluster.Status {
			m, _ := late.view.SelfMember()
			return m.Status
		}
		w.run(6500*time.Millisecond - (w.now - began))
		require.Equal(t, cluster.Joining, status())
		w.run(2 * time.Second)
		if off {
			require.Equal(t, cluster.Joining, status())
			continue
		}
		require.Equal(t, cluster.WeaklyUp, status())
		w.do(all[0], DownCommand{ID: all[2].id})
		w.until(5*time.Second, "up when it converges", w.settled)
		require.Equal(t, []cluster.Status{cluster.Joining, cluster.WeaklyUp}, previous(late.events, MemberWeaklyUp, MemberUp,
			late.id))
	}
}

// previous returns from which status the member became each of two kinds.
func previous(events []Event, first, second EventKind, id peer.ID) (out []cluster.Status) {
	for _, e := range events {
		if (e.Kind == first || e.Kind == second) && e.Member.ID == id {
			out = append(out, e.Previous)
		}
	}
	return out
}

// Reference 4.6: nobody is let in below the minimum numbers; a single node can still leave.
func TestMinimums(t *testing.T) {
	for _, c := range []struct {
		least   minimums
		members []string
		want    bool
	}{
		{minimums{}, []string{"a joining"}, true},
		{minimums{members: 2}, []string{"a joining"}, false},
		{minimums{members: 2}, []string{"a joining", "b joining"}, true},
		{minimums{members: 2}, []string{"a joining", "b down"}, false},
		{minimums{members: 2}, []string{"a joining", "b leaving"}, true},
		{minimums{members: 2, roles: []RoleMinimum{{"x", 1}}}, []string{"a joining", "b joining"}, false},
		{minimums{roles: []RoleMinimum{{"", 2}}}, []string{"a joining", "b joining"}, true},
	} {
		require.Equal(t, c.want, c.least.met(stateOf(c.members, "").Members), "%+v", c)
	}
	w := newWorld(t, 1)
	w.cfg.MinMembers, w.cfg.MinRoleMembers = 2, []RoleMinimum{{"db", 1}}
	a, b, c := w.start(1), w.start(2), w.start(3, "db")
	w.join(a, 1)
	w.join(b, 1)
	w.run(5 * time.Second)
	require.Equal(t, "joining joining", standing(a))
	w.run(10 * time.Second)
	require.Equal(t, "joining joining", standing(a), "nor weakly up")
	w.join(c, 1)
	w.until(5*time.Second, "the last one brings all up", w.settled)

	alone := newWorld(t, 1)
	alone.cfg.MinMembers = 2
	x := alone.start(1)
	alone.join(x)
	require.Equal(t, "joining", standing(x))
	alone.do(x, LeaveCommand{})
	alone.until(5*time.Second, "left", func() bool { return x.ended != nil })
	require.Equal(t, EndLeft, x.ended.Kind)
}

// MEM-7, reference 5.8: all Up members become ready; joins are refused with the reason by every member; joining members
// stay so; leaving and downing work (MEM-11).
func TestFullShutdown(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(4)
	for _, a := range all {
		a.events = nil
	}
	w.do(all[2], PrepareShutdownCommand{})
	require.Equal(t, strings.TrimSpace(strings.Repeat("preparing-for-shutdown ", 4)), standing(all[2]))
	w.do(all[2], PrepareShutdownCommand{})
	ready := strings.TrimSpace(strings.Repeat("ready-for-shutdown ", 4))
	w.until(10*time.Second, "ready", func() bool {
		for _, a := range all {
			if standing(a) != ready || !a.view.Converged {
				return false
			}
		}
		return true
	})
	for _, a := range all {
		require.Contains(t, kindsOf(a.events), MemberReadyForShutdown)
		require.NotContains(t, kindsOf(a.events), LeaderChanged)
	}
	for _, seed := range []int{1, 4} { // not only the member that was asked knows it (Q18)
		late := w.start(9)
		late.m.cfg.JoinTimeout = 5 * time.Second
		w.join(late, seed)
		w.run(6 * time.Second)
		require.Nil(t, late.view)
		require.Equal(t, EndJoinTimeout, late.ended.Kind)
		require.Contains(t, late.ended.Reason, "prepares for a full shutdown")
	}
	w.do(all[3], LeaveCommand{})
	w.until(10*time.Second, "left", func() bool { return all[3].ended != nil && len(all[0].view.Members) == 3 })
	w.do(all[0], DownCommand{ID: all[1].id})
	w.until(15*time.Second, "downed", func() bool { return len(all[0].view.Members) == 2 })
	for _, a := range []*actor{all[0], all[2]} {
		w.do(a, LeaveCommand{})
	}
	w.run(20 * time.Second)
	for _, a := range all {
		require.NotNil(t, a.ended)
	}
	idle := New(nid("a"), Config{}, nil)
	require.ErrorIs(t, idle.Do(0, PrepareShutdownCommand{}), ErrNotMember)
}

// MEM-7: a member admitted while the order to stop was under way stays Joining; one made Up then prepares as well.
func TestPreparingMeetsLateMembers(t *testing.T) {
	s := stateOf([]string{"a preparing-for-shutdown", "b up", "c joining", "d weakly-up", "e leaving"}, "abcde")
	next, _ := members.Lead(s, nid("a"), nil, never, true)
	var got []cluster.Status
	for _, m := range next.Members {
		got = append(got, m.Status)
	}
	require.Equal(t, []cluster.Status{cluster.ReadyForShutdown, cluster.PreparingForShutdown, cluster.Joining,
		cluster.WeaklyUp, cluster.Exiting}, got)
	w := newWorld(t, 1)
	w.cfg.MinMembers = 2
	a := w.start(1)
	w.join(a)
	require.ErrorIs(t, a.m.Do(w.now, PrepareShutdownCommand{}), ErrNobodyUp)
}
