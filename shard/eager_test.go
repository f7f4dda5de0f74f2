// Tests of eager types: their homes are found, and found again, though nobody sends.

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/wire"
)

// known demands that every living node has a route to the home of every shard, and nobody wanted it.
func (w *world) known(s Settings) {
	w.t.Helper()
	w.agree(s, all(s)...)
	hosted := 0
	for _, n := range w.nodes {
		hosted += len(n.hosted)
	}
	require.Equal(w.t, int(s.Shards), hosted)
}

// TestEagerTypeFindsHomes: all shards live somewhere as soon as a coordinator is ready, and again after the leave of an
// owner, of the coordinator, and a loss, a takeover time later; each node knows where (SHD-12).
func TestEagerTypeFindsHomes(t *testing.T) {
	w := startWorld(t, 4)
	w.registerAll(orders)
	require.Error(t, w.nodes[0].m.Do(w.now, EagerCommand{42}), "not registered")
	for _, n := range w.nodes {
		n.do(EagerCommand{orders.ID()})
	}
	w.pass(time.Second)
	w.known(orders)

	leaves := func(i int) {
		n := w.nodes[i]
		n.do(LeaveCommand{})
		w.pass(time.Second)
		require.True(t, n.drained)
		w.known(orders)
		for _, st := range []membership.Status{membership.Leaving, membership.Exiting, membership.Removed} {
			w.set(n.id, st)
			w.publish()
			w.pass(100 * time.Millisecond)
		}
		w.known(orders)
	}
	leaves(3)
	lost := func(i int) {
		w.nodes[i].crash()
		w.set(w.nodes[i].id, membership.Down)
		w.publish()
		w.promote()
		w.publish()
		w.pass(DefaultTakeoverTime - time.Second)
		hosted := 0
		for _, n := range w.nodes {
			hosted += len(n.hosted)
		}
		require.Less(t, hosted, int(orders.Shards), "not before the takeover time is over")
		w.pass(4 * time.Second)
		w.known(orders)
	}
	lost(1) // an owner, of a coordinator that stays
	leaves(0)
}

// TestEagerTypeFindsWhatHasMoved: a node hears that a shard moves, and loses the message that says the move is over,
// because the courier has no room. It asks for the home by itself: nobody sends to that shard (SHD-12).
func TestEagerTypeFindsWhatHasMoved(t *testing.T) {
	for _, marks := range []bool{true, false} {
		w := startWorld(t, 4)
		w.registerAll(orders)
		for _, n := range w.nodes {
			n.do(EagerCommand{orders.ID()})
		}
		w.pass(time.Second)
		boss, owner, next, far := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
		s := of(owner)
		require.NoError(t, boss.move(s, next))
		require.True(t, w.take(wire.KindMoveShards, far))
		if !marks {
			far.cut[owner.id] = true
		}
		boss.cut[far.id] = true
		w.pass(DefaultMarkTime + time.Second)
		require.Equal(t, marks, count(boss.events, MoveDone) == 1)
		require.Equal(t, !marks, count(boss.events, MoveAborted) == 1)
		require.Equal(t, RouteMoving, far.route(orders, s).State)
		clear(boss.cut)
		clear(far.cut)
		w.pass(5 * time.Second)
		require.Equal(t, RouteRemote, far.route(orders, s).State, "marked: %v", marks)
		w.known(orders)
	}
}

// TestEagerTypeWaitsForAHost: without a member of the role nothing is found, and nothing is lost: the first that comes
// gets all.
func TestEagerTypeWaitsForAHost(t *testing.T) {
	s := Settings{Name: "far", Shards: 5, Role: "host"}
	w := startWorld(t, 2)
	w.registerAll(s)
	for _, n := range w.nodes {
		n.do(EagerCommand{s.ID()})
	}
	w.pass(time.Minute)
	host := w.join("host")
	w.publish()
	w.promote()
	w.publish()
	w.pass(5 * time.Second)
	require.Empty(t, host.hosted, "it has not registered the type")
	host.do(RegisterCommand{Settings: s})
	host.do(EagerCommand{s.ID()})
	w.pass(5 * time.Second)
	require.Len(t, host.hosted, 5)
	w.known(s)
}

// TestEagerTypeThatIsRefused wants nothing, and can be registered again.
func TestEagerTypeThatIsRefused(t *testing.T) {
	w := startWorld(t, 2)
	w.nodes[0].do(RegisterCommand{Settings: orders})
	w.nodes[0].do(EagerCommand{orders.ID()})
	other := Settings{Name: orders.Name, Shards: 7}
	w.queue = nil // the second has not heard of it
	w.nodes[1].do(RegisterCommand{Settings: other})
	w.nodes[1].do(EagerCommand{orders.ID()})
	w.pass(5 * time.Second)
	require.Len(t, w.nodes[1].refused, 1)
	require.Zero(t, w.nodes[1].m.types[orders.ID()].region.wanted.Len())
	w.nodes[1].do(RegisterCommand{Settings: orders})
	w.nodes[1].do(EagerCommand{orders.ID()})
	w.pass(5 * time.Second)
	w.known(orders)
}

// TestEagerTypeStaysInAFullShutdown: while the whole cluster stops, what members that leave gave back gets no home
// because it is eager: nothing goes from member to member before it ends. A sender finds a home still (MEM-7, SHD-12).
func TestEagerTypeStaysInAFullShutdown(t *testing.T) {
	w := startWorld(t, 4)
	w.registerAll(orders)
	for _, n := range w.nodes {
		n.do(EagerCommand{orders.ID()})
	}
	w.pass(time.Second)
	w.known(orders)
	had := map[int]int{}
	for i, n := range w.nodes {
		had[i] = len(n.hosted)
		w.set(n.id, membership.ReadyForShutdown)
	}
	w.publish()
	w.pass(5 * time.Second)
	for _, i := range []int{3, 0, 1} { // 0 coordinates
		n := w.nodes[i]
		n.do(LeaveCommand{})
		w.pass(time.Second)
		require.True(t, n.drained)
		for _, st := range []membership.Status{membership.Leaving, membership.Exiting, membership.Removed} {
			w.set(n.id, st)
			w.publish()
			w.pass(20 * time.Second)
		}
	}
	last := w.nodes[2]
	require.Len(t, last.hosted, had[2], "nothing has come to it")
	last.do(WantCommand{orders.ID(), all(orders)})
	w.pass(20 * time.Second)
	require.Len(t, last.hosted, int(orders.Shards))
}
