// Tests of the balance of shards between nodes that run.

package kith_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
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
