// What an owner that moves a shard did not work off: which member has it, which ones are notified, and when it is
// dropped.

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

// rest is the word of an owner that has something left of a shard.
func rest(s route.ShardID, f route.Fence, left []byte) HandOverCommand {
	return HandOverCommand{StoppedCommand: StoppedCommand{orders.ID(), s, f}, Left: left}
}

// What an owner had handed over when it was lost is taken up, though nobody has confirmed it: the one that the move was
// for gets the shard at once, on nobody's demand (home-for-transfer).
func TestRestOfALostOwnerIsTakenUp(t *testing.T) {
	w := movable(t, 4)
	w.slowStop = true
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[3]
	s, k := of(owner), key(orders.ID(), of(owner))
	require.NoError(t, boss.move(s, next))
	w.flow()
	owner.answer(rest(s, boss.m.types[orders.ID()].coord.records.Peek(s).fence, []byte("left")))
	require.True(t, w.take(wire.KindTransfer, next))
	owner.crash()
	w.set(owner.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime + time.Second)
	require.Equal(t, "left", next.rests[k])
	require.Empty(t, next.untaken)
	require.Equal(t, 1, count(boss.events, MoveDone))
}

// An owner that handed over names the receiver, until it hears of a later home: its confirmation may have gone to a
// coordinator that is dead, after the next owner had reported to the next coordinator that it has nothing. Of two such
// words the one about the later fence counts (reports-name-holder).
func TestReportsNameTheHolder(t *testing.T) {
	w := movable(t, 4)
	w.slowStop = true
	boss, second, owner, next := w.nodes[0], w.nodes[1], w.nodes[2], w.nodes[3]
	s, k := of(owner), key(orders.ID(), of(owner))
	f := owner.hosted[k]
	require.NoError(t, boss.move(s, next))
	w.flow()
	boss.crash()
	w.set(boss.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	var late []segment
	for len(w.queue) > 0 {
		w.queue = slices.DeleteFunc(w.queue, func(p segment) bool {
			if p.kind == wire.KindReportWanted && p.to == owner.id {
				late = append(late, p)
				return true
			}
			return false
		})
		if len(w.queue) > 0 {
			w.deliver(0)
		}
	}
	require.NotEmpty(t, late)
	owner.answer(rest(s, f, []byte("left")))
	w.flow()
	require.Contains(t, next.m.types[orders.ID()].region.hand.kept, s)
	require.NotContains(t, owner.hosted, k)
	second.m.types[orders.ID()].region.hand.handedOff[s] = handedOff{held{s, fence(1, 1)}, 1, boss.id}
	second.m.types[orders.ID()].coord.moves.inherit(second.m.types[orders.ID()].coord.client(second.id), s,
		heir{id: boss.id, keeps: true, fence: fence(1, 1)})
	w.hand(late[0])
	w.pass(DefaultTakeoverTime + time.Second)
	require.Equal(t, "left", next.rests[k])
	require.Empty(t, next.untaken)
	owner.want(orders, s)
	w.pass(time.Second)
	require.NotContains(t, owner.m.types[orders.ID()].region.hand.handedOff, s, "it has heard of a later home")
}

// A transfer under a fence that is over is ignored, and one that waits here is dropped when a later home is heard of,
// be it disclosed or about to move (late-transfers, stale-transfers).
func TestLateAndStaleTransfers(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	h := next.m.types[orders.ID()].region.hand
	home := next.route(orders, s).Fence
	part := transfer{at(1), held{s, fence(1, home.Epoch()-1)}, false, 1, 3, 0, []byte("old")}
	w.hand(segment{boss.id, next.id, wire.KindTransfer, part.append(nil)})
	require.Empty(t, h.kept)
	require.Empty(t, w.queue, "nor is it acknowledged")
	h.put(s, kept{fence(1, home.Epoch()-1), []byte("older")})
	require.NoError(t, boss.move(s, boss))
	require.True(t, w.take(wire.KindMoveShards, next))
	require.Empty(t, h.kept)
	require.Equal(t, []string{"older"}, next.untaken)
}

// A coordinator that begins anew under its term counts the moves on, so homes that it discloses are newer than those
// that the previous one disclosed during its moves: parked callers go on (sequences-survive).
func TestHomesOfANewReignUnderTheSameTerm(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	require.NoError(t, boss.move(s, next))
	require.True(t, w.take(wire.KindMoveShards, next))
	n := next.m.types[orders.ID()].region.peek(s).moved
	w.queue = nil
	typ := boss.m.types[orders.ID()]
	boss.m.endCoordinator(typ)
	boss.m.beginTerm(typ, orders, n.Term)
	boss.do(RegisterCommand{Settings: Settings{Name: "other", Shards: 1}}) // ends the verb
	next.want(orders, s)
	w.pass(5 * time.Second)
	require.Equal(t, RouteRemote, next.route(orders, s).State)
	require.Positive(t, next.m.types[orders.ID()].region.peek(s).moved.Compare(n))
	w.agree(orders, s)
}

// One that has promised nothing to a coordinator term yet hears its moves all the same (proxies-follow).
func TestMovesAreHeardBeforeAPromise(t *testing.T) {
	w := movable(t, 3)
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	s := of(owner)
	late := w.join("proxy")
	w.publish()
	w.promote()
	w.publish()
	late.do(RegisterCommand{Settings: orders})
	late.want(orders, s)
	w.hold(wire.KindReportWanted)
	w.queue = append(w.queue, segment{late.id, boss.id, wire.KindAskHomes, ask{at(1), []route.ShardID{s}}.append(nil)})
	for len(w.queue) > 0 {
		w.deliver(0)
		w.hold(wire.KindReportWanted)
	}
	require.Zero(t, late.m.types[orders.ID()].promise.term)
	require.Equal(t, RouteRemote, late.route(orders, s).State)
	require.NoError(t, boss.move(s, next))
	require.True(t, w.take(wire.KindMoveShards, late))
	require.Equal(t, RouteMoving, late.route(orders, s).State)
}

// What a node that loses its shards has not handed over is reported as not taken: nobody may have it. When all of it
// was sent the next owner may.
func TestLostWhileHandingOver(t *testing.T) {
	for _, sent := range []bool{false, true} {
		w, s, f := begunMove(t, 3)
		owner := w.nodes[1]
		w.flow()
		left := []byte("left")
		if !sent {
			left = bytes.Repeat(left, 2*maxUnsure)
		}
		owner.answer(rest(s, f, left))
		w.set(owner.id, membership.Down)
		var e Effects
		require.NoError(t, owner.m.Do(w.now, ViewCommand{View: &membership.View{Self: owner.id, Seq: 1 << 20, ClusterID: 5,
			Birth: testBirth, Members: w.state()}}))
		owner.m.Drain(&e)
		require.Equal(t, []Untaken{{orders.ID(), s, left, sent}}, e.Untaken)
	}
}

// What cannot be handed over stays, and the shard with it: it is too large, here or there, or the next owner was
// removed or died before it had all, or knows nothing of states. The owner says so, and why, and the coordinator does
// not call the move done (SHD-12).
func TestWhatIsNotTakenStays(t *testing.T) {
	for c, why := range map[string]string{"large": "4 bytes, at most 3", "full": "it refused it",
		"removed": "it is a member no more", "dead": "its process is dead",
		"states": "it speaks a version without states"} {
		t.Run(c, func(t *testing.T) {
			w, s, f := begunMove(t, 4)
			owner, next := w.nodes[1], w.nodes[2]
			w.flow()
			switch c {
			case "large":
				owner.m.cfg.MaxHandOver = 3
			case "full":
				next.m.cfg.MaxHandOver = 3
			case "removed", "dead":
				next.crash()
			}
			owner.m.cfg.NoStates = func(peer.ID) bool { return c == "states" }
			left := rest(s, f, []byte("left"))
			left.States = c == "states"
			owner.answer(left)
			w.flow()
			if c == "dead" {
				require.Zero(t, count(owner.events, MoveUntaken))
				owner.do(DeathCommand{next.id})
				w.flow()
			}
			if c == "removed" {
				require.NotContains(t, owner.hosted, key(orders.ID(), s))
				w.set(next.id, membership.Down)
				w.publish()
				w.pass(time.Second)
				require.NotContains(t, owner.hosted, key(orders.ID(), s), "Down is not removed: it may have it")
				w.promote()
				w.publish()
				w.flow()
			}
			require.Positive(t, owner.hosted[key(orders.ID(), s)].Compare(f))
			require.Empty(t, owner.m.types[orders.ID()].region.hand.kept)
			require.Equal(t, "left", owner.rests[key(orders.ID(), s)])
			w.agree(orders, s)
			w.cameBack(s, f, why)
		})
	}
}

// cameBack demands that the only move is reported as returned, from the second node to itself, and as not taken for
// this reason.
func (w *world) cameBack(s route.ShardID, f route.Fence, why string) {
	boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
	e := Event{Kind: MoveUntaken, Type: orders.ID(), Shard: s, Term: f.Term(), Home: owner.id, Fence: f, To: next.id,
		Number: Number{f.Term(), 1}}
	untaken := only(w.t, owner.events, MoveUntaken)
	require.ErrorIs(w.t, untaken.Err, ErrNotTaken)
	require.EqualError(w.t, untaken.Err, ErrNotTaken.Error()+": "+why)
	untaken.Err = nil
	require.Equal(w.t, e, untaken)
	e.Kind, e.Fence = MoveReturned, owner.hosted[key(orders.ID(), s)]
	require.Equal(w.t, e, only(w.t, boss.events, MoveReturned))
	require.Zero(w.t, count(boss.events, MoveDone))
	require.Zero(w.t, count(owner.events, MoveHandedOver))
	require.Equal(w.t, MoveCounters{Begun: 1, Returned: 1}, boss.m.Counters().Moves, "no phase of it is counted")
}

// only returns the only event of a kind.
func only(t tester, events []Event, k EventKind) Event {
	require.Equal(t, 1, count(events, k))
	return events[slices.IndexFunc(events, func(e Event) bool { return e.Kind == k })]
}

// A shard of which nothing is left comes back, too, where its next owner cannot be given it: nothing was refused, and
// it has not moved all the same. Where it goes to another the move is done (SHD-12).
func TestMoveWhoseNextOwnerIsGone(t *testing.T) {
	for _, back := range []bool{true, false} {
		w, s, f := begunMove(t, 3)
		boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
		w.flow()
		home, other := owner, boss
		if !back {
			home, other = boss, owner
		}
		for _, n := range []*testNode{next, other} {
			n.do(ReadyCommand{orders.ID(), false})
		}
		w.flow()
		owner.confirm()
		w.flow()
		require.Positive(t, home.hosted[key(orders.ID(), s)].Compare(f))
		require.Zero(t, count(owner.events, MoveUntaken))
		if c := boss.m.Counters().Moves; back {
			require.Equal(t, MoveCounters{Begun: 1, Returned: 1}, c)
			require.Equal(t, next.id, only(t, boss.events, MoveReturned).To)
		} else {
			require.Equal(t, []uint64{1, 1, 0}, []uint64{c.Begun, c.Done, c.Returned})
			require.Equal(t, boss.id, only(t, boss.events, MoveDone).To)
		}
	}
}

// The member that has what is left of a shard gets it, ready or not: no other can begin with it. That is the owner that
// could not hand it over, the next owner that has it, and one that may have it since the owner was lost. Where nothing
// is left readiness counts, whatever the target of the move (SHD-6, SHD-12).
func TestWhatIsLeftGoesToWhoIsNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		left    string
		unready func(owner, next *testNode) *testNode
		end     func(w *world, owner, next *testNode, h HandOverCommand)
		gets    bool
	}{
		"not taken from the owner": {"left", theOwner, func(_ *world, owner, _ *testNode, h HandOverCommand) {
			owner.m.cfg.MaxHandOver = 3
			owner.answer(h)
		}, true},
		"handed over": {"left", theNext, func(_ *world, owner, _ *testNode, h HandOverCommand) { owner.answer(h) }, true},
		"nothing is left": {"", theNext, func(_ *world, owner, _ *testNode, h HandOverCommand) {
			delete(owner.hosted, key(h.Type, h.Shard))
			owner.stops = nil
			owner.do(h.StoppedCommand)
		}, false},
		"the owner is lost": {"", theNext, func(w *world, owner, _ *testNode, _ HandOverCommand) {
			owner.crash()
			w.set(owner.id, membership.Down)
			w.publish()
			w.promote()
			w.publish()
			w.pass(DefaultTakeoverTime + time.Second)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, f := begunMove(t, 4)
			boss, owner, next := w.nodes[0], w.nodes[1], w.nodes[2]
			k := key(orders.ID(), s)
			w.flow()
			n := c.unready(owner, next)
			n.do(ReadyCommand{orders.ID(), false})
			w.flow()
			require.Equal(t, "not ready", boss.m.types[orders.ID()].coord.moves.view().Region(n.id).Why())
			c.end(w, owner, next, rest(s, f, []byte(c.left)))
			w.flow()
			require.Equal(t, c.gets, n.hosted[k].Compare(f) > 0)
			require.Equal(t, c.left, n.rests[k])
			w.agree(orders, s)
		})
	}
}

func theOwner(owner, _ *testNode) *testNode { return owner }
func theNext(_, next *testNode) *testNode   { return next }
