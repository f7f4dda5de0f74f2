// Suspension: a node that has slept notices before it does anything else, and only the word of others wakes it.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// pair returns two nodes that have formed a cluster, and what carries their mail.
func pair(t *testing.T) (a, b *Node, w *wires) {
	t.Helper()
	w = &wires{t: t, now: time.Second}
	a = New(Config{Self: id("10.0.0.1"), Seed: 1})
	b = New(Config{Self: id("10.0.0.2"), Seed: 2})
	w.nodes = []*end{{id: id("10.0.0.1"), n: a}, {id: id("10.0.0.2"), n: b}}
	for _, e := range w.nodes {
		require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
		w.drain(e)
	}
	w.run(20*time.Second, func() bool {
		return up(w.nodes[0].view, 2) && up(w.nodes[1].view, 2)
	})
	return a, b, w
}

// TestSleepSuspendsBeforeAnythingElse: the verb after the gap says so, whatever verb it is, and no later than its own
// other effects (MEM-10).
func TestSleepSuspendsBeforeAnythingElse(t *testing.T) {
	for name, verb := range map[string]func(n *Node, now time.Duration){
		"tick":    func(n *Node, now time.Duration) { n.Tick(now) },
		"command": func(n *Node, now time.Duration) { _ = n.Do(now, shard.RegisterCommand{Settings: books}) },
		"frame":   func(n *Node, now time.Duration) { _ = n.Handle(now, now, id("10.0.0.1"), 200, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			_, b, w := pair(t)
			e := &Effects{}
			w.now += shard.DefaultTakeoverTime/2 + time.Millisecond
			require.False(t, b.Suspended())
			verb(b, w.now)
			b.Drain(e)
			require.NotNil(t, e.Suspend)
			require.True(t, e.Suspend.On)
			require.Contains(t, e.Suspend.Why, "did not step")
			require.True(t, b.Suspended())
			b.Tick(w.now)
			b.Drain(e)
			require.Nil(t, e.Suspend, "told once")
			require.True(t, b.Suspended(), "a fresh step does not lift it")
		})
	}
}

// TestShortSleepIsNothing: up to half the takeover time no shard can have been given away.
func TestShortSleepIsNothing(t *testing.T) {
	_, b, w := pair(t)
	e := &Effects{}
	b.Tick(w.now)
	b.Tick(w.now + Config{}.Takeover(2)/2)
	b.Drain(e)
	require.Nil(t, e.Suspend)
}

// TestConfirmationLiftsIt: the other member's answer does, within a round trip.
func TestConfirmationLiftsIt(t *testing.T) {
	_, b, w := pair(t)
	w.nodes[1].asleep = true
	w.run(12*time.Second, func() bool { return false })
	w.nodes[1].asleep = false
	w.run(5*time.Second, func() bool { return len(w.nodes[1].orders) == 2 })
	require.True(t, w.nodes[1].orders[0].On)
	require.False(t, w.nodes[1].orders[1].On)
	require.False(t, b.Suspended())
	require.Empty(t, w.nodes[0].orders, "who did not sleep goes on")
}

// TestSleeperWhomNobodyCanConfirm: a node finds that all others have gone while it slept. If that was for the takeover
// time they may have formed the next cluster, and it ends; it goes on when it slept for less, or when it decides itself
// that they are gone, by its resolver or by an operator's word at this node (MEM-10, SHD-9).
func TestSleeperWhomNobodyCanConfirm(t *testing.T) {
	gone := membership.DownCommand{ID: id("10.0.0.1")}
	for name, c := range map[string]struct {
		sleeps time.Duration
		early  membership.Cause // by which a is downed while b sleeps, which b learns from what lay in its sockets
		late   membership.Cause // by which a is downed then, at b
		ends   bool
	}{
		"others ended, long":  {shard.DefaultTakeoverTime, membership.CauseUnstable, membership.CauseNone, true},
		"others ended, short": {shard.DefaultTakeoverTime * 3 / 4, membership.CauseUnstable, membership.CauseNone, false},
		"operator there":      {shard.DefaultTakeoverTime, membership.CauseOperator, membership.CauseNone, true},
		"operator here":       {shard.DefaultTakeoverTime, membership.CauseNone, membership.CauseOperator, false},
		"resolver here":       {shard.DefaultTakeoverTime, membership.CauseNone, membership.CauseResolver, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, w := pair(t)
			e := w.nodes[1]
			e.asleep = true
			if c.early != membership.CauseNone {
				require.NoError(t, a.Do(w.now, membership.DownCommand{ID: gone.ID, Cause: c.early}))
				w.drain(w.nodes[0])
			}
			w.nodes[0].asleep = true
			w.now += c.sleeps
			e.asleep = false
			if c.late != membership.CauseNone {
				w.run(time.Second, func() bool { return len(e.orders) > 0 })
				require.NoError(t, b.Do(w.now, membership.DownCommand{ID: gone.ID, Cause: c.late}))
				w.drain(e)
			}
			w.run(5*time.Second, func() bool { return b.State() == membership.StateEnded || len(e.orders) == 2 })
			require.Equal(t, c.ends, b.State() == membership.StateEnded)
			require.Equal(t, c.ends, b.Suspended())
			if c.ends {
				require.Contains(t, b.Health().Reason, "nobody is left who could say")
			}
		})
	}
}

// TestSleeperAndTheLease: of two nodes each of which is lost to the other one gets the lease. One that slept has lost
// though it gets it, once the other one may have had it and given it back since the sleep began (MEM-10).
func TestSleeperAndTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		sleeps time.Duration
		ends   bool
	}{"shorter than the lease is held": {12 * time.Second, false}, "longer": {38 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			w := &wires{t: t, now: time.Second}
			for i, host := range []string{"10.0.0.1", "10.0.0.2"} {
				w.nodes = append(w.nodes, &end{id: id(host), n: New(Config{Self: id(host), Seed: uint64(i + 1),
					Resolver: Resolver{Strategy: ResolverLeaseMajority}})})
			}
			for _, e := range w.nodes {
				require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
				w.drain(e)
			}
			w.run(20*time.Second, func() bool { return up(w.nodes[0].view, 2) && up(w.nodes[1].view, 2) })
			w.nodes[0].asleep, w.nodes[1].asleep = true, true // the first for good
			w.now += c.sleeps
			e := w.nodes[1]
			e.asleep = false
			w.run(time.Minute, func() bool { return len(e.lease) > 0 })
			require.NotEmpty(t, e.lease)
			require.NoError(t, e.n.Do(w.now, LeaseResult{Op: e.lease[0].Op, OK: true}))
			w.drain(e)
			w.run(10*time.Second, func() bool { return e.n.State() == membership.StateEnded || !e.n.Suspended() })
			require.Equal(t, c.ends, e.n.State() == membership.StateEnded)
			require.Equal(t, c.ends, e.n.Suspended())
		})
	}
}

// TestAloneNeedsNobody: there is no node that a shard could have been given to.
func TestAloneNeedsNobody(t *testing.T) {
	n, e := alone(t)
	n.Tick(time.Hour)
	n.Drain(e)
	require.Nil(t, e.Suspend)
}

// TestResolverHoldsUntilItLetsGo: while the resolver's reason stands no confirmation counts; afterwards a fresh one is
// asked for.
func TestResolverHoldsUntilItLetsGo(t *testing.T) {
	_, b, w := pair(t)
	b.resolve(true, "this side has lost")
	w.drain(w.nodes[1])
	require.Len(t, w.nodes[1].orders, 1)
	require.Equal(t, "stopped by the resolver: this side has lost", w.nodes[1].orders[0].Why)
	w.run(10*time.Second, func() bool { return false })
	require.True(t, b.Suspended())
	b.resolve(false, "")
	w.drain(w.nodes[1])
	require.True(t, b.Suspended(), "others have to say so first")
	w.run(5*time.Second, func() bool { return !b.Suspended() })
	require.Len(t, w.nodes[1].orders, 2)
}

// TestNapConfirmsAnew: a node that slept while somebody is accused makes a version of the state that nobody has seen
// yet, so that nobody counts as in contact because of what it confirmed before the sleep. One that steps in time, or
// has nothing to decide, does not (MEM-10).
func TestNapConfirmsAnew(t *testing.T) {
	for _, c := range []struct {
		lost bool
		gap  time.Duration
		anew bool
	}{{true, 1600 * time.Millisecond, true}, {true, time.Second, false}, {false, 1600 * time.Millisecond, false}} {
		_, b, w := pair(t)
		e := &Effects{}
		var seq uint64
		for end := w.now + 9*time.Second; c.lost && w.now < end; {
			w.now += 100 * time.Millisecond
			b.Tick(w.now)
			b.Drain(e)
			if e.View != nil {
				seq = e.View.Seq
			}
		}
		w.now += c.gap
		b.Tick(w.now)
		b.Drain(e)
		require.Equal(t, c.anew, e.View != nil && e.View.Seq > seq, "%+v", c)
	}
}

// TestSleeperInAClusterThatFormsGoes: nobody is Up, for there are too few members. One that has slept waits for the
// others to confirm it. When these have gone it goes, too, after a silence and the patience: their new processes would
// wait for it, which lets nobody join. When they answer it goes on waiting with them, and so does one that has not
// slept (MEM-10, MEM-6).
func TestSleeperInAClusterThatFormsGoes(t *testing.T) {
	for what, c := range map[string]struct{ slept, alone, ends bool }{
		"slept, and the other one is gone": {true, true, true},
		"slept":                            {true, false, false},
		"the other one is gone":            {false, true, false},
	} {
		w := &wires{t: t, now: time.Second}
		for i, at := range []string{"10.0.0.1", "10.0.0.2"} {
			w.nodes = append(w.nodes, &end{id: id(at), n: New(Config{Self: id(at), Seed: uint64(i + 1),
				Membership: membership.Config{MinMembers: 3, WeaklyUpAfter: time.Minute}})})
		}
		for _, e := range w.nodes {
			require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
			w.drain(e)
		}
		first := w.nodes[0]
		w.run(20*time.Second, func() bool { return first.view != nil && len(first.view.Members) == 2 })
		w.run(3*time.Second, func() bool { return false })
		w.nodes[1].asleep = c.alone
		if c.slept {
			require.NoError(t, first.n.Do(w.now, SleptCommand{For: 12 * time.Second}))
			w.drain(first)
			require.True(t, first.n.Suspended())
		}
		w.run(20*time.Second, func() bool { return Over(first.n) })
		require.Equal(t, c.ends, Over(first.n), what)
		require.Equal(t, c.ends, first.n.Suspended(), what)
		if self, ok := first.view.SelfMember(); ok && !c.ends {
			require.Equal(t, membership.Joining, self.Status, what)
		}
	}
}
