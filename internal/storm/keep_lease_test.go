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
