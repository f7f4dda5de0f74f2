// Tests of what storms keep alive.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStormsKeepDaemonsAlive: seeds that draw daemons call them often, and find nothing wrong (SHD-12).
func TestStormsKeepDaemonsAlive(t *testing.T) {
	runs, drawn := 0, 0
	for seed := uint64(1); seed <= 12; seed++ {
		s := newStorm(seed, nil, false)
		r := s.run()
		require.Empty(t, r.violations, "seed %d", seed)
		if s.keeps != nil {
			drawn++
			runs += s.keeps.runs
		}
	}
	require.Greater(t, drawn, 3)
	require.Greater(t, runs, 50*drawn)
}
