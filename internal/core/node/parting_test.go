// Test of which members leave in order.

package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

// The answers of a member that leaves, or was replaced, are waited for; not those of one that was given up (MEM-8).
func TestParting(t *testing.T) {
	for _, s := range []membership.Status{membership.Leaving, membership.Exiting} {
		require.True(t, LeftGracefully(s, membership.CauseNone), s)
	}
	for _, s := range []membership.Status{membership.Joining, membership.WeaklyUp, membership.Up, membership.Down,
		membership.PreparingForShutdown, membership.ReadyForShutdown, membership.Removed} {
		require.False(t, LeftGracefully(s, membership.CauseNone), s)
		require.Equal(t, s == membership.Down, LeftGracefully(s, membership.CauseReplaced), s)
	}
	require.False(t, LeftGracefully(membership.Down, membership.CauseOperator))
}
