// Suspensions as an embedder sees them in a simulated cluster: events, reasons, counts, and where a node stands.

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

// gateEvents returns what node n reported of its suspensions.
func gateEvents(c *Cluster, n int) (list []membership.Event) {
	for _, e := range c.Events(n) {
		if e.Kind == membership.NodeSuspended || e.Kind == membership.NodeResumed {
			list = append(list, e)
		}
	}
	return list
}

// A paused node suspends itself when it goes on, and says so, why, and when it handles messages again (MEM-10).
func TestPausedNodeTellsOfItsSuspension(t *testing.T) {
	c := New(t, 3, 7)
	require.Equal(t, membership.StateStarting, c.Health(2).State)
	c.Register(echo())
	c.AwaitUp()
	require.Equal(t, membership.StateReady, c.Health(2).State)
	c.Partition([]int{2}, []int{0, 1})
	c.Pause(2, 11*time.Second)
	require.True(t, c.Until(20*time.Second, func() bool { return len(gateEvents(c, 2)) == 1 }))
	e := gateEvents(c, 2)[0]
	require.Equal(t, membership.NodeSuspended, e.Kind)
	require.Contains(t, e.Detail, "the control loop did not step for")
	require.Equal(t, membership.StateSuspended, c.Health(2).State)
	require.Equal(t, e.Detail, c.Health(2).Reason)
	c.Heal()
	require.True(t, c.Until(20*time.Second, func() bool { return len(gateEvents(c, 2)) == 2 }))
	e = gateEvents(c, 2)[1]
	require.Equal(t, membership.NodeResumed, e.Kind)
	require.Positive(t, e.For)
	require.Equal(t, membership.StateReady, c.Health(2).State)
	count, total := c.Suspensions(2)
	require.EqualValues(t, 1, count)
	require.Equal(t, e.For, total)
}

// The smaller side of a partition says that its resolver has stopped it before it ends; the larger side says nothing
// (MEM-10).
func TestLosingSideTellsOfItsSuspension(t *testing.T) {
	c := New(t, 5, 3)
	c.Register(echo())
	c.AwaitUp()
	c.Partition([]int{0, 1}, []int{2, 3, 4})
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(0) && !c.Running(1) }))
	for n := range 5 {
		list := gateEvents(c, n)
		if n > 1 {
			require.Empty(t, list)
			require.Equal(t, membership.StateReady, c.Health(n).State)
			continue
		}
		require.NotEmpty(t, list)
		require.Equal(t, membership.NodeSuspended, list[0].Kind)
		require.Contains(t, list[0].Detail, "stopped by the resolver: the other side is the majority")
		require.Equal(t, membership.StateEnded, c.Health(n).State)
		require.NotEmpty(t, c.Health(n).Reason)
	}
}

// A node that is downed with its side does not say of those it had lost that they are reachable again (MEM-3).
func TestDownedNodeTakesNothingBack(t *testing.T) {
	c := New(t, 5, 3)
	c.Register(echo())
	c.AwaitUp()
	c.Partition([]int{0, 1}, []int{2, 3, 4})
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(0) && !c.Running(1) }))
	for n := range 2 {
		lost := 0
		for _, e := range c.Events(n) {
			require.NotEqual(t, membership.ReachableMember, e.Kind, "node %d: %s", n, e)
			if e.Kind == membership.UnreachableMember {
				lost++
			}
		}
		require.Equal(t, 3, lost)
		require.Len(t, c.View(n).Unreachable, 3)
	}
}
