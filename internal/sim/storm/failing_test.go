// All failing seeds are counted and listed by number, beyond those that are kept in full.

package storm

import (
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/sim/check"
)

func TestFailingSeedsAreAllCounted(t *testing.T) {
	var out Result
	cfg := Config{TraceDir: t.TempDir()}
	for seed := range uint64(MaxFailingSeeds + 5) {
		r := broken("one-owner", "", "twice")
		r.violations = append(r.violations, r.violations[0])
		if seed%2 == 0 {
			r.violations = append(r.violations, check.Violation{Rule: "bounds"})
		}
		out.add(seed, r, &cfg, xxhash.New())
	}
	whole := seedResult{run: runResult{accounts: &check.Accounts{}}}
	out.add(1000, whole, &cfg, xxhash.New())
	require.Len(t, out.Failures, MaxFailures)
	require.Equal(t, MaxFailingSeeds+5, out.FailingSeeds)
	require.Len(t, out.SeedsFailing, MaxFailingSeeds)
	require.Equal(t, uint64(MaxFailingSeeds-1), out.SeedsFailing[MaxFailingSeeds-1])
	require.Equal(t, map[string]int{"one-owner": MaxFailingSeeds + 5, "bounds": (MaxFailingSeeds + 6) / 2}, out.Rules)
}
