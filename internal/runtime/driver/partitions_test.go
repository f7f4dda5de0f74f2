// Tests of the door to the partition table, over real sockets (PRT-1).

package driver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/membership"
)

// TestPartitionsOverSockets: one node defines, all learn where the instances are, one is moved when its old node
// says that it has handed it over, and a node that leaves hands over first (PRT-1, PRT-4, PRT-5).
func TestPartitionsOverSockets(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a, b := Partitions{p.a}, Partitions{p.b}
	await := func(at Partitions, ok func(is *cluster.Partition) bool) *cluster.Partition {
		t.Helper()
		for v := range at.Views(ctx) {
			if is := partition.Table(v.Partitions).Of("market/prices"); is != nil && ok(is) {
				require.NotEmpty(t, at.Table())
				return is
			}
		}
		require.Fail(t, "the node has ended, or two minutes are over")
		return nil
	}
	d := cluster.PartitionDefinition{Path: "market/prices", Count: partition.Exactly(1), Handoff: cluster.Ordered}
	require.NoError(t, b.Do(ctx, membership.DefineCommand{Definition: d}))
	d.Path = "/"
	require.ErrorIs(t, b.Do(ctx, membership.DefineCommand{Definition: d}), cluster.ErrBadPath)
	is := await(a, func(is *cluster.Partition) bool { return is.Has() == 1 })
	require.Equal(t, cluster.Ordered, is.InForce)
	from, to := a, b
	if is.Instances[0] == p.b.Self() {
		from, to = b, a
	}
	require.NoError(t, a.Do(ctx, membership.MoveInstanceCommand{Path: is.Path, To: to.d.Self()}))
	is = await(from, func(is *cluster.Partition) bool { return len(is.Changes) == 1 })
	require.NoError(t, from.Do(ctx, membership.CompleteCommand{Change: is.Changes[0]}))
	await(to, func(is *cluster.Partition) bool { return len(is.Changes) == 0 && is.Instances[0] == to.d.Self() })

	left := make(chan error, 1)
	go func() { left <- to.d.Leave(ctx) }()
	is = await(to, func(is *cluster.Partition) bool { return len(is.Changes) == 1 })
	require.NoError(t, to.Do(ctx, membership.CompleteCommand{Change: is.Changes[0]}))
	require.NoError(t, <-left)
	await(from, func(is *cluster.Partition) bool { return is.Instances[0] == from.d.Self() })
}
