// LeaveNotices: what a leaver tells of losses before its successor's time, and when it tells nothing.

package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// admit adds a member and makes it Up.
func (w *world) admit() *testNode {
	n := w.join()
	w.publish()
	w.promote()
	w.publish()
	return n
}

// remove takes a member out in the steps of a leave or, when it is Down, at once. Meanwhile nothing is delivered, so
// nobody can ask it.
func (w *world) remove(n *testNode) {
	w.set(n.id, membership.Leaving)
	w.publish()
	for w.promote() {
		w.publish()
	}
}

// leaveNotices returns what the leave notices under way to a node tell.
func (w *world) leaveNotices(to *testNode) (list []recentlyLost) {
	for _, p := range w.queue {
		if p.kind == wire.KindLeaveNotice && p.to == to.id {
			l, err := readMessage(p.kind, p.body)
			require.NoError(w.t, err)
			list = append(list, l.(leaveNotice).Past)
		}
	}
	return list
}

// The coordinator of a fresh cluster leaves: nobody else is whole, and its successor gives out its shards at once.
func TestCoordinatorLeavesFreshCluster(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.nodes[2].want(orders, all(orders)...)
	w.pass(time.Second)
	old, next := w.nodes[0], w.nodes[1]
	require.True(t, old.m.past.whole(w.now))
	require.False(t, next.m.past.whole(w.now) || w.nodes[2].m.past.whole(w.now))
	old.do(LeaveCommand{})
	w.flow()
	require.True(t, old.drained)
	require.True(t, next.m.past.whole(w.now) && w.nodes[2].m.past.whole(w.now))
	w.remove(old)
	next.want(orders, all(orders)...)
	w.nodes[2].want(orders, all(orders)...)
	w.pass(time.Second)
	require.Less(t, w.now, DefaultTakeoverTime)
	require.True(t, next.stats(orders).Leading.Ready)
	w.agree(orders, all(orders)...)
}

// A leave notice that is lost is sent again before the leaver goes, for it may be removed at once then: its successor
// as coordinator does not wait for the takeover time. A member that is slow to acknowledge it is waited for a while,
// one that is unreachable or still joining not at all. Found by storm 12800000543.
func TestLeaverWaitsUntilItsNoticeIsHeard(t *testing.T) {
	for name, tc := range map[string]struct {
		hinder func(w *world, next *testNode)
		within time.Duration
	}{
		"lost": {func(*world, *testNode) {}, DefaultRetryInterval * 9 / 8},
		"slow": {func(w *world, next *testNode) { next.cut[w.nodes[0].id] = true }, DefaultRetryMax},
		"unreachable": {func(w *world, next *testNode) {
			next.deaf = true
			w.join()
			w.publish()
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWorld(t, 3)
			w.registerAll(orders)
			w.pass(time.Second)
			old, next, third := w.nodes[0], w.nodes[1], w.nodes[2]
			tc.hinder(w, next)
			old.do(LeaveCommand{})
			w.queue = slices.DeleteFunc(w.queue, func(p segment) bool {
				return p.kind == wire.KindLeaveNotice && p.to != third.id
			})
			w.flow()
			require.Equal(t, tc.within == 0, old.drained)
			w.pass(tc.within)
			require.True(t, old.drained)
			if name == "lost" {
				w.remove(old)
				next.want(orders, all(orders)...)
				w.pass(time.Second)
				require.True(t, next.stats(orders).Leading.Ready)
			}
		})
	}
}

// An owner was lost before the successor joined. It hears of it by the leave notice alone and waits as long as that
// owner may still be serving, whether the message comes at once, twice, or late; never shorter.
func TestLeaveNoticeTellsOfEarlierLosses(t *testing.T) {
	for _, late := range []time.Duration{0, 3 * time.Second} {
		w := startWorld(t, 2)
		w.registerAll(orders)
		w.nodes[0].want(orders, all(orders)...)
		w.pass(time.Second)
		lost := w.nodes[1]
		require.Len(t, lost.hosted, 15)
		lost.silence()
		since := w.now
		w.set(lost.id, membership.Down)
		w.publish()
		w.promote()
		w.publish()
		w.pass(8 * time.Second)
		next := w.admit()
		next.do(RegisterCommand{Settings: orders})
		w.pass(time.Second)
		old := w.nodes[0]
		old.do(LeaveCommand{})
		for range 100 { // every message but the leave notice, which is kept back
			old.confirm()
			if i := slices.IndexFunc(w.queue, func(p segment) bool { return p.kind != wire.KindLeaveNotice }); i >= 0 {
				w.deliver(i)
			}
		}
		require.True(t, old.m.leave.done)
		said := w.leaveNotices(next)
		require.Len(t, said, 1)
		require.Len(t, said[0].Lost, 1)
		require.Equal(t, w.now-since, said[0].Lost[0].Age)
		w.remove(old)
		next.want(orders, all(orders)...)
		w.tickAt(w.now + late)
		message := w.queue[slices.IndexFunc(w.queue, func(p segment) bool { return p.kind == wire.KindLeaveNotice })]
		w.pass(0)
		w.hand(message)
		require.True(t, next.m.past.whole(w.now))
		w.pass(since + DefaultTakeoverTime + late - w.now - time.Millisecond)
		require.Len(t, next.hosted, 15, "the leaver's have moved; the lost owner may be serving")
		w.hand(message)
		w.pass(3 * time.Second)
		require.Len(t, next.hosted, 30)
	}
}

// A repeated leave notice carries what is remembered then. A leaver that is Exiting goes on sending it to members that
// had their up-number while it still voted; it may miss members that came and went since, and so may those that joined
// since.
func TestLeaveNoticeIsWrittenAnewEachTime(t *testing.T) {
	w := startWorld(t, 4)
	lost, next, old := w.nodes[3], w.nodes[1], w.nodes[0]
	lost.silence()
	w.set(lost.id, membership.Down)
	w.publish()
	old.do(LeaveCommand{})
	first := w.leaveNotices(next)
	require.Len(t, first, 1)
	require.Equal(t, []loss{{ID: lost.id}}, first[0].Lost)
	require.Equal(t, peer.SetOf(old.id, next.id, w.nodes[2].id), first[0].Roll)
	w.queue = nil
	w.promote()
	w.publish()
	w.tickAt(w.now + time.Second)
	second := w.leaveNotices(next)
	require.Len(t, second, 1)
	require.True(t, second[0].Complete)
	require.Equal(t, []loss{{ID: lost.id, Age: time.Second}}, second[0].Lost)
	w.queue = nil
	w.set(old.id, membership.Leaving)
	w.publish()
	w.set(old.id, membership.Exiting)
	w.publish()
	young := w.join()
	w.publish()
	w.set(young.id, membership.Up)
	w.publish()
	w.tickAt(w.now + time.Second)
	third := w.leaveNotices(next)
	require.Len(t, third, 1)
	require.Equal(t, []loss{{ID: lost.id, Age: 2 * time.Second}}, third[0].Lost)
	require.True(t, third[0].Roll.Has(young.id))
	require.Equal(t, recentlyLost{}, old.m.tell(young.id, maxTold))
	require.True(t, old.m.tell(next.id, maxTold).Complete)
}

// A member that may miss a loss itself sends nothing, and one that is still joining is sent nothing: it may yet miss
// one that the sender misses too.
func TestLeaveNoticeThatTellsNothing(t *testing.T) {
	w := startWorld(t, 2)
	joiner := w.join()
	w.publish()
	w.nodes[1].do(LeaveCommand{})
	require.False(t, w.leaveNotices(w.nodes[0])[0].Complete, "the leaver is blind")
	w.queue = nil
	w.nodes[0].do(LeaveCommand{})
	require.True(t, w.leaveNotices(w.nodes[1])[0].Complete)
	require.False(t, w.leaveNotices(joiner)[0].Complete, "the receiver is joining")
	w.flow()
	require.True(t, w.nodes[1].m.past.whole(w.now))
	require.False(t, joiner.m.past.whole(w.now))
	require.Zero(t, len(w.nodes[0].m.leave.unheard), "it was heard all the same")

	w = startWorld(t, 2)
	for _, l := range losses(maxTold-2, 0) {
		w.nodes[0].m.past.add(lostMember{id: l.ID, since: w.now, removed: true}, DefaultTakeoverTime)
	}
	require.True(t, w.nodes[0].m.tell(w.nodes[1].id, maxTold).Complete)
	w.nodes[0].m.past.add(lostMember{id: w.nodes[1].id, since: w.now}, DefaultTakeoverTime)
	require.Equal(t, recentlyLost{}, w.nodes[0].m.tell(w.nodes[1].id, maxTold), "too much for one message")
	require.True(t, w.nodes[0].m.tell(w.nodes[1].id, maxPeers).Complete)
}

// Blindness is counted from the up-number: a member that is joining does not see every member that comes and goes.
func TestJoiningMembersStayBlind(t *testing.T) {
	w := startWorld(t, 1)
	n := w.join()
	w.publish()
	w.pass(DefaultTakeoverTime - time.Second)
	w.join()
	w.publish()
	w.pass(5 * time.Second)
	require.False(t, n.m.past.whole(w.now), "a view in which it is joining begins it anew")
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime - time.Millisecond)
	require.False(t, n.m.past.whole(w.now))
	w.pass(time.Millisecond)
	require.True(t, n.m.past.whole(w.now))
	require.True(t, w.nodes[0].m.past.whole(w.now), "it formed the cluster")
}
