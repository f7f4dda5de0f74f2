// Tests of figures: how often they are published.

package exec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However many shards a node has, publishing their figures takes a bounded part of a core (OPS-1).
func TestShowEvery(t *testing.T) {
	for shards, want := range map[int]time.Duration{0: 100 * time.Millisecond, 1: 100 * time.Millisecond,
		5000: 100 * time.Millisecond, 10_000: 200 * time.Millisecond, 100_000: 2 * time.Second} {
		require.Equal(t, want, showEvery(shards), "%d shards", shards)
	}
}
