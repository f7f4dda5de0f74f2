// Tests of what waits for a process's handlers: that storms come across all of it.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/world"
)

// Storms come across what a node does with messages beyond the fast path: late answers, full tables of asks, what a
// closed gate keeps and refuses, full queues, and entities that rest or are given up after a panic, with what waits for
// them. Stop orders behind what waits are few in storms: TestStopStandsBehindWhatWaits has them (SHD-5, MEM-10).
func TestStormsTryWhatIsRefusedAndKept(t *testing.T) {
	var all world.PlaneCounts
	for seed := uint64(1); seed <= 30; seed++ {
		r := newStorm(seed, nil, false).run()
		require.Zero(t, r.total, "seed %d", seed)
		all.Add(&r.plane)
	}
	t.Logf("%+v", all)
	require.Positive(t, all.LateAnswers)
	require.Positive(t, all.AsksFull)
	require.Positive(t, all.Kept)
	require.Positive(t, all.NoPlace)
	require.Positive(t, all.QueueFull)
	require.Positive(t, all.GaveUp)
	require.Positive(t, all.GaveUpWith)
	require.Positive(t, all.CrashedThen)
}
