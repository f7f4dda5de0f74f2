// Failure detection over whole clusters: when silence is found, from both ends, and by which nodes it must not be (FD-1
// to FD-3, FD-5).

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
)

// accused returns the pairs of hosts, accuser first, that stand in the view of node n.
func (c *Cluster) accused(n int) map[[2]int]bool {
	out := map[[2]int]bool{}
	for _, a := range c.View(n).Accusations {
		from, _ := c.w.IndexOf(a.Observer.Addr)
		to, _ := c.w.IndexOf(a.Subject.Addr)
		out[[2]int{from, to}] = true
	}
	return out
}

// neighbour returns the node that node n probes when each probes one.
func (c *Cluster) neighbour(n int) int {
	var nodes peer.Set
	for _, m := range c.View(n).Members {
		nodes.Add(m.ID)
	}
	to, _ := c.w.IndexOf(fd.RingOf(nodes).Receivers(c.View(n).Self, fd.Absent{}, 1)[0].Addr)
	return to
}

func pace(monitored int, reaper time.Duration) Option {
	return With(func(cfg *setup.Config) {
		cfg.Membership.MonitoredBy, cfg.Membership.ReaperInterval = monitored, reaper
	})
}

// FD-1: silence is found at its deadline, within 5 s of a crash, and a mass crash is one change for each observer. The
// reaper, which would do it in an hour, is not waited for.
func TestSilenceIsFoundAtItsDeadline(t *testing.T) {
	for seed := range uint64(10) {
		c := New(t, 8, seed, pace(5, time.Hour))
		c.AwaitUp()
		c.Advance(20*time.Second + time.Duration(seed)*137*time.Millisecond)
		began := c.Now()
		for n := 5; n < 8; n++ {
			c.PowerOff(n)
		}
		first := c.Until(5*time.Second, func() bool { return len(c.View(0).Unreachable) > 0 })
		require.True(t, first, "seed %d: nothing after %v", seed, c.Now()-began)
		require.True(t, c.Until(2*time.Second, func() bool {
			for n := range 5 {
				if len(c.View(n).Unreachable) != 3 {
					return false
				}
			}
			return true
		}), "seed %d", seed)
	}
}

// Members that are Down watch nobody: one that loses its power while all others but one are restarted is found by those
// that live, though the old incarnations stay Down as long as it blocks convergence (FD-2, storm 12100009588).
func TestDownMembersAreNoWatchers(t *testing.T) {
	for seed := range uint64(20) {
		c := New(t, 6, seed, pace(1, time.Second))
		c.AwaitUp()
		c.Advance(10 * time.Second)
		off := c.View(5).Self
		for range 2 {
			for n := 1; n < 5; n++ {
				c.Crash(n)
			}
			if c.Running(5) {
				c.PowerOff(5)
			}
			for n := 1; n < 5; n++ {
				c.Restart(n)
			}
			c.Advance(time.Second)
		}
		require.True(t, c.Until(12*time.Second, func() bool { return c.View(0).Unreachable.Has(off) }), "seed %d", seed)
	}
}

// A way that is open in one direction only is found by both ends, though only one of them probes (FD-2): the other
// misses its probes. When only the answers are cut off, the other end knows when TCP has given up the connection.
func TestOneWayCutIsFoundByBothEnds(t *testing.T) {
	for seed := range uint64(5) {
		c := New(t, 7, seed, pace(1, time.Second))
		c.AwaitUp()
		c.Advance(20 * time.Second)
		b := c.neighbour(0)
		require.NotEqual(t, 0, c.neighbour(b), "a ring of seven")
		third := c.neighbour(b)

		c.CutOneWay(0, b)
		require.True(t, c.Until(7*time.Second, func() bool {
			pairs := c.accused(third)
			return pairs[[2]int{0, b}] && pairs[[2]int{b, 0}]
		}), "seed %d: %v", seed, c.accused(third))
		c.Heal()
		c.AwaitUp()

		c.CutOneWay(b, 0)
		require.True(t, c.Until(7*time.Second, func() bool { return c.accused(third)[[2]int{0, b}] }))
		require.True(t, c.Until(25*time.Second, func() bool { return c.accused(third)[[2]int{b, 0}] }), "seed %d", seed)
		c.Heal()
		c.AwaitUp()
	}
}

// falseAccusations returns how often a process that ran and was not frozen was called unreachable.
func (c *Cluster) falseAccusations(frozen ...int) (n int) {
	excused := map[peer.Addr]bool{}
	for _, f := range frozen {
		excused[c.w.Hosts[f].Addr] = true
	}
	for _, events := range c.events {
		for _, e := range events {
			if e.Kind == membership.UnreachableMember && !excused[e.Member.ID.Addr] {
				n++
			}
		}
	}
	return n
}

// Local health: nodes that stood still for longer than the detector bears are called unreachable, and accuse nobody
// themselves when they go on. The large case is in `make scale`.
func TestFrozenObserversAccuseNobody(t *testing.T) {
	for seed := range uint64(2) {
		c := New(t, 14, seed)
		c.AwaitUp()
		frozen := []int{3, 9, 12}
		for range 2 {
			c.Advance(7 * time.Second)
			for _, n := range frozen {
				c.Pause(n, 16*time.Second)
			}
			c.Advance(16 * time.Second)
			require.Len(t, c.View(0).Unreachable, len(frozen))
			c.AwaitUp()
		}
		require.Zero(t, c.falseAccusations(frozen...), "seed %d", seed)
	}
}

// A node with a control loop that stands still now and then, for less than makes others miss it, accuses nobody either.
func TestStutteringObserverAccusesNobody(t *testing.T) {
	c := New(t, 6, 3, pace(5, 100*time.Millisecond))
	c.AwaitUp()
	for range 20 {
		c.w.Hosts[2].Process.Stick(3500 * time.Millisecond)
		c.Advance(5 * time.Second)
	}
	require.Zero(t, c.falseAccusations(2))
}

// FD-2: the ring of probes changes with every member that comes or goes, on each node at another moment. A node that
// stops probing says so, and nobody is accused for it.
func TestMovingRingAccusesNobody(t *testing.T) {
	for seed := range uint64(3) {
		c := New(t, 16, seed, pace(1, time.Second), With(func(cfg *setup.Config) {
			cfg.Membership.GossipInterval, cfg.Membership.PushFanout = 3*time.Second, 1
		}))
		c.AwaitUp()
		c.Advance(10 * time.Second)
		for n := 15; n > 5; n-- {
			c.Leave(n)
			c.Advance(12 * time.Second)
		}
		c.Advance(20 * time.Second)
		for n := 6; n < 16; n++ {
			c.w.Start(n, c.w.Seeds(c.seedOrder()))
			c.Advance(8 * time.Second)
		}
		c.Advance(time.Minute)
		require.Zero(t, c.falseAccusations(), "seed %d", seed)
	}
}

// FD-1: the detector is pluggable. With the fixed deadline of 4 s, silence is found within 4 s and a little, from the
// first second on.
func TestDeadlineDetectorInACluster(t *testing.T) {
	c := New(t, 5, 1, With(func(cfg *setup.Config) { cfg.Membership.Detector = fd.Deadline }))
	c.AwaitUp()
	c.Advance(1500 * time.Millisecond)
	c.PowerOff(4)
	require.True(t, c.Until(4100*time.Millisecond, func() bool { return len(c.View(0).Unreachable) == 1 }))
	c.Advance(time.Minute)
	require.Zero(t, c.falseAccusations(4))
}

// A packet that TCP loses five times in a row holds up its connection for 6.2 s, which is more than the detector bears.
// A second probe goes over another connection, so nobody is accused for it: not by the prober, which misses answers,
// nor by the other one, which misses probes.
func TestStalledConnectionAccusesNobody(t *testing.T) {
	c := New(t, 7, 1, pace(1, time.Second))
	c.AwaitUp()
	c.Advance(20 * time.Second)
	a, b := c.proc(0), c.proc(c.neighbour(0))
	for range 5 {
		a.HoldUp(b.ID, false, c.Now()+6200*time.Millisecond)
		c.Advance(15 * time.Second)
		a.HoldUp(b.ID, true, c.Now()+6200*time.Millisecond)
		c.Advance(15 * time.Second)
	}
	require.Zero(t, c.falseAccusations())
}

// A process killed on a live host: its connections are reset and new ones refused, so it is unreachable within a
// second. A host that is gone says nothing: silence takes the detector's time. Both are known by all soon after.
func TestKilledProcessIsFoundWithinASecond(t *testing.T) {
	for seed := range uint64(3) {
		c := New(t, 16, seed)
		c.AwaitUp()
		c.Advance(10*time.Second + time.Duration(seed)*171*time.Millisecond)
		allKnow := func(n int) func() bool {
			return func() bool {
				for i := range 14 {
					if len(c.View(i).Unreachable) != n {
						return false
					}
				}
				return true
			}
		}
		c.Crash(14)
		require.True(t, c.Until(time.Second, allKnow(1)), "seed %d", seed)
		c.Advance(5 * time.Second)
		c.PowerOff(15)
		require.False(t, c.Until(2*time.Second, allKnow(2)), "a silent host is no evidence")
		require.True(t, c.Until(4*time.Second, allKnow(2)), "seed %d", seed)
	}
}

// Two processes killed at one moment look to one that watches both like trouble of its own: each counts at once for
// those that lost only that one, and for the others as soon as these agree, or as many others have answered since. In a
// cluster of four there are not so many, and silence decides.
func TestTwoLinksLostTogetherNeedAWitness(t *testing.T) {
	c := New(t, 4, 1)
	c.AwaitUp()
	c.Advance(10 * time.Second)
	c.Crash(2)
	c.Crash(3)
	require.False(t, c.Until(2*time.Second, func() bool { return len(c.View(0).Unreachable) > 0 }))
	require.True(t, c.Until(4*time.Second, func() bool { return len(c.View(0).Unreachable) == 2 }))

	c = New(t, 5, 1)
	c.AwaitUp()
	c.Advance(10*time.Second + 300*time.Millisecond)
	c.Crash(2)
	c.Crash(3)
	require.True(t, c.Until(500*time.Millisecond, func() bool {
		return len(c.View(0).Unreachable) == 2 && len(c.View(1).Unreachable) == 2 && len(c.View(4).Unreachable) == 2
	}), "two others are asked at once, and answer")

	c = New(t, 20, 2, pace(2, time.Second))
	c.AwaitUp()
	c.Advance(10 * time.Second)
	a := c.neighbour(0)
	b := c.neighbour(a)
	c.Crash(a)
	c.Crash(b) // node 0 watches both, others one of them
	require.True(t, c.Until(time.Second, func() bool {
		return c.accused(0)[[2]int{0, a}] || c.accused(0)[[2]int{0, b}]
	}))
}

// A process that is back at once at the same address answers in the name of another incarnation, which proves that the
// old one is gone, and nobody is accused for long.
func TestReplacedProcessIsProof(t *testing.T) {
	c := New(t, 5, 1)
	c.AwaitUp()
	old := c.View(3).Self
	c.Restart(3)
	require.True(t, c.Until(time.Second, func() bool { return c.View(0).Unreachable.Has(old) || !c.has(0, old) }))
	c.AwaitUp()
}

func (c *Cluster) has(n int, id peer.ID) bool {
	_, ok := c.View(n).Member(id)
	return ok
}
