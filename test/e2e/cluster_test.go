// Tests of whole clusters: forming, routing in order in each mode, leaving, crashes.

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
	"github.com/kith-io/kith/internal/base/port"
)

var modes = []kith.Mode{kith.Blocking, kith.Worker, kith.Inline}

// echoCluster is a cluster of nodes with an echo type of each mode.
func echoCluster(t *testing.T, n int, prepare func(i int, cfg *kith.Config)) (
	[]*kith.Node, map[kith.Mode][]*kith.Region, map[kith.Mode]*ledger) {
	t.Helper()
	regions, ledgers := map[kith.Mode][]*kith.Region{}, map[kith.Mode]*ledger{}
	for _, m := range modes {
		ledgers[m] = newLedger()
	}
	nodes := cluster(t, n, prepare, func(i int, node *kith.Node) {
		for _, m := range modes {
			r, err := node.Register(echoType(m.String(), m, ledgers[m], func() *kith.Node { return node }))
			require.NoError(t, err)
			regions[m] = append(regions[m], r)
		}
	})
	return nodes, regions, ledgers
}

// Several senders on each node tell entities of each mode, wherever they live, and every entity sees each sender's
// messages complete and in order (SHD-3, SHD-4, SHD-5, SHD-9).
func TestTellsKeepOrder(t *testing.T) {
	t.Parallel()
	// More loops and workers than cores, so that Inline shards are fought over; and nodes that differ in connections.
	nodes, regions, ledgers := echoCluster(t, 3, func(i int, cfg *kith.Config) {
		cfg.DataLoops, cfg.Workers, cfg.DataConnections = 3, 3, 1+i
	})
	const senders, entities, rounds = 2, 40, 25
	ctx := within(t)
	for _, mode := range modes { // on a busy machine the third node gets its share when the others have theirs
		eventually(t, func() bool {
			homes := map[string]bool{}
			for e := range entities {
				at, err := regions[mode][0].Ask(ctx, fmt.Sprintf("e%d", e), []byte("where"))
				require.NoError(t, err)
				homes[string(at)] = true
			}
			return len(homes) == len(nodes)
		}, "%v entities live on all nodes", mode)
	}
	var wg sync.WaitGroup
	for _, mode := range modes {
		for i := range nodes {
			for s := range senders {
				wg.Go(func() {
					for seq := range uint64(rounds) {
						for e := range entities {
							err := regions[mode][i].TellWait(ctx, fmt.Sprintf("e%d", e), numbered(i*senders+s, seq))
							if err != nil {
								t.Errorf("tell: %v", err)
								return
							}
						}
					}
				})
			}
		}
	}
	wg.Wait()
	for _, mode := range modes {
		ledgers[mode].await(t, len(nodes)*senders*entities*rounds)
		owners := map[kith.ID]bool{}
		for _, at := range ledgers[mode].owners {
			owners[at] = true
		}
		require.Len(t, owners, 3, "%v entities live on all nodes", mode)
	}
	hosted := 0
	for _, n := range nodes {
		for _, ts := range n.Stats().Types {
			hosted += ts.Hosted
			require.Empty(t, ts.Refused)
		}
	}
	require.LessOrEqual(t, hosted, 3*16, "no shard lives twice")
}

// A graceful leave gives shards back, the others go on, and the leaver's entities live elsewhere (SHD-3, MEM-8).
func TestLeaveRehomes(t *testing.T) {
	t.Parallel()
	nodes, regions, _ := echoCluster(t, 3, nil)
	ctx := within(t)
	where := func(node int, mode kith.Mode, id string) string {
		var reply []byte
		eventually(t, func() bool {
			var err error
			reply, err = regions[mode][node].Ask(ctx, id, []byte("where"))
			return err == nil
		}, "answer of %s", id)
		return string(reply)
	}
	for _, mode := range modes {
		for e := range 32 {
			where(0, mode, fmt.Sprintf("e%d", e))
		}
	}
	require.NoError(t, nodes[2].Leave(ctx))
	<-nodes[2].Done()
	var ended *kith.EndedError
	require.ErrorAs(t, nodes[2].Err(), &ended)
	require.Equal(t, kith.EndLeft, ended.Kind)
	require.ErrorIs(t, regions[kith.Worker][2].Tell("e1", nil), kith.ErrStopped)
	awaitView(t, nodes[0], func(v *kith.View) bool { return len(v.Members) == 2 })
	for _, mode := range modes {
		for e := range 32 {
			require.NotEqual(t, nodes[2].ID().String(), where(0, mode, fmt.Sprintf("e%d", e)))
		}
	}
}

// A node that vanishes is marked down by an operator; its shards live again elsewhere after the takeover time.
func TestCrashAndDown(t *testing.T) {
	t.Parallel()
	var rep reports
	nodes, regions, _ := echoCluster(t, 3, func(_ int, cfg *kith.Config) {
		cfg.Undelivered, cfg.Sharding.TakeoverTime = rep.take, takeover
	})
	ctx := within(t)
	var there string // an entity of the node that is going to vanish
	for e := 0; there == ""; e++ {
		id := fmt.Sprintf("e%d", e)
		at, err := regions[kith.Blocking][0].Ask(ctx, id, []byte("where"))
		if err == nil && string(at) == nodes[2].ID().String() {
			there = id
		}
		require.Less(t, e, 1000)
	}
	gone := nodes[2].Addr().String()
	// An ask under way fails promptly when its peer is lost.
	lost := make(chan error, 1)
	never := func(_ []byte, err error) { lost <- err }
	require.NoError(t, regions[kith.Blocking][0].AskFunc(patience, there, []byte("never"), never))
	links := nodes[0].Stats().Transport.Data.Out
	err := nodes[2].Close()
	if err != nil { // on a busy machine the ask waits before its entity still
		var left *kith.AbandonedError
		require.ErrorAs(t, err, &left)
		require.EqualValues(t, 1, left.Total(), err)
	}
	require.Equal(t, err, nodes[2].Close(), "closing twice")
	select {
	case err := <-lost:
		require.Error(t, err)
	case <-ctx.Done():
		require.FailNow(t, "the ask to the lost peer hangs")
	}
	// What is sent to it now waits for a connection that never comes, and is reported when the node is removed.
	eventually(t, func() bool { return nodes[0].Stats().Transport.Data.Out == links-1 }, "the link is broken")
	const held = 20
	for range held {
		require.NoError(t, regions[kith.Blocking][0].Tell(there, numbered(1, 1)))
	}
	require.NoError(t, nodes[0].Down(ctx, gone))
	awaitView(t, nodes[1], func(v *kith.View) bool { return len(v.Members) == 2 })
	eventually(t, func() bool {
		at, err := regions[kith.Blocking][0].Ask(ctx, there, []byte("where"))
		return err == nil && string(at) != nodes[2].ID().String()
	}, "%s lives again", there)
	eventually(t, func() bool { return rep.of(kith.ErrPeerLost) == held }, "what was held is reported")
	require.Error(t, nodes[0].Down(ctx, "127.0.0.1:1"), "no member at that address")
	require.Error(t, nodes[0].Down(ctx, "nonsense"))
}

// A node that joins later than the traffic began takes part, and a restart at the same address is a new incarnation
// (MEM-1).
func TestRestartAtSameAddress(t *testing.T) {
	t.Parallel()
	addr := port.Keep(t)
	nodes, _, _ := echoCluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.Listen = addr
		}
	})
	old := nodes[1].ID()
	require.NoError(t, nodes[1].Close())
	again := start(t, nil, kith.Config{Listen: addr, Seeds: []string{nodes[0].Addr().String()}})
	require.NoError(t, again.Ready(within(t)))
	require.NotEqual(t, old, again.ID())
	awaitView(t, nodes[0], func(v *kith.View) bool {
		_, gone := v.Member(old)
		return !gone && v.CountUp() == 2
	})
}

// Ready fails with the reason when the node has ended, and with the context's error when it takes too long.
func TestReady(t *testing.T) {
	t.Parallel()
	n := start(t, nil, kith.Config{Seeds: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	require.ErrorIs(t, n.Ready(ctx), context.Canceled)
	require.NoError(t, n.Close())
	var ended *kith.EndedError
	require.ErrorAs(t, n.Ready(within(t)), &ended)
	require.Equal(t, kith.EndClosed, ended.Kind)
}

// Traffic goes on while a node leaves: nothing is delivered twice or out of order, and every accepted message is
// delivered or reported as undelivered.
func TestLeaveUnderLoad(t *testing.T) {
	t.Parallel()
	var rep reports
	nodes, regions, ledgers := echoCluster(t, 3, func(_ int, cfg *kith.Config) { cfg.Undelivered = rep.take })
	ctx := within(t)
	stop := make(chan struct{})
	var accepted atomic.Int64
	var senders sync.WaitGroup
	for _, mode := range modes {
		for i := range 2 {
			senders.Go(func() {
				for seq := uint64(0); ; seq++ {
					for e := range 30 {
						if err := regions[mode][i].TellWait(ctx, fmt.Sprintf("e%d", e), numbered(i, seq)); err != nil {
							t.Errorf("tell: %v", err)
							return
						}
						accepted.Add(1)
					}
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		}
	}
	eventually(t, func() bool { return accepted.Load() > 2000 }, "traffic")
	require.NoError(t, nodes[2].Leave(ctx))
	from := accepted.Load()
	eventually(t, func() bool { return accepted.Load() > from+2000 }, "traffic")
	close(stop)
	senders.Wait()
	total := func() (delivered, reordered int, reported uint64) {
		for _, l := range ledgers {
			l.mu.Lock()
			delivered += l.delivered
			reordered += l.reordered
			l.mu.Unlock()
		}
		rep.mu.Lock()
		for _, n := range rep.count {
			reported += n
		}
		rep.mu.Unlock()
		return delivered, reordered, reported
	}
	eventually(t, func() bool {
		delivered, _, reported := total()
		return int64(delivered)+int64(reported) >= accepted.Load()
	}, "every message is delivered or reported")
	delivered, reordered, reported := total()
	t.Logf("%d accepted, %d delivered, %d reported as undelivered: %v", accepted.Load(), delivered, reported, rep.count)
	require.Zero(t, reordered, "reordered or doubled")
	require.EqualValues(t, accepted.Load(), int64(delivered)+int64(reported))
}
