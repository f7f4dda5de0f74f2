// Tests of storms that would not end.

package storm

import (
	"fmt"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/check"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/shard"
)

// TestLivelockEndsAStorm: one in which time stands still, or goes on far too slowly, ends, with one violation, which
// says which process turned and what it did; and the same seed ends in the same way again (SHD-9).
func TestLivelockEndsAStorm(t *testing.T) {
	for _, tc := range []struct {
		name string
		turn func(p *world.Process, again func())
		took bool // commands
	}{
		{"the control loop takes commands", func(p *world.Process, again func()) {
			p.Do(shard.DrainCommand{})
			p.Later(0, again)
		}, true},
		{"a handler goes on slowly", func(p *world.Process, again func()) { p.Later(time.Microsecond, again) },
			false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			once := func() runResult {
				s := newStorm(3, nil, false)
				s.w.After(20*time.Second, func() {
					p := s.w.Running()[1]
					var again func()
					again = func() { tc.turn(p, again) }
					again()
				})
				return s.run()
			}
			r := once()
			require.Len(t, r.violations, 1, "%v", r.violations)
			v := r.violations[0]
			require.Equal(t, "livelock", v.Rule)
			require.Equal(t, 2, v.Node)
			require.GreaterOrEqual(t, v.At, 20*time.Second)
			require.Less(t, v.At, 22*time.Second)
			var steps, ticks, commands, frames, turned int
			var since string
			_, err := fmt.Sscanf(v.Text, "%d steps since %s this process turned most: %d times, in which its control loop "+
				"ticked %d times and took %d commands and %d frames", &steps, &since, &turned, &ticks, &commands, &frames)
			require.NoError(t, err, v.Text)
			require.Equal(t, mostSteps+1, steps)
			require.Greater(t, turned, mostSteps*9/10)
			require.Equal(t, tc.took, commands > mostSteps/2)
			require.Equal(t, r.hash, once().hash)
		})
	}
}

// TestHangEndsAStorm: a seed that stands within one step is given up, and the trace shows where all stand; one that
// ends is not.
func TestHangEndsAStorm(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	r := patiently(&Config{Patience: time.Nanosecond}, func() seedResult { <-hangs; return seedResult{} })
	require.Equal(t, []check.Violation{{Rule: "hang", Text: "not over after 1ns"}}, r.violations)
	require.Contains(t, r.trace, "storm.patiently")
	var sum Result
	sum.add(3, r, &Config{TraceDir: t.TempDir()}, xxhash.New())
	require.Equal(t, 1, sum.Violations)
	require.Len(t, sum.Failures, 1)
	require.Empty(t, patiently(&Config{}, func() seedResult { return seedResult{} }).violations)
}

// TestPanicIsAViolation: a seed in which something panics is a failure with a trace, and the other seeds go on.
func TestPanicIsAViolation(t *testing.T) {
	r := patiently(&Config{}, func() seedResult { panic("no such shard") })
	require.Equal(t, []check.Violation{{Rule: "panic", Text: "no such shard"}}, r.violations)
	require.Contains(t, r.trace, "TestPanicIsAViolation")
}
