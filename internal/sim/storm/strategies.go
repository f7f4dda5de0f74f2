// Strategies: each type of a storm goes by one that is drawn, some of which do wrong what they can (SHD-6).

package storm

import (
	"errors"
	"math/rand/v2"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// drawStrategies gives each type a strategy, of which every process gets one of its own.
func drawStrategies(rng *rand.Rand, types []*world.EntityType, hosts []*world.Host) {
	for _, t := range types {
		seed := rng.Uint64()
		switch kind := rng.IntN(5); kind {
		case 0:
			t.Placing = func(*world.Process) strategy.Strategy { return &strategy.ConsistentHash{Key: "storm"} }
		case 1:
			t.Placing = func(*world.Process) strategy.Strategy { return wishes(hosts, seed, t.Shards) }
		case 2:
			t.Placing = func(*world.Process) strategy.Strategy { return strategy.LoadAware{} }
		case 3:
			t.Placing = func(*world.Process) strategy.Strategy {
				return strategy.LeastShards{Absolute: 3, Percent: 100, Threshold: int(seed % 4)}
			}
		default:
			t.Placing = func(p *world.Process) strategy.Strategy {
				return &erratic{rand.New(rand.NewPCG(seed, uint64(p.Index)))}
			}
		}
	}
}

// wishes is a strategy by which half of the shards are to live on hosts drawn at random, the same at each process.
func wishes(hosts []*world.Host, seed uint64, shards uint32) strategy.Strategy {
	rng := rand.New(rand.NewPCG(seed, 0))
	e := strategy.NewExternal(shards)
	var list []strategy.Wish
	for id := range shards {
		if rng.IntN(2) == 0 {
			list = append(list, strategy.Wish{Shard: route.ShardID(id), Home: hosts[rng.IntN(len(hosts))].Addr})
		}
	}
	if err := e.Update(1, list); err != nil {
		panic(err)
	}
	return e
}

// erratic answers at random: right, wrong, with an error or a panic, and plays with what it is shown.
type erratic struct{ rng *rand.Rand }

var errDice = errors.New("as the dice fell")

// Allocate names any region, or none that there is.
func (e *erratic) Allocate(v *strategy.View, s route.ShardID) (peer.ID, error) {
	switch e.rng.IntN(6) {
	case 0:
		return peer.ID{}, errDice
	case 1:
		panic(errDice)
	case 2:
		return peer.ID{Addr: peer.MustAddr("10.99.0.1:1"), Inc: 1}, nil
	case 3:
		v.Regions = v.Regions[:0]
		return peer.ID{}, strategy.ErrNoRegion
	}
	return v.Regions[e.rng.IntN(len(v.Regions))].ID, nil
}

// Rebalance moves anything anywhere.
func (e *erratic) Rebalance(v *strategy.View) (moves []strategy.Move, err error) {
	switch e.rng.IntN(8) {
	case 0:
		return nil, errDice
	case 1:
		panic(errDice)
	case 2:
		return make([]strategy.Move, v.Room()+1), nil
	}
	for range 1 + e.rng.IntN(3) {
		from := v.Regions[e.rng.IntN(len(v.Regions))]
		if len(from.Shards) > 0 {
			moves = append(moves, strategy.Move{Shard: from.Shards[e.rng.IntN(len(from.Shards))], From: from.ID,
				To: v.Regions[e.rng.IntN(len(v.Regions))].ID})
		}
	}
	return moves, nil
}
