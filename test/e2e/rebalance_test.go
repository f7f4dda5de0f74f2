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

// sendsTo has a sender tell numbered messages to entities of a region in turn until stop, and returns how many. It asks
// each of them now and then, and goes on when it has the answer: so it leaves the machine time for others.
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

// A node that joins gets its share of the shards at the next look at the balance, while others send to the entities in
// them: nothing is lost, doubled or overtaken (SHD-6, SHD-7).
func TestALateMemberGetsItsShare(t *testing.T) {
	t.Parallel()
	l := newLedger()
	edit := func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond }
	regions := map[*kith.Node]*kith.Region{}
	registered := func(_ int, n *kith.Node) {
		r, err := n.Register(echoType("x", kith.Worker, l, func() *kith.Node { return n }))
		require.NoError(t, err)
		regions[n] = r
	}
	nodes := cluster(t, 2, edit, registered)
	for i := range 256 { // all sixteen shards get a home
		_, err := regions[nodes[0]].Ask(within(t), fmt.Sprint("first", i), []byte("where"))
		require.NoError(t, err)
	}
	var stop atomic.Bool
	var senders sync.WaitGroup
	var sent [2]int
	for i := range sent {
		senders.Go(func() { sent[i] = sendsTo(t, regions[nodes[i]], i, &stop) })
	}
	cfg := kith.Config{Seeds: []string{nodes[0].Addr().String()}}
	edit(2, &cfg)
	late := start(t, logger(t), cfg)
	registered(2, late)
	eventually(t, func() bool { return late.Stats().Types[0].Hosted == 5 }, "its share")
	stop.Store(true)
	senders.Wait()
	l.await(t, sent[0]+sent[1])
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
	l := newLedger()
	edit := func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond }
	regions := map[*kith.Node]*kith.Region{}
	own := &toOne{} // of the first node, which coordinates
	registered := func(i int, n *kith.Node) {
		typ := echoType("x", kith.Worker, l, func() *kith.Node { return n })
		typ.Strategy = &toOne{}
		if i == 0 {
			typ.Strategy = own
		}
		r, err := n.Register(typ)
		require.NoError(t, err)
		regions[n] = r
	}
	nodes := cluster(t, 2, edit, registered)
	second := nodes[1].ID()
	own.home.Store(&second)
	for i := range 256 { // all sixteen shards get a home
		_, err := regions[nodes[0]].Ask(within(t), fmt.Sprint("first", i), []byte("where"))
		require.NoError(t, err)
	}
	require.Equal(t, 16, nodes[1].Stats().Types[0].Hosted, "as the strategy says")
	var stop atomic.Bool
	var senders sync.WaitGroup
	var sent [2]int
	for i := range sent {
		senders.Go(func() { sent[i] = sendsTo(t, regions[nodes[i]], i, &stop) })
	}
	cfg := kith.Config{Seeds: []string{nodes[0].Addr().String()}}
	edit(2, &cfg)
	late := start(t, logger(t), cfg)
	registered(2, late)
	r := regions[late]
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
	stop.Store(true)
	senders.Wait()
	l.await(t, sent[0]+sent[1])
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
	l := newLedger()
	edit := func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond }
	regions := map[*kith.Node]*kith.Region{}
	seen := &weigher{} // of the first node, which coordinates
	nodes := cluster(t, 2, edit, func(i int, n *kith.Node) {
		typ := echoType("x", kith.Worker, l, func() *kith.Node { return n })
		typ.Strategy = &weigher{}
		if i == 0 {
			typ.Strategy = seen
		}
		r, err := n.Register(typ)
		require.NoError(t, err)
		regions[n] = r
	})
	var stop atomic.Bool
	var sender sync.WaitGroup
	sent := 0
	sender.Go(func() { sent = sendsTo(t, regions[nodes[1]], 1, &stop) })
	eventually(t, func() bool { return seen.rate.Load() > 0 && seen.entities.Load() > 0 }, "loads of both nodes")
	stop.Store(true)
	sender.Wait()
	l.await(t, sent)
}
