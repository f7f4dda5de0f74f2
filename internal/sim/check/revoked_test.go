// Tests of members that the holder of a seat vouches for no more, and that are removed in the same step.

package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/sim/setup"
)

// TestRevokedAndRemovedAtOnce: the holder of a seat vouches no more for a member that does not answer, which it writes
// into its state as Down. Where the only other member is leaving it removes both in that step, and no view shows the
// first one Down (MEM-1). Found by storm 11700009485.
func TestRevokedAndRemovedAtOnce(t *testing.T) {
	cfg := setup.Config{Resolver: node.Resolver{Strategy: node.ResolverOff}}
	cfg.TenureVoters, cfg.TenureGrant = 3, 1800*time.Millisecond
	w := formed(t, 3, cfg)
	w.Advance(5 * time.Second) // the seats have holders
	a, b, c := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
	c.Do(membership.LeaveCommand{})
	exiting := func() bool { m, ok := b.View.Member(c.ID); return ok && m.Status == membership.Exiting }
	require.True(t, w.Until(time.Minute, exiting))
	a.Stick(20 * time.Second)
	w.Until(15*time.Second, func() bool { _, in := b.View.Member(a.ID); return !in })
	_, in := b.View.Member(a.ID)
	require.False(t, in)
	require.Empty(t, checks(w).Violations)
}
