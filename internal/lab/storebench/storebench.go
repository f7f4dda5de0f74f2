// Package storebench measures what durable entities and queues cost beside an engine that is driven alone, for the
// benchmarks of the engines' modules.
package storebench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

// sized counts what is committed.
type sized struct {
	store.Store
	commits, writes, bytes atomic.Int64
}

// Commit counts and commits.
func (s *sized) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	err := s.Store.Commit(ctx, at, f, w...)
	if err == nil {
		s.commits.Add(1)
		s.writes.Add(int64(len(w)))
		for i := range w {
			s.bytes.Add(int64(len(w[i].State) + len(w[i].Outbox)))
		}
	}
	return err
}

// ledger is a state of about 256 bytes.
type ledger struct {
	N    int64
	Text string
}

// Rates has entities asked by many callers, then the engine alone driven with batches of the average size that came of
// it, by one caller for each shard, as often as there were commits. It reports commits a second of both, their ratio,
// and how large commits and records were. Each call of open returns a store that holds nothing, and that is closed when
// the benchmark that it gets is over: servers have few connections.
func Rates(b *testing.B, open func(*testing.B) store.Store) {
	for _, c := range []struct{ shards, callers int }{{1, 1}, {1, 64}, {8, 256}} {
		b.Run(fmt.Sprintf("shards=%d/callers=%d", c.shards, c.callers), func(b *testing.B) {
			st := &sized{Store: open(b)}
			e, end := ledgers(b, st, c.shards)
			took := asked(b, e, c.callers)
			end()
			durableCommits, durableWrites := rate(st.commits.Load(), took), rate(st.writes.Load(), took)
			batch := int(max(1, (st.writes.Load()+st.commits.Load()/2)/st.commits.Load()))
			size := st.bytes.Load() / max(1, st.writes.Load())
			bare := &sized{Store: open(b)}
			began := time.Now()
			driven(b, bare, c.shards, batch, int(size), int(st.commits.Load()))
			took = time.Since(began)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(durableCommits, "durable-commits/s")
			b.ReportMetric(durableWrites, "durable-writes/s")
			b.ReportMetric(float64(batch), "writes/commit")
			b.ReportMetric(float64(size), "bytes/write")
			b.ReportMetric(rate(bare.commits.Load(), took), "bare-commits/s")
			b.ReportMetric(durableCommits/rate(bare.commits.Load(), took), "durable/bare")
		})
	}
}

// Latency asks one entity and commits one record of the same size by the engine alone, in turn, and reports the median
// of each, and their ratio: below 1 the ask takes less.
func Latency(b *testing.B, open func(*testing.B) store.Store) {
	b.StopTimer()
	e, end := ledgers(b, open(b), 1)
	defer end()
	bare, f := open(b), route.MakeFence(1, 1, 1)
	at := store.Shard{Type: "bare"}
	_, err := bare.Claim(context.Background(), at, f)
	require.NoError(b, err)
	record := store.Record{ID: "ledger", State: fmt.Appendf(nil, `{"N":1000,"Text":%q}`, text)}
	var asks, commits []time.Duration
	one := int64(1)
	b.StartTimer()
	for n := range b.N {
		began := time.Now()
		_, err := e.Ask(context.Background(), "ledger", &one)
		asks = append(asks, time.Since(began))
		require.NoError(b, err)
		record.Version, record.Nonce = uint64(n+1), [16]byte{1, byte(n), byte(n >> 8), byte(n >> 16)}
		began = time.Now()
		require.NoError(b, bare.Commit(context.Background(), at, f, store.Write{Record: record}))
		commits = append(commits, time.Since(began))
	}
	slices.Sort(asks)
	slices.Sort(commits)
	ask, commit := asks[b.N/2], commits[b.N/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ask.Microseconds()), "ask-us")
	b.ReportMetric(float64(commit.Microseconds()), "commit-us")
	b.ReportMetric(float64(ask)/float64(commit), "ask/commit")
}

// rate is how many of something there were a second.
func rate(n int64, took time.Duration) float64 { return float64(n) / took.Seconds() }

// text is what a ledger holds: six bytes of JSON each.
var text = string(make([]byte, 40))

// ledgers registers entities on a node of their own.
func ledgers(b *testing.B, st store.Store, shards int) (e *durable.Entities[int64, int64], end func()) {
	ctx := context.Background()
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(b, err)
	e, err = durable.Register(node, durable.Type[ledger, int64, int64]{Name: "ledger", Store: st, Shards: uint32(shards),
		Handle: func(tx *durable.Tx[ledger], add *int64) (int64, error) {
			tx.State.N, tx.State.Text = tx.State.N+*add, text
			return tx.State.N, nil
		}})
	require.NoError(b, err)
	require.NoError(b, node.Ready(ctx))
	return e, func() { require.NoError(b, node.Close()) }
}

// asked asks b.N times, and returns how long that took.
func asked(b *testing.B, e *durable.Entities[int64, int64], callers int) time.Duration {
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			one := int64(1)
			for left.Add(-1) >= 0 {
				if _, err := e.Ask(context.Background(), fmt.Sprint("ledger", i), &one); err != nil {
					b.Errorf("ask: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// driven commits batches of records so many times, spread over the shards.
func driven(b *testing.B, st store.Store, shards, batch, size, times int) {
	ctx, f := context.Background(), route.MakeFence(1, 1, 1)
	state, err := json.Marshal(string(make([]byte, size/6)))
	require.NoError(b, err)
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(times))
	for n := range shards {
		all.Go(func() {
			s := store.Shard{Type: "ledger", N: route.ShardID(n)}
			if _, err := st.Claim(ctx, s, f); err != nil {
				b.Errorf("claim: %v", err)
				return
			}
			w := make([]store.Write, batch)
			for version := uint64(1); left.Add(-1) >= 0; version++ {
				for i := range w {
					w[i].Record = store.Record{ID: fmt.Sprint("ledger", i), Version: version, State: state,
						Nonce: [16]byte{1, byte(version), byte(version >> 8)}}
				}
				if err := st.Commit(ctx, s, f, w...); err != nil {
					b.Errorf("commit: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
