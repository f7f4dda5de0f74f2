// The scenarios of sharding, step by step.

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

// Scenario 1 of the concepts: a message to an unknown shard that comes to live here (SHD-3).
func TestScenarioUnknownShardLocalHome(t *testing.T) {
	w := startWorld(t, 1)
	n := w.nodes[0]
	n.do(RegisterCommand{Settings: orders})
	require.Equal(t, RouteUnknown, n.route(orders, 3).State)
	// 1, 2: the message is parked and the region asks. 3: the coordinator, here itself, makes this the home.
	n.want(orders, 3)
	// 4: the shard was created here before the answer, and it is the local route.
	require.Contains(t, n.hosted, key(orders.ID(), 3))
	r := n.route(orders, 3)
	require.Equal(t, RouteLocal, r.State)
	require.Equal(t, n.id, r.Home)
	require.Equal(t, uint64(testBirth), r.Fence.Birth())
	require.Equal(t, uint32(1), r.Fence.Term())
	require.Empty(t, w.queue, "a node talks to itself without mail")
	// 6: from now on the coordinator is not asked.
	n.want(orders, 3)
	require.Equal(t, 0, n.stats(orders).Wanted)
}

// Scenario 2: a message to an unknown shard that lives on another node (SHD-3).
func TestScenarioUnknownShardRemoteHome(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	sc, sr1 := w.nodes[0], w.nodes[1]
	sc.want(orders, 9) // the first shard goes to the first region, the coordinator's own
	require.Equal(t, RouteLocal, sc.route(orders, 9).State)
	// 1, 2: SR1 does not know it and asks.
	sr1.want(orders, 9)
	require.Len(t, w.queue, 1)
	require.Equal(t, wire.KindAskHomes, w.queue[0].kind)
	// 3: the coordinator answers with the home and its fence; 4, 5: SR1 sends there from now on.
	w.deliver(0)
	require.Equal(t, wire.KindHomes, w.queue[0].kind)
	w.deliver(0)
	r := sr1.route(orders, 9)
	require.Equal(t, RouteRemote, r.State)
	require.Equal(t, sc.id, r.Home)
	require.Equal(t, sc.hosted[key(orders.ID(), 9)], r.Fence)
	require.Empty(t, w.queue)
}

// The chosen region confirms before the home is disclosed to anyone (SHD-3).
func TestHomeIsToldOnlyAfterItsConfirmation(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.nodes[0].want(orders, 0)
	w.flow()
	w.nodes[2].want(orders, 1) // goes to the second region
	w.deliver(0)
	require.Len(t, w.queue, 1)
	require.Equal(t, wire.KindHostShards, w.queue[0].kind)
	require.Equal(t, w.nodes[1].id, w.queue[0].to)
	require.Empty(t, w.nodes[1].hosted)
	w.deliver(0)
	require.Contains(t, w.nodes[1].hosted, key(orders.ID(), 1))
	require.Equal(t, RouteLocal, w.nodes[1].route(orders, 1).State)
	require.Equal(t, RouteUnknown, w.nodes[2].route(orders, 1).State)
	require.Equal(t, wire.KindShardsStarted, w.queue[0].kind)
	w.deliver(0)
	w.deliver(0)
	require.Equal(t, RouteRemote, w.nodes[2].route(orders, 1).State)
}

// An owner that does not confirm keeps the shard: the order is repeated, and no other region gets it.
func TestUnconfirmedOwnerKeepsTheShard(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.nodes[0].want(orders, 0)
	w.flow()
	w.nodes[0].cut[w.nodes[1].id] = true
	w.nodes[0].want(orders, 1)
	w.pass(90 * time.Second)
	require.Empty(t, w.nodes[1].hosted)
	require.NotContains(t, w.nodes[2].hosted, key(orders.ID(), 1))
	w.nodes[0].cut[w.nodes[1].id] = false
	w.pass(3 * time.Second)
	require.Contains(t, w.nodes[1].hosted, key(orders.ID(), 1))
	w.agree(orders)
}

// A thousand shards of a fresh cluster take a handful of mails and spread evenly (SHD-6).
func TestThousandShardsInOneBatch(t *testing.T) {
	w := startWorld(t, 3)
	s := Settings{Name: "many", Shards: 1000}
	w.registerAll(s)
	w.mails = map[wire.Kind]int{}
	w.nodes[2].want(s, all(s)...)
	w.flow()
	w.agree(s)
	for _, n := range w.nodes {
		require.InDelta(t, 333, len(n.hosted), 1)
	}
	total := 0
	for _, n := range w.mails {
		total += n
	}
	require.LessOrEqual(t, total, 8, "%v", w.mails)
	require.Equal(t, 0, w.nodes[2].stats(s).Wanted)
}

// Questions within BatchDelay share a message (SHD-1).
func TestQuestionsAreBatched(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.pass(time.Second)
	w.mails = map[wire.Kind]int{}
	for s := range route.ShardID(20) {
		w.nodes[1].want(orders, s)
	}
	w.pass(100 * time.Millisecond)
	require.Equal(t, 2, w.mails[wire.KindAskHomes])
	w.agree(orders)
	require.Equal(t, 20, len(w.nodes[0].hosted)+len(w.nodes[1].hosted))
}

// Lost mail of every kind is repeated: nothing arrives for a while, and everything is found afterwards.
func TestLossIsRepeated(t *testing.T) {
	w := startWorld(t, 3)
	for _, n := range w.nodes {
		n.do(RegisterCommand{Settings: orders})
		n.want(orders, all(orders)...)
	}
	for range 40 {
		w.queue = nil
		w.tickAt(w.now + 300*time.Millisecond)
	}
	w.pass(5 * time.Second)
	w.agree(orders, all(orders)...)
}

// What is still under way is not said again, however long that takes: its carrier repeats it. When it has arrived and
// is not answered, it is (FD-4).
func TestWhatIsUnderWayIsNotRepeated(t *testing.T) {
	w := startWorld(t, 3)
	var carried time.Duration = -1 // what was sent later than this is under way
	for _, n := range w.nodes {
		n.m.cfg.UnderWay = func(_ peer.ID, since time.Duration) (is, lost bool) { return since > carried, false }
		n.do(RegisterCommand{Settings: orders})
		n.want(orders, all(orders)...)
	}
	w.queue = nil
	for range 40 {
		w.tickAt(w.now + 300*time.Millisecond)
		require.Empty(t, w.queue)
	}
	carried = w.now + time.Hour
	w.pass(5 * time.Second)
	w.agree(orders, all(orders)...)
}

// A new coordinator allocates nothing until every member of the role has reported (owners hold the truth) (SHD-8).
func TestNewCoordinatorWaitsForEveryReport(t *testing.T) {
	w := startWorld(t, 4)
	w.registerAll(orders)
	w.nodes[1].want(orders, all(orders)[:20]...)
	w.pass(time.Second)
	owned := len(w.nodes[3].hosted)
	require.Positive(t, owned)
	// The coordinator leaves gracefully; the third node does not hear the second.
	w.nodes[0].do(LeaveCommand{})
	w.pass(time.Second)
	require.True(t, w.nodes[0].drained)
	w.nodes[1].cut[w.nodes[3].id] = true
	w.set(w.nodes[0].id, membership.Leaving)
	w.publish()
	w.promote()
	w.publish()
	w.nodes[2].want(orders, all(orders)[20:]...)
	w.pass(5 * time.Second)
	st := w.nodes[1].stats(orders)
	require.NotNil(t, st.Leading)
	require.False(t, st.Leading.Ready)
	require.Equal(t, peer.SetOf(w.nodes[3].id), st.Leading.Missing)
	require.Equal(t, RouteUnknown, w.nodes[2].route(orders, 25).State)
	// What has been reported is disclosed already.
	w.nodes[1].cut = map[peer.ID]bool{}
	w.pass(5 * time.Second)
	require.True(t, w.nodes[1].stats(orders).Leading.Ready)
	require.Equal(t, owned, min(owned, len(w.nodes[3].hosted)), "an owner keeps what it reported")
	w.promote()
	w.publish()
	require.True(t, w.nodes[0].left)
	for _, n := range w.nodes[1:] {
		n.want(orders, all(orders)...)
	}
	w.pass(5 * time.Second)
	w.agree(orders, all(orders)...)
}

// A member that joins while the coordinator collects is waited for too, and one without the type answers.
func TestJoinerWhileCollectingCounts(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.pass(time.Second)
	w.nodes[0].crash()
	w.set(w.nodes[0].id, membership.Down)
	w.publish()
	w.promote()
	joiner := w.join()
	w.publish()
	for _, n := range w.nodes {
		n.cut[joiner.id] = true
	}
	w.pass(DefaultTakeoverTime + 5*time.Second)
	require.Equal(t, peer.SetOf(joiner.id), w.nodes[1].stats(orders).Leading.Missing)
	w.nodes[1].cut = map[peer.ID]bool{}
	w.pass(5 * time.Second)
	require.True(t, w.nodes[1].stats(orders).Leading.Ready)
	require.Nil(t, joiner.m.types[orders.ID()].region)
	require.Equal(t, uint32(2), joiner.m.types[orders.ID()].promise.term)
}

// The takeover time is honoured to the tick, for owners and for a coordinator that is an owner too.
func TestTakeoverTime(t *testing.T) {
	for _, victim := range []int{0, 2} {
		w := startWorld(t, 3)
		w.registerAll(orders)
		for _, n := range w.nodes {
			n.want(orders, all(orders)...)
		}
		w.pass(time.Second)
		dead := w.nodes[victim]
		var was route.ShardID
		for s := range route.ShardID(orders.Shards) {
			if _, ok := dead.hosted[key(orders.ID(), s)]; ok {
				was = s
			}
		}
		dead.silence()
		w.set(dead.id, membership.Down)
		w.publish()
		seen := w.now
		w.pass(time.Second)
		w.promote()
		w.publish()
		asker := w.nodes[1]
		require.Equal(t, RouteUnknown, asker.route(orders, was).State, "a route to a lost owner is forgotten")
		asker.want(orders, was)
		w.pass(seen + DefaultTakeoverTime - w.now - 1)
		require.Equal(t, RouteUnknown, asker.route(orders, was).State)
		w.pass(3 * time.Second)
		require.NotEqual(t, RouteUnknown, asker.route(orders, was).State)
		require.Less(t, w.now-seen, DefaultTakeoverTime+4*time.Second)
	}
}

// Down alone never frees a shard: without removal the takeover time does not end (a Down member may be heard again by
// nobody, but a successor must not start before all have seen the loss).
func TestDownWithoutRemovalFreesNothing(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.nodes[0].want(orders, 0, 1, 2)
	w.pass(time.Second)
	w.nodes[2].silence()
	w.set(w.nodes[2].id, membership.Down)
	w.publish()
	for s := range route.ShardID(3) {
		w.nodes[0].want(orders, s)
	}
	w.pass(2 * DefaultTakeoverTime)
	require.Equal(t, 1, w.nodes[0].stats(orders).Leading.Orphans)
	w.promote()
	w.publish()
	w.pass(time.Second)
	require.Equal(t, 0, w.nodes[0].stats(orders).Leading.Orphans)
	w.pass(3 * time.Second)
	for s := range route.ShardID(3) {
		require.NotEqual(t, RouteUnknown, w.nodes[0].route(orders, s).State)
	}
}

// A coordinator that crashes between the order and the confirmation leaves a shard that its owner reports (SHD-2).
func TestCoordinatorCrashMidAllocation(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.nodes[0].want(orders, 0)
	w.flow()
	w.nodes[2].want(orders, 1)
	w.deliver(0) // the question
	w.deliver(0) // the order: the second node hosts
	f := w.nodes[1].hosted[key(orders.ID(), 1)]
	require.False(t, f.IsZero())
	w.queue = nil
	w.nodes[0].crash()
	w.set(w.nodes[0].id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(5 * time.Second)
	require.False(t, w.nodes[1].stats(orders).Leading.Ready)
	r := w.nodes[2].route(orders, 1)
	require.Equal(t, RouteRemote, r.State, "what is reported is told while others are waited for")
	require.Equal(t, f, r.Fence, "a fence changes with the owner only")
	w.pass(DefaultTakeoverTime)
	require.True(t, w.nodes[1].stats(orders).Leading.Ready)
	w.nodes[2].want(orders, 0)
	w.pass(time.Second)
	require.Equal(t, uint32(2), w.nodes[2].route(orders, 0).Fence.Term())
	w.agree(orders)
}
