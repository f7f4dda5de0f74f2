// What a proxy keeps of a type of many shards when shards move under a later coordinator term.

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A proxy that talks to a hundred shards keeps a hundred, also when the rest moves under a coordinator that learnt of
// the homes by reports.
func TestProxyKeepsWhatItUsesUnderALaterReign(t *testing.T) {
	s := Settings{Name: "wide", Shards: 4097, Role: "hosts"}
	w := newWorld(t)
	for _, role := range []string{"hosts", "hosts", "hosts", "other"} {
		w.join(role)
		w.publish()
		w.promote()
		w.publish()
	}
	w.registerAll(s)
	w.pass(time.Second)
	boss, drained, proxy := w.nodes[0], w.nodes[2], w.nodes[3]
	drained.want(s, all(s)...)
	proxy.want(s, scattered(s, 100)...)
	w.pass(time.Second)
	boss.crash()
	w.set(boss.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(time.Minute)
	require.NoError(t, drained.drains(true))
	w.pass(time.Minute)
	require.Empty(t, drained.hosted)
	require.Equal(t, 100, proxy.m.types[s.ID()].region.slots.Made())
}

// laterReign is a type with a coordinator that learnt of its homes by reports, an owner, and a proxy that has sent to
// nobody.
func laterReign(t *testing.T, s Settings) (w *world, boss, owner, proxy *testNode) {
	w = newWorld(t)
	for _, role := range []string{"hosts", "hosts", "hosts", "other"} {
		w.join(role)
		w.publish()
		w.promote()
		w.publish()
	}
	w.registerAll(s)
	w.nodes[0].want(s, all(s)...)
	w.pass(time.Second)
	w.nodes[0].do(LeaveCommand{})
	for range 8 {
		w.housekeep()
		w.publish()
		for w.promote() {
			w.publish()
		}
		w.pass(time.Second)
	}
	boss, owner, proxy = w.nodes[1], w.nodes[2], w.nodes[3]
	require.True(t, boss.stats(s).Leading.Ready)
	return w, boss, owner, proxy
}

// A move of a shard that a proxy has nothing to do with is marked there, again when a connection breaks, and nothing is
// kept of it when it is over; a home from before the move is late for a node that wants the shard only then (SHD-9,
// SHD-12).
func TestMovesPassByWhoHasNoPartInThem(t *testing.T) {
	s := Settings{Name: "passed", Shards: 8, Role: "hosts"}
	w, boss, owner, proxy := laterReign(t, s)
	id, g := s.ID(), proxy.m.types[s.ID()].region
	n := hostedBy(owner, s)
	old := owner.hosted[key(id, n)]
	boss.do(MoveCommand{id, n, boss.id})
	require.True(t, w.take(wire.KindMoveShards, proxy))
	require.Zero(t, g.slots.Peek(n))
	require.Equal(t, 1, w.marks(proxy, owner))
	w.hold(wire.KindMarker) // lost with their connections
	proxy.do(MarkAgainCommand{boss.id})
	require.Empty(t, w.hold(wire.KindMarker), "to another")
	for _, n := range []*testNode{boss, proxy} {
		n.do(MarkAgainCommand{owner.id})
	}
	w.pass(time.Second)
	require.Contains(t, boss.hosted, key(id, n))
	require.Equal(t, 1, count(boss.events, MoveDone))
	require.Zero(t, g.slots.Peek(n))
	require.Empty(t, g.hand.observed)

	proxy.want(s, n)
	asked := w.hold(wire.KindAskHomes)
	late := homes{head: head{Birth: testBirth, Type: id, Term: g.term}, Peers: peer.Set{owner.id},
		Entries: []home{{held: held{n, old}}}}
	require.NoError(t, w.inject(boss, proxy, late))
	require.Equal(t, RouteUnknown, proxy.route(s, n).State)
	require.NotEmpty(t, asked)
	w.pass(3 * time.Second)
	require.Equal(t, boss.id, proxy.route(s, n).Home)
	w.agree(s, n)
}

// A node that wants a shard while a move of it passes by parks as everybody does, and goes on when the move is over.
func TestWhoWantsAShardThatMovesParks(t *testing.T) {
	s := Settings{Name: "wanted", Shards: 8, Role: "hosts"}
	w, boss, owner, proxy := laterReign(t, s)
	id := s.ID()
	n := hostedBy(owner, s)
	old := owner.hosted[key(id, n)]
	boss.do(MoveCommand{id, n, boss.id})
	require.True(t, w.take(wire.KindMoveShards, proxy))
	proxy.want(s, n)
	require.Equal(t, RouteChange{Type: id, Shard: n, State: RouteMoving, Home: owner.id, Fence: old, Next: boss.id},
		proxy.route(s, n))
	require.Equal(t, 1, w.marks(proxy, owner), "once")
	late := homes{head: head{Birth: testBirth, Type: id, Term: proxy.m.types[id].region.term}, Peers: peer.Set{owner.id},
		Entries: []home{{held: held{n, old}}}}
	require.NoError(t, w.inject(boss, proxy, late))
	require.Equal(t, RouteMoving, proxy.route(s, n).State)
	w.pass(time.Second)
	require.Equal(t, boss.id, proxy.route(s, n).Home)
	w.agree(s, n)
}

// Moves that pass by are forgotten with the owner, and with the coordinator term.
func TestMovesThatPassByEnd(t *testing.T) {
	s := Settings{Name: "ends", Shards: 8, Role: "hosts"}
	w, boss, owner, proxy := laterReign(t, s)
	h := proxy.m.types[s.ID()].region.hand
	begin := func() {
		boss.do(MoveCommand{s.ID(), hostedBy(owner, s), boss.id})
		require.True(t, w.take(wire.KindMoveShards, proxy))
		require.Len(t, h.observed, 1)
	}
	begin()
	h.heard(Number{h.newest.Term + 1, 0})
	require.Empty(t, h.observed)
	w.pass(time.Second)
	begin()
	owner.crash()
	w.set(owner.id, membership.Down)
	w.publish()
	require.Empty(t, h.observed)
}

// hostedBy returns a shard that lives at a node.
func hostedBy(n *testNode, s Settings) route.ShardID {
	for _, i := range all(s) {
		if _, lives := n.hosted[key(s.ID(), i)]; lives {
			return i
		}
	}
	return route.NoShard
}
