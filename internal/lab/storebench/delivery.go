// What a queue of package delivery costs beside the engine alone.

package storebench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/delivery"
	"github.com/kith-io/kith/store"
)

// letterBytes is the size of a message.
const letterBytes = 200

// taker is a receiver that acknowledges all.
type taker struct{}

// Receive acknowledges.
func (taker) Receive(*kith.Context, []byte) error { return nil }

// Stop does nothing.
func (taker) Stop(*kith.Context) {}

// Delivery has many callers send, each to a receiver of its own and one message behind the other, and waits until all
// is acknowledged and has left the store; then the engine alone is driven as by Rates, with as many commits of the same
// average size. It reports messages a second, from the first Send to the last acknowledgement, commits a second of
// both, their ratio, and how large commits and records were. Each call of open returns a store that holds nothing, and
// that is closed when the benchmark that it gets is over.
func Delivery(b *testing.B, open func(*testing.B) store.Store) {
	for _, c := range []struct{ shards, callers int }{{1, 1}, {1, 64}, {8, 256}} {
		b.Run(fmt.Sprintf("shards=%d/callers=%d", c.shards, c.callers), func(b *testing.B) {
			st := &sized{Store: open(b)}
			p, end := letters(b, st, c.shards)
			took := delivered(b, p, c.callers)
			end()
			commits, writes := st.commits.Load(), st.writes.Load()
			batch := int(max(1, (writes+commits/2)/commits))
			size := st.bytes.Load() / writes // each second write takes a message away, and carries nothing
			bare := &sized{Store: open(b)}
			began := time.Now()
			driven(b, bare, c.shards, batch, int(size), int(commits))
			bareTook := time.Since(began)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate(int64(b.N), took), "messages/s")
			b.ReportMetric(rate(commits, took), "queue-commits/s")
			b.ReportMetric(float64(writes)/float64(commits), "writes/commit")
			b.ReportMetric(float64(size), "bytes/write")
			b.ReportMetric(rate(commits, bareTook), "bare-commits/s")
			b.ReportMetric(bareTook.Seconds()/took.Seconds(), "queue/bare")
		})
	}
}

// letters registers a queue on a node of its own.
func letters(b *testing.B, st store.Store, shards int) (p *delivery.Producer, end func()) {
	ctx := context.Background()
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(b, err)
	to, err := node.Register(delivery.Consumer(kith.EntityType{Name: "taker",
		New: func(string, kith.Fence) kith.Handler { return taker{} }}))
	require.NoError(b, err)
	p, err = delivery.Register(node, delivery.Queue{Name: "letters", To: to, Store: st, Shards: uint32(shards),
		MaxMessages: 1 << 20, MaxBytes: 1 << 30})
	require.NoError(b, err)
	require.NoError(b, node.Ready(ctx))
	return p, func() { require.NoError(b, node.Close()) }
}

// delivered sends b.N messages, and returns how long it took until all had left the store.
func delivered(b *testing.B, p *delivery.Producer, callers int) time.Duration {
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	began := time.Now()
	for i := range callers {
		all.Go(func() {
			to, payload := fmt.Sprint("taker", i), make([]byte, letterBytes)
			for left.Add(-1) >= 0 {
				if err := p.Send(context.Background(), to, payload); err != nil {
					b.Errorf("send: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.Stats().Waiting > 0 {
		<-tick.C
	}
	require.EqualValues(b, b.N, p.Stats().Acked)
	return time.Since(began)
}
