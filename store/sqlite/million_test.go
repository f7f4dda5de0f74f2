// What a million passivated entities with reminders cost a shard that begins.

package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/store"
)

const million = 1_000_000

// ledger is a state of about 256 bytes.
type ledger struct {
	N    int64
	Text string
}

// BenchmarkMillionReminders fills one shard with a million records, each with a reminder, and has a node begin it: once
// with reminders that are spread over the next day, once with all of them overdue. It reports how long the first
// reminder takes from Register on, beside an empty store in the same run, how much the heap has grown by then, and how
// many are handled in ten seconds. Run it with -benchtime 1x.
func BenchmarkMillionReminders(b *testing.B) {
	for _, c := range []struct {
		name    string
		records int
		due     func(i int) time.Duration
	}{
		{"empty", 0, nil},
		{"spread", million, func(i int) time.Duration { return time.Hour + time.Duration(i)*86*time.Millisecond }},
		{"overdue", million, func(i int) time.Duration { return -time.Duration(i+1) * time.Millisecond }},
	} {
		b.Run(c.name, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "m.db")
			st := open(b, file)
			template(b, st)
			fill(b, st, c.records, c.due)
			before := heap()
			began := time.Now()
			first := make(chan time.Time, 1)
			node, e := begins(b, st, first)
			took := (<-first).Sub(began)
			grown := heap() - before
			was := e.Stats().Reminded
			if c.records > 0 {
				time.Sleep(10 * time.Second) // as long as is measured
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(took.Microseconds())/1000, "ms-to-first")
			b.ReportMetric(float64(grown)/(1<<20), "MiB-heap-then")
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-heap-later")
			b.ReportMetric(float64(e.Stats().Reminded-was)/10, "reminders/s")
			_ = node.Close() // it says what it abandons
		})
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// begins starts a node with the type. first gets the time when the first reminder was handled.
func begins(b *testing.B, st *Store, first chan time.Time) (*kith.Node, *durable.Entities[bool, bool]) {
	ctx := context.Background()
	node, err := kith.Start(ctx, kith.Config{})
	require.NoError(b, err)
	e, err := durable.Register(node, durable.Type[ledger, bool, bool]{Name: "ledger", Store: st, Shards: 1, MaxActive: 1000,
		Handle: func(tx *durable.Tx[ledger], _ *bool) (bool, error) {
			tx.State.Text = "a state of some bytes"
			return true, tx.Remind("x", time.Now(), []byte("a body of some bytes"))
		},
		Reminded: func(tx *durable.Tx[ledger], _ string, _ []byte) error {
			tx.State.N++
			select {
			case first <- time.Now():
			default:
			}
			return nil
		}})
	require.NoError(b, err)
	require.NoError(b, node.Ready(ctx))
	return node, e
}

// ahead is when the reminder of the template is due: no node lives then.
const ahead = 5 * time.Second

// template leaves one entity with a reminder.
func template(b *testing.B, st *Store) {
	s, err := kith.Start(context.Background(), kith.Config{})
	require.NoError(b, err)
	e, err := durable.Register(s, durable.Type[ledger, bool, bool]{Name: "ledger", Store: st, Shards: 1,
		Handle: func(tx *durable.Tx[ledger], _ *bool) (bool, error) {
			tx.State.Text = "a state of some bytes"
			return true, tx.Remind("x", time.Now().Add(ahead), []byte("a body of some bytes"))
		},
		Reminded: func(*durable.Tx[ledger], string, []byte) error { return nil }})
	require.NoError(b, err)
	no := false
	_, err = e.Ask(context.Background(), "template", &no)
	require.NoError(b, err)
	_ = s.Close() // it says what it abandons
}

// fill writes so many records like the template, due after so long, and has the template be due now.
func fill(b *testing.B, st *Store, records int, due func(int) time.Duration) {
	ctx, s := context.Background(), store.Shard{Type: "ledger"}
	r, err := shardOfTest(ctx, st, s)
	require.NoError(b, err)
	list, err := st.Load(ctx, s, r, "template")
	require.NoError(b, err)
	require.Len(b, list, 1)
	like, now := list[0], time.Now()
	require.NotEmpty(b, like.Reminders)
	for n := 0; n < records; n += store.MaxWrites {
		var w []store.Write
		for i := n; i < n+store.MaxWrites; i++ {
			rec := like
			rec.ID, rec.Version, rec.Due = fmt.Sprintf("entity-%07d", i), 1, now.Add(due(i))
			w = append(w, store.Write{Record: rec})
		}
		require.NoError(b, st.Commit(ctx, s, r, w...))
	}
	time.Sleep(time.Until(now.Add(ahead)))
	like.Version, like.Due = like.Version+1, now
	require.NoError(b, st.Commit(ctx, s, r, store.Write{Record: like}))
}

// shardOfTest returns the fence that a shard was claimed under.
func shardOfTest(ctx context.Context, st *Store, at store.Shard) (route.Fence, error) {
	tx, err := st.read.BeginTx(ctx, nil)
	if err != nil {
		return route.Fence{}, err
	}
	defer func() { _ = tx.Rollback() }()
	r, err := shardOf(ctx, tx, at)
	return r.fence, err
}
