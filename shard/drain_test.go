// Draining: everything moves away from a node that stays a member.

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

// drains makes a node drain, or not any more.
func (n *testNode) drains(on bool) error {
	err := n.m.Do(n.w.now, DrainCommand{On: on})
	n.collect()
	n.w.flow()
	return err
}

// draining is a world in which the shards of a type live on three nodes.
func draining(t *testing.T, roles ...string) *world {
	w := startWorld(t, 3, roles...)
	w.registerAll(orders)
	w.nodes[0].want(orders, all(orders)...)
	w.pass(time.Minute)
	for _, n := range w.nodes {
		require.Len(t, n.hosted, 10)
	}
	return w
}

// A node that drains gives away everything by moves and gets nothing, stays a member, coordinates on if it did, and
// gets its share when the drain is taken back (SHD-7). Both verbs may be said twice.
func TestDrainMovesEverythingAway(t *testing.T) {
	for name, who := range map[string]int{"coordinator": 0, "another": 1} {
		t.Run(name, func(t *testing.T) {
			w := draining(t)
			boss, n := w.nodes[0], w.nodes[who]
			require.NoError(t, n.drains(true))
			require.NoError(t, n.drains(true), "twice")
			w.pass(time.Minute)
			on, hosted := Draining(n.m)
			require.True(t, on)
			require.Zero(t, hosted)
			require.Empty(t, n.hosted)
			require.Equal(t, 10, count(boss.events, MoveDone), "all of them by moves")
			require.Equal(t, membership.Up, w.status(n))
			require.NotNil(t, boss.stats(orders).Leading)
			w.balances(10 * time.Second)
			w.pass(time.Minute)
			for _, n := range w.nodes {
				n.want(orders, all(orders)...)
			}
			w.pass(time.Second)
			w.agree(orders, all(orders)...)
			require.Empty(t, n.hosted, "nothing comes back by the balance")
			require.NoError(t, n.drains(false))
			require.NoError(t, n.drains(false), "twice")
			w.pass(2 * time.Minute)
			require.Len(t, n.hosted, 10, "its share")
		})
	}
}

// lets has the shards of a type linger in drains, or go in the one under way.
func (n *testNode) lets(linger bool) {
	n.do(LingerCommand{Type: orders.ID(), On: linger})
	n.w.flow()
}

// Shards of a type that lingers stay where they are in a drain, get no company, and go when that is said; that the last
// drain let them go says nothing of the next one (SHD-7, PRT-4).
func TestDrainLeavesWhatLingers(t *testing.T) {
	w := draining(t)
	boss, n := w.nodes[0], w.nodes[1]
	require.ErrorIs(t, n.m.Do(w.now, LingerCommand{Type: 7, On: true}), ErrUnknownType)
	n.lets(true)
	for range 2 {
		require.NoError(t, n.drains(true))
		w.pass(DefaultDrainPatience / 2)
		require.Len(t, n.hosted, 10)
		move := MoveCommand{Type: orders.ID(), Shard: hostedBy(w.nodes[2], orders), To: n.id}
		require.ErrorIs(t, boss.m.Do(w.now, move), ErrIneligible)
		n.lets(false)
		w.pass(time.Second)
		require.Empty(t, n.hosted)
		require.NoError(t, n.drains(false))
		n.lets(false) // late: it says nothing of the next drain
		w.balances(10 * time.Second)
		w.pass(2 * time.Minute)
		require.Len(t, n.hosted, 10)
	}
	require.Zero(t, count(boss.events, MoveAborted))
}

// What lingers goes by itself in the end, also where a new coordinator begins meanwhile, and at once when its node
// leaves; of a drain that was taken back nothing goes (SHD-7, PRT-4).
func TestWhatLingersGoesInTheEnd(t *testing.T) {
	for name, then := range map[string]func(w *world, boss, n *testNode){
		"alone": func(*world, *testNode, *testNode) {},
		"coordinator": func(w *world, boss, _ *testNode) {
			boss.crash()
			w.set(boss.id, membership.Down)
			w.publish()
			w.promote()
			w.publish()
		},
		"leaves": func(w *world, _, n *testNode) {
			n.do(LeaveCommand{})
			w.flow()
			w.pass(time.Second)
			require.Empty(t, n.hosted)
		},
		"back": func(w *world, _, n *testNode) {
			require.NoError(t, n.drains(false))
			w.pass(time.Minute)
			require.Len(t, n.hosted, 10)
			require.NoError(t, n.drains(true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := draining(t)
			boss, n := w.nodes[0], w.nodes[1]
			n.lets(true)
			require.NoError(t, n.drains(true))
			w.pass(DefaultDrainPatience / 2)
			require.Len(t, n.hosted, 10)
			then(w, boss, n)
			w.pass(2 * time.Minute)
			require.Empty(t, n.hosted)
		})
	}
}

// A drain is even also where its moves go a few at a time: a shard on its way, or free before its next owner has it,
// counts there (SHD-7). It did not while it was free, and a rolling update left 5 and 3 of 8.
func TestDrainIsEvenAFewAtATime(t *testing.T) {
	for _, guess := range []int{0, firstPace, firstPace / 2, firstPace / 3} {
		w := draining(t)
		for _, n := range w.nodes {
			n.m.pace = pace{guess: guess}
		}
		require.NoError(t, w.nodes[0].drains(true))
		w.pass(time.Minute)
		require.Equal(t, []int{0, 15, 15}, []int{len(w.nodes[0].hosted), len(w.nodes[1].hosted), len(w.nodes[2].hosted)})
	}
}

// The next coordinator knows of a drain, though its predecessor fell in the middle of it: what is left moves away, and
// nothing comes (SHD-7, SHD-8).
func TestDrainOutlivesItsCoordinator(t *testing.T) {
	w := draining(t)
	boss, n := w.nodes[0], w.nodes[2]
	boss.m.cfg.MaxMoves = 2
	require.NoError(t, n.m.Do(w.now, DrainCommand{On: true}))
	n.collect()
	boss.crash()
	w.set(boss.id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(time.Minute)
	require.NotNil(t, w.nodes[1].stats(orders).Leading)
	n.want(orders, all(orders)...)
	w.pass(time.Minute)
	require.Empty(t, n.hosted)
	require.Len(t, w.nodes[1].hosted, 30)
}

// A node that could leave its shards to nobody gets an error and nothing changes: one that is alone, also as the only
// one with the role of a type. So is one that leaves.
func TestDrainNeedsSomebody(t *testing.T) {
	alone := startWorld(t, 1)
	alone.registerAll(orders)
	alone.nodes[0].want(orders, all(orders)...)
	alone.pass(time.Second)
	require.ErrorIs(t, alone.nodes[0].drains(true), ErrNobodyTakes)
	require.Len(t, alone.nodes[0].hosted, 30)
	on, hosted := Draining(alone.nodes[0].m)
	require.False(t, on)
	require.Equal(t, 30, hosted)

	w := startWorld(t, 1, "r")
	w.join()
	w.publish()
	w.promote()
	w.publish()
	s := Settings{Name: "roles", Shards: 4, Role: "r"}
	w.registerAll(s)
	err := w.nodes[0].drains(true)
	require.ErrorIs(t, err, ErrNobodyTakes)
	require.ErrorContains(t, err, `"roles"`)
	require.NoError(t, w.nodes[1].drains(true), "it hosts nothing in any case")

	w.nodes[1].do(LeaveCommand{})
	require.ErrorIs(t, w.nodes[1].drains(true), ErrLeaving)
}

// While nothing may move, what a draining node has stays there and is served; it moves when things are well again.
func TestDrainWaitsForCalm(t *testing.T) {
	w := draining(t)
	n := w.nodes[1]
	ill := w.join()
	w.set(ill.id, membership.Down)
	w.publish()
	require.NoError(t, n.drains(true))
	w.pass(10 * time.Second)
	require.Len(t, n.hosted, 10, "a member is Down")
	w.promote()
	w.publish()
	w.pass(time.Minute)
	require.Empty(t, n.hosted)
}

// Both of two nodes may drain; then no node is left that takes anything, and what they have stays and is served.
func TestAllDrain(t *testing.T) {
	w := draining(t)
	for _, n := range w.nodes {
		require.NoError(t, n.drains(true))
	}
	w.pass(time.Minute)
	hosted := 0
	for _, n := range w.nodes {
		n.want(orders, all(orders)...)
		hosted += len(n.hosted)
	}
	w.pass(time.Minute)
	require.Equal(t, 30, hosted)
	w.agree(orders, all(orders)...)
	require.NoError(t, w.nodes[1].drains(false))
	w.pass(time.Minute)
	require.Len(t, w.nodes[1].hosted, 30)
}

// A node that drains may leave, and has nothing to hand over then.
func TestDrainedNodeLeaves(t *testing.T) {
	w := draining(t)
	n := w.nodes[1]
	require.NoError(t, n.drains(true))
	w.pass(time.Minute)
	n.do(LeaveCommand{})
	w.pass(time.Second)
	require.True(t, n.drained)
}

// A shard that nobody takes comes back from each move. It is tried again, at ever longer pauses, in which it is served,
// and the rest of its member moves meanwhile. It goes when a node takes it. Moves without a pause were 78 a second of a
// leaver, for as long as it had time; nothing was served (storm 1127910771).
func TestWhatComesBackIsServedForAWhile(t *testing.T) {
	for name, begin := range map[string]func(n *testNode){
		"drains": func(n *testNode) { require.NoError(n.w.t, n.drains(true)) },
		"leaves": func(n *testNode) { n.do(LeaveCommand{Within: time.Hour}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := draining(t)
			boss, owner, other := w.nodes[0], w.nodes[1], w.nodes[2]
			s := of(owner)
			other.want(orders, s)
			w.flow()
			owner.m.cfg.MaxHandOver = 3
			w.slowStop = true
			served, looks := 0, 0
			pass := func(d time.Duration) {
				for end := w.now + d; w.now < end; looks++ {
					w.pass(10 * time.Millisecond)
					for _, stop := range slices.Clone(owner.stops) {
						if stop.Shard == s {
							owner.answer(rest(s, stop.Fence, []byte("left")))
						}
					}
					owner.confirm()
					w.flow()
					if other.route(orders, s).State == RouteRemote {
						served++
					}
				}
			}
			begin(owner)
			pass(20 * time.Second)
			require.Len(t, owner.hosted, 1)
			require.Contains(t, owner.hosted, key(orders.ID(), s))
			returned := boss.m.Counters().Moves.Returned
			require.GreaterOrEqual(t, returned, uint64(10), "it is tried again and again")
			require.LessOrEqual(t, returned, uint64(15))
			require.Greater(t, served, looks*9/10)
			owner.m.cfg.MaxHandOver = 4
			pass(DefaultRetryMax)
			require.Empty(t, owner.hosted)
			require.Empty(t, boss.m.types[orders.ID()].coord.moves.back, "nothing is kept of it")
		})
	}
}

// A word to the coordinator for which the courier has no room is said again, though the answer to an earlier one comes
// later: a drain that is taken back is taken back everywhere. Found by storm 700000018 (SHD-7).
func TestDrainIsTakenBackBehindAFullCourier(t *testing.T) {
	w := draining(t)
	boss, n := w.nodes[0], w.nodes[1]
	require.NoError(t, n.drains(true))
	w.pass(time.Minute)
	require.Empty(t, n.hosted)
	full := time.Duration(-1)
	n.m.cfg.UnderWay = func(to peer.ID, since time.Duration) (is, lost bool) {
		return false, to == boss.id && full >= since
	}
	n.cut[boss.id], full = true, w.now
	require.NoError(t, n.drains(false))
	n.cut[boss.id] = false
	late := signal{Kind: wire.KindRegisterAck, head: n.m.head(orders.ID(), boss.stats(orders).Leading.Term)}
	require.NoError(t, n.m.Handle(w.now, w.now, boss.id, late.Kind, late.append(nil)))
	n.collect()
	w.balances(10 * time.Second)
	w.pass(2 * time.Minute)
	require.Len(t, n.hosted, 10, "its share")
	require.Zero(t, n.m.types[orders.ID()].region.retry.at, "and then said no more")
}
