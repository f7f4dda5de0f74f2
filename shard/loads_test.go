// Loads: measured where shards run, sent to the coordinator at the pace of rounds, and made even by LoadAware (SHD-6).

package shard

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

var skews = flag.Int("skews", 20, "random skews of load that are made even through the coordinator")

// spread returns the load of each node, and the mean.
func (w *world) spread() (at map[peer.ID]float64, mean float64) {
	at = map[peer.ID]float64{}
	for _, n := range w.nodes {
		at[n.id] = 0
		for _, s := range all(orders) {
			if _, lives := n.hosted[key(orders.ID(), s)]; lives {
				at[n.id] += float64(w.costs(s).Rate)
			}
		}
		mean += at[n.id] / float64(len(w.nodes))
	}
	return at, mean
}

// least returns a lower bound of the moves that bring each node to within a tenth of the mean.
func (w *world) least() int {
	at, mean := w.spread()
	over, under := 0, 0
	var heaviest []float64
	for _, s := range all(orders) {
		heaviest = append(heaviest, float64(w.costs(s).Rate))
	}
	slices.Sort(heaviest)
	needed := func(list []float64, much float64) (n int) {
		for ; much > 0 && n < len(list); n++ {
			much -= list[len(list)-1-n]
		}
		return n
	}
	for _, n := range w.nodes {
		var own []float64
		for _, s := range all(orders) {
			if _, lives := n.hosted[key(orders.ID(), s)]; lives {
				own = append(own, float64(w.costs(s).Rate))
			}
		}
		slices.Sort(own)
		over += needed(own, at[n.id]-1.1*mean)
		under += needed(heaviest, 0.9*mean-at[n.id])
	}
	return max(over, under)
}

// From random skews load-aware rebalancing, through the machines, ends with every node within a tenth of the mean, soon
// and by few moves, no shard moves twice, and then nothing moves (SHD-6).
func TestLoadAwareThroughTheCoordinator(t *testing.T) {
	total, fewest := 0, 0
	for seed := range *skews {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		rates := make([]uint32, orders.Shards)
		for i := range rates {
			rates[i] = 100 + uint32(rng.IntN(900))
		}
		w := startWorld(t, 2+rng.IntN(3))
		w.costs = func(s route.ShardID) strategy.Load { return strategy.Load{Rate: rates[s]} }
		pile := rng.IntN(len(w.nodes)) // gets half of what has no home
		place := &answers{allocate: func(v *strategy.View, s route.ShardID) (peer.ID, error) {
			if rng.IntN(2) == 0 {
				return v.Regions[pile].ID, nil
			}
			return v.Regions[rng.IntN(len(v.Regions))].ID, nil
		}}
		aware := &weighed{*place, strategy.LoadAware{}}
		for _, n := range w.nodes {
			n.balances(10 * time.Second)
			n.do(RegisterCommand{Settings: orders, Strategy: aware})
		}
		w.flow()
		w.nodes[0].want(orders, all(orders)...)
		w.pass(time.Second)
		least := w.least()
		w.pass(5 * time.Minute)
		boss := w.nodes[0]
		at, mean := w.spread()
		for id, load := range at { // each alone: no order
			require.InDelta(t, mean, load, 0.1*mean+1, "seed %d: %v of %v", seed, id, at)
		}
		moved := map[route.ShardID]bool{}
		for _, e := range boss.events {
			if e.Kind == MoveDone {
				require.False(t, moved[e.Shard], "seed %d: shard %d moves twice", seed, e.Shard)
				moved[e.Shard] = true
			}
		}
		require.LessOrEqual(t, len(moved), 2*least+2, "seed %d", seed)
		total, fewest = total+len(moved), fewest+least
		w.pass(5 * time.Minute)
		require.Equal(t, len(moved), count(boss.events, MoveBegan), "seed %d: it does not come to rest", seed)
		require.Zero(t, boss.m.Counters().Placing.Faults)
	}
	t.Logf("%d skews: %d moves, at least %d are needed", *skews, total, fewest)
}

// weighed allocates by functions and rebalances by load.
type weighed struct {
	answers
	strategy.LoadAware
}

func (w *weighed) Allocate(v *strategy.View, s route.ShardID) (peer.ID, error) {
	return w.answers.Allocate(v, s)
}
func (w *weighed) Rebalance(v *strategy.View) ([]strategy.Move, error) {
	return w.LoadAware.Rebalance(v)
}

// loadMails counts the messages with loads, of both kinds.
func loadMails(w *world) int { return w.mails[wire.KindShardLoads] + w.mails[wire.KindShardStrains] }

// Loads are measured only of types with a strategy that reads them, at the pace of rounds, and shown to it only when
// every region that has shards has sent them; with how strained its node is, where the coordinator knows that (SHD-6,
// PRT-5).
func TestLoadsAreToldToWhoAsks(t *testing.T) {
	w := placedBy(t, 3, nil)
	w.costs = func(route.ShardID) strategy.Load { return strategy.Load{Rate: 10, Entities: 2} }
	w.pass(time.Minute)
	require.Zero(t, loadMails(w))

	w = placedBy(t, 3, strategy.LoadAware{})
	w.costs = func(s route.ShardID) strategy.Load { return strategy.Load{Rate: 10, Entities: 2, Queued: 500} }
	w.strain = strategy.NodeLoad{Processor: 700, Collector: 30, Memory: 20}
	for _, n := range w.nodes {
		n.balances(10 * time.Second)
	}
	w.nodes[2].balances(-1)
	boss := w.nodes[0].m.types[orders.ID()].coord.moves
	w.pass(time.Minute)
	require.Nil(t, boss.placing.list(boss.view()).Loads, "one has not told")
	require.InDelta(t, 5, loadMails(w), 1, "one of two regions is the coordinator's")
	w.nodes[2].balances(10 * time.Second)
	w.pass(time.Minute)
	v := boss.placing.list(boss.view())
	require.Len(t, v.Loads, 30)
	require.Equal(t, strategy.Load{Rate: 10, Entities: 2, Queued: 500}, v.Loads[7])
	require.InDelta(t, w.now-20*time.Second, v.Since, float64(11*time.Second))
	require.Equal(t, strategy.Load{Rate: 100, Entities: 20, Queued: 5000}, v.Regions[1].Load)
	require.Equal(t, 10, v.Regions[1].Measured)
	require.ErrorIs(t, w.nodes[1].m.Do(w.now, LoadsCommand{Type: 9}), ErrUnknownType)

	require.Equal(t, w.strain, v.Regions[1].Node)
	require.EqualValues(t, 500, v.Loads[7].Queued)
	require.Zero(t, w.mails[wire.KindShardLoads])

	w.nodes[1].m.cfg.Strains, w.nodes[2].m.cfg.Strains = nil, nil // as if the coordinator spoke version 11
	w.pass(25 * time.Second)
	require.Positive(t, w.mails[wire.KindShardLoads])
	v = boss.placing.list(boss.view())
	require.Equal(t, strategy.Load{Rate: 10, Entities: 2}, v.Loads[17])
	require.Zero(t, v.Regions[1].Node, "none is better than one of before")
	require.Equal(t, w.strain, v.Regions[0].Node, "of the coordinator's own node")

	w.nodes[1].m.cfg.Moves = nil // as if the coordinator spoke version 4
	w.nodes[1].replan()
	before := loadMails(w)
	w.pass(35 * time.Second)
	require.InDelta(t, before+3, loadMails(w), 1, "of one node alone")
}

// A member that comes has its share in one round also where loads decide, which are measured anew only a good while
// later; among those that have some a round is as long as ever (SHD-6).
func TestLoadAwareFillsWhoComesInOneRound(t *testing.T) {
	w := placedBy(t, 3, strategy.LoadAware{})
	w.costs = func(route.ShardID) strategy.Load { return strategy.Load{Rate: 10, Entities: 2} }
	w.balances(DefaultRebalanceInterval)
	boss := w.nodes[0]
	boss.m.cfg.MaxMoves = 2
	w.pass(time.Minute)
	mv := boss.m.types[orders.ID()].coord.moves
	require.Equal(t, 2, mv.longest(mv.view()))
	late := w.join()
	late.m.cfg.RebalanceInterval = DefaultRebalanceInterval
	w.publish()
	w.promote()
	w.publish()
	late.do(RegisterCommand{Settings: orders, Strategy: strategy.LoadAware{}})
	w.pass(3 * time.Second)
	require.InDelta(t, 7, len(late.hosted), 1)
	begun := count(boss.events, MoveBegan)
	w.pass(5 * time.Minute)
	require.Equal(t, begun, count(boss.events, MoveBegan), "it comes to rest")
}
