// Confirmation: what a suspended node needs to hear before it goes on, and what it does not do until then (MEM-10).

package shard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// owning is a world of n nodes in which every shard has a home.
func owning(t *testing.T, n int) *world {
	w := startWorld(t, n)
	w.registerAll(orders)
	w.nodes[0].want(orders, all(orders)...)
	w.pass(DefaultRetryMax)
	for _, n := range w.nodes {
		require.NotEmpty(t, n.hosted)
	}
	return w
}

func TestSuspendedOwnerIsConfirmed(t *testing.T) {
	for _, i := range []int{0, 2} { // the coordinator's own node, which asks others; an owner
		w := owning(t, 3)
		n := w.nodes[i]
		n.do(SuspendCommand{On: true})
		require.Zero(t, n.confirmed, "nothing that it knows by itself counts")
		w.flow()
		require.Equal(t, 1, n.confirmed)
		w.pass(10 * DefaultRetryMax)
		require.Equal(t, 1, n.confirmed, "once for each suspension")
	}
}

// TestEarlierAnswersDoNotCount: a node that slept again does not go on because of answers from in between.
func TestEarlierAnswersDoNotCount(t *testing.T) {
	w := owning(t, 3)
	n := w.nodes[2]
	n.do(SuspendCommand{On: true})
	for len(w.queue) > 0 && w.queue[0].kind == wire.KindConfirmOwner {
		w.deliver(0)
	}
	early := w.queue
	w.queue = nil
	require.NotEmpty(t, early)
	n.do(SuspendCommand{On: true})
	w.queue = nil
	for _, p := range early {
		require.Equal(t, wire.KindConfirmAck, p.kind)
		w.hand(p)
	}
	require.Zero(t, n.confirmed)
	w.pass(DefaultRetryMax)
	require.Equal(t, 1, n.confirmed, "the question is repeated")
}

// TestOnlyMembersAreConfirmed: a node that is Down in a member's view gets no answer from it, and nothing else lifts
// it.
func TestOnlyMembersAreConfirmed(t *testing.T) {
	w := owning(t, 3)
	n := w.nodes[2]
	w.set(n.id, membership.Down)
	w.nodes[0].see()
	w.nodes[1].see()
	n.do(SuspendCommand{On: true})
	w.pass(DefaultTakeoverTime)
	require.Zero(t, n.confirmed)
}

// TestAnswersOfTheSuspended: they may have slept as long, so one of them is not enough; all of them are, for every
// member that could have removed this node is among them. A member that does not answer is waited for.
func TestAnswersOfTheSuspended(t *testing.T) {
	w := owning(t, 4)
	n := w.nodes[3]
	for _, o := range w.nodes {
		o.do(SuspendCommand{On: true})
	}
	w.nodes[1].cut[n.id] = true
	w.queue = nil
	for _, o := range w.nodes[:3] {
		o.m.confirm.retry.stop() // they stay suspended
	}
	w.pass(DefaultRetryMax)
	require.Zero(t, n.confirmed, "one member has not answered")
	w.nodes[1].cut[n.id] = false
	w.pass(2 * DefaultRetryMax)
	require.Equal(t, 1, n.confirmed)
}

// TestWhoWasNeverToldItIsAMemberAnswersToo: a suspended node lets nobody in, so it must not wait for the view of one
// that it let in before it slept. Such a one's word is weak: the other member's is still needed (MEM-10).
func TestWhoWasNeverToldItIsAMemberAnswersToo(t *testing.T) {
	w := owning(t, 3)
	n := w.nodes[2]
	w.join()
	for _, o := range w.nodes[:3] {
		o.see()
	}
	joiner := w.nodes[3]
	require.Nil(t, joiner.m.view)
	for _, o := range w.nodes[:3] {
		o.do(SuspendCommand{On: true})
	}
	for _, o := range w.nodes[:2] {
		o.m.confirm.retry.stop() // they stay suspended
	}
	w.nodes[1].cut[n.id] = true
	w.queue = nil
	w.pass(DefaultRetryMax)
	require.True(t, n.m.confirm.heard.Has(joiner.id))
	require.Zero(t, n.confirmed, "one member has not answered")
	w.nodes[1].cut[n.id] = false
	w.pass(2 * DefaultRetryMax)
	require.Equal(t, 1, n.confirmed)
}

// TestMembersAnswerBeforeTheCoordinator: a node hears that it is a member though no coordinator can say yet what lives
// there: that one may wait for what the node is to do as a member (MEM-10).
func TestMembersAnswerBeforeTheCoordinator(t *testing.T) {
	w := owning(t, 3)
	boss, n := w.nodes[0], w.nodes[2]
	boss.cut[n.id] = true
	n.do(SuspendCommand{On: true})
	require.False(t, n.member, "nobody has answered")
	w.flow()
	require.True(t, n.member)
	require.Zero(t, n.confirmed)
	clear(boss.cut)
	w.pass(10 * DefaultRetryMax)
	require.Equal(t, 1, n.confirmed)
}

// TestOneThatIsAwakeIsEnough: the strong answer of one member, with the coordinator's weak one.
func TestOneThatIsAwakeIsEnough(t *testing.T) {
	w := owning(t, 4)
	n := w.nodes[3]
	w.nodes[0].do(SuspendCommand{On: true})
	w.nodes[0].m.confirm.retry.stop()
	w.nodes[1].cut[n.id] = true
	w.queue = nil
	n.do(SuspendCommand{On: true})
	w.flow()
	require.Equal(t, 1, n.confirmed)
}

// TestShardsThatAreNotOursAreGivenUp: the coordinator does not know one of the ownerships; it ends without a call.
func TestShardsThatAreNotOursAreGivenUp(t *testing.T) {
	w := owning(t, 3)
	n := w.nodes[2]
	id := orders.ID()
	var lost route.ShardID
	for s := range n.m.types[id].region.hosted.All {
		lost = s
		break
	}
	c := w.nodes[0].m.types[id].coord
	before := len(n.hosted)
	c.release(lost)
	n.do(SuspendCommand{On: true})
	w.flow()
	require.Equal(t, 1, n.confirmed)
	require.NotContains(t, n.hosted, key(id, lost))
	require.Len(t, n.hosted, before-1)
	require.Equal(t, notHosted, n.m.types[id].region.peek(lost).host)
}

// TestNothingStartsWhileSuspended: neither where the shard would live, nor by the word of a suspended coordinator.
func TestNothingStartsWhileSuspended(t *testing.T) {
	w := startWorld(t, 1)
	w.registerAll(orders)
	n := w.nodes[0]
	n.m.confirm = confirmation{held: true}
	n.want(orders, all(orders)...)
	w.pass(DefaultRetryMax)
	require.Empty(t, n.hosted, "its coordinator allocates nothing")
	n.do(SuspendCommand{})
	w.pass(DefaultRetryMax)
	require.Len(t, n.hosted, int(orders.Shards), "what was wanted meanwhile is given out")

	w = startWorld(t, 2)
	w.registerAll(orders)
	n = w.nodes[1]
	n.m.confirm = confirmation{held: true}
	w.nodes[0].want(orders, all(orders)...)
	w.pass(DefaultRetryMax)
	require.Empty(t, n.hosted, "orders to a suspended owner wait")
	n.do(SuspendCommand{})
	w.pass(2 * DefaultRetryMax)
	require.NotEmpty(t, n.hosted, "and are repeated")
}

// TestConfirmationNonsense: messages that cannot be true change nothing.
func TestConfirmationNonsense(t *testing.T) {
	w := owning(t, 2)
	a, b := w.nodes[0], w.nodes[1]
	for name, c := range map[string]struct {
		to, from *testNode
		l        message
	}{
		"a shard too many, asked": {a, b, confirmOwner{at(1), 1, []held{{30, fence(1, 9)}}}},
		"a shard too many, told":  {b, a, ownerConfirmed{head: at(1), Nonce: 1, Last: 30}},
		"another's term":          {b, a, ownerConfirmed{head: at(7), Nonce: 1}},
	} {
		before := len(c.to.hosted)
		err := c.to.m.Handle(w.now, w.now, c.from.id, c.l.kind(), c.l.append(nil))
		require.ErrorIs(t, err, ErrNonsense, name)
		c.to.collect()
		require.Len(t, c.to.hosted, before, name)
	}
}

// TestNobodyIsLeftToAsk: a sleeper that holds everybody else for Down needs nobody's word. Its resolver, or an
// operator, has decided that it lives without them: a member that gave its shards away would have to be among them. As
// long as one of them is not Down, or a node joins, it waits for that one, coordinator or not (MEM-10).
func TestNobodyIsLeftToAsk(t *testing.T) {
	for _, i := range []int{0, 2} { // the coordinator, and an owner, which takes its place
		w := owning(t, 3)
		n := w.nodes[i]
		before := len(n.hosted)
		var others []*testNode
		for _, o := range w.nodes {
			if o != n {
				o.crash()
				others = append(others, o)
			}
		}
		n.do(SuspendCommand{On: true})
		w.pass(DefaultTakeoverTime)
		require.Zero(t, n.confirmed)
		w.set(others[0].id, membership.Down)
		w.publish()
		w.pass(DefaultTakeoverTime)
		require.Zero(t, n.confirmed, "one of them may live, and may have given its shards away")
		joiner := w.join()
		w.set(others[1].id, membership.Down)
		joiner.cut[n.id] = true
		w.publish()
		w.pass(2 * DefaultRetryMax)
		require.Zero(t, n.confirmed, "somebody joins, and may have been told")
		joiner.cut[n.id] = false
		w.pass(2 * DefaultRetryMax)
		require.Equal(t, 1, n.confirmed)
		require.Len(t, n.hosted, before)
	}
	w := owning(t, 2)
	n, other := w.nodes[1], w.nodes[0]
	other.crash()
	n.do(SuspendCommand{On: true})
	w.set(other.id, membership.Down)
	require.Zero(t, n.confirmed)
	n.see()
	require.Equal(t, 1, n.confirmed, "nobody is left")
}
