// Tests of session leases and tenures in storms.

package storm

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
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

// A cluster that has lost a quorum of its seats handles nothing until it is founded anew. A newcomer has its share
// seconds after that: its coordinator, which is suspended, begins no moves for balance meanwhile. They would come to
// nothing, and each round that does puts the next one off for longer. Found by storm 15000007326 (SHD-6, MEM-10).
func TestBalanceSoonAfterTheTenureIsBack(t *testing.T) {
	const shards = 40
	typ := &world.EntityType{Type: entity.Type{Name: "t", Shards: shards, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler { return still{} }}}
	cfg := alone
	cfg.TenureVoters, cfg.TenureGrant, cfg.TenureRefound = 3, 2*time.Second, cluster.RefoundByTakeover
	w := formed(t, 5, cfg, typ)
	s := &storm{w: w, check: checks(w), rng: rand.New(rand.NewPCG(1, 1))}
	first, region := w.Hosts[0].Process, func(i int) *world.Region { return w.Hosts[i].Process.Region(route.TypeOf("t")) }
	hosts := func(i int) (n int) {
		for s := range route.ShardID(shards) {
			if region(i).Lives(s) != nil {
				n++
			}
		}
		return n
	}
	ends := func(i int) {
		p := w.Hosts[i].Process
		p.Crash(true)
		s.down(first, p.ID)
	}
	w.Advance(5 * time.Second) // the seats have holders
	ends(4)
	w.Advance(time.Second)
	for i := range 10 * shards {
		_, err := region(0).Send(strconv.Itoa(i), []byte("m"), 0)
		require.NoError(t, err)
	}
	w.Advance(5 * time.Second)
	ends(1)
	ends(2)
	require.True(t, w.Until(time.Minute, first.Held))
	w.Start(4, w.Seeds([]int{0}))
	require.True(t, w.Until(time.Minute, func() bool { return !first.Held() }))
	w.Advance(3 * time.Second)
	require.Equal(t, []int{7, 7, 6}, []int{hosts(0), hosts(3), hosts(4)}, "what the lost had is wanted by nobody")
	require.Empty(t, rulesBroken(w))
}

// still handles nothing.
type still struct{}

func (still) Receive(*entity.Context, []byte) error { return nil }
func (still) Stop(*entity.Context)                  {}
