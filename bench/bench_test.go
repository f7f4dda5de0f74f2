// Tests of figures, latencies, baselines and bare links. Nothing here judges a time.

package bench

import (
	"context"
	"encoding/json"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

func TestMediansOfWhatWasMeasured(t *testing.T) {
	rounds := []Figures{{"a": 3, "b": 1}, {"a": 1}, {"a": 2, "b": 2}}
	require.Equal(t, Figures{"a": 2, "b": 1.5}, Medians(rounds))
	require.Equal(t, map[string]Spread{"a": {2, 1, 3}, "b": {1.5, 1, 2}}, Spreads(rounds))
	require.Equal(t, []string{"a", "b"}, Medians(rounds).Names())
	require.Empty(t, Medians(nil))
}

// A figure that was not measured is absent, never zero.
func TestRatiosNeedBothSides(t *testing.T) {
	f := Figures{"x": 6, "y": 3, "zero": 0, "rate": 1e6, "bulk_gbps": 0.8}
	f.Ratio("x_over_y", "x", "y")
	f.Ratio("no_of", "gone", "y")
	f.Ratio("no_by", "x", "gone")
	f.Ratio("by_zero", "x", "zero")
	f.OfBulk("of_bulk", "rate", "bulk_gbps")
	f.OfBulk("of_bulk_gone", "gone", "bulk_gbps")
	f.OfBulk("of_no_bulk", "rate", "gone")
	f.Set("nan", math.NaN())
	f.Set("inf", math.Inf(1))
	f.Set("set", 1)
	require.Equal(t, Figures{"x": 6, "y": 3, "zero": 0, "rate": 1e6, "bulk_gbps": 0.8, "x_over_y": 2, "of_bulk": 0.1,
		"set": 1}, f)
	g := Figures{}
	g.OfBulk("of_bulk", "rate", "bulk_gbps")
	require.Empty(t, g)
	g.Merge(f)
	require.Equal(t, f, g)
}

func TestFiguresAreRoundedForReading(t *testing.T) {
	b, err := json.Marshal(Figures{"rate": 12345678, "ns": 0.00123456, "zero": 0, "minus": -98765, "x_allocs_y": 0.00012,
		"allocs": 1.23456})
	require.NoError(t, err)
	require.JSONEq(t, `{"rate":12350000,"ns":0.001235,"zero":0,"minus":-98770,"x_allocs_y":0,"allocs":1.235}`, string(b))
	var back Figures
	require.NoError(t, json.Unmarshal(b, &back))
	require.InDelta(t, 12350000, back["rate"], 0)
}

func TestLatency(t *testing.T) {
	l := NewLatency()
	require.Zero(t, l.Quantile(50))
	for i := 1; i <= 1000; i++ {
		l.Record(time.Duration(i) * time.Microsecond)
	}
	l.Record(0)              // below the range: its lower end
	l.Record(24 * time.Hour) // above: its upper end
	require.EqualValues(t, 1002, l.Count())
	require.InEpsilon(t, 500, Micros(l.Quantile(50)), 0.002)
	require.InEpsilon(t, 990, Micros(l.Quantile(99)), 0.002)
	require.InEpsilon(t, maxLatency, l.Max(), 0.002)

	b, err := l.Encode()
	require.NoError(t, err)
	back, err := DecodeLatency(b)
	require.NoError(t, err)
	require.Equal(t, l.Quantile(99), back.Quantile(99))
	back.Merge(l)
	require.EqualValues(t, 2004, back.Count())
	_, err = DecodeLatency([]byte("nonsense"))
	require.Error(t, err)

	f := Figures{}
	l.Figures(f, "ask1_inline", "_p2")
	NewLatency().Figures(f, "nothing", "")
	require.Equal(t, []string{"ask1_inline_p50_us_p2", "ask1_inline_p99_us_p2"}, f.Names())
}

// pipe returns both ends of a loopback connection.
func pipe(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		got <- c
	}()
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b = <-got
	require.NotNil(t, b)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestBulk(t *testing.T) {
	a, b := pipe(t)
	sent := make(chan error, 1)
	go func() { sent <- BulkSend(a, 30*time.Millisecond) }()
	n, took, err := BulkReceive(b)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Positive(t, n)
	require.Positive(t, took)
}

func TestPingPong(t *testing.T) {
	a, b := pipe(t)
	ponged := make(chan error, 1)
	go func() { ponged <- Pong(b) }()
	l, err := Ping(a, 300*time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, <-ponged)
	require.Positive(t, l.Count())
	require.Equal(t, 112, PingSize)
	require.Equal(t, 80, PongSize)
}

func TestPingOfNobody(t *testing.T) {
	a, b := pipe(t)
	require.NoError(t, b.Close())
	_, err := Ping(a, time.Minute)
	require.Error(t, err)
}

// Every frame that the link accepted arrives, from one producer and from many.
func TestBareLinkDeliversWhatItAccepts(t *testing.T) {
	for _, producers := range []int{1, 8} {
		s, err := NewLinkSink(kith.TLS{})
		require.NoError(t, err)
		addr, inc := s.Addr()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		n, err := SendLink(ctx, addr, inc, producers, 100*time.Millisecond, kith.TLS{})
		require.NoError(t, err)
		require.Positive(t, n)
		require.Eventually(t, func() bool { return s.Count() == n }, time.Minute, time.Millisecond)
		require.NoError(t, s.Close())
		cancel()
	}
	_, err := SendLink(context.Background(), "no host:0:1", 1, 1, time.Millisecond, kith.TLS{})
	require.Error(t, err)
}

func TestUsageGrows(t *testing.T) {
	before := Now()
	kept := make([][]byte, 0, 1000)
	for range 1000 {
		kept = append(kept, make([]byte, 100))
	}
	allocs, _ := Now().Per(before, 1000)
	require.GreaterOrEqual(t, allocs, 1.0)
	require.Less(t, allocs, 2.0)
	require.Len(t, kept, 1000)
}

func TestProfileWritesFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	p, err := StartProfile(dir, "sender")
	require.NoError(t, err)
	_, err = StartProfile(dir, "other")
	require.Error(t, err, "one at a time")
	require.NoError(t, p.Stop())
	for _, name := range []string{"sender.cpu.pprof", "sender.heap.pprof", "sender.mutex.pprof", "sender.trace"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Positive(t, info.Size(), name)
	}
	_, err = StartProfile(filepath.Join(dir, "sender.trace", "below-a-file"), "x")
	require.Error(t, err)
}

func TestLoadValidate(t *testing.T) {
	good := Load{Mode: Ask, Size: 64, Entities: 1, Senders: 1, Inflight: 1, Duration: time.Second, Timeout: time.Second}
	require.NoError(t, good.Validate())
	require.NoError(t, Load{Mode: Tell, Size: 16, Entities: 1, Senders: 1, Duration: 1, Stamp: true}.Validate())
	err := Load{Mode: "shout", Rate: -1}.Validate()
	for _, field := range []string{"mode", "size", "entities", "senders", "inflight", "rate", "duration", "timeout"} {
		require.ErrorContains(t, err, field)
	}
	require.ErrorContains(t, Load{Mode: Tell, Size: 15, Stamp: true}.Validate(), "at least 16")
	_, err = Load{}.Run(context.Background(), nil)
	require.Error(t, err)
}

func TestIDsHaveTheSizeThatOfBulkCounts(t *testing.T) {
	for _, i := range []int{0, 1, 999_999_999} {
		require.Len(t, ID(i), IDBytes)
	}
	require.Len(t, IDs(3), 3)
	require.Equal(t, UserBytes, IDBytes+PayloadBytes)
}

// However short a measure is, it sees messages arrive: entities do not publish their counts in step, and blocking ones
// publish each.
func TestSinkCountsSmoothly(t *testing.T) {
	for _, c := range []struct {
		mode  kith.Mode
		slack uint64 // of one entity
	}{{kith.Inline, publishEvery - 1}, {kith.Worker, publishEvery - 1}, {kith.Blocking, 0}} {
		s := NewSink()
		make1 := s.Type("x", 1, c.mode, "").New
		var all []kith.Handler
		for range 10 * publishEvery {
			all = append(all, make1("", kith.Fence{}))
		}
		n, last := uint64(0), uint64(0)
		for round := range 4 * publishEvery {
			for _, e := range all {
				require.NoError(t, e.Receive(nil, []byte{opTell}))
				n++
			}
			now := s.Count()
			require.LessOrEqual(t, n-now, c.slack*uint64(len(all)))
			require.Greater(t, now, last, "round %d: %s", round, c.mode)
			last = now
		}
	}
}
