// The hot path of pools: no allocation for a message, and what the choice of a worker costs beside a message to an
// entity.

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// poolPair is counterPair with a pool beside the counters: the second node alone has workers.
func poolPair(t testing.TB, mode kith.Mode) (regions [2]*kith.Region, pools [2]*kith.PoolRef, n *atomic.Int64) {
	n = &atomic.Int64{}
	nodes := make([]*kith.Node, 2)
	for i := range nodes {
		cfg := kith.Config{Name: "test", Membership: quick(), MailboxBudget: 4 << 30,
			Sharding: kith.Sharding{TakeoverTime: 20 * time.Minute}}
		if i == 1 {
			cfg.Roles, cfg.Seeds = []string{"host"}, []string{nodes[0].Addr().String()}
		}
		node, err := kith.Start(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = node.Close() })
		nodes[i] = node
		regions[i], err = node.Register(kith.EntityType{Name: "counter", Role: "host", Mode: mode, MailboxBytes: 1 << 30,
			Shards: 128, New: func(string, kith.Fence) kith.Handler { return &counter{n} }})
		require.NoError(t, err)
		pools[i], err = kith.Pool{Name: "crew", Role: "host", Mode: mode, MailboxBytes: 1 << 30,
			New: func() kith.Handler { return &counter{n} }}.Register(node)
		require.NoError(t, err)
	}
	for _, node := range nodes {
		require.NoError(t, node.Ready(t.Context()))
	}
	for i := range nodes {
		for id := range entities {
			_, err := regions[i].Ask(t.Context(), entities[id], nil)
			require.NoError(t, err)
		}
		for pools[i].Workers()[nodes[1].ID()] == 0 {
			_, err := pools[i].Ask(t.Context(), nil)
			require.NoError(t, err)
		}
		for range 100 {
			_, err := pools[i].Ask(t.Context(), nil)
			require.NoError(t, err)
		}
	}
	return regions, pools, n
}

// entities are as many as a pool has workers by default.
var entities = func() (ids [kith.DefaultPerNode]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("e", i)
	}
	return ids
}()

func TestPoolAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	payload := make([]byte, 64)
	const messages = 50_000
	for _, mode := range []kith.Mode{kith.Worker, kith.Blocking} {
		_, pools, n := poolPair(t, mode)
		for i, where := range []string{"remote", "local"} {
			t.Run(mode.String()+"/"+where, func(t *testing.T) {
				run := func() {
					from := n.Load()
					for sent := int64(1); sent <= messages; sent++ {
						for pools[i].Tell(payload) != nil {
							spin(t, func() bool { return n.Load()-from >= sent-1 })
						}
						if sent%1000 == 0 {
							spin(t, func() bool { return n.Load()-from >= sent })
						}
					}
				}
				run()
				require.Less(t, float64(quietest(3, run))/messages, 0.02, "allocations per message")
			})
		}
	}
}

// BenchmarkPool is messages one way, and asks of 16 askers at once, to the workers of a pool and to as many entities:
// ns/op, and for asks the 50th and 99th percentile in microseconds.
func BenchmarkPool(b *testing.B) {
	payload := make([]byte, 64)
	for _, mode := range []kith.Mode{kith.Worker, kith.Blocking} {
		regions, pools, n := poolPair(b, mode)
		for i, where := range []string{"remote", "local"} {
			tells := map[string]func(k int) error{
				"region": func(k int) error {
					return regions[i].TellWait(context.Background(), entities[k%len(entities)], payload)
				},
				"pool": func(int) error { return pools[i].TellWait(context.Background(), payload) },
			}
			asks := map[string]func(k int, into []byte) error{
				"region": func(k int, into []byte) error {
					_, err := regions[i].AskWithin(patience, entities[k%len(entities)], payload, into)
					return err
				},
				"pool": func(_ int, into []byte) error { _, err := pools[i].AskWithin(patience, payload, into); return err },
			}
			for _, what := range []string{"region", "pool"} {
				b.Run(fmt.Sprintf("tell/%v/%s/%s", mode, where, what), func(b *testing.B) {
					b.ReportAllocs()
					from := n.Load()
					for k := range b.N {
						if err := tells[what](k); err != nil {
							b.Fatal(err)
						}
					}
					spin(b, func() bool { return n.Load()-from >= int64(b.N) })
				})
				b.Run(fmt.Sprintf("ask/%v/%s/%s", mode, where, what), func(b *testing.B) {
					askAll(b, asks[what])
				})
			}
		}
	}
}

// askAll has 16 askers share b.N asks.
func askAll(b *testing.B, ask func(k int, into []byte) error) {
	const askers = 16
	var group sync.WaitGroup
	took := make([][]time.Duration, askers)
	for a := range askers {
		group.Go(func() {
			into := make([]byte, 0, 64)
			for k := a; k < b.N; k += askers {
				began := time.Now()
				if err := ask(k, into); err != nil {
					b.Error(err)
					return
				}
				took[a] = append(took[a], time.Since(began))
			}
		})
	}
	group.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}
