// Tests of the gate as the data plane sees it.

package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDataPlaneLooksAtTheClock: between the wake-up and the first step nobody has raised a flag yet; the age of the
// last step is enough. Looking costs no allocation.
func TestDataPlaneLooksAtTheClock(t *testing.T) {
	var g Gate
	g.Init(10 * time.Second)
	g.Step(time.Minute)
	require.False(t, g.Held(time.Minute+10*time.Second))
	require.True(t, g.Held(time.Minute+10*time.Second+1))
	require.False(t, g.Closed())
	g.Notice(time.Minute + 10*time.Second)
	require.False(t, g.Closed())
	g.Notice(time.Minute + 11*time.Second)
	require.True(t, g.Closed())
	require.True(t, g.Noticed())
	g.Step(2 * time.Minute)
	require.True(t, g.Held(2*time.Minute), "until the node has judged it")
	g.Judge(false, false)
	g.Lease(2*time.Minute + time.Second)
	require.False(t, g.Held(2*time.Minute+time.Second-1))
	require.True(t, g.Held(2*time.Minute+time.Second), "the session lease counts for nothing from then on")
	g.Step(2*time.Minute + time.Second)
	require.True(t, g.Held(2*time.Minute+time.Second), "a step alone is no lease")
	g.Notice(2*time.Minute + time.Second)
	require.True(t, g.Noticed(), "and the node is to judge it")
	g.Judge(false, false)
	g.Lease(3 * time.Minute)
	require.False(t, g.Held(2*time.Minute+11*time.Second))
	require.True(t, g.Held(2*time.Minute+11*time.Second+1), "the last step is too old")
	require.Zero(t, testing.AllocsPerRun(100, func() { g.Held(time.Minute) }))
}
