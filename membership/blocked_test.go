// Tests of what a node says when there is no convergence, and of why a member is gone (GOS-3, MEM-3).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// A crashed member is named by every node after 20 s and again each 60 s, with its accusers and for how long, and the
// end of it is reported once.
func TestConvergenceBlocked(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	require.True(t, all[0].m.Convergence().Converged)
	w.crash(all[2])
	w.until(10*time.Second, "blocked", func() bool { return !all[0].view.Converged && len(all[0].view.Unreachable) == 1 })
	began := w.now
	for _, a := range all[:2] {
		a.events = nil
	}
	w.run(15 * time.Second)
	require.NotContains(t, kindsOf(all[0].events), ConvergenceBlocked)
	c := all[1].m.Convergence()
	require.False(t, c.Converged)
	require.Equal(t, 1, c.Blocking)
	require.Equal(t, all[2].id, c.Blockers[0].Member.ID)
	require.Equal(t, peer.SetOf(all[0].id, all[1].id), c.Blockers[0].Accusers)
	require.InDelta(t, 15, c.Blockers[0].For.Seconds(), 3)
	require.Contains(t, c.Blockers[0].String(), "unreachable for ")
	w.run(120 * time.Second)
	for _, a := range all[:2] {
		var told []time.Duration
		for _, e := range a.events {
			if e.Kind == ConvergenceBlocked {
				told = append(told, e.Convergence.For.Round(5*time.Second))
				require.Equal(t, 1, e.Convergence.Blocking)
			}
		}
		require.Equal(t, []time.Duration{20 * time.Second, 80 * time.Second}, told)
	}
	w.do(all[1], DownCommand{ID: all[2].id})
	w.until(5*time.Second, "settled", w.settled)
	for _, a := range all[:2] {
		last := a.events[len(a.events)-1]
		kinds := kindsOf(a.events)
		require.Contains(t, kinds, ConvergenceRestored)
		if last.Kind == ConvergenceRestored {
			require.InDelta(t, (w.now - began).Seconds(), last.Convergence.For.Seconds(), 3)
		}
	}
	require.Zero(t, New(nid("a"), Config{}, nil).Convergence())
}

// MEM-3: the members that are gone, and why, at those that stay and at the one that ends.
func TestReasons(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(4)
	w.do(all[1], DownCommand{ID: all[2].id, Cause: cluster.CauseResolver})
	w.until(time.Second, "ended", func() bool { return all[2].ended != nil })
	require.Equal(t, cluster.CauseResolver, all[2].ended.Cause)
	require.Equal(t, all[1].id, all[2].ended.By)
	require.Contains(t, all[2].ended.Reason, all[1].id.String())
	w.until(20*time.Second, "removed", w.settled)
	w.do(all[3], LeaveCommand{})
	w.until(20*time.Second, "left", w.settled)
	back := w.start(2)
	w.crash(all[1])
	w.join(back, 1)
	w.until(20*time.Second, "replaced", w.settled)
	reasons := map[peer.ID]string{}
	for _, e := range all[0].events {
		if e.Kind == MemberRemoved {
			reasons[e.Member.ID] = e.Reason()
		} else if e.Kind != MemberDowned {
			require.Empty(t, e.Reason())
		}
	}
	require.Equal(t, map[peer.ID]string{
		all[2].id: "downed by " + all[1].id.String() + " (resolver)",
		all[3].id: "it left",
		all[1].id: "replaced by " + back.id.String(),
	}, reasons)
	require.Equal(t, "", why(cluster.Up, 0, peer.ID{}))
	require.Equal(t, "downed", why(cluster.Down, cluster.CauseOperator, peer.ID{}))
}
