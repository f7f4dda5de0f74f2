// Tests of members that the holder of a seat vouches for no more, and that are removed in the same step.

package check

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
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

// TestLetInByASideThatIsOver: without a resolver a side may be proven over while it runs. When both sides meet, the
// members that it has let in are removed; a member beside one that crashed is not (MEM-1). Found by storm 12870000182.
func TestLetInByASideThatIsOver(t *testing.T) {
	for _, crashed := range []bool{false, true} {
		cfg := setup.Config{Resolver: world.ResolverOff}
		cfg.TenureVoters, cfg.TenureGrant = 3, 1800*time.Millisecond
		w := formed(t, 4, cfg)
		w.Advance(5 * time.Second) // the seats have holders
		a, b, c := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
		before := *b.View
		if crashed {
			a.Crash(true)
		} else {
			a.Stick(30 * time.Second)
		}
		require.True(t, w.Until(20*time.Second, func() bool { return w.Leases.Tenures.Over(a.ID) }))
		require.Empty(t, checks(w).Violations)
		checks(w).checked[b] = &before
		after := *b.View
		after.Members = slices.DeleteFunc(slices.Clone(after.Members), func(m membership.Member) bool {
			return m.ID == c.ID
		})
		checks(w).View(b, &after)
		found := slices.ContainsFunc(checks(w).Violations, func(v Violation) bool {
			return v.Rule == "removed-without-cause"
		})
		require.Equal(t, crashed, found, "%v", checks(w).Violations)
	}
}
