// Tests of what is noted of tenures.

package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// TestEndInOneCluster: an end that a member of one cluster has proven is none in another one, to which the process came
// without having heard of it. Found by storm 19000004243.
func TestEndInOneCluster(t *testing.T) {
	in := func(cluster uint64) *Process {
		return &Process{World: &World{}, View: &membership.View{ClusterID: cluster}}
	}
	id := peer.ID{Addr: peer.MustAddr("10.0.0.4:1"), Inc: 2}
	var b TenureBook
	b.ends(id, "proven over", in(1))
	require.True(t, b.Over(id))
	require.True(t, b.overFor(id, in(1)))
	require.False(t, b.overFor(id, in(2)))
	require.False(t, b.overFor(id, &Process{World: &World{}}), "it is in none")
	require.False(t, b.overFor(peer.ID{}, in(1)))
}
