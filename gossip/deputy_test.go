// Tests of the extra targets of a round (GOS-9).

package gossip

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// GOS-9: to an unreachable node with unreachable/(live+1), to a deputy with deputies/(live+unreachable) unless the
// round reached one and enough are live.
func TestDeputyProbabilities(t *testing.T) {
	for _, c := range []struct{ unreachable, live, want int }{
		{0, 5, 0}, {1, 9, 100_000}, {1, 0, Million}, {3, 1, Million}, {2, 3, 500_000}, {1, 2, 333_333},
	} {
		require.Equal(t, c.want, ToUnreachable(c.unreachable, c.live), "%+v", c)
	}
	for _, c := range []struct {
		deputies, live, unreachable int
		reached                     bool
		want                        int
	}{
		{0, 9, 1, false, 0}, {2, 9, 1, false, 200_000}, {2, 9, 1, true, 0}, {2, 1, 1, true, Million},
		{2, 1, 9, true, 200_000}, {3, 0, 0, false, Million}, {2, 2, 6, true, 0}, {2, 2, 6, false, 250_000},
	} {
		require.Equal(t, c.want, ToDeputy(c.deputies, c.live, c.unreachable, c.reached), "%+v", c)
	}
}

func TestChance(t *testing.T) {
	rng, twin := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	require.False(t, Chance(rng, 0))
	require.Equal(t, twin.Uint64(), rng.Uint64(), "what never happens draws nothing")
	hits := 0
	for range 10_000 {
		require.True(t, Chance(rng, Million))
		if Chance(rng, 250_000) {
			hits++
		}
	}
	require.InDelta(t, 2_500, hits, 200)
}
