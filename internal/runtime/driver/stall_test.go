// Tests of the measure of stalls.

package driver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStalls: the longest is remembered for a window, a warning comes beyond half of what is borne, and not often.
func TestStalls(t *testing.T) {
	const s = time.Second
	w := stallWatch{tolerated: 3 * s}
	at := time.Duration(0)
	sleep := func(rest, late time.Duration) bool {
		at += rest + late
		stall, warn := w.note(at-late, at)
		require.Equal(t, max(0, late), stall)
		return warn
	}
	require.False(t, sleep(s, 0))
	require.False(t, sleep(s, -s/2), "woken early")
	require.Zero(t, w.longest())
	require.False(t, sleep(s, 1500*time.Millisecond), "half of it")
	require.Equal(t, 1500*time.Millisecond, w.longest())
	require.True(t, sleep(s, 2*s))
	require.False(t, sleep(s, 2*s), "once in ten minutes")
	require.Equal(t, 2*s, w.longest())
	require.False(t, sleep(6*time.Minute, 0))
	require.Equal(t, 2*s, w.longest(), "in the window before")
	require.True(t, sleep(5*time.Minute, 4*s), "ten minutes are over")
	require.Equal(t, 4*s, w.longest())
	require.False(t, sleep(20*time.Minute, 0))
	require.Zero(t, w.longest(), "long ago")
	none := stallWatch{}
	_, warn := none.note(0, time.Hour)
	require.False(t, warn, "nothing is known of what is borne")
}
