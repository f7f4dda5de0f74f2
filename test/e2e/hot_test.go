// Tests of the balance by handler time, over real sockets.

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
	"github.com/kith-io/kith/shard/strategy"
)

// TestHotShardMoves: two shards of one node with handlers that run long, though no more messages come to them than to
// the others, end on two nodes, in every mode (SHD-6).
func TestHotShardMoves(t *testing.T) {
	t.Parallel()
	const shards = 4
	for _, mode := range stormModes {
		t.Run(mode.String(), func(t *testing.T) {
			var hot [shards]atomic.Bool
			regions := make([]*kith.Region, 2)
			nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
				cfg.Sharding.RebalanceInterval = 300 * time.Millisecond
			}, func(i int, n *kith.Node) {
				regions[i] = register(t, n, kith.EntityType{Name: "hot", Shards: shards, Mode: mode,
					Strategy: strategy.LoadAware{Weights: strategy.Weights{HandlerTime: 1}}}, actor{
					receive: func(c *kith.Context, b []byte) error {
						for began := time.Now(); hot[c.Shard].Load() && time.Since(began) < 200*time.Microsecond; {
						}
						return c.Reply(b)
					}})
			})
			var ids [shards]string
			for k, found := 0, 0; found < shards; k++ {
				id := fmt.Sprint(k)
				if s := regions[0].Shard(id); ids[s] == "" {
					ids[s] = id
					found++
				}
			}
			homes := func() (at [shards]kith.ID) {
				rep, err := regions[0].Report(within(t))
				require.NoError(t, err)
				for _, n := range rep.Nodes {
					for _, s := range n.Shards {
						at[s.Shard] = n.Node
					}
				}
				return at
			}
			ctx, cancel := context.WithCancel(context.Background())
			var senders sync.WaitGroup
			defer senders.Wait()
			defer cancel()
			for _, id := range ids {
				_, err := regions[0].Ask(within(t), id, nil)
				require.NoError(t, err)
			}
			at := homes()
			pair := []int{0}
			for s := 1; s < shards && len(pair) < 2; s++ {
				if at[s] == at[0] {
					pair = append(pair, s)
				}
			}
			require.Len(t, pair, 2, "%v: of four shards two live with one node", at)
			for _, s := range pair {
				hot[s].Store(true)
			}
			senders.Go(func() {
				for ctx.Err() == nil {
					for _, id := range ids {
						_, _ = regions[0].AskWithin(time.Second, id, nil, nil)
					}
				}
			})
			eventually(t, func() bool {
				now := homes()
				return now[pair[0]] != now[pair[1]] && !now[pair[0]].IsZero() &&
					!now[pair[1]].IsZero()
			}, "they live apart")
			for _, n := range nodes {
				require.NoError(t, n.Err())
			}
		})
	}
}
