// Tests of session leases in storms.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
)

// TestStormsHoldSessions: seeds in which nodes hold session leases, and the store is away at times: sessions run out,
// some come back, some are ended, and no node handles anything when its session was ended (MEM-10, AVL-5).
func TestStormsHoldSessions(t *testing.T) {
	drawn, ranOut, backs, swaps := 0, 0, 0, 0
	for seed := uint64(1); seed <= 60 && drawn < 8; seed++ {
		s := newStorm(seed, nil, false)
		if s.w.Config.SessionTTL == 0 {
			continue
		}
		r := s.run()
		require.Empty(t, r.violations, "seed %d", seed)
		drawn++
		at := &s.w.Leases.Sessions
		ranOut, backs, swaps = ranOut+at.RanOut, backs+at.Backs, swaps+at.Swaps
	}
	t.Logf("%d storms: sessions ran out %d times, came back %d times, %d were ended", drawn, ranOut, backs, swaps)
	require.Equal(t, 8, drawn)
	require.Greater(t, ranOut, backs)
	require.Greater(t, backs, 10)
	require.Greater(t, swaps, 5)
}

// TestLongStormsHoldSessions: fifty of them, each twice to the same trace. Two hundred from this seed on were clean
// when sessions came.
func TestLongStormsHoldSessions(t *testing.T) {
	long.Test(t)
	drawn := 0
	for seed := uint64(10_001); drawn < 50; seed++ {
		s := newStorm(seed, nil, false)
		if s.w.Config.SessionTTL == 0 {
			continue
		}
		drawn++
		once := s.run()
		again := newStorm(seed, nil, false).run()
		require.Equal(t, once.hash, again.hash, "seed %d", seed)
		for _, v := range once.violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}
}
