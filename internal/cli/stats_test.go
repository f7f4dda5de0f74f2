// Tests of the statistics line: rates and latencies of a node under traffic.

package cli

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// counter answers every ask.
type counter struct{}

func (*counter) Receive(c *kith.Context, _ []byte) error { return c.Reply(nil) }
func (*counter) Stop(*kith.Context)                      {}

// Rates and latencies are those since the line before; counters are those since the start.
func TestStatsLine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	r := NewReporter(&out)
	var cfg kith.Config
	r.Times(&cfg, 1)
	node, err := kith.Start(ctx, cfg)
	require.NoError(t, err)
	defer node.Close()
	require.NoError(t, node.Ready(ctx))
	region, err := node.Register(kith.EntityType{Name: "counter", Shards: 3,
		New: func(string, kith.Fence) kith.Handler { return &counter{} }})
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
	require.Eventually(t, func() bool { return node.Stats().Types[0].Handled == asks }, time.Minute, time.Millisecond)
	l := r.line(r.last.Add(2 * time.Second))
	require.Len(t, l.Types, 1)
	require.InDelta(t, asks/2., l.Types[0].HandledPerSecond, 0.01)
	require.EqualValues(t, asks, l.Types[0].Ask.Samples)
	require.EqualValues(t, asks+1, l.Types[0].Handler.Samples, "each ask, and the entity's New, which is a call too")
	require.GreaterOrEqual(t, l.Types[0].Ask.P50, l.Types[0].Handler.Min)
	l = r.line(r.last.Add(time.Second))
	require.Zero(t, l.Types[0].HandledPerSecond)
	require.Nil(t, l.Types[0].Ask)
	require.EqualValues(t, asks, l.Stats.Types[0].Handled)
}
