// What durable entities cost beside the engine itself, driven with the same batches and records in the same run.

package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
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
	*Store
	commits, writes, bytes atomic.Int64
}

// Commit counts and commits.
func (s *sized) Commit(ctx context.Context, at store.Shard, f route.Fence, w ...store.Write) error {
	err := s.Store.Commit(ctx, at, f, w...)
	if err == nil {
		s.commits.Add(1)
		s.writes.Add(int64(len(w)))
		for i := range w {
			s.bytes.Add(int64(len(w[i].State)))
		}
	}
	return err
}

// ledger is a state of about 256 bytes.
type ledger struct {
	N    int64
	Text string
}

// BenchmarkDurable has entities asked by many callers, then the engine alone driven with batches of the average size
// that came of it, by one caller for each shard, as often as there were commits. It reports commits a second of both,
// their ratio, and how large commits and records were.
func BenchmarkDurable(b *testing.B) {
	for _, c := range []struct{ shards, callers int }{{1, 1}, {1, 64}, {8, 256}} {
		b.Run(fmt.Sprintf("shards=%d/callers=%d", c.shards, c.callers), func(b *testing.B) {
			st := &sized{Store: open(b, filepath.Join(b.TempDir(), "a.db"))}
			text := string(make([]byte, 40)) // six bytes of JSON each
			took := asked(b, st, c.shards, c.callers, text)
			durableCommits, durableWrites := rate(st.commits.Load(), took), rate(st.writes.Load(), took)
			batch := int(max(1, (st.writes.Load()+st.commits.Load()/2)/st.commits.Load()))
			size := st.bytes.Load() / max(1, st.writes.Load())
			bare := &sized{Store: open(b, filepath.Join(b.TempDir(), "b.db"))}
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

func rate(n int64, took time.Duration) float64 { return float64(n) / took.Seconds() }

// asked asks b.N times, and returns how long that took.
func asked(b *testing.B, st store.Store, shards, callers int, text string) time.Duration {
	ctx := context.Background()
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(b, err)
	defer func() { require.NoError(b, node.Close()) }()
	e, err := durable.Register(node, durable.Type[ledger, int64, int64]{Name: "ledger", Store: st, Shards: uint32(shards),
		Handle: func(tx *durable.Tx[ledger], add *int64) (int64, error) {
			tx.State.N, tx.State.Text = tx.State.N+*add, text
			return tx.State.N, nil
		}})
	require.NoError(b, err)
	require.NoError(b, node.Ready(ctx))
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			one := int64(1)
			for left.Add(-1) >= 0 {
				if _, err := e.Ask(ctx, fmt.Sprint("ledger", i), &one); err != nil {
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
