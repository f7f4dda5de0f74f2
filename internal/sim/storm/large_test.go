// Storms of large messages, in which every fourth message is one.

package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/stats"
)

// TestStormOfLargeMessages runs storms in which whatever is over 300 bytes goes in chunks of 256, with room for a few
// at each node: no message is delivered twice, harmed, lost without a word, or out of the order of its sender; and the
// same seed gives the same trace (SHD-9).
func TestStormOfLargeMessages(t *testing.T) { largeStorms(t, 2) }

// TestLongStormOfLargeMessages runs so many that every end comes about.
func TestLongStormOfLargeMessages(t *testing.T) {
	long.Test(t)
	sum := largeStorms(t, 8)
	require.Greater(t, sum.Taken, uint64(100), "a storm that takes few shows little")
	require.Positive(t, sum.Lost)
	require.Positive(t, sum.Cancelled)
}

func largeStorms(t *testing.T, seeds uint64) (sum stats.BulkSent) {
	for seed := uint64(1); seed <= seeds; seed++ {
		once := func() (runResult, *storm) {
			s := newStorm(seed, nil, false)
			d := &s.w.Config.Data
			d.MaxPayload, d.BulkRoom, d.BulkChunk, d.BulkStall = 300, 6<<10, 256, 5*time.Second
			return s.run(), s
		}
		r, s := once()
		for _, v := range r.violations {
			t.Errorf("seed %d: %s", seed, v)
		}
		for _, p := range s.w.Processes {
			st := world.BulkStats(p)
			sum.Taken += st.Taken
			sum.Lost += st.Lost
			sum.Refused += st.Refused
			sum.Cancelled += st.Cancelled
		}
		if seed == 1 {
			again, _ := once()
			require.Equal(t, r.hash, again.hash)
		}
	}
	t.Logf("%+v", sum)
	require.Positive(t, sum.Taken)
	return sum
}
