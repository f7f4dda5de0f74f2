// The storm in small, as part of every test run.

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStorm runs a few seeds; `make storm SEEDS=500` runs many.
func TestStorm(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 4
	}
	r := Storm(StormConfig{Seeds: seeds, First: 1, TraceDir: t.TempDir()})
	for _, f := range r.Failures {
		for _, v := range f.Violations {
			t.Errorf("seed %d: %s (%s)", f.Seed, v, f.Replay)
		}
	}
	require.Equal(t, 0, r.Violations)
	require.Greater(t, r.Delivered, 100*seeds, "a storm that delivers little shows little")
}
