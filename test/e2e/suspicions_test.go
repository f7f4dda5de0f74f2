// Tests of what a node says of the peers that it watches (FD-1).

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A node watches both others, which answer; a node that has ended says so.
func TestSuspicions(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3, nil, nil)
	eventually(t, func() bool {
		list, err := nodes[0].Suspicions(within(t))
		require.NoError(t, err)
		for _, s := range list {
			require.True(t, s.Available, "%+v", s)
			require.NotEqual(t, nodes[0].ID(), s.Peer)
			if s.Left == 0 {
				return false // not heard yet
			}
		}
		return len(list) == 2
	}, "both are watched")
	require.NoError(t, nodes[0].Close())
	_, err := nodes[0].Suspicions(within(t))
	require.Error(t, err)
}
