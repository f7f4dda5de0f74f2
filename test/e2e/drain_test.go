// Tests of draining over real sockets.

package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// drainable is a cluster of nodes that look at the balance quickly and have one type; each of its shards has a home.
func drainable(t *testing.T, n int, l *ledger) ([]*kith.Node, []*kith.Region) {
	var regions []*kith.Region
	nodes := cluster(t, n, func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond },
		func(_ int, n *kith.Node) {
			r, err := n.Register(echoType("x", kith.Worker, l, func() *kith.Node { return n }))
			require.NoError(t, err)
			regions = append(regions, r)
		})
	for i := range 256 {
		_, err := regions[0].Ask(within(t), fmt.Sprint("first", i), []byte("where"))
		require.NoError(t, err)
	}
	return nodes, regions
}

func hosted(n *kith.Node) int { return n.Stats().Types[0].Hosted }

// Nodes drain in turn, the coordinator first, while it and others send: what lived there moves away, nothing comes
// back, nothing is lost, doubled or overtaken, and each gets its share again when its drain is taken back (SHD-7).
func TestDrainUnderTraffic(t *testing.T) {
	t.Parallel()
	l := newLedger()
	nodes, regions := drainable(t, 3, l)
	var stop atomic.Bool
	var senders sync.WaitGroup
	sent := make([]int, len(nodes))
	for i := range nodes {
		senders.Go(func() { sent[i] = sendsTo(t, regions[i], i, &stop) })
	}
	for _, n := range nodes {
		require.NoError(t, n.Drain(within(t)))
		require.Zero(t, hosted(n))
		require.NoError(t, n.Drain(within(t)), "twice")
		require.True(t, n.Health().Draining)
		eventually(t, func() bool { return n.Health().Ready() }, "it serves")
		require.True(t, n.Stats().Sharding.Draining)
		require.Equal(t, 3, n.View().CountUp(), "it stays a member")
		require.NoError(t, n.Undrain(within(t)))
		require.False(t, n.Health().Draining)
		require.NoError(t, n.Undrain(within(t)), "twice")
		eventually(t, func() bool { return hosted(n) >= 5 }, "its share")
	}
	stop.Store(true)
	senders.Wait()
	l.await(t, sent[0]+sent[1]+sent[2])
	require.NoError(t, nodes[2].Leave(within(t)))
	require.ErrorIs(t, nodes[2].Drain(within(t)), kith.ErrStopped)
}

// A drain that nobody could take the shards of changes nothing; one that does not end in time goes on, and says what is
// left; one that is taken back ends for its waiters.
func TestDrainThatCannotBe(t *testing.T) {
	t.Parallel()
	alone, regions := drainable(t, 1, newLedger())
	require.ErrorIs(t, alone[0].Drain(within(t)), kith.ErrNobodyTakes)
	require.False(t, alone[0].Health().Draining)
	_, err := regions[0].Ask(within(t), "a", []byte("where"))
	require.NoError(t, err)

	nodes, _ := drainable(t, 2, newLedger())
	require.NoError(t, nodes[0].Drain(within(t)))
	eventually(t, func() bool { return hosted(nodes[1]) == 16 }, "all at the other one")
	over, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- nodes[1].Drain(over) }() // the other one is up, and takes nothing
	eventually(t, func() bool { return nodes[1].Health().Draining }, "it drains")
	cancel()
	var late *kith.DrainError
	err = <-result
	require.ErrorAs(t, err, &late)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 16, late.Shards)
	require.Equal(t, 16, hosted(nodes[1]), "it serves them on")

	go func() { result <- nodes[1].Drain(context.Background()) }()
	eventually(t, func() bool {
		require.NoError(t, nodes[1].Undrain(within(t)))
		select {
		case err = <-result:
			return true
		default:
			return false
		}
	}, "the end of the wait")
	require.ErrorIs(t, err, kith.ErrDrainCancelled)
	require.Equal(t, 16, hosted(nodes[1]))
}
