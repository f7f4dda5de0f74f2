// Tests of session leases and tenures in storms.

package storm

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/world"
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

// TestStormsHoldTenures: seeds in which nodes hold tenures: these run out, some come back, some are proven over, some
// electorates are founded anew, and no node handles anything when its tenure is over (MEM-10, AVL-5).
func TestStormsHoldTenures(t *testing.T) {
	var sum world.TenureBook
	for _, seed := range tenureSeeds(1, 8) {
		s := newStorm(seed, nil, false)
		r := s.run()
		require.Empty(t, r.violations, "seed %d", seed)
		sum.Add(&s.w.Leases.Tenures)
	}
	t.Logf("tenures ran out %d times, came back %d times, %d were proven over, %d taken for over", sum.RanOut, sum.Backs,
		sum.Proven, sum.Assumed)
	require.Greater(t, sum.RanOut, sum.Backs)
	require.Greater(t, sum.Backs, 10)
	require.Greater(t, sum.Proven, 5)
	require.Positive(t, sum.Assumed)
}

// TestLongStormsHoldTenures: fifty of them, each twice to the same trace. TENURE_SEEDS=200 TENURE_FIRST=20001 others.
func TestLongStormsHoldTenures(t *testing.T) {
	long.Test(t)
	number := func(name string, or int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return or
	}
	for _, seed := range tenureSeeds(uint64(number("TENURE_FIRST", 10_001)), number("TENURE_SEEDS", 50)) {
		once := newStorm(seed, nil, false).run()
		require.Equal(t, once.hash, newStorm(seed, nil, false).run().hash, "seed %d", seed)
		for _, v := range once.violations {
			t.Errorf("seed %d: %s", seed, v)
		}
	}
}

// tenureSeeds returns the first seeds, from one on, in which nodes hold tenures.
func tenureSeeds(from uint64, n int) (seeds []uint64) {
	for ; len(seeds) < n; from++ {
		if s := newStorm(from, nil, false); s.w.Config.TenureVoters > 0 {
			seeds = append(seeds, from)
		}
	}
	return seeds
}
