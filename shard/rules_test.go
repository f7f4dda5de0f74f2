// Laws of promises, fences, settings, drain and abandonment.

package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// inject hands a message to a node as if from another.
func (w *world) inject(from, to *testNode, l message) error {
	err := to.m.Handle(w.now, w.now, from.id, l.kind(), l.append(nil))
	to.collect()
	return err
}

func at(term uint32) head { return head{Birth: testBirth, Type: orders.ID(), Term: term} }

func fence(term, epoch uint32) route.Fence { return route.MakeFence(testBirth, term, epoch) }

func one(k wire.Kind, term uint32, s route.ShardID, f route.Fence) ownership {
	return ownership{Kind: k, head: at(term), Entries: []held{{s, f}}}
}

// An order of a lower term is refused and answered with the higher one, and ends the coordinator that gave it.
func TestLowerTermIsRefused(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.pass(time.Second)
	old, next, owner := w.nodes[0], w.nodes[1], w.nodes[2]
	// The second node's view is ahead: the first has left. It collects, and the third promises.
	w.set(old.id, membership.Leaving)
	w.publish()
	w.set(old.id, membership.Exiting)
	next.see()
	w.flow()
	require.Equal(t, uint32(2), owner.m.types[orders.ID()].promise.term)
	require.NoError(t, w.inject(old, owner, one(wire.KindHostShards, 1, 4, fence(1, 999))))
	require.Empty(t, owner.hosted)
	require.Equal(t, wire.KindRegisterNak, w.queue[0].kind)
	require.Equal(t, old.id, w.queue[0].to)
	require.Positive(t, count(owner.events, StaleRefused))
	w.flow()
	require.Nil(t, old.stats(orders).Leading, "an old coordinator learns of its successor by the refusal or the question")
	require.True(t, next.stats(orders).Leading.Ready)
	old.want(orders, 4)
	w.pass(3 * time.Second)
	require.Equal(t, next.id, old.stats(orders).Coordinator, "a promise overtakes the view")
	require.Equal(t, uint32(2), old.route(orders, 4).Fence.Term())
}

// The same term is taken from the same incarnation only.
func TestEqualTermOfAnotherIncarnationIsRefused(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.pass(time.Second)
	// An up-number that contradicts the view is nonsense; one that the view does not know yet is only not promised.
	err := w.inject(w.nodes[1], w.nodes[2], one(wire.KindHostShards, 1, 4, fence(1, 999)))
	require.ErrorIs(t, err, ErrNonsense)
	joiner := w.join()
	w.publish()
	require.NoError(t, w.inject(joiner, w.nodes[2], one(wire.KindHostShards, 1, 4, fence(1, 999))))
	require.Empty(t, w.nodes[2].hosted)
	require.Equal(t, uint64(1), w.nodes[2].m.Counters().Stale)
}

// An order under a term that this node never promised is not carried out.
func TestOrderWithoutPromiseIsRefused(t *testing.T) {
	w := startWorld(t, 2)
	w.nodes[1].do(RegisterCommand{Settings: orders})
	w.queue = nil
	require.NoError(t, w.inject(w.nodes[0], w.nodes[1], one(wire.KindHostShards, 1, 4, fence(1, 7))))
	require.Empty(t, w.nodes[1].hosted)
	require.Positive(t, count(w.nodes[1].events, StaleRefused))
}

// TestOrdersOfMembers: an order of a coordinator that is Down in its reader's view is not followed, though its term was
// promised and no later one has begun. It may have been under way for long: when an electorate was founded anew since,
// it rests on the words of the dead (orders-of-members, MEM-10).
func TestOrdersOfMembers(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.pass(time.Second)
	sc, n := w.nodes[0], w.nodes[2]
	floor := n.m.types[orders.ID()].promise.floor.Epoch()
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 4, fence(1, floor+5))))
	require.Len(t, n.hosted, 1, "while it is a member")
	w.set(sc.id, membership.Down)
	n.see()
	require.Equal(t, uint32(1), n.m.types[orders.ID()].promise.term)
	ignored := n.m.Counters().Ignored
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 6, fence(1, floor+7))))
	require.Len(t, n.hosted, 1)
	w.set(sc.id, membership.Removed)
	n.see()
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 6, fence(1, floor+7))))
	require.Len(t, n.hosted, 1, "nor when it was removed")
	require.Equal(t, ignored+2, n.m.Counters().Ignored)
}

// Orders below the floor of a coordinator term, of an ended fence, or repeated, never start a shard a second time.
func TestStaleOrdersOfTheSameTerm(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.pass(time.Second)
	sc, n := w.nodes[0], w.nodes[1]
	floor := n.m.types[orders.ID()].promise.floor
	require.False(t, floor.IsZero())
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 4, fence(1, floor.Epoch()+5))))
	require.Len(t, n.hosted, 1)
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 4, fence(1, floor.Epoch()+5))), "confirmed again")
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 4, fence(1, floor.Epoch()+3))), "late: ignored")
	require.Equal(t, fence(1, floor.Epoch()+5), n.hosted[key(orders.ID(), 4)])
	w.queue = nil
	require.NoError(t, w.inject(sc, n, one(wire.KindStopShards, 1, 4, fence(1, floor.Epoch()+5))))
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 4, fence(1, floor.Epoch()+5))), "no answer yet")
	require.Empty(t, w.queue)
	n.confirm()
	require.Len(t, w.queue, 1)
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 4, fence(1, floor.Epoch()+5))), "ended: stopped again")
	require.Empty(t, n.hosted)
	require.Equal(t, wire.KindShardsStopped, w.queue[1].kind)
	// A new coordinator term of the same node: what an earlier one had under way is below its floor.
	require.NoError(t, w.inject(sc, n, reportWanted{head: at(1), Settings: orders, Floor: floor.Epoch() + 100}))
	require.NoError(t, w.inject(sc, n, one(wire.KindHostShards, 1, 6, fence(1, floor.Epoch()+50))))
	require.Empty(t, n.hosted)
}

// A home that is gone is forgotten, acknowledged, and does not come back by late mail.
func TestLateHomesAreNotBelieved(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.pass(time.Second)
	sc, n := w.nodes[0], w.nodes[2]
	home := func(f route.Fence) homes {
		return homes{head: at(1), Peers: peer.SetOf(sc.id), Entries: []home{{held{5, f}, 0}}}
	}
	require.NoError(t, w.inject(sc, n, home(fence(1, 50))))
	require.Equal(t, RouteRemote, n.route(orders, 5).State)
	require.NoError(t, w.inject(sc, n, home(fence(1, 40))), "an older home")
	require.Equal(t, fence(1, 50), n.route(orders, 5).Fence)
	w.queue = nil
	require.NoError(t, w.inject(sc, n, one(wire.KindHomesGone, 1, 5, fence(1, 50))))
	require.Equal(t, RouteUnknown, n.route(orders, 5).State)
	require.Equal(t, wire.KindHomesGoneAck, w.queue[0].kind)
	require.NoError(t, w.inject(sc, n, home(fence(1, 50))))
	require.Equal(t, RouteUnknown, n.route(orders, 5).State, "doubled mail")
	require.NoError(t, w.inject(sc, n, home(fence(1, 60))))
	require.NoError(t, w.inject(sc, n, one(wire.KindHomesGone, 1, 5, fence(1, 50))))
	require.Equal(t, fence(1, 60), n.route(orders, 5).Fence, "the newer home stands")
}

// A home on a member that this node has not met is asked for again until it has: nobody would tell of its end.
// Found by storm 45427: messages waited for ever for a peer that had come and gone while this node was cut off.
func TestHomeOnAStranger(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.pass(time.Second)
	sc, n := w.nodes[0], w.nodes[1]
	stranger := peer.ID{Addr: peer.MustAddr("10.0.0.77:7355"), Inc: 7}
	require.NoError(t, w.inject(sc, n, homes{head: at(1), Peers: peer.SetOf(stranger),
		Entries: []home{{held{5, fence(1, 50)}, 0}}}))
	require.NotEqual(t, stranger, n.route(orders, 5).Home)
}

// A refusal by the receiver forgets the route it is about, and no other; the coordinator's answer brings it back.
func TestRefusedRoute(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.nodes[0].want(orders, 0)
	w.nodes[1].want(orders, 0)
	w.pass(time.Second)
	n := w.nodes[1]
	f := n.route(orders, 0).Fence
	n.do(RefusedCommand{orders.ID(), 0, f.Term(), f.Epoch() + 1})
	require.Equal(t, RouteRemote, n.route(orders, 0).State)
	n.do(RefusedCommand{orders.ID(), 0, f.Term(), f.Epoch()})
	require.Equal(t, RouteUnknown, n.route(orders, 0).State)
	n.want(orders, 0)
	w.pass(time.Second)
	require.Equal(t, f, n.route(orders, 0).Fence)
	require.ErrorIs(t, n.m.Do(w.now, RefusedCommand{orders.ID(), 30, 1, 1}), ErrUnknownType)
}

// Settings that differ are refused naming both values, on the node that came later.
func TestSettingsMismatch(t *testing.T) {
	w := startWorld(t, 2)
	w.nodes[0].do(RegisterCommand{Settings: orders})
	other := Settings{Name: orders.Name, Shards: 31}
	w.nodes[1].do(RegisterCommand{Settings: other})
	w.pass(3 * time.Second)
	require.Len(t, w.nodes[1].refused, 1)
	err := w.nodes[1].refused[0].Err
	require.ErrorIs(t, err, ErrSettingsDiffer)
	require.Contains(t, err.Error(), "30 shards")
	require.Contains(t, err.Error(), "31 shards")
	require.ErrorIs(t, w.nodes[1].m.Do(w.now, WantCommand{orders.ID(), []route.ShardID{1}}), ErrSettingsDiffer)
	w.nodes[0].want(orders, all(orders)...)
	w.pass(time.Second)
	require.Len(t, w.nodes[0].hosted, 30, "the one that was first goes on")
	require.Empty(t, w.nodes[1].hosted)
}

// Owners hold the truth about settings too: a coordinator with others gives way to what an owner reports.
func TestCoordinatorWithOtherSettingsGivesWayToOwners(t *testing.T) {
	w := startWorld(t, 3)
	w.nodes[1].do(RegisterCommand{Settings: Settings{Name: orders.Name, Shards: 300}})
	w.queue = nil
	w.nodes[0].do(RegisterCommand{Settings: orders})
	w.nodes[2].do(RegisterCommand{Settings: orders})
	w.flow()
	w.nodes[2].want(orders, all(orders)...)
	w.pass(time.Second)
	require.NotEmpty(t, w.nodes[2].hosted)
	require.Len(t, w.nodes[1].refused, 1)
	w.nodes[1].refused = nil // the refusal is lost with its node
	w.nodes[1].m.types[orders.ID()].region.refused = nil
	w.nodes[0].crash()
	w.set(w.nodes[0].id, membership.Down)
	w.publish()
	w.promote()
	w.publish()
	w.pass(DefaultTakeoverTime + 5*time.Second)
	require.Len(t, w.nodes[1].refused, 1)
	require.Equal(t, orders, w.nodes[1].stats(orders).Leading.Settings(w.nodes[1]))
	w.nodes[2].want(orders, all(orders)...)
	w.pass(time.Second)
	require.Len(t, w.nodes[2].hosted, 30)
}

// Settings is what the coordinator term on n goes by.
func (r *CoordinatorStats) Settings(n *testNode) Settings {
	return n.m.types[orders.ID()].coord.settings
}

func TestRegisterErrors(t *testing.T) {
	w := startWorld(t, 1)
	m := w.nodes[0].m
	require.NoError(t, m.Do(w.now, RegisterCommand{Settings: orders}))
	require.ErrorIs(t, m.Do(w.now, RegisterCommand{Settings: orders}), ErrTypeExists)
	require.ErrorIs(t, m.Do(w.now, RegisterCommand{Settings: Settings{Name: "", Shards: 1}}), ErrBadSettings)
	require.ErrorIs(t, m.Do(w.now, RegisterCommand{Settings: Settings{Name: "a"}}), ErrBadSettings)
	require.ErrorIs(t, m.Do(w.now, RegisterCommand{Settings: Settings{Name: "a", Shards: route.MaxShards + 1}}),
		ErrBadSettings)
	require.ErrorIs(t, m.Do(w.now, WantCommand{Type: 77}), ErrUnknownType)
	require.ErrorIs(t, m.Do(w.now, WantCommand{orders.ID(), []route.ShardID{30}}), ErrBadCommand)
	require.ErrorIs(t, m.Do(w.now, nil), ErrBadCommand)
	m.types[route.TypeOf("other")] = &typ{id: route.TypeOf("other"), region: &region{settings: Settings{Name: "x"},
		hand: &handoffs{}}}
	require.ErrorIs(t, m.Do(w.now, RegisterCommand{Settings: Settings{Name: "other", Shards: 1}}), ErrHashCollision)
	m.cfg.MaxTypes = 2
	require.ErrorIs(t, m.Do(w.now, RegisterCommand{Settings: Settings{Name: "third", Shards: 1}}), ErrTooManyTypes)
}

// A node that leaves gives back every shard; the others get new homes at once, and its successor as coordinator starts
// without the takeover time (SHD-7).
func TestGracefulLeave(t *testing.T) {
	for _, leaver := range []int{0, 2} {
		t.Run(fmt.Sprint(leaver), func(t *testing.T) {
			w := startWorld(t, 3)
			w.registerAll(orders)
			for _, n := range w.nodes {
				n.want(orders, all(orders)...)
			}
			w.pass(time.Second)
			w.slowStop = true
			n := w.nodes[leaver]
			mine := len(n.hosted)
			n.do(LeaveCommand{})
			w.pass(time.Second)
			require.False(t, n.drained, "the entities have not stopped yet")
			require.Len(t, n.stops, mine)
			for _, o := range w.nodes {
				for _, s := range n.stops {
					require.Equal(t, RouteMoving, o.route(orders, s.Shard).State, "messages are parked meanwhile")
				}
			}
			w.slowStop = false
			w.pass(time.Second)
			require.True(t, n.drained)
			for _, o := range w.nodes {
				o.want(orders, all(orders)...)
			}
			w.pass(time.Second)
			w.agree(orders, all(orders)...)
			require.Empty(t, n.hosted)
			for _, st := range []membership.Status{membership.Leaving, membership.Exiting, membership.Removed} {
				w.set(n.id, st)
				w.publish()
				w.pass(100 * time.Millisecond)
			}
			fresh := w.join()
			w.publish()
			w.promote()
			w.publish()
			fresh.do(RegisterCommand{Settings: orders})
			fresh.want(orders, all(orders)...)
			w.pass(3 * time.Second)
			w.agree(orders, all(orders)...)
			leading := w.nodes[1].stats(orders).Leading
			if leaver == 0 {
				require.True(t, leading.Ready, "the leave notice spares the takeover time")
			}
		})
	}
}

// The last node drains by itself; one that hosts nothing, or is no member, at once; one without a coordinator after the
// patience.
func TestLeaveWithoutHelp(t *testing.T) {
	w := startWorld(t, 1)
	w.registerAll(orders)
	w.nodes[0].want(orders, 1, 2)
	require.Len(t, w.nodes[0].hosted, 2)
	w.nodes[0].do(LeaveCommand{})
	require.False(t, w.nodes[0].drained)
	w.nodes[0].confirm()
	require.True(t, w.nodes[0].drained)

	w = newWorld(t)
	n := w.join()
	n.do(LeaveCommand{})
	require.True(t, n.drained)

	w = startWorld(t, 2)
	w.registerAll(orders)
	w.nodes[1].want(orders, all(orders)...)
	w.pass(time.Second)
	w.nodes[0].deaf, w.nodes[0].until = true, w.now+time.Hour
	w.nodes[1].do(LeaveCommand{})
	w.pass(DefaultDrainPatience - time.Second)
	require.False(t, w.nodes[1].drained)
	w.pass(2*time.Second + DefaultRetryMax) // nor does anybody acknowledge its leave notice
	require.True(t, w.nodes[1].drained)
}

// A leaver refuses a shard that is on its way to it, and another region gets it.
func TestLeaverRefusesNewShards(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.nodes[0].want(orders, 0)
	w.pass(time.Second)
	w.nodes[0].want(orders, 1)
	require.Equal(t, w.nodes[1].id, w.queue[0].to)
	w.nodes[1].do(LeaveCommand{})
	require.True(t, w.nodes[1].m.leave.done)
	w.pass(time.Second)
	require.Contains(t, w.nodes[2].hosted, key(orders.ID(), 1))
	require.Empty(t, w.nodes[1].hosted)
	require.True(t, w.nodes[1].drained)
}

// A node that is Down or removed in its own view abandons everything at once.
func TestDownedNodeAbandons(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.nodes[1].want(orders, all(orders)...)
	w.pass(time.Second)
	require.NotEmpty(t, w.nodes[1].hosted)
	w.set(w.nodes[1].id, membership.Down)
	w.nodes[1].see()
	require.Empty(t, w.nodes[1].hosted)
	require.Empty(t, w.nodes[1].stops, "it does not wait")
	for s := range route.ShardID(orders.Shards) {
		require.Equal(t, RouteUnknown, w.nodes[1].route(orders, s).State)
	}
	_, ok := w.nodes[1].m.Next()
	require.False(t, ok)
	w.nodes[1].do(WantCommand{orders.ID(), []route.ShardID{1}})
	require.NoError(t, w.inject(w.nodes[0], w.nodes[1], reportWanted{head: at(1), Settings: orders, Floor: 9}))
	for _, p := range w.queue {
		require.NotEqual(t, w.nodes[1].id, p.from, "it says nothing any more")
	}
}

// A shard with a start ordered in the step in which the node learns that it is Down never begins to live (SHD-9). Its
// route does not lead here, and the runtime has nothing to stop.
func TestDownedNodeStartsNothing(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	n := w.nodes[1]
	n.want(orders, all(orders)...)
	for len(w.queue) > 0 && (w.queue[0].to != n.id || w.queue[0].kind != wire.KindHostShards) {
		w.deliver(0)
	}
	require.NotEmpty(t, w.queue, "no order to host came")
	order := w.queue[0]
	require.NoError(t, n.m.Handle(w.now, w.now, order.from, order.kind, order.body))
	w.set(n.id, membership.Down)
	n.seen = len(w.versions) - 1
	n.see()
	require.Empty(t, n.hosted)
	require.Empty(t, n.lost, "what has not begun is not abandoned")
	for s := range route.ShardID(orders.Shards) {
		require.Equal(t, RouteUnknown, n.route(orders, s).State)
	}
}

// A member that joined lately does not know of losses before its first view. It asks, and waits for those in the
// answers; with nobody to ask it waits the takeover time (see memory.go).
func TestCoordinatorThatJoinedLately(t *testing.T) {
	for _, told := range []bool{true, false} {
		w := newWorld(t)
		former := w.join() // has no role
		w.publish()
		w.promote()
		w.publish()
		lost := w.join("r")
		w.publish()
		w.promote()
		w.publish()
		s := Settings{Name: "roled", Shards: 8, Role: "r"}
		former.do(RegisterCommand{Settings: s})
		lost.do(RegisterCommand{Settings: s})
		w.flow()
		former.want(s, all(s)...)
		w.flow()
		require.Len(t, lost.hosted, 8)
		lost.silence()
		from := w.now
		w.set(lost.id, membership.Down)
		w.publish()
		w.promote()
		w.publish()
		w.pass(10 * time.Second)
		late := w.join("r")
		if told {
			w.publish()
			w.promote()
			w.publish()
		} else {
			former.crash()
			w.set(former.id, membership.Down)
			w.publish()
			w.promote()
			w.publish()
			w.promote()
			w.publish()
			from = w.now
		}
		late.do(RegisterCommand{Settings: s})
		late.want(s, all(s)...)
		w.pass(from + DefaultTakeoverTime - w.now - time.Millisecond)
		require.NotNil(t, late.stats(s).Leading)
		require.Empty(t, late.hosted)
		w.pass(4 * time.Second)
		require.Len(t, late.hosted, 8, "told %v", told)
	}
}

// A member that joins a settled coordinator gets shards only after its report, that is after its promise.
func TestLateJoinerPromisesBeforeItHosts(t *testing.T) {
	w := startWorld(t, 1)
	w.registerAll(orders)
	joiner := w.join()
	w.publish()
	w.promote()
	w.publish()
	joiner.do(RegisterCommand{Settings: orders})
	w.deliver(0)
	w.nodes[0].want(orders, 0, 1, 2)
	require.Len(t, w.nodes[0].hosted, 3, "the joiner has not promised yet")
	w.flow()
	w.nodes[0].want(orders, 3, 4, 5)
	w.pass(time.Second)
	require.Len(t, joiner.hosted, 3)
}

// A report counts for the coordinator term of the floor that it promises, and for no other.
func TestReportOfAnotherReignDoesNotCount(t *testing.T) {
	w := startWorld(t, 3)
	for _, n := range w.nodes {
		n.do(RegisterCommand{Settings: orders})
	}
	sc := w.nodes[0].m.types[orders.ID()].coord
	report := register{head: at(1), Settings: orders, Hosts: true, Knows: true, Report: true, Floor: sc.floor + 1,
		Mask: ^uint64(0)}
	require.NoError(t, w.inject(w.nodes[1], w.nodes[0], report))
	require.True(t, sc.missing().Has(w.nodes[1].id))
	report.Floor = sc.floor
	report.Mask = 1 // and a part of it is not the whole
	require.NoError(t, w.inject(w.nodes[1], w.nodes[0], report))
	require.True(t, sc.missing().Has(w.nodes[1].id))
	report.Mask = ^uint64(1)
	require.NoError(t, w.inject(w.nodes[1], w.nodes[0], report))
	require.False(t, sc.missing().Has(w.nodes[1].id))
}

// Of two reported owners of one shard, which only a broken cluster has, the higher fence stands and the other stops.
func TestTwoReportedOwners(t *testing.T) {
	w := startWorld(t, 3)
	for _, n := range w.nodes {
		n.do(RegisterCommand{Settings: orders})
	}
	sc := w.nodes[0].m.types[orders.ID()].coord
	w.queue = nil
	for i, f := range []route.Fence{fence(1, 40), fence(1, 30)} {
		n := w.nodes[i+1]
		require.NoError(t, w.inject(n, w.nodes[0], register{head: at(1), Settings: orders, Hosts: true, Knows: true,
			Report: true, Floor: sc.floor, Mask: ^uint64(0), Owned: []held{{4, f}}}))
	}
	require.True(t, sc.ready)
	require.Equal(t, w.nodes[1].id, sc.records.Peek(4).home.id)
	i := slices.IndexFunc(w.queue, func(p segment) bool { return p.kind == wire.KindStopShards })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, w.nodes[2].id, w.queue[i].to)
	require.Len(t, sc.strays, 1)
	require.NoError(t, w.inject(w.nodes[2], w.nodes[0], one(wire.KindShardsStopped, 1, 4, fence(1, 30))))
	require.Empty(t, sc.strays)
	require.Equal(t, alive, sc.records.Peek(4).phase)
}

// The report of an owner of many shards travels in parts, each within the bounds of a message.
func TestLargeReport(t *testing.T) {
	s := Settings{Name: "large", Shards: 40_000}
	w := startWorld(t, 2)
	w.nodes[0].do(RegisterCommand{Settings: s})
	w.flow()
	w.nodes[0].want(s, all(s)...)
	require.Len(t, w.nodes[0].hosted, 40_000)
	w.nodes[1].do(RegisterCommand{Settings: s})
	w.pass(time.Second)
	w.set(w.nodes[0].id, membership.Leaving)
	w.publish()
	w.set(w.nodes[0].id, membership.Exiting)
	w.publish()
	w.mails = map[wire.Kind]int{}
	w.pass(3 * time.Second)
	require.GreaterOrEqual(t, w.mails[wire.KindRegister], 3)
	leading := w.nodes[1].stats(s).Leading
	require.True(t, leading.Ready)
	require.Equal(t, []NodeShards{{w.nodes[0].id, 40_000}}, leading.Nodes)
	w.nodes[1].want(s, all(s)...)
	w.pass(time.Second)
	require.Equal(t, []NodeShards{{w.nodes[0].id, 40_000}}, w.nodes[1].stats(s).Routes)
}

// More losses than are remembered make a node blind for a takeover time: it forgets names, never caution.
func TestMemoryOverflow(t *testing.T) {
	var p memory
	for i := range maxLost + 1 {
		p.add(lostMember{id: peer.ID{Addr: peer.MustAddr("10.0.0.1:1"), Inc: uint64(i + 1)}, since: 5, removed: true}, 100)
	}
	require.Len(t, p.losses, maxLost)
	require.False(t, p.whole(104))
	m := &Machine{past: p, now: 104}
	m.learn(recentlyLost{Complete: true})
	require.False(t, m.past.whole(104), "nobody brings back what was forgotten")
	require.True(t, p.age(105))
	require.True(t, p.whole(105))
	require.Empty(t, p.losses)
}

// A loss that another node tells of lasts as long as it has left, and a member on its roll that is none here is lost.
func TestLearning(t *testing.T) {
	w := newWorld(t)
	w.join()
	n := w.join()
	n.see()
	require.False(t, n.m.past.whole(w.now))
	a := peer.ID{Addr: peer.MustAddr("10.1.0.1:1"), Inc: 1}
	b := peer.ID{Addr: peer.MustAddr("10.1.0.2:1"), Inc: 2}
	n.m.learn(recentlyLost{Lost: []loss{{ID: a}}})
	require.False(t, n.m.past.whole(w.now), "the blind do not lead the blind")
	w.now += 15 * time.Second
	n.m.Tick(w.now)
	n.m.learn(recentlyLost{Complete: true, Lost: []loss{{ID: a, Age: 8 * time.Second}}, Roll: peer.SetOf(b, n.id)})
	require.True(t, n.m.past.whole(w.now))
	require.True(t, n.m.owes(a) && n.m.owes(b))
	w.tickAt(w.now + 12*time.Second)
	require.False(t, n.m.owes(a))
	require.True(t, n.m.owes(b))
	w.tickAt(w.now + 8*time.Second)
	require.False(t, n.m.owes(b))
}

// The question is not asked while an older member is Down and not removed: no promise may strand it as the oldest.
func TestNoPromiseIsWantedBeforeRemoval(t *testing.T) {
	w := startWorld(t, 3)
	w.registerAll(orders)
	w.pass(time.Second)
	w.nodes[0].silence()
	w.set(w.nodes[0].id, membership.Down)
	w.publish()
	w.pass(5 * time.Second)
	require.Equal(t, uint32(1), w.nodes[2].m.types[orders.ID()].promise.term)
	w.promote()
	w.publish()
	w.pass(5 * time.Second)
	require.Equal(t, uint32(2), w.nodes[2].m.types[orders.ID()].promise.term)
}

// Mail of strangers, of Down members and of another cluster is ignored; mail that cannot be true is an error.
func TestMailThatIsNotAdmitted(t *testing.T) {
	w := startWorld(t, 2)
	w.registerAll(orders)
	w.pass(time.Second)
	n := w.nodes[1]
	stranger := &testNode{w: w, id: peer.ID{Addr: peer.MustAddr("10.9.9.9:1"), Inc: 4}}
	require.NoError(t, w.inject(stranger, n, reportWanted{head: at(9), Settings: orders, Floor: 1}))
	other := at(1)
	other.Birth++
	require.NoError(t, w.inject(w.nodes[0], n, signal{Kind: wire.KindRegisterAck, head: other}))
	require.Equal(t, uint64(2), n.m.Counters().Ignored)
	require.Equal(t, uint32(1), n.m.types[orders.ID()].promise.term)
	require.ErrorIs(t, w.inject(w.nodes[0], n, one(wire.KindHostShards, 1, 30, fence(1, 99))), ErrNonsense)
	require.ErrorIs(t, w.inject(w.nodes[0], n, one(wire.KindHostShards, 1, 3, fence(2, 99))), ErrNonsense)
	require.ErrorIs(t, w.inject(n, w.nodes[0], ask{at(1), []route.ShardID{30}}), ErrNonsense)
	require.ErrorIs(t, w.inject(w.nodes[0], n, nak{head: at(9), Reason: nakTerm, Coordinator: w.nodes[0].id}), ErrNonsense)
	require.Error(t, n.m.Handle(w.now, w.now, w.nodes[0].id, wire.KindGossip, nil))
}
