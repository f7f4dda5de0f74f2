// A smaller number of the starts of `make starts` (BOOT-4, BOOT-7).

package starts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever discovery says, at most one cluster forms where more than half of the nodes are required, and exactly one
// once discovery tells the truth (BOOT-3, BOOT-4, BOOT-7).
func TestStarts(t *testing.T) {
	const starts = 1500
	r := Run(1, starts, 0, func(f Found) { t.Errorf("seed %d: %s", f.Seed, f.What) })
	t.Logf("%+v", r)
	require.Zero(t, r.Violations)
	require.Positive(t, r.Restarts)
	require.Positive(t, r.Unsafe, "the histories are hostile enough for two clusters where half of the nodes suffice")
	require.GreaterOrEqual(t, r.Clusters, starts)
}

// The same seeds come to the same, however many workers run them.
func TestStartsRepeat(t *testing.T) {
	a, b := Run(7, 40, 1, func(Found) {}), Run(7, 40, 4, func(Found) {})
	a.Wall, b.Wall = 0, 0
	require.Equal(t, a, b)
}
