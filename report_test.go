// Tests of reports: what all members have of a type (SHD-7).

package kith_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A report counts each shard and each entity where it lives, in more than one answer where a node has many; a member
// without the type has nothing, and one that does not answer is named.
func TestReport(t *testing.T) {
	const shards, entities = 9000, 500
	l := newLedger()
	nodes := cluster(t, 3, nil, nil)
	declare := func(n *kith.Node) *kith.Region {
		typ := echoType("orders", kith.Inline, l, func() *kith.Node { return n })
		typ.Shards = shards
		r, err := n.Register(typ)
		require.NoError(t, err)
		require.Equal(t, []string{"orders"}, names(n.Regions()))
		return r
	}
	declare(nodes[1])
	r := declare(nodes[0])
	for i := range entities {
		_, err := r.Ask(within(t), fmt.Sprint(i), []byte("x"))
		require.NoError(t, err)
	}
	var rep kith.TypeReport
	eventually(t, func() bool {
		var err error
		rep, err = r.Report(within(t))
		require.NoError(t, err)
		return rep.Nodes[0].Entities+rep.Nodes[1].Entities+rep.Nodes[2].Entities == entities
	}, "the figures are up to a tenth of a second old: %v", &rep)
	require.Equal(t, "orders", rep.Name)
	require.EqualValues(t, shards, rep.Shards)
	require.Equal(t, nodes[0].ID(), rep.Coordinator)
	require.Empty(t, rep.Missing)
	require.Empty(t, rep.Moves)
	seen := map[kith.ShardID]kith.ID{}
	for _, n := range rep.Nodes {
		require.Equal(t, n.Node != nodes[2].ID(), n.Registered)
		sum := uint64(0)
		for _, s := range n.Shards {
			require.NotContains(t, seen, s.Shard)
			require.False(t, s.Stopping)
			seen[s.Shard] = n.Node
			sum += uint64(s.Entities)
		}
		require.Equal(t, n.Entities, sum)
	}
	homes := map[kith.ShardID]bool{}
	for i := range entities {
		homes[r.Shard(fmt.Sprint(i))] = true
	}
	require.Len(t, seen, len(homes))

	over, cancel := context.WithCancel(context.Background())
	cancel()
	rep, err := r.Report(over)
	require.NoError(t, err)
	require.Len(t, append(rep.Missing, ids(rep.Nodes)...), 3, "who has not answered at once is missing, and nobody else")
	require.NoError(t, nodes[0].Close())
	_, err = r.Report(within(t))
	require.ErrorIs(t, err, kith.ErrStopped)
}

func names(list []*kith.Region) (names []string) {
	for _, r := range list {
		names = append(names, r.Type().Name)
	}
	return names
}

func ids(list []kith.NodeReport) (ids []kith.ID) {
	for _, n := range list {
		ids = append(ids, n.Node)
	}
	return ids
}
