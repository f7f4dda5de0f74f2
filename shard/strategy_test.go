// The coordinator asks the type's strategy, through the guard, and what a strategy does wrong disturbs nothing (SHD-6).

package shard

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// answers is a strategy made of functions; nil is LeastShards.
type answers struct {
	allocate  func(v *strategy.View, s route.ShardID) (peer.ID, error)
	rebalance func(v *strategy.View) ([]strategy.Move, error)
	asked     int
	rounds    int
}

func (a *answers) Allocate(v *strategy.View, s route.ShardID) (peer.ID, error) {
	a.asked++
	if a.allocate == nil {
		return strategy.LeastShards{}.Allocate(v, s)
	}
	return a.allocate(v, s)
}

func (a *answers) Rebalance(v *strategy.View) ([]strategy.Move, error) {
	a.rounds++
	if a.rebalance == nil {
		return strategy.LeastShards{}.Rebalance(v)
	}
	return a.rebalance(v)
}

// placedBy starts a world with a strategy at its first node, the coordinator, and lets every shard be wanted. Balance
// has not been looked at yet.
func placedBy(t tester, n int, s strategy.Strategy) *world {
	w := startWorld(t, n)
	w.nodes[0].balances(10 * time.Second)
	for _, n := range w.nodes {
		n.do(RegisterCommand{Settings: orders, Strategy: s})
	}
	w.flow()
	w.nodes[0].want(orders, all(orders)...)
	w.pass(settleTime / 2)
	return w
}

// A late member gets its share only when it is further behind than the threshold, and then rounds go on until nobody is
// (SHD-6).
func TestThresholdThroughTheCoordinator(t *testing.T) {
	for threshold, fewest := range map[int]int{0: 10, 4: 8, 14: 1, 15: 0} {
		s := strategy.LeastShards{Absolute: 1, Threshold: threshold}
		w := placedBy(t, 2, s)
		w.pass(time.Minute)
		require.Len(t, w.nodes[1].hosted, 15)
		late := w.join()
		w.publish()
		w.promote()
		w.publish()
		late.do(RegisterCommand{Settings: orders, Strategy: s})
		w.pass(5 * time.Minute)
		require.Len(t, late.hosted, fewest, "threshold %d", threshold)
	}
}

// Every shard without a home goes where the strategy says, which is shown what became of those before, and no shard
// (SHD-6).
func TestStrategyDecidesWhoGetsAShard(t *testing.T) {
	given := map[peer.ID]int{}
	s := &answers{}
	s.allocate = func(v *strategy.View, id route.ShardID) (peer.ID, error) {
		require.Equal(t, orders.Shards, v.Shards)
		require.Len(t, v.Regions, 3)
		for _, r := range v.Regions {
			require.Equal(t, given[r.ID], r.Count)
			require.Nil(t, r.Shards)
			require.Equal(t, "", r.Why())
		}
		to := v.Regions[1+int(id)%2].ID
		given[to]++
		return to, nil
	}
	w := placedBy(t, 3, s)
	require.Equal(t, 30, s.asked)
	require.Empty(t, w.nodes[0].hosted)
	for i, n := range w.nodes[1:] {
		for _, id := range all(orders) {
			require.Equal(t, int(id)%2 == i, n.hosted[key(orders.ID(), id)] != route.Fence{})
		}
	}
	came := 0
	// A leaver's shards move to where it says, which counts what is on its way there.
	s.allocate = func(v *strategy.View, id route.ShardID) (peer.ID, error) {
		require.Equal(t, "draining", v.Regions[1].Why())
		require.Equal(t, came%15, v.Regions[0].Coming)
		require.Nil(t, v.Moving)
		came++
		return v.Regions[0].ID, nil
	}
	w.nodes[1].do(LeaveCommand{})
	w.pass(5 * time.Second)
	require.True(t, w.nodes[1].drained)
	require.Len(t, w.nodes[0].hosted, 15)
	require.Equal(t, 45, s.asked)
	require.Equal(t, 15, count(w.nodes[0].events, MoveDone))
	require.Zero(t, w.nodes[0].m.Counters().Placing)
}

// A strategy that lets a shard wait is asked again, and that is no fault.
func TestShardWaitsForItsStrategy(t *testing.T) {
	wait := true
	s := &answers{}
	s.allocate = func(v *strategy.View, id route.ShardID) (peer.ID, error) {
		if wait && id == 7 {
			return peer.ID{}, strategy.ErrNoRegion
		}
		return strategy.LeastShards{}.Allocate(v, id)
	}
	w := placedBy(t, 2, s)
	require.Equal(t, RouteUnknown, w.nodes[0].route(orders, 7).State)
	wait = false
	w.pass(5 * time.Second)
	require.NotEqual(t, RouteUnknown, w.nodes[0].route(orders, 7).State)
	require.Zero(t, w.nodes[0].m.Counters().Placing.Faults)
}

// Whatever a strategy does wrong, shards get their homes by the default, nothing moves, and it is counted and reported
// with its reason, not more than once a second (SHD-6).
func TestBrokenStrategyDisturbsNothing(t *testing.T) {
	stranger := peer.ID{Addr: peer.MustAddr("10.9.9.9:1"), Inc: 1}
	for _, c := range []struct {
		name   string
		broken answers
		fault  strategy.Fault
	}{
		{"an error", answers{
			allocate:  func(*strategy.View, route.ShardID) (peer.ID, error) { return peer.ID{}, errors.New("no idea") },
			rebalance: func(*strategy.View) ([]strategy.Move, error) { return nil, errors.New("no idea") },
		}, strategy.Failed},
		{"a panic", answers{
			allocate:  func(*strategy.View, route.ShardID) (peer.ID, error) { panic("no idea") },
			rebalance: func(*strategy.View) ([]strategy.Move, error) { panic("no idea") },
		}, strategy.Panicked},
		{"an unknown node", answers{
			allocate: func(*strategy.View, route.ShardID) (peer.ID, error) { return stranger, nil },
			rebalance: func(v *strategy.View) ([]strategy.Move, error) {
				return []strategy.Move{{Shard: v.Regions[0].Shards[0], From: v.Regions[0].ID, To: stranger}}, nil
			},
		}, strategy.UnknownRegion},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := placedBy(t, 3, &c.broken)
			boss := w.nodes[0]
			for _, n := range w.nodes {
				require.Len(t, n.hosted, 10)
			}
			require.Equal(t, Placing{Faults: 30, Fallbacks: 30}, boss.m.Counters().Placing)
			require.Equal(t, 1, count(boss.events, StrategyFault))
			i := slices.IndexFunc(boss.events, func(e Event) bool { return e.Kind == StrategyFault })
			var fault *strategy.FaultError
			require.ErrorAs(t, boss.events[i].Err, &fault)
			require.Equal(t, c.fault, fault.Fault)
			require.Equal(t, 1, boss.events[i].Shards)
			w.pass(25 * time.Second)
			require.Equal(t, 3, c.broken.rounds, "soon after the begin, and at each interval")
			require.Zero(t, count(boss.events, MoveBegan))
			require.Equal(t, uint64(33), boss.m.Counters().Placing.Faults)
			require.Equal(t, 4, count(boss.events, StrategyFault))
			last := boss.events[len(boss.events)-1]
			require.Equal(t, StrategyFault, last.Kind)
			w.nodes[1].do(LeaveCommand{})
			w.pass(5 * time.Second)
			require.True(t, w.nodes[1].drained, "a leaver is let go")
			require.Len(t, boss.hosted, 15)
		})
	}
}

// A round that wants to move everything at once, or what is not there, moves nothing.
func TestRoundsThatCannotBe(t *testing.T) {
	s := &answers{}
	w := placedBy(t, 3, s)
	boss := w.nodes[0]
	boss.m.cfg.MaxMoves = 5
	w.pass(5 * time.Second) // the first look
	for _, c := range []struct {
		fault strategy.Fault
		round func(v *strategy.View) []strategy.Move
	}{
		{strategy.TooMany, func(v *strategy.View) (list []strategy.Move) {
			for _, s := range v.Regions[0].Shards {
				list = append(list, strategy.Move{Shard: s, From: v.Regions[0].ID, To: v.Regions[1].ID})
			}
			return list
		}},
		{strategy.NotThere, func(v *strategy.View) []strategy.Move {
			return []strategy.Move{{Shard: v.Regions[0].Shards[0], From: v.Regions[1].ID, To: v.Regions[2].ID}}
		}},
		{strategy.UnknownShard, func(v *strategy.View) []strategy.Move {
			return []strategy.Move{{Shard: 30, From: v.Regions[0].ID, To: v.Regions[1].ID}}
		}},
	} {
		before := boss.m.Counters().Placing.Faults
		s.rebalance = func(v *strategy.View) ([]strategy.Move, error) { return c.round(v), nil }
		w.pass(10 * time.Second)
		require.Equal(t, before+1, boss.m.Counters().Placing.Faults)
		var fault *strategy.FaultError
		require.ErrorAs(t, boss.events[len(boss.events)-1].Err, &fault)
		require.Equal(t, c.fault, fault.Fault)
		require.Zero(t, boss.m.Counters().Placing.Fallbacks)
	}
	require.Zero(t, count(boss.events, MoveBegan))
	s.rebalance = func(v *strategy.View) ([]strategy.Move, error) {
		if v.Regions[0].Count < 10 {
			return nil, nil
		}
		require.True(t, slices.IsSortedFunc(v.Regions[0].Shards, func(a, b route.ShardID) int {
			return boss.hosted[key(orders.ID(), a)].Compare(boss.hosted[key(orders.ID(), b)])
		}), "in the order of their allocation")
		return []strategy.Move{{Shard: v.Regions[0].Shards[0], From: v.Regions[0].ID, To: v.Regions[1].ID}}, nil
	}
	w.pass(10 * time.Second)
	require.Equal(t, 1, count(boss.events, MoveDone), "the next one that can be is carried out")
}

// A shard that does not end its move, because its stop call hangs, holds up the balance of no other shard of its type:
// strategies wait for the moves that are under way, and this one is not among them for ever (SHD-6).
func TestStuckMoveHoldsUpNoBalance(t *testing.T) {
	for name, fresh := range map[string]func() strategy.Strategy{
		"least shards": func() strategy.Strategy { return nil },
		"load-aware":   func() strategy.Strategy { return strategy.LoadAware{} },
		"hash":         func() strategy.Strategy { return &strategy.ConsistentHash{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := placedBy(t, 2, fresh())
			w.costs = func(route.ShardID) strategy.Load { return strategy.Load{Rate: 10, Entities: 2} }
			boss, owner, late := w.nodes[0], w.nodes[1], w.join()
			hung := of(owner)
			for _, n := range w.nodes {
				n.balances(10 * time.Second)
			}
			require.NoError(t, boss.move(hung, boss))
			w.slowStop = true
			w.flow()
			require.Len(t, owner.stops, 1)
			w.slowStop, owner.stops = false, nil // this one is never confirmed
			w.publish()
			w.promote()
			w.publish()
			late.do(RegisterCommand{Settings: orders, Strategy: fresh()})
			w.pass(40 * time.Second)
			if name != "hash" {
				require.Empty(t, late.hosted, "it may end soon")
			}
			w.pass(5 * time.Minute)
			require.InDelta(t, 10, len(late.hosted), 3)
			require.Contains(t, owner.hosted, key(orders.ID(), hung))
			require.Equal(t, count(boss.events, MoveBegan)-1, count(boss.events, MoveDone))
			require.Zero(t, boss.m.Counters().Placing)
			begun := count(boss.events, MoveBegan)
			w.pass(5 * time.Minute)
			require.Equal(t, begun, count(boss.events, MoveBegan), "it comes to rest")
		})
	}
}

// The strategy of the coordinator's own registration counts; where its node has not registered the type it is the
// default.
func TestStrategyOfTheCoordinatorCounts(t *testing.T) {
	s := &answers{allocate: func(v *strategy.View, _ route.ShardID) (peer.ID, error) { return v.Regions[0].ID, nil }}
	w := startWorld(t, 3)
	for _, n := range w.nodes[1:] {
		n.do(RegisterCommand{Settings: orders, Strategy: s})
	}
	w.flow()
	w.nodes[1].want(orders, 0, 1)
	w.pass(time.Second)
	require.NotNil(t, w.nodes[0].stats(orders).Leading)
	require.Zero(t, s.asked)
	w.nodes[0].do(RegisterCommand{Settings: orders, Strategy: s})
	w.nodes[1].want(orders, 2, 3, 4)
	w.pass(time.Second)
	require.Equal(t, 3, s.asked)
	require.Len(t, w.nodes[0].hosted, 3)
}

// Nothing moves for balance while an operator has paused it, a member is on its way in or out, or versions differ; a
// new shard goes to the newest version meanwhile (SHD-6).
func TestBalanceIsHeld(t *testing.T) {
	s := &answers{allocate: func(v *strategy.View, _ route.ShardID) (peer.ID, error) { return v.Regions[0].ID, nil }}
	w := placedBy(t, 2, s)
	s.allocate = nil
	boss := w.nodes[0]
	require.Len(t, boss.hosted, 30)
	change := func(edit func(s []membership.Member)) {
		state := w.state()
		edit(state)
		w.commit(state)
		w.publish()
	}
	held := func(h strategy.Hold) {
		t.Helper()
		w.pass(25 * time.Second)
		require.Zero(t, s.rounds)
		require.Equal(t, h, boss.stats(orders).Leading.Held)
		require.Zero(t, boss.stats(orders).Leading.Misplaced)
	}
	w.metadata = []cluster.Metadata{{Key: PauseKey, Value: []byte("by me")}}
	change(func([]membership.Member) {})
	held(strategy.Paused)
	w.metadata = nil
	for _, st := range []membership.Status{membership.Joining, membership.WeaklyUp} {
		change(func(s []membership.Member) { s[1].Status = st })
		held(strategy.Unstable)
	}
	change(func(s []membership.Member) { s[1].Status, s[1].AppVersion = membership.Up, "1.1" })
	held(strategy.Updating)
	change(func(s []membership.Member) { s[0].AppVersion = "1.1" })
	w.pass(2 * time.Minute)
	require.Positive(t, s.rounds)
	require.Len(t, w.nodes[1].hosted, 15)
	require.Zero(t, boss.stats(orders).Leading.Held)
}

// Shards without a home go to the newest version of the application (SHD-6).
func TestNewestVersionGetsWhatHasNoHome(t *testing.T) {
	w := startWorld(t, 3)
	state := w.state()
	for i, v := range []string{"2.0.0", "2.1.0", "2.0.9"} {
		state[i].AppVersion = v
	}
	w.commit(state)
	w.publish()
	w.registerAll(orders)
	w.nodes[0].want(orders, all(orders)...)
	w.pass(time.Second)
	require.Len(t, w.nodes[1].hosted, 30)
}

// 100,000 shards get their homes, and a round is planned, within a few steps of the regions each (SHD-6).
func TestManyShardsAreAllocatedByStrategy(t *testing.T) {
	s := Settings{Name: "many", Shards: 100_000}
	w := startWorld(t, 3)
	for _, n := range w.nodes {
		n.balances(10 * time.Second)
		n.do(RegisterCommand{Settings: s})
	}
	w.flow()
	w.nodes[0].want(s, all(s)...)
	w.pass(2 * time.Second)
	for _, n := range w.nodes {
		require.InDelta(t, 33_333, len(n.hosted), 1)
	}
	require.Zero(t, w.nodes[0].stats(s).Leading.Misplaced)
}
