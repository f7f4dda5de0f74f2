// The pace of rounds, and of a fresh start: how soon shards are even, how often they move, and which members are waited
// for.

package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

var thousand = Settings{Name: "thousand", Shards: 1000}

// balancing returns a world of n nodes that have spread a thousand shards. The first of them, as many as ask, know
// where all of them live.
func balancing(t tester, n, ask int) *world {
	w := startWorld(t, n)
	w.balances(DefaultRebalanceInterval)
	w.registerAll(thousand)
	for _, n := range w.nodes[:ask] {
		n.want(thousand, all(thousand)...)
	}
	w.pass(5 * time.Second)
	return w
}

// comes adds a node that is Up and registers a type.
func (w *world) comes(s Settings) *testNode {
	n := w.join()
	n.balances(w.nodes[0].m.cfg.RebalanceInterval)
	w.publish()
	w.promote()
	w.publish()
	n.do(RegisterCommand{Settings: s})
	w.flow()
	return n
}

// Members that come one after the other, within the time for which they are waited for, are counted together: each
// shard moves once, and no more of them than must (SHD-6).
func TestMembersThatComeTogetherAreCountedTogether(t *testing.T) {
	w := balancing(t, 2, 1)
	boss := w.nodes[0]
	require.Zero(t, count(boss.events, MoveBegan))
	for range 3 {
		w.comes(thousand)
		w.pass(settleTime * 9 / 10)
	}
	require.Zero(t, count(boss.events, MoveBegan), "more may come")
	w.pass(2 * time.Second)
	for _, n := range w.nodes {
		require.Len(t, n.hosted, 200)
	}
	require.Equal(t, 600, count(boss.events, MoveBegan))
	for range 20 { // one every now and then, without end: the balance does not wait for ever
		w.comes(thousand)
		w.pass(settleTime * 9 / 10)
	}
	require.Greater(t, count(boss.events, MoveBegan), 600)
}

// The moves of a round begin a few at a time, each part behind a pause that is as long as what the last one took asks
// for: twice as long where steps wait for a processor, half as long where they take as long as a network makes them
// (SHD-6).
func TestRoundsBeginInParts(t *testing.T) {
	require.Equal(t, 8, partOf(1000))
	require.Equal(t, 800, partOf(100_000), "MaxMoves and bytes bound it then")
	for _, c := range []struct{ took, pause time.Duration }{{0, DefaultBatchDelay}, {10 * time.Millisecond,
		20 * time.Millisecond}, {40 * time.Millisecond, longPause}, {2 * time.Second, time.Second}} {
		w := balancing(t, 2, 1)
		boss := w.nodes[0]
		w.slowStop = true
		late := w.comes(thousand)
		for count(boss.events, MoveBegan) == 0 {
			w.pass(time.Millisecond)
		}
		for part := 1; part < 40; part++ { // rounds of twenty: the third part of each is half as large
			begun := count(boss.events, MoveBegan)
			require.Equal(t, part/3*20+part%3*8, begun)
			w.pass(c.took)
			require.Equal(t, begun, count(boss.events, MoveBegan), "they have not ended")
			for _, n := range w.nodes {
				n.confirm()
			}
			w.pass(c.pause - time.Nanosecond)
			require.Equal(t, begun, count(boss.events, MoveBegan), "%v behind moves that took %v", c.pause, c.took)
			require.Len(t, late.hosted, begun)
			w.pass(time.Nanosecond)
		}
	}
}

// A round in which moves come to nothing is followed behind a pause, which gets longer up to the interval while none of
// its moves comes about. When what hindered them is over, all is even soon (SHD-6).
func TestRoundsThatFailArePaused(t *testing.T) {
	w := balancing(t, 3, 3)
	boss, ill := w.nodes[0], w.nodes[2]
	ill.cut = map[peer.ID]bool{} // its markers do not come, and nothing else of it
	for _, n := range w.nodes {
		ill.cut[n.id] = true
	}
	late := w.comes(thousand)
	w.pass(2 * time.Minute)
	rounds := count(boss.events, MoveAborted)/leastPart + 1
	require.Empty(t, late.hosted)
	require.Positive(t, count(boss.events, MoveAborted))
	// Each takes MarkTime; behind it pauses of 1, 2, 4, 8, 10, 10 s.
	require.InDelta(t, 10, rounds, 2)
	ill.cut = nil
	w.pass(DefaultRebalanceInterval + 5*time.Second)
	require.Len(t, late.hosted, 250)
}

// Which version a member speaks that has come is known a little later than that it has: the balance does not wait for
// its interval then (SHD-6).
func TestBalanceWaitsForAVersion(t *testing.T) {
	w := balancing(t, 2, 1)
	known := false
	w.nodes[0].m.cfg.Moves = func(id peer.ID) bool { return known || id != w.nodes[2].id }
	late := w.comes(thousand)
	w.pass(2 * time.Second)
	require.Empty(t, late.hosted)
	known = true
	w.pass(2 * time.Second)
	require.Len(t, late.hosted, 333)
}

// A strategy that is never content has each shard moved once, and is asked again at the interval (SHD-6).
func TestStrategyThatIsNeverContent(t *testing.T) {
	s := &answers{rebalance: func(v *strategy.View) (list []strategy.Move, _ error) {
		for i, r := range v.Regions {
			if len(r.Shards) > 0 && len(v.Moving) == 0 {
				list = append(list, strategy.Move{Shard: r.Shards[0], From: r.ID, To: v.Regions[(i+1)%3].ID})
			}
		}
		return list, nil
	}}
	w := placedBy(t, 3, s)
	boss := w.nodes[0]
	w.pass(5 * time.Second)
	begun := count(boss.events, MoveBegan)
	require.Positive(t, begun)
	require.LessOrEqual(t, begun, 30)
	w.pass(10 * time.Second)
	require.LessOrEqual(t, count(boss.events, MoveBegan), 2*begun)
}

// On a fresh start an eager type waits for members that come together, and is even at once; what a node sends to is
// given a home meanwhile; and a member that does not come in the end is waited for no longer than settleMost times
// (SHD-12).
func TestFreshStartWaitsForWhoComesTogether(t *testing.T) {
	w := newWorld(t)
	starts := func() *testNode {
		n := w.join()
		n.balances(DefaultRebalanceInterval)
		w.publish()
		w.promote()
		w.publish()
		n.do(RegisterCommand{Settings: orders})
		n.do(EagerCommand{orders.ID()})
		return n
	}
	first := starts()
	first.want(orders, 7)
	w.flow()
	require.Len(t, first.hosted, 1, "who sends waits for nobody")
	for range 4 {
		w.pass(settleTime / 2)
		require.Len(t, first.hosted, 1)
		starts()
	}
	w.pass(2 * settleTime)
	for _, n := range w.nodes {
		require.Len(t, n.hosted, 6)
		w.known(orders)
	}
	require.Zero(t, count(first.events, MoveBegan), "it was even at once")

	w = newWorld(t)
	first = starts()
	w.join() // and never gets Up
	w.publish()
	w.pass((settleMost - 1) * settleTime)
	require.Empty(t, first.hosted)
	w.pass(settleTime)
	require.Len(t, first.hosted, 30)

	w = newWorld(t)
	first = starts()
	w.set(first.id, membership.PreparingForShutdown)
	w.publish()
	w.pass(settleMost * settleTime) // in which every deadline is cleared: the world looks
	require.Empty(t, first.hosted, "the whole cluster stops meanwhile")
}

// An eager type of a running cluster waits for no newcomer: what was lost gets a home as soon as it may (SHD-12).
func TestEagerTypeOfARunningClusterWaitsForNobody(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	for _, n := range w.nodes {
		n.do(EagerCommand{orders.ID()})
	}
	w.pass(settleMost * settleTime)
	w.known(orders)
	lost := w.nodes[2]
	had := len(lost.hosted)
	lost.crash()
	w.set(lost.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime - time.Second)
	w.join() // and is Joining
	w.publish()
	w.pass(time.Second + time.Millisecond)
	require.Len(t, w.nodes[0].hosted, 10+had/2)
}

// A coordinator term that ends amid the rounds leaves nothing behind: the next one goes on with what it finds, and each
// shard moves once in both together (SHD-6).
func TestNextReignGoesOnWithTheRounds(t *testing.T) {
	w := balancing(t, 4, 4)
	boss, next := w.nodes[0], w.nodes[1]
	late := w.comes(thousand)
	for len(late.hosted) == 0 {
		w.pass(time.Millisecond)
	}
	require.Less(t, len(late.hosted), 200, "amid the rounds")
	require.NoError(t, boss.m.Do(w.now, LeaveCommand{}))
	boss.collect()
	w.pass(time.Second)
	require.True(t, boss.drained)
	for _, st := range []membership.Status{membership.Leaving, membership.Exiting, membership.Removed} {
		w.set(boss.id, st)
		w.publish()
		w.pass(100 * time.Millisecond)
	}
	w.pass(4 * time.Second)
	for _, n := range w.nodes[1:] {
		require.Len(t, n.hosted, 250)
	}
	moves := map[route.ShardID]int{}
	for _, e := range slices.Concat(boss.events, next.events) {
		if e.Kind == MoveBegan && e.Home != boss.id {
			moves[e.Shard]++
		}
	}
	for s, n := range moves { // each alone: no order
		require.Equal(t, 1, n, "shard %d", s)
	}
}
