// Tests of Config.Latency: what is timed, and that timing allocates nothing either.

package e2e_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// One of so many messages is timed in every mode of execution, reported under the name of its type, and nothing is
// allocated for it: neither when it comes from another node nor on this one (CARD-4).
func TestTimingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	payload := make([]byte, 64)
	const messages, every = 2000, 8
	for _, mode := range []kith.Mode{kith.Worker, kith.Inline, kith.Blocking} {
		t.Run(mode.String(), func(t *testing.T) {
			var told, strange atomic.Int64
			remote, local, n := counterPair(t, mode, func(c *kith.Config) {
				c.LatencyEvery = every
				c.Latency = func(what kith.Measure, typ string, took time.Duration) {
					if typ != "counter" || took < 0 || what != kith.HandlerTime && what != kith.AskTime {
						strange.Add(1)
					}
					if what == kith.HandlerTime {
						told.Add(1)
					}
				}
			})
			for _, r := range []*kith.Region{remote, local} {
				run := func() {
					from := n.Load()
					for sent := int64(0); sent < messages; sent += 500 {
						tellAll(t, r, 500, payload)
						spin(t, func() bool { return n.Load()-from >= sent })
					}
					spin(t, func() bool { return n.Load()-from == messages })
				}
				run()
				before := told.Load()
				require.Less(t, float64(quietest(10, run))/messages, 0.02, "allocations per message")
				// Several goroutines may share the work, and each counts for itself: one in 8, or rarer, down to one in
				// 128, as these messages come fast.
				require.Greater(t, told.Load()-before, int64(10*messages/every/16/2))
				require.Less(t, told.Load()-before, int64(10*messages/every*6/5))
			}
			require.Zero(t, strange.Load())
		})
	}
}

// InvalidFrames is refused before anything starts.
func TestLatencyEveryHasBounds(t *testing.T) {
	for _, every := range []int{-1, 1<<20 + 1} {
		require.ErrorContains(t, kith.Config{LatencyEvery: every}.Validate(), "LatencyEvery")
	}
	require.NoError(t, kith.Config{LatencyEvery: 1}.Validate())
}
