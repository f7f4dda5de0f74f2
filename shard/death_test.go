// The coordinator's process is proven dead: its successor begins at once, and nothing is given twice for it.

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// grown returns a cluster in which all members know all homes, and have been Up for a takeover time, so none may have
// missed a loss.
func grown(t *testing.T, n int) *world {
	w := owning(t, n)
	for _, n := range w.nodes {
		n.want(orders, all(orders)...)
	}
	w.pass(DefaultTakeoverTime)
	return w
}

// SHD-2, SHD-8: all have the proof. Its successor collects and gives out before anybody holds the dead one to be Down.
func TestProvenDeathOfTheCoordinator(t *testing.T) {
	w := grown(t, 4)
	dead, next := w.nodes[0], w.nodes[1]
	dead.crash()
	for _, n := range w.nodes[1:] {
		n.do(DeathCommand{dead.id})
	}
	next.want(orders, all(orders)...)
	w.flow()
	require.NotNil(t, next.stats(orders).Leading)
	require.True(t, next.stats(orders).Leading.Ready)
	require.Empty(t, next.stats(orders).Leading.Missing)
	for _, n := range w.nodes[1:] {
		n.want(orders, all(orders)...)
	}
	w.pass(time.Second)
	w.agree(orders, all(orders)...)
	require.NotEqual(t, membership.Down, w.status(dead), "nobody has decided anything")
	begun := count(next.events, CoordinatorStarted)
	w.set(dead.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime + time.Second)
	w.agree(orders, all(orders)...)
	require.Equal(t, begun, count(next.events, CoordinatorStarted), "the decision changes nothing any more")
	require.Zero(t, count(next.events, CoordinatorStopped))
}

// SHD-9: only the successor has the proof. The others follow it by the promise that it asks them for, though their
// views hold the dead one for the oldest. Living members are waited for as ever.
func TestDeathThatOnlyTheSuccessorKnows(t *testing.T) {
	w := grown(t, 4)
	dead, next, mute := w.nodes[0], w.nodes[1], w.nodes[3]
	dead.crash()
	mute.cut[next.id], next.cut[mute.id] = true, true
	next.do(DeathCommand{dead.id})
	next.want(orders, all(orders)...)
	w.pass(2 * DefaultRetryMax)
	require.Contains(t, next.stats(orders).Leading.Missing, mute.id)
	require.NotContains(t, next.stats(orders).Leading.Missing, dead.id)
	require.Zero(t, count(next.events, CoordinatorReady), "one that lives has not reported")
	w.set(dead.id, membership.Down) // the routes of the others to the dead one end with it
	w.publish()
	mute.cut[next.id], next.cut[mute.id] = false, false
	w.pass(2 * DefaultRetryMax)
	require.Equal(t, membership.Down, w.status(dead), "not removed")
	require.Equal(t, 1, count(next.events, CoordinatorReady))
	for _, n := range w.nodes[1:] {
		n.want(orders, all(orders)...)
	}
	w.pass(2 * DefaultRetryMax)
	w.agree(orders, all(orders)...)
}

// SHD-9: the successor that alone had the proof falls as well, and the members that promised to it have proof of
// neither. They come right as without any proof.
func TestSuccessorByProofFalls(t *testing.T) {
	w := grown(t, 4)
	dead, next := w.nodes[0], w.nodes[1]
	dead.crash()
	next.do(DeathCommand{dead.id})
	w.flow()
	require.Equal(t, 1, count(next.events, CoordinatorReady))
	next.crash()
	w.set(dead.id, membership.Down)
	w.set(next.id, membership.Down)
	w.publish()
	for _, n := range w.nodes[2:] {
		n.want(orders, all(orders)...)
	}
	w.pass(time.Second)
	require.Zero(t, count(w.nodes[2].events, CoordinatorReady), "they may still serve")
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime + 2*DefaultRetryMax)
	w.agree(orders, all(orders)...)
}

// A leave notice is no proof of death: its sender goes on to coordinate until it has left.
func TestLeaveNoticeEndsNoReign(t *testing.T) {
	w := owning(t, 3)
	first, next := w.nodes[0], w.nodes[1]
	require.NoError(t, w.inject(first, next, leaveNotice{Kind: wire.KindLeaveNotice, Birth: testBirth}))
	w.set(w.nodes[2].id, membership.Leaving) // all look for the coordinator again
	w.publish()
	w.flow()
	require.Nil(t, next.stats(orders).Leading)
	require.NotNil(t, first.stats(orders).Leading)
	require.Equal(t, first.id, next.stats(orders).Coordinator)
}

// Members without the role die too: neither is asked by the next coordinator, and the oldest that lives is asked first.
func TestDeadAreNotAsked(t *testing.T) {
	typ := Settings{Name: "roles", Shards: 6, Role: "r"}
	w := newWorld(t)
	for _, roles := range [][]string{nil, nil, {"r"}, {"r"}, {"r"}} {
		w.join(roles...)
		w.publish()
		w.promote()
		w.publish()
	}
	w.registerAll(typ)
	w.nodes[3].want(typ, all(typ)...)
	w.pass(DefaultTakeoverTime + time.Second)
	oldest, next, last := w.nodes[1], w.nodes[3], w.nodes[4]
	oldest.cut[next.id], next.cut[oldest.id] = true, true
	for _, dead := range []*testNode{w.nodes[0], w.nodes[2]} {
		dead.crash()
		next.do(DeathCommand{dead.id})
	}
	w.pass(DefaultRetryMax)
	require.NotNil(t, next.stats(typ).Leading)
	require.Contains(t, next.stats(typ).Leading.Missing, last.id, "not asked before the oldest has answered")
	oldest.cut[next.id], next.cut[oldest.id] = false, false
	w.pass(4 * DefaultRetryMax)
	require.True(t, next.stats(typ).Leading.Ready)
}

// A dead coordinator is followed no more, for all the promises to it, also where the role has older members of lower
// numbers.
func TestDeadAreNotFollowed(t *testing.T) {
	w := grown(t, 4)
	n, dead, next := w.nodes[1], w.nodes[2], w.nodes[3]
	typ := n.m.types[orders.ID()]
	n.m.raise(typ, 3, dead.id, 0)
	to, _ := n.m.target(typ)
	require.Equal(t, dead.id, to)
	n.do(DeathCommand{dead.id})
	to, term := n.m.target(typ)
	require.Equal(t, next.id, to)
	require.Equal(t, uint32(4), term)
}

// TestRemovedBeforeItsTime: where only proof frees shards a node that joins waits for the end of members that it never
// had in a view, also when it is blind no more; another one does not. Found by storm 12800005558, in which a
// coordinator gave away what such a member owned.
func TestRemovedBeforeItsTime(t *testing.T) {
	for _, proofOnly := range []bool{true, false} {
		w := startWorld(t, 1)
		old, lost := w.nodes[0], peer.ID{Addr: peer.MustAddr("10.0.0.9:7000"), Inc: 9}
		w.unproven = []peer.ID{lost}
		next := w.join()
		next.m.past.proofOnly = proofOnly
		w.publish()
		w.promote()
		w.publish()
		old.do(LeaveCommand{})
		w.flow()
		w.remove(old)
		next.do(RegisterCommand{Settings: orders})
		next.want(orders, all(orders)...)
		w.pass(3 * DefaultTakeoverTime)
		require.Equal(t, !proofOnly, next.stats(orders).Leading.Ready)
		next.do(DeathCommand{lost})
		w.pass(time.Second)
		require.True(t, next.stats(orders).Leading.Ready)
		require.Len(t, next.hosted, int(orders.Shards))
	}
}
