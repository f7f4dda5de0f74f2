// Moves: a shard that leaves an owner which lives, step by step.

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

// movable starts a world of n nodes that all know where every shard lives.
func movable(t tester, n int) *world {
	w := startWorld(t, n)
	w.registerAll(orders)
	for _, n := range w.nodes {
		n.want(orders, all(orders)...)
	}
	w.pass(time.Second)
	w.agree(orders, all(orders)...)
	return w
}

// of returns a shard that lives at a node.
func of(n *testNode) route.ShardID {
	for _, s := range all(orders) {
		if _, ok := n.hosted[key(orders.ID(), s)]; ok {
			return s
		}
	}
	return route.NoShard
}

// begunMove returns a world of n nodes in which a shard of the second has begun to move to the third, and the fence
// under which it lives. Handlers stop when the test says so.
func begunMove(t tester, n int) (w *world, s route.ShardID, f route.Fence) {
	w = movable(t, n)
	w.slowStop = true
	owner := w.nodes[1]
	s = of(owner)
	f = owner.hosted[key(orders.ID(), s)]
	require.NoError(t, w.nodes[0].move(s, w.nodes[2]))
	return w, s, f
}

func (n *testNode) move(s route.ShardID, to *testNode) error {
	err := n.m.Do(n.w.now, MoveCommand{orders.ID(), s, to.id})
	n.collect()
	return err
}

// take delivers the first mail or marker of a kind and reports whether there was one.
func (w *world) take(k wire.Kind, to *testNode) bool {
	i := slices.IndexFunc(w.queue, func(p segment) bool { return p.kind == k && (to == nil || p.to == to.id) })
	if i >= 0 {
		w.deliver(i)
	}
	return i >= 0
}

// hold sets mail of some kinds aside and returns it.
func (w *world) hold(kinds ...wire.Kind) (list []segment) {
	w.queue = slices.DeleteFunc(w.queue, func(p segment) bool {
		if slices.Contains(kinds, p.kind) {
			list = append(list, p)
			return true
		}
		return false
	})
	return list
}

func (n *testNode) answer(c HandOverCommand) {
	delete(n.hosted, key(c.Type, c.Shard))
	n.stops = slices.DeleteFunc(n.stops, func(s StoppedCommand) bool { return s.Shard == c.Shard })
	n.do(c)
}

// A move, step by step: regions park and mark, the owner waits for all markers, hands over what it could not work off,
// and the next owner gets it before the home is disclosed (SHD-12).
func TestMoveStepByStep(t *testing.T) {
	w, s, before := begunMove(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	k := key(orders.ID(), s)
	late := slices.Clone(w.queue)
	require.Equal(t, RouteMoving, boss.route(orders, s).State, "the coordinator's own region parks at once")
	require.Equal(t, owner.id, boss.route(orders, s).Home)
	require.True(t, w.take(wire.KindMoveShard, owner))
	require.Equal(t, RouteMoving, owner.route(orders, s).State, "the owner's callers park at once")
	require.True(t, w.take(wire.KindMoveShards, next))
	require.Equal(t, RouteMoving, next.route(orders, s).State)
	require.True(t, w.take(wire.KindMarker, owner))
	require.Empty(t, owner.stops, "one marker is missing")
	require.True(t, w.take(wire.KindMarker, owner))
	require.Len(t, owner.stops, 1)
	w.flow()
	require.Equal(t, before, owner.hosted[k], "nobody else gets it before it has stopped")

	left := bytes.Repeat([]byte("x"), 10*maxPart+5)
	owner.answer(rest(s, before, left))
	var got []byte
	for len(w.queue) > 0 {
		if w.queue[0].kind == wire.KindShardsMoved {
			h := next.m.types[orders.ID()].region.hand
			require.Nil(t, owner.m.types[orders.ID()].region.hand.out[s], "dropped before the stop is confirmed")
			got = h.kept[s].bytes
		}
		w.deliver(0)
	}
	require.Equal(t, left, got)
	after := next.hosted[k]
	require.Positive(t, after.Compare(before))
	require.Empty(t, next.m.types[orders.ID()].region.hand.kept, "it was handed to the host")
	require.Zero(t, next.m.types[orders.ID()].region.hand.size)
	w.agree(orders, all(orders)...)
	require.Equal(t, 1, count(boss.events, MoveBegan))
	require.Equal(t, 1, count(boss.events, MoveDone))
	require.Equal(t, 1, count(owner.events, MoveMarked))
	require.Equal(t, 1, count(owner.events, MoveHandedOver))
	require.Zero(t, boss.stats(orders).Leading.Moves)
	for _, p := range late {
		w.hand(p)
	}
	w.agree(orders, all(orders)...)
	w.flow()
	require.Equal(t, after, next.hosted[k])
}

// A sender to a shard is notified of its move again: mail for which the courier has no room is lost, and the owner
// would wait for that marker until it gives the move up (SHD-12).
func TestMoveIsToldAgainToWhoHasNotHeardOfIt(t *testing.T) {
	w := movable(t, 4)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	require.NoError(t, boss.move(s, next))
	require.NotEmpty(t, w.hold(wire.KindMoveShards), "told once")
	w.pass(DefaultMarkTime / 2)
	require.Contains(t, next.hosted, key(orders.ID(), s))
	require.Equal(t, 1, count(boss.events, MoveDone))
	require.Zero(t, count(boss.events, MoveAborted))
	w.agree(orders, all(orders)...)
}

// How long each phase of a move took is counted by the node that leads it (SHD-7).
func TestPhasesOfAMoveAreCounted(t *testing.T) {
	w := movable(t, 3)
	w.slowStop = true
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	require.NoError(t, boss.move(of(owner), next))
	w.pass(700 * time.Millisecond)
	require.Len(t, owner.stops, 1)
	require.Zero(t, boss.m.Counters().Moves.Held.Count)
	owner.confirm()
	host := w.hold(wire.KindHostShards, wire.KindHostKept)
	w.flow()
	host = append(host, w.hold(wire.KindHostShards, wire.KindHostKept)...)
	w.tickAt(w.now + 90*time.Millisecond)
	for _, s := range host {
		w.hand(s)
	}
	w.pass(time.Second)
	m := boss.m.Counters().Moves
	require.Equal(t, Took{1, 700 * time.Millisecond, 700 * time.Millisecond}, m.Held)
	require.Equal(t, Took{1, m.Started.Max, m.Started.Max}, m.Started)
	require.Equal(t, m.Started.Max, m.Started.Mean())
	require.Zero(t, Took{}.Mean())
}

// Under a new coordinator term every member counts as notified, for anyone may know a home from before; one that had
// not registered the type is not.
func TestEverybodyCountsAsToldAfterATakeover(t *testing.T) {
	w := movable(t, 4)
	boss, second, owner, other := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	s := of(owner)
	boss.do(LeaveCommand{})
	w.pass(time.Second)
	for _, st := range []membership.Status{membership.Leaving, membership.Exiting, membership.Removed} {
		w.set(boss.id, st)
		w.publish()
		w.pass(100 * time.Millisecond)
	}
	require.True(t, second.stats(orders).Leading.Ready)
	require.NoError(t, second.move(s, second))
	require.Equal(t, peer.SetOf(second.id, other.id), second.m.types[orders.ID()].coord.moves.under[s].told)
	w.pass(time.Second)
	require.Contains(t, second.hosted, key(orders.ID(), s))
	w.agree(orders, s)
}

// A coordinator that begins anew under the same term goes on with the numbers of its moves: members that parked before
// would take them for old ones (SHD-12).
func TestMoveNumbersSurviveAReign(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	for _, to := range []*testNode{next, owner, next} {
		require.NoError(t, boss.move(s, to))
		w.pass(time.Second)
		require.NotZero(t, to.hosted[key(orders.ID(), s)])
		typ := boss.m.types[orders.ID()]
		c := typ.coord
		boss.m.begin(w.now)
		boss.m.endCoordinator(typ)
		boss.m.beginTerm(typ, c.settings, c.term)
		boss.m.end()
		boss.collect()
		w.pass(time.Second)
		w.agree(orders, s)
	}
	require.Equal(t, 3, count(boss.events, MoveDone))
}

// Every wish for a move that cannot be says why (SHD-12).
func TestMoveErrors(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	require.ErrorIs(t, boss.move(0, owner), ErrNoHome)
	for _, n := range w.nodes {
		n.want(orders, all(orders)...)
	}
	w.pass(time.Second)
	s := of(owner)
	require.ErrorIs(t, owner.move(s, next), ErrNotCoordinator)
	require.ErrorIs(t, boss.m.Do(w.now, MoveCommand{99, s, next.id}), ErrUnknownType)
	require.ErrorIs(t, boss.move(30, next), ErrBadCommand)
	require.ErrorIs(t, boss.move(s, owner), ErrAtHome)
	stranger := &testNode{id: peer.ID{Addr: peer.MustAddr("10.0.0.99:7000"), Inc: 4}}
	require.ErrorIs(t, boss.move(s, stranger), ErrUnknownNode)
	joiner := w.join()
	w.publish()
	require.ErrorIs(t, boss.move(s, joiner), ErrIneligible)
	boss.m.cfg.Moves = func(id peer.ID) bool { return id != joiner.id }
	require.ErrorIs(t, boss.move(s, next), ErrOldPeer)
	boss.m.cfg.Moves = func(peer.ID) bool { return true }
	boss.m.cfg.MaxMoves = 1
	require.NoError(t, boss.move(s, next))
	require.ErrorIs(t, boss.move(s, next), ErrMoveInProgress)
	require.ErrorIs(t, boss.move(of(next), owner), ErrTooManyMoves)
	w.pass(time.Second)
	w.set(joiner.id, membership.Down)
	w.publish()
	require.ErrorIs(t, boss.move(of(owner), next), ErrUnstable)
	require.NoError(t, w.nodes[0].m.Do(w.now, SuspendCommand{On: true}))
	require.ErrorIs(t, boss.move(of(owner), next), ErrUnstable)
}

// Markers race with the order: an owner keeps those of a number that it has not heard of, and counts none of another.
func TestEarlyMarkers(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	require.NoError(t, boss.move(s, next))
	late := w.hold(wire.KindMoveShard)
	w.flow()
	require.Len(t, owner.m.types[orders.ID()].region.hand.early[s].got, 2)
	owner.do(MarkedCommand{orders.ID(), s, Number{1, 9}, w.nodes[2].id})
	require.Equal(t, Number{1, 9}, owner.m.types[orders.ID()].region.hand.early[s].number, "a newer move")
	owner.do(MarkedCommand{orders.ID(), s, Number{1, 1}, w.nodes[2].id})
	require.Len(t, owner.m.types[orders.ID()].region.hand.early[s].got, 1)
	owner.m.types[orders.ID()].region.hand.early[s] = &marks{Number{1, 1}, peer.SetOf(boss.id, next.id)}
	w.queue = append(w.queue, late...)
	w.pass(time.Second)
	require.Contains(t, next.hosted, key(orders.ID(), s))
}

// A marker counts for its own move only, one that is lost with its connection goes again, and one that never comes has
// the move given up: the owner says so before anybody sends again, and late orders of that move change nothing.
func TestMoveIsGivenUpWithoutMarkers(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	require.NoError(t, boss.move(s, next))
	late := slices.Clone(w.queue)
	w.take(wire.KindMoveShards, next)
	require.True(t, w.take(wire.KindMoveShard, owner))
	lost := w.hold(wire.KindMarker)
	require.Len(t, lost, 2)
	owner.do(MarkedCommand{orders.ID(), s, Number{1, 7}, boss.id})
	owner.do(MarkedCommand{orders.ID(), s, Number{1, 7}, next.id})
	require.Empty(t, owner.stops, "markers of another move")
	w.now += DefaultMarkTime + time.Millisecond
	owner.m.Tick(w.now)
	owner.collect()
	require.Equal(t, RouteLocal, owner.route(orders, s).State)
	require.Equal(t, RouteMoving, next.route(orders, s).State, "not before the owner has said so")
	w.pass(time.Second)
	require.Equal(t, RouteRemote, next.route(orders, s).State)
	require.Equal(t, 1, count(boss.events, MoveAborted))
	for _, p := range slices.Concat(late, lost) {
		w.hand(p)
	}
	w.agree(orders, s)
	require.Equal(t, RouteRemote, next.route(orders, s).State)
	require.Contains(t, owner.hosted, key(orders.ID(), s))

	require.NoError(t, boss.move(s, next))
	w.hold(wire.KindMarker)
	for len(w.queue) > 0 {
		w.deliver(0)
		w.hold(wire.KindMarker)
	}
	for _, n := range []*testNode{boss, next} {
		n.do(MarkAgainCommand{owner.id})
	}
	require.Len(t, w.queue, 2)
	w.pass(time.Second)
	require.Contains(t, next.hosted, key(orders.ID(), s))
	w.agree(orders, s)
}

// Only removal counts as a marker: one that is Down may still have something on the way.
func TestOnlyRemovalCountsAsMarked(t *testing.T) {
	w := movable(t, 4)
	boss, owner, next, silent := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	s := of(owner)
	require.NoError(t, boss.move(s, next))
	silent.crash()
	w.flow()
	w.set(silent.id, membership.Down)
	w.publish()
	w.flow()
	require.Contains(t, owner.hosted, key(orders.ID(), s))
	w.promote()
	w.publish()
	w.flow()
	require.Contains(t, next.hosted, key(orders.ID(), s))
}

// An owner that promises a higher term gives up a move that has not reached its stop call; after it the move rolls
// forward, and the home is disclosed to nobody.
func TestMoveUnderAnotherCoordinator(t *testing.T) {
	for _, marked := range []bool{false, true} {
		w, s, f := begunMove(t, 4)
		boss, owner, next, other := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
		for len(w.queue) > 0 {
			if !marked {
				w.hold(wire.KindMarker)
			}
			if len(w.queue) > 0 {
				w.deliver(0)
			}
		}
		require.Equal(t, marked, len(owner.stops) == 1)
		require.Equal(t, RouteMoving, other.route(orders, s).State)
		boss.crash()
		w.set(boss.id, membership.Down)
		w.publish()
		w.promote()
		w.publish()
		w.flow()
		require.Equal(t, !marked, owner.route(orders, s).State == RouteLocal, "given up by the promise alone")
		w.pass(DefaultTakeoverTime + time.Second)
		if !marked {
			other.want(orders, s)
			w.pass(time.Second)
			require.Equal(t, RouteRemote, other.route(orders, s).State)
			require.Equal(t, f, other.route(orders, s).Fence, "the same home, under the new term")
			continue
		}
		require.True(t, owner.stats(orders).Leading.Ready)
		other.want(orders, s)
		w.pass(time.Second)
		require.NotEqual(t, RouteRemote, other.route(orders, s).State, "a shard that stops is not told")
		owner.answer(rest(s, f, []byte("left")))
		w.pass(time.Second)
		require.Contains(t, next.hosted, key(orders.ID(), s), "who has what is left gets the shard")
		require.Equal(t, RouteRemote, other.route(orders, s).State)
	}
}

// A coordinator that begins after the hand-over learns from reports which member has what is left, and gives it the
// shard at once, on nobody's demand.
func TestKeeperIsReported(t *testing.T) {
	w, s, f := begunMove(t, 4)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	w.flow()
	owner.answer(rest(s, f, []byte("left")))
	for len(w.queue) > 0 {
		w.hold(wire.KindShardsMoved)
		if len(w.queue) > 0 {
			w.deliver(0)
		}
	}
	require.Len(t, next.m.types[orders.ID()].region.hand.kept, 1)
	boss.crash()
	w.set(boss.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime + time.Second)
	require.Contains(t, next.hosted, key(orders.ID(), s))
	require.Empty(t, next.m.types[orders.ID()].region.hand.kept)
}

// The order to host names the owner with the rest to take up: an older rest that lies at the next owner, since the
// shard went on without it, is reported as not taken (named-transfers).
func TestOnlyTheNamedRestIsTakenUp(t *testing.T) {
	w, s, f := begunMove(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	k := key(orders.ID(), s)
	h := next.m.types[orders.ID()].region.hand
	w.flow()
	h.put(s, kept{fence(1, 1), []byte("old")})
	owner.answer(rest(s, f, []byte("left")))
	w.flow()
	require.Equal(t, "left", next.rests[k])
	require.Equal(t, []string{"old"}, next.untaken)
	require.Equal(t, 1, w.mails[wire.KindHostKept])

	f = next.hosted[k]
	require.NoError(t, boss.move(s, owner))
	w.flow()
	older := owner.m.types[orders.ID()].region.hand
	older.put(s, kept{fence(1, 1), []byte("older")})
	delete(next.hosted, k)
	next.stops = nil
	next.do(StoppedCommand{orders.ID(), s, f})
	w.flow()
	require.Contains(t, owner.hosted, k)
	require.Empty(t, owner.rests, "nothing was left of the last owner")
	require.Equal(t, []string{"older"}, owner.untaken)
	require.Zero(t, older.size)

	older.put(3, kept{fence(9, 9), []byte("newer")})
	require.True(t, older.outdates(held{3, fence(9, 8)}), "an order that is older than what is kept is late")
}

// A leaver's shards move, several at once within the bound, and what cannot is stopped as before.
func TestLeaverMovesItsShards(t *testing.T) {
	w := movable(t, 3)
	boss, leaver := w.nodes[0], w.nodes[2]
	boss.m.cfg.MaxMoves = 3
	mine := len(leaver.hosted)
	leaver.do(LeaveCommand{})
	w.pass(time.Second)
	require.True(t, leaver.drained)
	require.Equal(t, mine, count(boss.events, MoveDone))
	require.Zero(t, w.mails[wire.KindStopShards])
	for _, n := range w.nodes[:2] {
		n.want(orders, all(orders)...)
	}
	w.pass(time.Second)
	w.agree(orders, all(orders)...)
}

// The shards of a member that leaves while another coordinator term begins go on until that is ready, and move then:
// nothing that is on its way to them is refused (SHD-9).
func TestLeaverWaitsForTheNextReign(t *testing.T) {
	w := movable(t, 4)
	boss, next, leaver := w.nodes[0], w.nodes[1], w.nodes[3]
	boss.do(LeaveCommand{})
	w.pass(time.Second)
	require.True(t, boss.drained)
	mine := len(leaver.hosted)
	require.Positive(t, mine)
	w.nodes[2].cut = map[peer.ID]bool{next.id: true} // its report is late
	w.set(boss.id, membership.Exiting)
	w.publish()
	leaver.do(LeaveCommand{})
	w.pass(time.Second)
	require.False(t, next.m.types[orders.ID()].coord.ready)
	require.Len(t, leaver.hosted, mine)
	w.nodes[2].cut = nil
	w.pass(3 * time.Second)
	require.True(t, leaver.drained)
	require.Equal(t, mine, count(next.events, MoveDone))
	require.Zero(t, w.mails[wire.KindStopShards])
}

// A member that comes late gets its share, in rounds, and then nothing moves any more; nothing moves for the sake of
// balance while a member is Down (SHD-6).
func TestRebalanceGivesALateMemberItsShare(t *testing.T) {
	w := startWorld(t, 2)
	w.balances(10 * time.Second)
	w.registerAll(orders)
	w.nodes[0].want(orders, all(orders)...)
	w.pass(time.Minute)
	require.Len(t, w.nodes[1].hosted, 15)
	late := w.join()
	w.publish()
	w.promote()
	w.publish()
	late.do(RegisterCommand{Settings: orders})
	ill := w.join()
	w.set(ill.id, membership.Down)
	w.publish()
	w.pass(time.Minute)
	require.Empty(t, late.hosted, "a member is Down")
	w.promote()
	w.publish()
	w.pass(2 * time.Minute)
	for _, n := range w.nodes[:3] {
		require.Len(t, n.hosted, 10)
		n.want(orders, all(orders)...)
	}
	w.pass(time.Second)
	w.agree(orders, all(orders)...)
	boss := w.nodes[0]
	require.Equal(t, 10, count(boss.events, MoveDone))
	w.pass(time.Minute)
	require.Equal(t, 10, count(boss.events, MoveBegan), "it is balanced")
	moves := boss.m.Counters().Moves
	require.Equal(t, []uint64{10, 10, 0, 10, 10},
		[]uint64{moves.Begun, moves.Done, moves.Aborted, moves.Held.Count, moves.Started.Count})
}

// A round that is not over when the balance is due again, because there is no room for its moves, does not keep the
// node awake: it goes on when there is. Found by storm 771, which did not get on.
func TestRoundThatOutlastsItsInterval(t *testing.T) {
	many := Settings{Name: "many", Shards: 200} // a round of them is longer than one move
	w := startWorld(t, 2)
	boss := w.nodes[0]
	boss.m.cfg.RebalanceInterval, boss.m.cfg.MaxMoves = time.Second, 1
	w.registerAll(many)
	boss.want(many, all(many)...)
	w.pass(time.Second)
	late := w.join()
	w.publish()
	w.promote()
	w.publish()
	late.do(RegisterCommand{Settings: many})
	w.slowStop = true
	for range 3 { // a move takes five intervals
		w.pass(5 * time.Second) // in which every deadline is cleared: the world looks
		for _, n := range w.nodes {
			n.confirm()
		}
	}
	require.NotEmpty(t, late.hosted)
	w.slowStop = false
	w.pass(2 * time.Minute)
	require.Len(t, late.hosted, 66)
}
