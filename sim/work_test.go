// Tests of what waits for a process's handlers: that storms come across all of it, and the order of a stop.

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Storms come across what a node does with messages beyond the fast path: late answers, full tables of asks, what a
// closed gate keeps and refuses, full queues, and stop orders behind what waits (SHD-5, MEM-10).
func TestStormsTryWhatIsRefusedAndKept(t *testing.T) {
	var all tried
	for seed := uint64(1); seed <= 30; seed++ {
		s := newStorm(seed, nil, false)
		require.Zero(t, s.run().total, "seed %d", seed)
		one := s.w.check.tried
		all.lateAnswers += one.lateAnswers
		all.asksFull += one.asksFull
		all.kept += one.kept
		all.noPlace += one.noPlace
		all.queueFull += one.queueFull
		all.stopsBehind += one.stopsBehind
		all.afterAbandon += one.afterAbandon
	}
	t.Logf("%+v", all)
	require.Positive(t, all.lateAnswers)
	require.Positive(t, all.asksFull)
	require.Positive(t, all.kept)
	require.Positive(t, all.noPlace)
	require.Positive(t, all.queueFull)
	require.Positive(t, all.stopsBehind)
}
