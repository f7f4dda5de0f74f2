// Tests of the recorder: quantiles, snapshots that go on and that start anew, bounds, and a real node behind it.

package latency_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/latency"
)

func TestSnapshotAndTake(t *testing.T) {
	r := latency.New()
	require.Empty(t, r.Snapshot())
	for i := range 1000 {
		r.Record(kith.HandlerTime, "b", time.Duration(i+1)*time.Microsecond)
	}
	r.Record(kith.AskTime, "b", time.Millisecond)
	r.Record(kith.HandlerTime, "a", -time.Second) // a clock that went back
	r.Record(kith.HandlerTime, "a", time.Hour)
	for range 2 {
		s := r.Snapshot()
		require.Len(t, s, 3)
		require.Equal(t, []string{"a handler 2", "b handler 1000", "b ask 1"}, []string{name(s[0]), name(s[1]), name(s[2])})
		near(t, 500*time.Microsecond, s[1].P50)
		near(t, 990*time.Microsecond, s[1].P99)
		near(t, 250*time.Microsecond, s[1].Quantile(25))
		near(t, time.Microsecond, s[1].Min)
		near(t, time.Millisecond, s[1].Max)
		near(t, 500*time.Microsecond, s[1].Mean)
		near(t, 100*time.Nanosecond, s[0].Min)
		near(t, 2*time.Minute, s[0].Max)
	}
	s := r.Take()
	b, err := s[1].Encode()
	require.NoError(t, err)
	h, err := hdrhistogram.Decode(b)
	require.NoError(t, err)
	require.EqualValues(t, 1000, h.TotalCount())
	require.Empty(t, r.Take(), "began anew")
	require.EqualValues(t, 1000, s[1].Count, "what was taken stays")
}

func name(s latency.Series) string { return fmt.Sprint(s.Type, " ", s.Measure, " ", s.Count) }

// near allows for the two digits of a histogram, and its least step.
func near(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InDelta(t, float64(want), float64(got), float64(want)/50+200)
}

// Types over the bound are counted, and cost nothing else.
func TestSeriesAreBounded(t *testing.T) {
	r := latency.New()
	for i := range latency.MaxSeries + 3 {
		r.Record(kith.HandlerTime, fmt.Sprint(i), time.Millisecond)
	}
	require.Len(t, r.Snapshot(), latency.MaxSeries)
	require.EqualValues(t, 3, r.Dropped())
}

func TestRecordAllocatesNothing(t *testing.T) {
	r := latency.New()
	r.Record(kith.HandlerTime, "a", time.Millisecond)
	require.Zero(t, testing.AllocsPerRun(1000, func() { r.Record(kith.HandlerTime, "a", time.Millisecond) }))
}

type echo struct{}

func (echo) Receive(c *kith.Context, payload []byte) error { return c.Reply(payload) }
func (echo) Stop(*kith.Context)                            {}

// A real node tells of its handlers in every mode of execution, and of its asks: one of so many of each (CARD-5).
func TestNodeTellsItsLatencies(t *testing.T) {
	const every, asks = 4, 400
	r := latency.New()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	node, err := kith.Start(ctx, kith.Config{Latency: r.Record, LatencyEvery: every, Workers: 1, DataLoops: 1})
	require.NoError(t, err)
	defer node.Close()
	require.NoError(t, node.Ready(ctx))
	modes := map[string]kith.Mode{"blocking": kith.Blocking, "inline": kith.Inline, "worker": kith.Worker}
	var wg sync.WaitGroup
	for typ, mode := range modes {
		region, err := node.Register(kith.EntityType{Name: typ, Shards: 4, Mode: mode,
			New: func(string, kith.Fence) kith.Handler { return echo{} }})
		require.NoError(t, err)
		wg.Go(func() {
			for i := range asks {
				if _, err := region.Ask(ctx, fmt.Sprint(i%10), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var handled, asked int64
	for _, s := range r.Snapshot() {
		require.Contains(t, modes, s.Type)
		require.Positive(t, s.Count)
		require.LessOrEqual(t, s.P50, s.P99)
		if s.Measure == kith.AskTime {
			asked += s.Count
		} else {
			handled += s.Count
		}
	}
	require.Len(t, r.Snapshot(), 2*len(modes))
	// Each goroutine and each stripe of the table of asks counts for itself, begins with one, and goes on at random
	// distances: the number has a standard deviation of about its root over the root of three.
	const all = 3 * asks
	off := int64(6 * math.Sqrt(all/every/3.0))
	require.GreaterOrEqual(t, asked, int64(all/every)-off)
	require.LessOrEqual(t, asked, int64(all/every)+off+8)
	require.GreaterOrEqual(t, handled, int64(all/every/16/2)) // rarer where they come fast
	require.LessOrEqual(t, handled, int64(all/every+asks))
}
