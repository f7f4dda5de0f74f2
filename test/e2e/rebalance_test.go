// Tests of the balance of shards between nodes that run.

package e2e_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/shard/strategy"
)

// sendsTo makes a sender tell numbered messages to entities of a region in turn until stop, and returns how many. It
// asks each of them now and then, and goes on when it has the answer: so it leaves the machine time for others.
func sendsTo(t *testing.T, r *kith.Region, sender int, stop *atomic.Bool) (sent int) {
	ctx := within(t)
	for seq := uint64(0); !stop.Load(); seq++ {
		for e := range 32 {
			if err := r.TellWait(ctx, fmt.Sprint("e", e), numbered(sender, seq)); err != nil {
				t.Errorf("tell of sender %d: %v", sender, err)
				return sent
			}
			sent++
		}
		if _, err := r.Ask(ctx, fmt.Sprint("e", seq%32), []byte("where")); err != nil {
			t.Errorf("ask of sender %d: %v", sender, err)
			return sent
		}
	}
	return sent
}

// balance is nodes that look at their balance every 50 ms, with one type and a ledger of what its entities get.
type balance struct {
	*ledger
	t       *testing.T
	nodes   []*kith.Node
	regions map[*kith.Node]*kith.Region
	by      func(i int) strategy.Strategy // of the node of that number; nil: the usual one
}

func startBalance(t *testing.T, by func(i int) strategy.Strategy) *balance {
	b := &balance{ledger: newLedger(), t: t, regions: map[*kith.Node]*kith.Region{}, by: by}
	b.nodes = cluster(t, 2, often, b.register)
	return b
}

func often(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond }

func (b *balance) register(i int, n *kith.Node) {
	typ := echoType("x", kith.Worker, b.ledger, func() *kith.Node { return n })
	if b.by != nil {
		typ.Strategy = b.by(i)
	}
	r, err := n.Register(typ)
	require.NoError(b.t, err)
	b.regions[n] = r
}

// allocate gives all sixteen shards a home.
func (b *balance) allocate() {
	for i := range 256 {
		_, err := b.regions[b.nodes[0]].Ask(within(b.t), fmt.Sprint("first", i), []byte("where"))
		require.NoError(b.t, err)
	}
}

// joins starts a third node.
func (b *balance) joins() *kith.Node {
	cfg := kith.Config{Seeds: []string{b.nodes[0].Addr().String()}}
	often(2, &cfg)
	late := start(b.t, logger(b.t), cfg)
	b.register(2, late)
	return late
}

// send makes every node send until the returned function is called, which waits until the ledger has all that was sent.
func (b *balance) send(from ...*kith.Node) (end func()) {
	var stop atomic.Bool
	var senders sync.WaitGroup
	sent := make([]int, len(from))
	for i, n := range from {
		senders.Go(func() { sent[i] = sendsTo(b.t, b.regions[n], i, &stop) })
	}
	return func() {
		stop.Store(true)
		senders.Wait()
		sum := 0
		for _, n := range sent {
			sum += n
		}
		b.await(b.t, sum)
	}
}

// A node that joins gets its share of the shards at the next look at the balance, while others send to the entities in
// them: nothing is lost, doubled or overtaken (SHD-6, SHD-7).
func TestALateMemberGetsItsShare(t *testing.T) {
	t.Parallel()
	b := startBalance(t, nil)
	b.allocate()
	end := b.send(b.nodes...)
	late := b.joins()
	eventually(t, func() bool { return late.Stats().Types[0].Hosted == 5 }, "its share")
	end()
}

// toOne gives every shard without a home to one node, and moves nothing.
type toOne struct{ home atomic.Pointer[kith.ID] }

func (f *toOne) Allocate(v *strategy.View, s kith.ShardID) (kith.ID, error) {
	if home := f.home.Load(); home != nil {
		return *home, nil
	}
	return strategy.LeastShards{}.Allocate(v, s)
}

func (f *toOne) Rebalance(*strategy.View) ([]strategy.Move, error) { return nil, nil }

// Shards are moved by hand, under a strategy of the application's own, at a node that does not coordinate the type, to
// one that joined last, while two nodes send: nothing is lost, doubled or overtaken, and what cannot be says why
// (SHD-6, SHD-12).
func TestMoveByHandUnderOwnStrategy(t *testing.T) {
	t.Parallel()
	own := &toOne{} // of the first node, which coordinates
	b := startBalance(t, func(i int) strategy.Strategy {
		if i == 0 {
			return own
		}
		return &toOne{}
	})
	nodes := b.nodes
	second := nodes[1].ID()
	own.home.Store(&second)
	b.allocate()
	require.Equal(t, 16, nodes[1].Stats().Types[0].Hosted, "as the strategy says")
	end := b.send(nodes...)
	late := b.joins()
	r := b.regions[late]
	for s := range kith.ShardID(6) {
		eventually(t, func() bool {
			err := r.Move(within(t), s, late.ID())
			return err == nil || errors.Is(err, kith.ErrAtHome)
		}, "a move begins when all is quiet")
	}
	eventually(t, func() bool { return late.Stats().Types[0].Hosted == 6 }, "what was moved by hand, and stays there")
	require.ErrorIs(t, r.Move(within(t), 0, late.ID()), kith.ErrAtHome)
	require.ErrorIs(t, r.Move(within(t), 0, kith.ID{Addr: late.Addr(), Inc: 1}), kith.ErrUnknownNode)
	require.NoError(t, r.SetReady(within(t), false))
	eventually(t, func() bool { return errors.Is(r.Move(within(t), 9, late.ID()), kith.ErrIneligible) }, "not ready")
	require.ErrorIs(t, r.SetHomes(within(t), 1, nil), kith.ErrNotExternal)
	require.NoError(t, late.PauseRebalancing(within(t)))
	_, paused := late.View().MetadataValue(kith.RebalancingPausedKey)
	require.True(t, paused)
	require.NoError(t, nodes[0].ResumeRebalancing(within(t)))
	end()
	require.Zero(t, nodes[0].Stats().Sharding.Placing)
}

// weigher notes the largest rate that it was shown, and moves nothing.
type weigher struct {
	strategy.LeastShards
	rate, entities atomic.Uint32
}

func (w *weigher) ReadsLoads() bool { return true }

func (w *weigher) Rebalance(v *strategy.View) ([]strategy.Move, error) {
	for i := range v.Loads {
		w.rate.Store(max(w.rate.Load(), v.Loads[i].Rate))
		w.entities.Store(max(w.entities.Load(), v.Loads[i].Entities))
	}
	return nil, nil
}

// A strategy that reads loads is shown those of shards on other nodes, as measured there (SHD-6).
func TestLoadsReachTheStrategy(t *testing.T) {
	t.Parallel()
	seen := &weigher{} // of the first node, which coordinates
	b := startBalance(t, func(i int) strategy.Strategy {
		if i == 0 {
			return seen
		}
		return &weigher{}
	})
	end := b.send(b.nodes[1])
	eventually(t, func() bool { return seen.rate.Load() > 0 && seen.entities.Load() > 0 }, "loads of both nodes")
	end()
}
