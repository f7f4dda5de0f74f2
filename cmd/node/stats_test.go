// Tests of the statistics of node run: the lines of a process, and rates and latencies of a node under traffic.

package main

import (
	"bytes"
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A running node tells its statistics on SIGUSR1, and goes on (CARD-5).
func TestRunTellsItsStatistics(t *testing.T) {
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--demo", "--demo-shards=7")
	until(t, stderr, "node started")
	for range 2 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
		text := until(t, stderr, "stats {")
		for _, want := range []string{`"Node":"127.0.0.1:`, `"Types":[{"Type":"counter"`, `"HandledPerSecond":0`,
			`"Shards":7`,
			`"Transport":{`, `"Links":`} {
			require.Contains(t, text, want)
		}
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
}

// With --stats-every lines come by themselves.
func TestRunTellsItsStatisticsAtAPace(t *testing.T) {
	cmd, _, stderr := spawn(t, "run", "--listen=127.0.0.1:0", "--stats-every=100ms", "--latency-every=0")
	until(t, stderr, "stats {")
	until(t, stderr, "stats {")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	log := rest(stderr)
	require.NoError(t, cmd.Wait(), log)
}

// Rates and latencies are those since the line before; counters are those since the start.
func TestStatsLine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var out bytes.Buffer
	r := newReporter(&out)
	node, err := kith.Start(ctx, kith.Config{Latency: r.times.Record, LatencyEvery: 1})
	require.NoError(t, err)
	defer node.Close()
	require.NoError(t, node.Ready(ctx))
	region, err := node.Register(demo(newLedger(), 3))
	require.NoError(t, err)
	r.node, r.last = node, time.Now()
	ask := func(n int) {
		for range n {
			_, err := region.Ask(ctx, "a", nil)
			require.NoError(t, err)
		}
	}
	const asks = 20
	ask(asks)
	require.Eventually(t, func() bool { return node.Stats().Types[0].Handled == asks }, 10*time.Second, time.Millisecond)
	l := r.line(r.last.Add(2 * time.Second))
	require.Len(t, l.Types, 1)
	require.InDelta(t, asks/2., l.Types[0].HandledPerSecond, 0.01)
	require.EqualValues(t, asks, l.Types[0].Ask.Samples)
	require.EqualValues(t, asks, l.Types[0].Handler.Samples)
	require.GreaterOrEqual(t, l.Types[0].Ask.P50, l.Types[0].Handler.Min)
	l = r.line(r.last.Add(time.Second))
	require.Zero(t, l.Types[0].HandledPerSecond)
	require.Nil(t, l.Types[0].Ask)
	require.EqualValues(t, asks, l.Stats.Types[0].Handled)
}
