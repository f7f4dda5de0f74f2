// Draining: a node that drains gives away its shards, and the leader that places instances knows it.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
)

// TestDrainReachesTheLeader: an order to drain is gossiped beside the partitions, and so is that it was taken back; one
// that is refused is not (PRT-4).
func TestDrainReachesTheLeader(t *testing.T) {
	w := &wires{t: t, now: time.Second}
	for i, host := range []string{"10.0.0.1", "10.0.0.2"} {
		cfg := Config{Self: id(host), Seed: uint64(i + 1)}
		w.nodes = append(w.nodes, &end{id: cfg.Self, n: New(cfg)})
	}
	a, b := w.nodes[0], w.nodes[1]
	for _, e := range w.nodes {
		require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
		w.drain(e)
	}
	w.run(20*time.Second, func() bool { return up(a.view, 2) && up(b.view, 2) })
	do := func(cmd any) {
		require.NoError(t, b.n.Do(w.now, cmd))
		w.drain(b)
	}
	do(membership.DefineCommand{Definition: cluster.PartitionDefinition{Path: "a", Count: partition.Exactly(1)}})
	known := func(want peer.Set) bool {
		word, _ := a.view.MetadataValue(partition.DrainKey)
		return want.Equal(partition.ReadDrains(word))
	}
	do(shard.DrainCommand{On: true})
	w.run(20*time.Second, func() bool { return known(peer.Set{b.id}) })
	require.True(t, known(peer.Set{b.id}))
	do(shard.DrainCommand{})
	w.run(20*time.Second, func() bool { return known(nil) })
	require.True(t, known(nil))

	do(LeaveCommand{})
	require.Error(t, b.n.Do(w.now, shard.DrainCommand{On: true}))
	w.run(time.Second, func() bool { return false })
	require.True(t, known(nil))
}
