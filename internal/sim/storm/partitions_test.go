// Partitions in storms: which seeds draw them, and that instances are placed, handed over and moved (PRT-1).

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPartitionsInStorms: a storm with partitions breaks no rule; some are there in the end, and leaders have written
// more than one epoch of them.
func TestPartitionsInStorms(t *testing.T) {
	there, epochs := 0, uint64(0)
	for seed, drawn := uint64(1), 0; drawn < 3; seed++ {
		s := newStorm(seed, nil, false)
		if _, is := s.draw(OffPartitions, 3); !is {
			continue
		}
		drawn++
		require.Empty(t, s.run().violations, "seed %d", seed)
		for _, h := range s.w.Hosts {
			if h.Process == nil || h.Process.View == nil {
				continue
			}
			for _, p := range h.Process.View.Partitions {
				there++
				epochs += p.Epoch
			}
		}
	}
	require.Positive(t, there)
	require.Greater(t, epochs, uint64(there), "they change")
}
