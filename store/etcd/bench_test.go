//go:build linux

// What a commit costs beside transactions of etcd of the same sizes in the same run.

package etcd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kith-io/kith/internal/lab/storebench"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/store/storetest"
)

// runs numbers the runs of benchmarks of one process: each has keys of its own.
var runs atomic.Int64

// opener opens a store with keys of its own at each call, until the benchmark that asks for it is over.
func opener(b *testing.B) func(*testing.B) store.Store {
	s := need(b)
	return func(b *testing.B) store.Store {
		st, err := Open(context.Background(), s.config(), fmt.Sprintf("bench%d/", runs.Add(1)))
		require.NoError(b, err)
		b.Cleanup(func() { _ = st.Close() })
		return st
	}
}

func BenchmarkDurable(b *testing.B) { storebench.Rates(b, opener(b)) }

func BenchmarkLatency(b *testing.B) { storebench.Latency(b, opener(b)) }

func BenchmarkDelivery(b *testing.B) { storebench.Delivery(b, opener(b)) }

// BenchmarkCommit makes one owner for each shard commit as many records of 256 bytes at once, then transactions of etcd
// that compare one key and put as many values of that size. It reports both, a second, and their ratio.
func BenchmarkCommit(b *testing.B) {
	s := need(b)
	state := string(make([]byte, 256))
	for _, c := range []struct{ shards, writes int }{{1, 1}, {1, 32}, {8, 16}} {
		b.Run(fmt.Sprintf("shards=%d/writes=%d", c.shards, c.writes), func(b *testing.B) {
			ctx, f := context.Background(), fence(1)
			st, run := open(b, s), fmt.Sprint("run", runs.Add(1))
			at := func(n int) store.Shard { return store.Shard{Type: run, N: route.ShardID(n)} }
			for n := range c.shards {
				_, err := st.Claim(ctx, at(n), f)
				require.NoError(b, err)
			}
			ours := share(b, c.shards, func(n int, version uint64) error {
				w := make([]store.Write, c.writes)
				for i := range w {
					w[i] = storetest.Put(fmt.Sprint("ledger", i), version, state)
				}
				return st.Commit(ctx, at(n), f, w...)
			})
			value := string(make([]byte, head+len("ledger00")+4+len(state)))
			bare := share(b, c.shards, func(n int, version uint64) error {
				ops := make([]clientv3.Op, c.writes)
				for i := range ops {
					ops[i] = clientv3.OpPut(fmt.Sprintf("bare/%s/%d/ledger%d", run, n, i), value)
				}
				_, err := st.kv.Txn(ctx).If(revision(fmt.Sprint("bare/", n), 0)).Then(ops...).Commit()
				return err
			})
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours, "commits/s")
			b.ReportMetric(bare, "bare-txns/s")
			b.ReportMetric(ours/bare, "commits/bare")
		})
	}
}

// share has do called b.N times, by one goroutine for each shard, and returns how often a second.
func share(b *testing.B, shards int, do func(n int, version uint64) error) float64 {
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	began := time.Now()
	for n := range shards {
		all.Go(func() {
			for version := uint64(1); left.Add(-1) >= 0; version++ {
				if err := do(n, version); err != nil {
					b.Errorf("%v", err)
					return
				}
			}
		})
	}
	all.Wait()
	return float64(b.N) / time.Since(began).Seconds()
}
