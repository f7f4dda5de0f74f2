// A short run of stalls on real processes.

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/cli"
)

// TestStallsEndWhoIsGivenUp: stalls far beyond what a preset bears end processes, and short ones are only counted
// (AVL-2).
func TestStallsEndWhoIsGivenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes for half a minute")
	}
	for _, c := range []struct {
		longest time.Duration
		ends    bool
	}{{50 * time.Millisecond, false}, {12 * time.Second, true}} {
		r, err := Stalls(t.Context(), StallsConfig{Trial: Trial{Nodes: 3, Patience: cluster.PatienceCalm,
			Load: Load{Entities: 2, Shards: 4, Tells: 20, Asks: 20}, Child: cli.Options{Env: []string{childEnv + "=1"}},
			Progress: &cli.Progress{}, Dir: t.TempDir()},
			For: time.Second, Longest: c.longest, Every: c.longest + 100*time.Millisecond, Seed: 1})
		require.NoError(t, err)
		require.Positive(t, r.Stalls)
		require.Zero(t, r.DoubleOwner)
		if c.ends {
			require.Positive(t, r.Ended)
		}
	}
}
