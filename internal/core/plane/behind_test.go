// Tests of the credit that waits behind kept frames.

package plane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is consumed behind a kept frame of its connection gives no credit until nothing is kept, and none at all when
// the gate has ended; other connections do not wait for it (SHD-4).
func TestBehind(t *testing.T) {
	var b Behind[string]
	got := map[string]int{}
	give := func(c string, n int) { got[c] += n }
	require.Equal(t, 7, b.Consumed("a", 7), "nothing is kept")
	round := func(g Gate) {
		b.Keep("a")
		b.Keep("b")
		b.Keep("a")
		require.Zero(t, b.Consumed("a", 7))
		require.Equal(t, 5, b.Consumed("c", 5))
		b.Release(g, 1, give)
		require.Empty(t, got, "something is kept still")
		require.Zero(t, b.Consumed("a", 4))
		b.Release(g, 0, give)
		require.Equal(t, 3, b.Consumed("a", 3), "nothing waits any more")
	}
	round(0)
	require.Equal(t, map[string]int{"a": 11}, got)
	b.Release(0, 0, give)
	require.Equal(t, map[string]int{"a": 11}, got, "once")
	clear(got)
	round(GateOrdered | GateEnded)
	require.Empty(t, got, "what was kept was left")
	none := func(string, int) {}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.Keep("a")
		b.Consumed("a", 1)
		b.Release(0, 0, none)
	}))
}
