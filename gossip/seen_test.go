// Tests of the seen set, the choice of a target and the verdicts (GOS-3 to GOS-6).

package gossip

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

func seen(n int, members ...int) Seen {
	s := NewSeen(n)
	for _, i := range members {
		s.Add(i)
	}
	return s
}

func TestSeenIsASubsetOfTheMembers(t *testing.T) {
	s := NewSeen(9)
	require.False(t, s.Add(9))
	require.False(t, s.Add(-1))
	require.True(t, s.Add(8))
	require.False(t, s.Add(8))
	require.Equal(t, 1, s.Count())
	require.True(t, s.Has(8))
	require.False(t, s.Has(7))
	require.True(t, s.Union(seen(9, 0, 8)))
	require.False(t, s.Union(seen(9, 0, 8)))
	require.False(t, s.Union(seen(10, 3)), "a set over other members")
	require.Equal(t, 2, s.Count())
	require.True(t, s.Covers(seen(9, 0)))
	require.False(t, seen(9, 0).Covers(s))
	require.True(t, s.Equal(seen(9, 0, 8)))
	c := s.Clone()
	c.Add(1)
	require.False(t, s.Has(1))
	require.NotEqual(t, s.Digest(), c.Digest())
}

func TestSeenCodec(t *testing.T) {
	b := AppendSeen(nil, seen(10, 0, 3, 9))
	require.Equal(t, []byte{0x09, 0x02}, b)
	r := wire.NewReader(wire.KindSeen, b)
	got := ReadSeen(&r, 10)
	require.NoError(t, r.Done())
	require.True(t, got.Equal(seen(10, 0, 3, 9)))
	for n := range b {
		r := wire.NewReader(wire.KindSeen, b[:n])
		ReadSeen(&r, 10)
		require.ErrorIs(t, r.Err(), wire.ErrTruncated)
	}
	r = wire.NewReader(wire.KindSeen, []byte{0x09, 0x04})
	ReadSeen(&r, 10)
	require.ErrorIs(t, r.Err(), wire.ErrBadValue, "a bit beyond the last member")
}

// GOS-6: 0.8 up to 400 members, a tenth of it from 1200 on, a straight line in between.
func TestDifferentViewProbability(t *testing.T) {
	for n, want := range map[int]int{1: 800_000, 400: 800_000, 600: 620_000, 800: 440_000, 1000: 260_000,
		1200: 80_000, 5000: 80_000} {
		require.Equal(t, want, DifferentView(n, PerMillion(0.8), 400), n)
	}
}

func TestChoosePrefersTheUnseen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := func(int) bool { return true }
	unseen := func(i int) bool { return i == 3 }
	hits := 0
	for range 10_000 {
		if Choose(rng, 10, PerMillion(0.8), all, unseen) == 3 {
			hits++
		}
	}
	require.InDelta(t, 8_200, hits, 200, "0.8 by preference and a tenth of the rest by chance")
	counts := make([]int, 10)
	for range 10_000 {
		counts[Choose(rng, 10, Million, all, func(int) bool { return false })]++
	}
	for i, n := range counts {
		require.InDelta(t, 1_000, n, 200, "position %d", i)
	}
	require.Equal(t, -1, Choose(rng, 10, Million, func(int) bool { return false }, unseen))
	require.Equal(t, -1, Choose(rng, 0, Million, all, unseen))
}

func TestSampleDrawsDistinctPositions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	even := func(i int) bool { return i%2 == 0 }
	counts := make([]int, 10)
	for range 5_000 {
		got := Sample(rng, 10, 2, even, nil)
		require.Len(t, got, 2)
		require.NotEqual(t, got[0], got[1])
		for _, i := range got {
			require.True(t, even(i))
			counts[i]++
		}
	}
	for i := 0; i < 10; i += 2 {
		require.InDelta(t, 2_000, counts[i], 200)
	}
	require.Len(t, Sample(rng, 10, 9, even, nil), 5)
	require.Empty(t, Sample(rng, 10, 0, even, nil))
}

func TestVerdicts(t *testing.T) {
	require.Equal(t, Nothing, JudgeStatus(7, 7, 1, 1))
	require.Equal(t, SendSeen, JudgeStatus(7, 7, 1, 2))
	require.Equal(t, SendVersion, JudgeStatus(7, 8, 1, 1))
	require.Equal(t, SendState, JudgeVersion(clock(1, 1), clock(1)))
	require.Equal(t, AskState, JudgeVersion(clock(1), clock(1, 1)))
	require.Equal(t, Exchange, JudgeVersion(clock(1), clock(2)))
	require.Equal(t, Exchange, JudgeVersion(clock(1), clock(1)), "equal clocks whose digests differ")
}

// Seed 000: "If less than ½ of the nodes resides in the seen set (have seen the new state) then the cluster gossips 3
// times instead of once every second." (GOS-5) Exactly half is not fewer: in a cluster of two, the one that made the
// change has seen it and is half. A Down member speeds up always.
func TestSpeedUp(t *testing.T) {
	for n, few := range map[int]int{ // how many at most are fewer than half; nobody is in a seen set of nobody
		1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3, 10: 4, 11: 5,
	} {
		for seen := range n + 1 {
			require.Equal(t, seen <= few, SpeedUp(seen, n, false), "%d of %d", seen, n)
			require.True(t, SpeedUp(seen, n, true), "%d of %d, one of them Down", seen, n)
		}
	}
}

// GOS-6 with many candidates: drawn blindly or by the pass, allowed ones alone, each as likely as the other.
func TestChoiceAmongMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct{ every, k int }{"dense": {2, 3}, "sparse": {200, 3}, "too few": {500, 3}} {
		const n = 1000
		allowed := func(i int) bool { return i%c.every == 0 }
		counts := make([]int, n)
		const rounds = 20_000
		for range rounds {
			i := Choose(rng, n, 0, allowed, allowed)
			require.True(t, allowed(i), name)
			counts[i]++
			got := Sample(rng, n, c.k, allowed, nil)
			require.Len(t, got, min(c.k, n/c.every), name)
			for k, i := range got {
				require.True(t, allowed(i), name)
				require.NotContains(t, got[:k], i, name)
				counts[i]++
			}
		}
		want := rounds * (1 + min(c.k, n/c.every)) / (n / c.every)
		for i := 0; i < n; i += c.every {
			require.InDelta(t, want, counts[i], 6*math.Sqrt(float64(want)), "%s: position %d", name, i)
		}
	}
	require.Equal(t, -1, Choose(rng, 1000, Million, func(int) bool { return false }, func(int) bool { return true }))
	require.Empty(t, Sample(rng, 1000, 3, func(int) bool { return false }, nil))
}
