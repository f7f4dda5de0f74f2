// Tests of the leases of singletons in storms.

package storm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStormsLease: seeds in which the singleton needs a lease call it often, lose its lease while it is held, and find
// nothing wrong: it is called only while the store has its node as the owner (SHD-12).
func TestStormsLease(t *testing.T) {
	drawn, called, lost := 0, 0, 0
	for seed := uint64(1); seed <= 24; seed++ {
		s := newStorm(seed, nil, false)
		if s.keeps == nil || s.keeps.lone.Lease == nil {
			continue
		}
		r := s.run()
		require.Empty(t, r.violations, "seed %d", seed)
		drawn++
		called += s.keeps.called
		lost += s.w.Leases.Lost
	}
	t.Logf("%d storms: %d calls, lost %d times", drawn, called, lost)
	require.Greater(t, drawn, 2)
	require.Greater(t, called, 10*drawn)
	require.Positive(t, lost)
}

// TestLeaseEndsThoughNobodySteps: storms in which a singleton was called with a lease that was over: its process had
// slept, or its control loop was stuck, or the permission was on its way meanwhile (SHD-12).
func TestLeaseEndsThoughNobodySteps(t *testing.T) {
	for _, seed := range []uint64{101, 610, 628, 718} {
		r := Run(Config{Seeds: 1, First: seed, Heavy: true, TraceDir: t.TempDir()})
		for _, f := range r.Failures {
			for _, v := range f.Violations {
				t.Errorf("seed %d: %s", f.Seed, v)
			}
		}
	}
}
