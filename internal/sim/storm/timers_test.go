// Tests of timers of simulated nodes that stand still.

package storm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ACC-4: of very many timers, in all modes, on nodes that stand still again and again, none is early; the same seed
// gives the same.
func TestManySimulatedTimers(t *testing.T) {
	const most = 20_000
	m := MeasureTimers(most, 1)
	require.Empty(t, m.Violations)
	require.Zero(t, m.Early)
	require.GreaterOrEqual(t, m.Fired, most)
	require.Positive(t, m.Stalls)
	require.Greater(t, m.Late.Max, 100*time.Millisecond, "what was due in a stall came after it")
	require.Equal(t, m, MeasureTimers(most, 1))
}
