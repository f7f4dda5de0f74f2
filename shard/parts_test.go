// Parts of transfers: how much is on its way, which shards wait for room, and how many moves begin.

package shard

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// handsOver makes every node answer a stop call at once, with a state of that many bytes for each shard. Time passes as
// the mail says.
func (w *world) handsOver(size int) {
	for _, n := range w.nodes {
		for _, s := range slices.Clone(n.stops) {
			n.answer(rest(s.Shard, s.Fence, bytes.Repeat([]byte{byte(s.Shard)}, size)))
		}
	}
}

// unsure returns the bytes of transfers that are on their way to a node; to all when it is nil.
func (w *world) unsure(from, to *testNode) (n int) {
	for _, p := range w.queue {
		if p.kind == wire.KindTransfer && p.from == from.id && (to == nil || p.to == to.id) {
			l, err := readMessage(p.kind, p.body)
			require.NoError(w.t, err)
			n += len(l.(transfer).Bytes)
		}
	}
	return n
}

// A node that gives its shards back sends little at once, to one member and to all, so that heartbeats on the same
// connections are not late; what came before goes on first, so that no shard lives nowhere for longer than it takes to
// hand it over (SHD-12).
func TestTransfersLeaveRoomForHeartbeats(t *testing.T) {
	const size = 600 << 10
	w := movable(t, 7)
	w.slowStop = true
	owner := w.nodes[1]
	lived := len(owner.hosted)
	owner.do(DrainCommand{On: true})
	most, all := 0, 0
	for len(owner.hosted) > 0 || len(w.queue) > 0 {
		w.handsOver(size)
		for _, n := range w.nodes {
			most = max(most, w.unsure(owner, n))
		}
		all = max(all, w.unsure(owner, nil))
		if len(w.queue) == 0 {
			w.tickAt(w.now + 100*time.Millisecond)
			continue
		}
		w.deliver(0)
	}
	require.LessOrEqual(t, most, maxUnsure)
	require.LessOrEqual(t, all, maxUnsureAll)
	require.Greater(t, most, maxUnsure/2, "the network is used")
	moved := w.nodes[0].m.Counters().Moves
	require.Equal(t, []uint64{uint64(lived), uint64(lived)}, []uint64{moved.Begun, moved.Done})
	require.Empty(t, owner.m.sends)
}

// Of two transfers to one member the one that began first is whole before the other one takes its bytes.
func TestTransfersGoOneAfterTheOther(t *testing.T) {
	w := movable(t, 3)
	w.slowStop = true
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	shards := slices.Collect(owner.m.types[orders.ID()].region.hosted.All)[:2]
	for _, s := range shards {
		require.NoError(t, boss.move(s, next))
	}
	w.flow()
	w.handsOver(4 * maxUnsure)
	h := next.m.types[orders.ID()].region.hand
	for h.kept[shards[0]].bytes == nil {
		if c := h.coming[shards[1]]; c != nil {
			require.LessOrEqual(t, len(c.bytes), maxUnsure)
		}
		w.deliver(0)
	}
	w.flow()
	require.Contains(t, next.hosted, key(orders.ID(), shards[1]))
}

// Large states move once each: no more moves begin than bytes find room, and none comes back (SHD-12).
func TestLargeStatesMoveOnce(t *testing.T) {
	const size = 250 << 10
	w := movable(t, 2)
	w.slowStop = true
	boss, owner := w.nodes[0], w.nodes[1]
	boss.m.pace = pace{}
	for _, n := range w.nodes {
		n.m.cfg.MaxHandOver = size
	}
	lived := len(owner.hosted)
	require.Greater(t, lived, 4, "more than the other one has room for")
	owner.do(DrainCommand{On: true})
	most := 0
	for steps := 0; boss.m.Counters().Moves.Done < uint64(lived); steps++ {
		require.Less(t, steps, 10_000)
		most = max(most, boss.stats(orders).Leading.Moves*size)
		w.handsOver(size)
		if len(w.queue) == 0 {
			w.tickAt(w.now + 100*time.Millisecond)
			continue
		}
		w.deliver(0)
	}
	c := boss.m.Counters().Moves
	require.Equal(t, []uint64{uint64(lived), uint64(lived), 0, 0}, []uint64{c.Begun, c.Done, c.Aborted, c.Returned})
	require.Zero(t, count(owner.events, MoveUntaken))
	require.LessOrEqual(t, most, 8*size, "the first guess; then as many as are known to fit")
	require.Zero(t, boss.m.pace.under)
}

// While one shard hands over more than the pace allows, the others stay where they are and are served; the coordinator
// begins the next move when that one is over. A slow network makes it begin fewer, a fast one more.
func TestOthersAreServedMeanwhile(t *testing.T) {
	w := movable(t, 3)
	w.slowStop = true
	boss, owner := w.nodes[0], w.nodes[1]
	boss.m.pace = pace{guess: firstPace}
	owner.do(DrainCommand{On: true})
	w.flow()
	require.Equal(t, 1, boss.stats(orders).Leading.Moves)
	served := 0
	for s := range owner.m.types[orders.ID()].region.hosted.All {
		if owner.route(orders, s).State == RouteLocal {
			served++
		}
	}
	require.Equal(t, len(owner.hosted)-1, served)

	w.handsOver(firstPace)
	w.now += 2 * slowTransfer
	w.flow()
	require.Equal(t, firstPace/2, boss.m.pace.window)
	require.Equal(t, 1, boss.stats(orders).Leading.Moves, "the next one")
	for range 3 {
		w.handsOver(firstPace)
		w.flow()
	}
	require.Greater(t, boss.stats(orders).Leading.Moves, 1)
}

// On a link that carries 20 Mbit a second a member gives its shards back, and only a few of them wait at a time: those
// that go first over the link are fast, which tells nothing of the many that wait behind them (SHD-12).
func TestFewWaitForANarrowLink(t *testing.T) {
	const second, state = 20 << 20 / 8, 256 << 10 // bytes
	hundred := Settings{Name: "hundred", Shards: 100}
	w := startWorld(t, 3)
	w.registerAll(hundred)
	for _, n := range w.nodes {
		n.want(hundred, all(hundred)...)
	}
	w.pass(time.Second)
	w.slowStop = true
	boss, owner := w.nodes[0], w.nodes[1]
	boss.m.pace = pace{}
	lived := len(owner.hosted)
	began, longest := map[route.ShardID]time.Duration{}, time.Duration(0)
	start := w.now
	owner.do(DrainCommand{On: true})
	for done := 0; done < lived; {
		for _, s := range slices.Clone(owner.stops) {
			began[s.Shard] = w.now
			size := state * [...]int{1, 1, 1, 1, 3, 4, 2, 4}[(len(began)-1)%8]
			left := rest(s.Shard, s.Fence, make([]byte, size))
			left.Type = hundred.ID()
			owner.answer(left)
		}
		before := len(owner.events)
		if len(w.queue) == 0 {
			w.tickAt(w.now + time.Millisecond)
		} else if p := w.queue[0]; p.kind == wire.KindTransfer {
			w.tickAt(w.now + time.Duration(len(p.body))*time.Second/second)
			w.deliver(0)
		} else {
			w.deliver(0)
		}
		for _, e := range owner.events[before:] {
			if e.Kind == MoveHandedOver {
				longest = max(longest, w.now-began[e.Shard])
				done++
			}
		}
	}
	w.flow()
	require.Equal(t, uint64(lived), boss.m.Counters().Moves.Done)
	require.Less(t, longest, 5*slowTransfer/2, "none waits for most of the others")
	require.Less(t, w.now-start, 8*time.Second, "the link is used")
}

// A fast transfer says that the network carries what was under way when its move began, and nothing of more (SHD-12).
func TestPaceGrowsByWhatWasUnderWay(t *testing.T) {
	var p pace
	for _, c := range []struct{ ahead, most int }{{firstPace / 2, firstPace}, {firstPace * 3 / 4, firstPace * 3 / 2},
		{firstPace * 3 / 4, firstPace * 3 / 2}, {10 * firstPace, 3 * firstPace}, {10 * firstPace, 4 * firstPace}} {
		p.follow(&move{ahead: c.ahead}, time.Second, sendPart, fastTransfer-1, 4*firstPace)
		require.Equal(t, c.most, p.most())
	}
	p.follow(&move{ahead: 10 * firstPace}, time.Second, sendPart, fastTransfer, 8*firstPace)
	require.Equal(t, 4*firstPace, p.most(), "neither fast nor slow")
}

// What finds no room waits for it: its owner asks with little, again and again, and hands it over as soon as there is
// room. From one that does not know waiting it is refused, as ever (SHD-12).
func TestTransferWaitsForRoom(t *testing.T) {
	for _, old := range []bool{false, true} {
		w := movable(t, 3)
		w.slowStop = true
		boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
		const size = 64 << 10
		next.m.cfg.MaxHandOver = size
		if old {
			next.m.cfg.Costs = nil
		}
		shards := slices.Collect(owner.m.types[orders.ID()].region.hosted.All)[:5]
		for _, s := range shards {
			require.NoError(t, boss.move(s, next))
		}
		w.flow()
		w.handsOver(size)
		var hosts []segment
		for len(w.queue) > 0 {
			hosts = append(hosts, w.hold(wire.KindHostKept)...)
			if len(w.queue) > 0 {
				w.deliver(0)
			}
		}
		h := next.m.types[orders.ID()].region.hand
		require.Len(t, h.kept, 4)
		if old {
			require.Equal(t, 1, count(owner.events, MoveUntaken))
			continue
		}
		owner.m.Tick(w.now + time.Second)
		owner.collect()
		require.Equal(t, firstPart, w.unsure(owner, next), "it asks")
		w.queue = append(w.queue, hosts...)
		w.pass(3 * time.Second)
		require.Zero(t, count(owner.events, MoveUntaken))
		for _, s := range shards {
			require.Contains(t, next.hosted, key(orders.ID(), s))
		}
		require.Zero(t, h.size)
	}
}

// The next coordinator knows from what it gave or took how much a move hands over, and does not begin with a guess that
// parks more shards than the network carries (SHD-12).
func TestNextCoordinatorKnowsWhatMovesHandOver(t *testing.T) {
	const size = 4 * maxUnsure
	w := movable(t, 4)
	w.slowStop = true
	boss, owner, next, other := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	for _, n := range w.nodes {
		n.m.pace = pace{}
	}
	require.NoError(t, boss.move(of(owner), next))
	w.flow()
	w.handsOver(size)
	w.flow()
	for _, n := range []*testNode{boss, owner, next} {
		require.Equal(t, size, n.m.types[orders.ID()].typical)
	}
	require.Zero(t, other.m.types[orders.ID()].typical)
	boss.crash()
	w.set(boss.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(time.Minute)
	require.Equal(t, size, owner.m.types[orders.ID()].coord.moves.expected())
}

// When an owner is gone, the room of its transfer is there for others.
func TestRoomOfAnOwnerThatIsGone(t *testing.T) {
	w, _, _ := begunMove(t, 4)
	owner, next := w.nodes[1], w.nodes[2]
	w.flow()
	w.handsOver(4 * maxUnsure)
	for next.m.types[orders.ID()].region.hand.size == 0 {
		w.deliver(0)
	}
	owner.crash()
	w.set(owner.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	require.Zero(t, next.m.types[orders.ID()].region.hand.size)
	require.Empty(t, next.m.types[orders.ID()].region.hand.coming)
}

// Only what an owner says of a move that is under way counts.
func TestCostOfNoMove(t *testing.T) {
	w, s, _ := begunMove(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	f := owner.hosted[key(orders.ID(), s)]
	for _, c := range []struct {
		from *testNode
		cost moveCost
	}{{next, moveCost{at(1), held{s, f}, 1, 9 << 20, 1}}, {owner, moveCost{at(1), held{s, f}, 2, 9 << 20, 1}},
		{owner, moveCost{at(1), held{s, fence(1, 1)}, 1, 9 << 20, 1}},
		{owner, moveCost{at(1), held{s + 1, f}, 1, 9 << 20, 1}}} {
		w.hand(segment{c.from.id, boss.id, wire.KindMoveCost, c.cost.append(nil)})
	}
	require.Zero(t, boss.m.types[orders.ID()].typical)
	w.hand(segment{owner.id, boss.id, wire.KindMoveCost, moveCost{at(1), held{s, f}, 1, 9 << 20, 1}.append(nil)})
	require.Equal(t, 9<<20, boss.m.types[orders.ID()].typical)
	boss.m.endCoordinator(boss.m.types[orders.ID()])
	require.Zero(t, boss.m.pace.under)
}

// A coordinator that speaks an earlier version is sent nothing of what moves cost.
func TestNoCostsForAnEarlierVersion(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	owner.m.cfg.Costs = func(id peer.ID) bool { return id != boss.id }
	require.NoError(t, boss.move(s, next))
	w.flow()
	require.Zero(t, w.mails[wire.KindMoveCost])
	require.NoError(t, boss.move(s, owner))
	w.flow()
	require.Equal(t, 1, w.mails[wire.KindMoveCost])
}

// The pace of a leaver's moves never gets lower than what it has time for: transfers that are slow together count as
// one, those of few bytes not at all, and the longer a member leaves the more of its shards may move at once (SHD-9).
func TestPaceOfALeaver(t *testing.T) {
	w := movable(t, 3)
	boss := w.nodes[0]
	var p pace
	for range 8 {
		p.follow(&move{}, time.Second, sendPart, 2*slowTransfer, 1<<25)
	}
	require.Equal(t, firstPace, p.most(), "few bytes")
	for range 8 {
		p.follow(&move{}, time.Second, sendPart+1, 2*slowTransfer, 1<<25)
	}
	require.Equal(t, firstPace/2, p.most(), "all of them began before it shrank")
	p.follow(&move{began: time.Second}, 2*time.Second, sendPart+1, 2*slowTransfer, 1<<25)
	require.Equal(t, firstPace/4, p.most())

	mv, patience := boss.m.types[orders.ID()].coord.moves, boss.m.cfg.DrainPatience
	stays, leaver := &client{}, &client{since: boss.m.now}
	leaver.drains = true
	require.Zero(t, mv.hurry(stays))
	var got []int
	for range 4 {
		got = append(got, mv.hurry(leaver))
		boss.m.now += patience
	}
	require.Equal(t, []int{firstPace / 2, firstPace, 2 * firstPace, 4 * firstPace}, got)
	boss.m.now += time.Hour
	require.LessOrEqual(t, mv.hurry(leaver), 2*boss.m.cfg.MaxHandOver)
}
