// Types with very many shards: what a node and a coordinator keep follows the shards that are in use.

package shard

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/sparse"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

var large = Settings{Name: "large", Shards: 1_000_000, Role: "hosts"}

// scattered returns n shards all over a type.
func scattered(s Settings, n int) []route.ShardID {
	list := make([]route.ShardID, n)
	for i := range list {
		list[i] = route.ShardID(uint64(i) * uint64(s.Shards) / uint64(n))
	}
	return list
}

// largeWorld is two hosts, of which the first coordinates, and a proxy that knows the homes of a hundred shards.
func largeWorld(t *testing.T) (w *world, proxy *testNode) {
	w = newWorld(t)
	for _, role := range []string{"hosts", "hosts", "other"} {
		w.join(role)
		w.publish()
		w.promote()
		w.publish()
	}
	w.registerAll(large)
	w.pass(time.Second)
	proxy = w.nodes[2]
	proxy.want(large, scattered(large, 100)...)
	w.pass(time.Second)
	for _, s := range scattered(large, 100) {
		require.Equal(t, RouteRemote, proxy.route(large, s).State)
	}
	return w, proxy
}

// A hundred shards of a million: that many are kept by a node that sends to them, where they live, and by the
// coordinator.
func TestLargeTypeKeepsWhatIsUsed(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w, proxy := largeWorld(t)
	runtime.GC()
	runtime.ReadMemStats(&after)
	id := large.ID()
	require.Equal(t, 100, proxy.m.types[id].region.slots.Made())
	require.Equal(t, 100, w.nodes[0].m.types[id].coord.records.Made())
	hosted := 0
	for _, n := range w.nodes[:2] {
		hosted += n.stats(large).Hosted
	}
	require.Equal(t, 100, hosted)
	// Three nodes, a coordinator, and the maps of this test, which take most of it.
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20))
}

// Whatever members say of shards that a node does not deal with makes nothing there.
func TestWhatOthersNameCostsNothing(t *testing.T) {
	w, proxy := largeWorld(t)
	boss, member, id := w.nodes[0], w.nodes[1], large.ID()
	const s = route.ShardID(77_777)
	h := head{Birth: testBirth, Type: id, Term: 1}
	e := held{s, fence(1, 5000)}
	placed := []placed{{home: home{held: e}, Seq: 9}}
	for _, l := range []message{
		transfer{head: h, held: e, Seq: 9, Total: 8, At: 4, Bytes: []byte("half")},
		transferAck{head: h, held: e, Seq: 9, Have: 4},
		placement{Kind: wire.KindMoveAborted, head: h, Peers: peer.Set{member.id}, Entries: placed},
		ownership{Kind: wire.KindShardsStarted, head: h, Entries: []held{e}},
		ownership{Kind: wire.KindShardsStopped, head: h, Entries: []held{e}},
		ownership{Kind: wire.KindHomesGoneAck, head: h, Entries: []held{e}},
		confirmOwner{head: h, Nonce: 1, Entries: []held{e}},
	} {
		for _, to := range []*testNode{boss, proxy} {
			require.NoError(t, w.inject(member, to, l))
		}
	}
	for _, n := range []*testNode{boss, proxy} {
		n.do(MarkedCommand{Type: id, Shard: s, Number: Number{1, 9}, From: member.id})
		n.do(RefusedCommand{Type: id, Shard: s, Term: 1, Epoch: 5000})
	}
	g := proxy.m.types[id].region
	for i := range route.ShardID(1000) { // moves that end in either way
		e := held{s + i, fence(1, 5000)}
		require.NoError(t, w.inject(boss, proxy, leaves(h, e, 9+uint32(i), member, boss)))
		require.Len(t, g.hand.observed, 1)
		var over message = ownership{Kind: wire.KindHomesGone, head: h, Entries: []held{e}}
		if i%2 == 0 {
			over = homes{head: h, Since: 9 + uint32(i), Peers: peer.Set{boss.id}, Entries: []home{{held: e}}}
		}
		require.NoError(t, w.inject(boss, proxy, over))
		require.Empty(t, g.hand.observed)
	}
	require.Equal(t, 1000, w.marks(proxy, member))
	require.Equal(t, 100, g.slots.Made())
	require.Equal(t, 100, boss.m.types[id].coord.records.Made())
	require.Less(t, boss.m.types[id].region.slots.Made(), 100)
}

// Moves that do not end have a bound, too: beyond it shards have places, and markers are written all the same.
func TestMovesThatPassByAreBounded(t *testing.T) {
	w, proxy := largeWorld(t)
	boss, member, g := w.nodes[0], w.nodes[1], proxy.m.types[large.ID()].region
	const most, more = 4 * DefaultMaxMoves, 50
	for i := range route.ShardID(most + more) {
		h := head{Birth: testBirth, Type: large.ID(), Term: 1}
		l := leaves(h, held{77_777 + i, fence(1, 5000)}, 9+uint32(i), member, boss)
		for range 2 {
			require.NoError(t, w.inject(boss, proxy, l))
		}
	}
	require.Len(t, g.hand.observed, most)
	require.Equal(t, 100+more, g.slots.Made())
	require.Equal(t, most+more, w.marks(proxy, member), "each once")
}

// leaves is what a coordinator tells of the move of a shard.
func leaves(h head, e held, seq uint32, from, to *testNode) message {
	l := placement{Kind: wire.KindMoveShards, head: h, Entries: []placed{{home: home{held: e}, Seq: seq}}}
	l.end([]peer.ID{from.id}, []peer.ID{to.id})
	return l
}

// marks returns how many markers are on their way from one node to another.
func (w *world) marks(from, to *testNode) (n int) {
	for _, p := range w.queue {
		if p.kind == wire.KindMarker && p.from == from.id && p.to == to.id {
			n++
		}
	}
	return n
}

// A region that was refused is registered again: which orders are late is known of every shard, also of those that it
// never dealt with.
func TestLateOrdersOutliveARefusedLargeType(t *testing.T) {
	newRegion := func() *region { return &region{slots: sparse.NewTable[slot](large.Shards)} }
	old := newRegion()
	old.slot(5).ended, old.slot(6).ending = fence(1, 7), true
	g := newRegion()
	g.outlive(old)
	require.Equal(t, fence(1, 7), g.peek(500_000).ended)
	require.Equal(t, fence(1, 7), g.slot(500_000).ended)
	require.True(t, g.peek(6).ending)
	again := newRegion()
	again.outlive(g)
	require.Equal(t, fence(1, 7), again.peek(3).ended)
	require.Equal(t, 1, again.slots.Made(), "of the shard that ends")
}

// A type of many shards is balanced in rounds that follow each other, as far as MaxMoves lets them, and so is one of
// few; no shard moves twice, and then it comes to rest (SHD-6).
func TestTypesAreBalancedWithoutWaiting(t *testing.T) {
	for _, shards := range []uint32{6400, 1000, 240, 64} {
		w := startWorld(t, 3)
		w.balances(DefaultRebalanceInterval)
		s := Settings{Name: "many", Shards: shards}
		w.registerAll(s)
		w.nodes[0].want(s, all(s)...)
		w.pass(time.Second)
		w.join()
		w.publish()
		w.promote()
		w.publish()
		late := w.nodes[3]
		w.pass(3 * time.Second) // what comes is its registration alone
		late.do(RegisterCommand{Settings: s})
		w.flow()
		share := int(shards) / 4
		w.pass(3 * time.Second)
		moves := count(w.nodes[0].events, MoveBegan)
		require.Equal(t, share, late.stats(s).Hosted)
		require.Equal(t, share, moves, "no shard moves twice")
		require.LessOrEqual(t, most(w.nodes[0].events), 2*DefaultMaxMoves, "one that starts at its new home counts no more")
		w.pass(3 * DefaultRebalanceInterval)
		require.Equal(t, moves, count(w.nodes[0].events, MoveBegan), "it is balanced")
	}
}

// most returns how many moves were under way at once.
func most(events []Event) (most int) {
	under := 0
	for _, e := range events {
		switch e.Kind {
		case MoveBegan:
			under++
			most = max(most, under)
		case MoveDone, MoveAborted:
			under--
		}
	}
	return most
}
