// Tests of what a node says of its own standing, and of its suspensions.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// ofGate returns the events of a drain that tell of a suspension.
func ofGate(events []membership.Event) (list []membership.Event) {
	for _, e := range events {
		if e.Kind == membership.NodeSuspended || e.Kind == membership.NodeResumed {
			list = append(list, e)
		}
	}
	return list
}

// TestHealthFromStartToEnd: each state has its reason, and begins when it begins (MEM-10).
func TestHealthFromStartToEnd(t *testing.T) {
	n := New(Config{Self: id("10.0.0.9"), Seed: 1})
	require.Equal(t, membership.StateStarting, n.State())
	_, b, w := pair(t)
	require.Equal(t, membership.StateReady, b.State())
	require.Empty(t, b.Health().Reason)
	e := &Effects{}
	gap := b.suspension.limit + time.Millisecond
	asleep := w.now
	w.now += gap
	b.Tick(w.now)
	b.Drain(e)
	list := ofGate(e.Events)
	require.Len(t, list, 1)
	require.Equal(t, membership.NodeSuspended, list[0].Kind)
	h := b.Health()
	require.Equal(t, membership.Health{State: membership.StateSuspended, Since: asleep + gap, Reason: list[0].Detail}, h)
	require.Contains(t, h.Reason, "the control loop did not step for")
	require.Equal(t, Suspensions{On: true, Since: asleep + gap, Why: h.Reason, Count: 1}, b.Counts().Suspensions)

	b.resolve(true, "the resolver's reason")
	b.resolve(true, "again")
	b.settle(false)
	b.Drain(e)
	list = ofGate(e.Events)
	require.Len(t, list, 1, "a second reason is told once")
	require.Equal(t, "stopped by the resolver: the resolver's reason", list[0].Detail)
	require.Equal(t, list[0].Detail, b.Health().Reason)
	require.EqualValues(t, 1, b.Counts().Suspensions.Count, "one suspension with two reasons")
	b.resolve(false, "back")
	require.Contains(t, b.Health().Reason, "back")
}

// F-M7, what a member's status makes of its readiness: Up is ready, Joining and Leaving are not. Stricter than the
// reference: WeaklyUp is not ready either, since such a member hosts nothing.
func TestConformanceReadyStates(t *testing.T) {
	for status, want := range map[membership.Status]membership.NodeState{membership.Up: membership.StateReady,
		membership.PreparingForShutdown: membership.StateReady, membership.ReadyForShutdown: membership.StateReady,
		membership.Joining: membership.StateWaiting, membership.WeaklyUp: membership.StateWaiting,
		membership.Leaving: membership.StateLeaving, membership.Exiting: membership.StateLeaving} {
		n := New(Config{Self: id("10.0.0.9"), Seed: 1})
		n.health.known, n.health.self = true, status
		require.Equal(t, want, n.stands(), status)
	}
}

// TestHealthOnTheWayOut: a node that leaves, and one that was downed, say so.
func TestHealthOnTheWayOut(t *testing.T) {
	a, b, w := pair(t)
	require.NoError(t, a.Do(w.now, LeaveCommand{}))
	require.Equal(t, membership.StateLeaving, a.State())
	require.NotEmpty(t, a.Health().Reason)
	require.NoError(t, b.Do(w.now, membership.DownCommand{ID: id("10.0.0.2")}))
	require.Equal(t, membership.StateEnded, b.State())
	require.Contains(t, b.Health().Reason, "downed")
}

// TestSuspensionsAreCounted: what is over is added up, and reported with how long it took (MEM-10).
func TestSuspensionsAreCounted(t *testing.T) {
	_, b, w := pair(t)
	total := time.Duration(0)
	for i := range 3 {
		w.nodes[1].asleep = true
		w.run(9*time.Second, func() bool { return false })
		w.nodes[1].asleep = false
		before := len(w.nodes[1].told)
		w.run(5*time.Second, func() bool { return len(w.nodes[1].told) == before+2 })
		end := w.nodes[1].told[before+1]
		require.Equal(t, membership.NodeResumed, end.Kind)
		require.Equal(t, confirmedWhy, end.Detail)
		require.Positive(t, end.For)
		total += end.For
		s := b.Counts().Suspensions
		require.Equal(t, Suspensions{Why: s.Why, Count: uint64(i + 1), Total: total}, s)
		require.Equal(t, membership.StateReady, b.State())
	}
}

// TestReadyWaitsForItsTypes: a node that is Up is ready when the coordinators of its types have acknowledged them; it
// waits for no type that nobody coordinates, and for none that comes later.
func TestReadyWaitsForItsTypes(t *testing.T) {
	w := &wires{t: t, now: time.Second}
	a, b := New(Config{Self: id("10.0.0.1"), Seed: 1}), New(Config{Self: id("10.0.0.2"), Seed: 2})
	w.nodes = []*end{{id: id("10.0.0.1"), n: a}, {id: id("10.0.0.2"), n: b}}
	held := true // what b says to the coordinator
	w.tap = func(m peer.Mail) bool { return !held || m.Kind != wire.KindSegment || m.To != id("10.0.0.1") }
	w.refused = func(*end, peer.ID) {}
	nobodys := shard.Settings{Name: "nobody's", Shards: 4, Role: "none"}
	for _, s := range []shard.Settings{books, nobodys} {
		require.NoError(t, b.Do(w.now, shard.RegisterCommand{Settings: s}))
		w.drain(w.nodes[1])
	}
	for _, e := range w.nodes {
		require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
		w.drain(e)
	}
	w.run(20*time.Second, func() bool { return up(w.nodes[1].view, 2) })
	require.Equal(t, membership.StateWaiting, b.State(), "the coordinator has not answered yet")
	h := b.Health()
	require.Equal(t, membership.WaitTypes, h.Waiting.For)
	require.Contains(t, h.Reason, books.Name)
	require.NotContains(t, h.Reason, nobodys.Name)
	w.run(2*time.Second, func() bool { return b.State() == membership.StateReady })
	require.Equal(t, membership.StateWaiting, b.State())
	held = false
	w.run(5*time.Second, func() bool { return b.State() == membership.StateReady })
	require.Empty(t, b.Health().Reason)

	later := shard.Settings{Name: "later", Shards: 4}
	require.NoError(t, b.Do(w.now, shard.RegisterCommand{Settings: later}))
	require.NotEmpty(t, shard.Unacknowledged(b.shards))
	require.Equal(t, membership.StateReady, b.State())
}

// A node with a type that the cluster refuses is not ready, also when it was, and says which type and how the settings
// differ; it is again once it has registered what the cluster has (SHD-1, OPS-1).
func TestNotReadyWithARefusedType(t *testing.T) {
	_, b, w := pair(t)
	require.Equal(t, membership.StateReady, b.State())
	theirs, ours := shard.Settings{Name: "late", Shards: 4}, shard.Settings{Name: "late", Shards: 8}
	a := w.nodes[0]
	register := func(e *end, s shard.Settings) {
		require.NoError(t, e.n.Do(w.now, shard.RegisterCommand{Settings: s}))
		w.drain(e)
	}
	w.refused = func(*end, peer.ID) {}
	held := true // what a says, so that b has not heard of the type
	w.tap = func(m peer.Mail) bool { return !held || m.To == a.id }
	register(a, theirs)
	register(w.nodes[1], ours)
	held = false
	w.run(10*time.Second, func() bool { return b.State() == membership.StateWaiting })
	h := b.Health()
	require.Equal(t, membership.StateWaiting, h.State)
	require.Equal(t, membership.WaitRefusedTypes, h.Waiting.For)
	require.Contains(t, h.Reason, `type "late" has 4 shards and role "" in the cluster, 8 shards and role "" here`)
	register(w.nodes[1], theirs)
	require.Equal(t, membership.StateReady, b.State())
	require.Empty(t, b.Health().Reason)
}
