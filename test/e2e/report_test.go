// Tests of reports: what all members have of a type (SHD-7).

package e2e_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// A report counts each shard and each entity where it lives, in more than one answer where a node has many; a member
// without the type has nothing, and one that does not answer is named.
func TestReport(t *testing.T) {
	t.Parallel()
	const shards, entities = 12_000, 15_000 // over 4,096 shards live on each of two nodes
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
		require.NoError(t, r.TellWait(t.Context(), fmt.Sprint(i), numbered(0, 0)))
	}
	var rep kith.TypeReport
	eventually(t, func() bool {
		var err error
		rep, err = r.Report(within(t))
		require.NoError(t, err)
		sum, each := uint64(0), uint64(0) // each answer of a member is of a moment of its own
		for _, n := range rep.Nodes {
			sum += n.Entities
			for _, s := range n.Shards {
				each += uint64(s.Entities)
			}
		}
		return sum == entities && each == entities
	}, "the figures are up to a tenth of a second old")
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
			_, twice := seen[s.Shard]
			require.False(t, twice)
			require.False(t, s.Stopping)
			seen[s.Shard] = n.Node
			sum += uint64(s.Entities)
		}
		require.Equal(t, n.Entities, sum)
		require.True(t, !n.Registered || len(n.Shards) > 4096, "more than one answer")
	}
	homes := map[kith.ShardID]bool{}
	for i := range entities {
		homes[r.Shard(fmt.Sprint(i))] = true
	}
	require.Len(t, seen, len(homes))

	over, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.Report(over)
	require.ErrorIs(t, err, context.Canceled, "nobody is asked")
	require.NoError(t, nodes[0].Close())
	_, err = r.Report(within(t))
	require.ErrorIs(t, err, kith.ErrStopped)
}

// A process that stands still is missing from a report, and what the others have is reported (SHD-7).
func TestReportNamesWhoStandsStill(t *testing.T) {
	t.Parallel()
	l := newLedger()
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) { cfg.Sharding.TakeoverTime = short }, nil)
	k := spawn(t, "watch "+nodes[0].Addr().String())
	awaitView(t, nodes[0], func(v *kith.View) bool { return v.CountUp() == 3 })
	r, err := nodes[0].Register(echoType("orders", kith.Inline, l, func() *kith.Node { return nodes[0] }))
	require.NoError(t, err)
	_, err = r.Ask(within(t), "a", []byte("x"))
	require.NoError(t, err)
	rep, err := r.Report(within(t))
	require.NoError(t, err)
	require.Len(t, rep.Nodes, 3)
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { _ = k.cmd.Process.Signal(syscall.SIGCONT) }()
	eventually(t, func() bool { // it stops a moment after the signal
		soon, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		rep, err = r.Report(soon)
		return err == nil && len(rep.Missing) == 1 && len(rep.Nodes) == 2
	}, "all but one have answered")
	require.NotContains(t, []kith.ID{nodes[0].ID(), nodes[1].ID()}, rep.Missing[0])
	require.Equal(t, nodes[0].ID(), rep.Coordinator)
}

func names(list []*kith.Region) (names []string) {
	for _, r := range list {
		names = append(names, r.Type().Name)
	}
	return names
}

// TestHomeOfAnEntity: every node that has dealt with an entity's shard says the same home and fence, and the owner what
// goes on there; one that has not knows nothing, and asks nobody (SHD-7).
func TestHomeOfAnEntity(t *testing.T) {
	t.Parallel()
	l := newLedger()
	nodes := cluster(t, 2, nil, nil)
	var regions []*kith.Region
	for _, n := range nodes {
		typ := echoType("orders", kith.Blocking, l, func() *kith.Node { return n })
		typ.Shards = 4
		r, err := n.Register(typ)
		require.NoError(t, err)
		regions = append(regions, r)
	}
	typed := kith.Message[string, string]{Type: regions[0].Type().Name}.In(regions[0])
	none, err := typed.Region().Home("a")
	require.NoError(t, err)
	require.Equal(t, kith.Home{Shard: regions[0].Shard("a")}, none)
	for _, r := range regions {
		_, err := r.Ask(within(t), "a", numbered(0, 0))
		require.NoError(t, err)
	}
	eventually(t, func() bool {
		here := 0
		var homes []kith.Home
		for i, r := range regions {
			h, err := r.Home("a")
			require.NoError(t, err)
			homes = append(homes, h)
			require.Equal(t, h.Here, h.Node == nodes[i].ID())
			require.False(t, h.Since.IsZero())
			require.Equal(t, h.Here, h.Activity != nil)
			if h.Here && h.Activity.Handled == 2 && h.Activity.Entities == 1 && h.Activity.Mailbox.Lives &&
				!h.Activity.Mailbox.Busy {
				here++
			}
		}
		require.Equal(t, homes[0].Fence, homes[1].Fence)
		require.Equal(t, homes[0].Node, homes[1].Node)
		return here == 1
	}, "the figures are up to a tenth of a second old")
	_, err = regions[0].Home("")
	require.ErrorIs(t, err, kith.ErrBadID)
	require.NoError(t, nodes[0].Close())
	_, err = regions[0].Home("a")
	require.ErrorIs(t, err, kith.ErrStopped)
}
