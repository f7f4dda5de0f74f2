// Which member may wake a sleeper: one that knows how the cluster stands, and nobody else (MEM-10).

package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TestWhoProvesNothingWakesNobody: the answer of a member that has no office, misses others or is late with hearing
// them is one among those of all. It alone wakes nobody, and it does when the reason has gone.
func TestWhoProvesNothingWakesNobody(t *testing.T) {
	late := false
	for name, f := range map[string]struct {
		make, end func(w *world, from *testNode)
	}{
		"joining": {func(w *world, from *testNode) {
			from.doubt(func(v *membership.View) {
				i := slices.IndexFunc(v.Members, func(m membership.Member) bool { return m.ID == from.id })
				v.Members[i].Status, v.Members[i].UpNumber = membership.Joining, 0
			})
		}, func(w *world, from *testNode) { from.doubt(func(*membership.View) {}) }},
		"it misses another": {func(w *world, from *testNode) {
			from.doubt(func(v *membership.View) {
				v.Accusations = []membership.Accusation{{Observer: from.id, Subject: w.nodes[0].id}}
			})
		}, func(w *world, from *testNode) { from.doubt(func(*membership.View) {}) }},
		"somebody misses it": {func(w *world, from *testNode) {
			from.doubt(func(v *membership.View) {
				v.Accusations = []membership.Accusation{{Observer: w.nodes[1].id, Subject: from.id}}
			})
		}, func(w *world, from *testNode) { from.doubt(func(*membership.View) {}) }},
		"one is late": {func(w *world, from *testNode) {
			late = true
			from.m.cfg.Late = func() bool { return late }
		}, func(*world, *testNode) { late = false }},
	} {
		w := owning(t, 4)
		n, answers := w.nodes[3], w.nodes[2]
		w.nodes[1].cut[n.id] = true // and so the answers of all are not together
		f.make(w, answers)
		for _, o := range w.nodes[:2] {
			o.m.confirm = confirmation{held: true} // they sleep too; the coordinator's answer for the shards is weak
		}
		n.do(SuspendCommand{On: true})
		w.pass(3 * DefaultRetryMax)
		require.True(t, n.m.confirm.heard.Has(answers.id), name)
		require.Zero(t, n.confirmed, name)
		f.end(w, answers)
		n.do(SuspendCommand{On: true})
		w.pass(3 * DefaultRetryMax)
		require.Equal(t, 1, n.confirmed, name)
	}
}

// doubt shows a node its newest view again, changed.
func (n *testNode) doubt(change func(v *membership.View)) {
	v := *n.m.view
	v.Seq++
	v.Members, v.Accusations = slices.Clone(n.w.versions[n.seen-1]), nil
	change(&v)
	n.do(ViewCommand{View: &v})
}

// TestOldFirmnessOfAJoinerIsWeak: a build before says that it is firm whenever it does not sleep. The asker looks at
// what it is.
func TestOldFirmnessOfAJoinerIsWeak(t *testing.T) {
	w := owning(t, 3)
	n := w.nodes[2]
	joiner := w.join()
	w.publish()
	w.nodes[0].cut[n.id], w.nodes[1].cut[n.id] = true, true
	n.do(SuspendCommand{On: true})
	say := ownerConfirmed{head: head{Birth: testBirth}, Nonce: n.m.confirm.nonce, Firm: true, Lost: []held{}}
	require.NoError(t, w.inject(joiner, n, say))
	require.True(t, n.m.confirm.heard.Has(joiner.id))
	require.False(t, n.m.confirm.firm)
	say.Nonce = n.m.confirm.nonce
	require.NoError(t, w.inject(w.nodes[0], n, say))
	require.True(t, n.m.confirm.firm)
}

// TestCoordinatorOfItsOwnAsksForHigherTerms: it would confirm itself. One that has promised to a successor says so, and
// its shards are asked about there.
func TestCoordinatorOfItsOwnAsksForHigherTerms(t *testing.T) {
	w := owning(t, 3)
	sleeper, next := w.nodes[0], w.nodes[1]
	mine := len(sleeper.hosted)
	require.NotZero(t, mine)
	w.nodes[2].m.raise(w.nodes[2].m.types[orders.ID()], 2, next.id, 1)
	w.nodes[1].cut[sleeper.id] = true // only the third answers
	sleeper.do(SuspendCommand{On: true})
	w.flow()
	require.Nil(t, sleeper.stats(orders).Leading)
	require.Equal(t, next.id, sleeper.stats(orders).Coordinator)
	require.Zero(t, sleeper.confirmed, "the successor has not confirmed its shards")
	require.Len(t, sleeper.hosted, mine)
}

// TestOlderMemberThatAppearsEndsNoReign: all that were older had gone when the coordinator term began. One that is
// there again is none to give way to, and regions follow their promise (SHD-9).
func TestOlderMemberThatAppearsEndsNoReign(t *testing.T) {
	w := owning(t, 3)
	old, next := w.nodes[0], w.nodes[1]
	before := w.state()[0]
	require.Equal(t, old.id, before.ID)
	old.silence()
	w.set(old.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime + time.Second)
	require.True(t, next.stats(orders).Leading.Ready)
	w.commit(append(w.state(), before))
	w.publish()
	w.pass(time.Second)
	leading := next.stats(orders).Leading
	require.NotNil(t, leading)
	require.True(t, leading.Ready)
	w.mails = map[wire.Kind]int{}
	for _, n := range w.nodes[1:] {
		n.want(orders, all(orders)...)
	}
	w.pass(3 * time.Second)
	w.agree(orders, all(orders)...)
	require.Equal(t, next.id, w.nodes[2].stats(orders).Coordinator)
}

// TestGivenUpShardEndsBeforeItLivesAgain: a Blocking handler cannot be interrupted. Until the runtime says that it has
// returned, the shard does not start here again, though it was given to this node; then the repeated order is obeyed.
func TestGivenUpShardEndsBeforeItLivesAgain(t *testing.T) {
	w := owning(t, 2)
	sc, n := w.nodes[0], w.nodes[1]
	w.slowStop = true
	typ := n.m.types[orders.ID()]
	for s, e := range typ.region.slots.All {
		if e.host == hosted {
			sc.m.types[orders.ID()].coord.release(route.ShardID(s))
			n.do(SuspendCommand{On: true})
			w.pass(DefaultRetryMax)
			require.Equal(t, 1, n.confirmed)
			require.NotContains(t, n.hosted, key(orders.ID(), route.ShardID(s)))
			n.do(SuspendCommand{})
			sc.m.types[orders.ID()].coord.client(sc.id).hosts = false // nobody else can have it
			n.want(orders, route.ShardID(s))
			w.pass(3 * DefaultRetryMax)
			require.NotContains(t, n.hosted, key(orders.ID(), route.ShardID(s)), "its handler runs")
			n.confirm()
			w.pass(3 * DefaultRetryMax)
			require.Contains(t, n.hosted, key(orders.ID(), route.ShardID(s)))
			return
		}
	}
}
