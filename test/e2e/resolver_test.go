// Tests of the resolver on real sockets: on by default, explained, with and without a lease (MEM-10).

package e2e_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sbr/leasetest"
)

// gone waits until n holds nobody but the given number of members.
func gone(t *testing.T, n *kith.Node, members int) {
	t.Helper()
	awaitView(t, n, func(v *kith.View) bool { return len(v.Members) == members && len(v.Unreachable) == 0 })
}

// TestResolverRemovesACrashedNode: nobody downs it by hand; the decision and the node that took it can be read.
func TestResolverRemovesACrashedNode(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) { cfg.Resolver.StableAfter = 200 * time.Millisecond }, nil)
	lost := nodes[2].ID()
	require.NoError(t, nodes[2].Close())
	gone(t, nodes[0], 2)
	gone(t, nodes[1], 2)
	carriedOut := 0
	for _, n := range nodes[:2] {
		for _, d := range n.Decisions() {
			require.Equal(t, kith.KeepMajority, d.Strategy)
			require.True(t, d.Lives, d)
			require.True(t, d.Down.Has(lost), d)
			require.Contains(t, d.String(), "2 of 3 members reachable")
			require.Contains(t, d.String(), "ours is the majority")
			require.WithinDuration(t, time.Now(), d.Time, patience)
			if d.Leader {
				carriedOut++
			}
		}
	}
	require.Positive(t, carriedOut, "the leader has decided")
}

// TestResolverLease: the side that acquires the lease lives; it is held, then given back.
func TestResolverLease(t *testing.T) {
	t.Parallel()
	var lease leasetest.Memory
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) {
		cfg.Resolver = kith.Resolver{Strategy: kith.LeaseMajority, StableAfter: 200 * time.Millisecond,
			LeaseHold: 100 * time.Millisecond}
		cfg.Lease = &lease
	}, nil)
	require.NoError(t, nodes[2].Close())
	gone(t, nodes[0], 2)
	gone(t, nodes[1], 2)
	require.Eventually(t, func() bool { return lease.Owner("test-resolver") == "" }, patience, time.Millisecond)
}

// TestResolverEndsTheSmallerSide: of two nodes, the one with the higher address cannot know whether the other lives.
func TestResolverEndsTheSmallerSide(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) { cfg.Resolver.StableAfter = 200 * time.Millisecond }, nil)
	low, high := nodes[0], nodes[1]
	if high.ID().Less(low.ID()) {
		low, high = high, low
	}
	require.NoError(t, low.Close())
	select {
	case <-high.Done():
	case <-within(t).Done():
		require.FailNow(t, "it lives on")
	}
	require.ErrorContains(t, high.Err(), "marked down")
	require.False(t, high.Decisions()[0].Lives)
}

// TestResolverOff: without it a lost member stays.
func TestResolverOff(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
		cfg.Resolver = kith.Resolver{Strategy: kith.ResolverOff, StableAfter: 100 * time.Millisecond}
	}, nil)
	lost := nodes[1].ID()
	require.NoError(t, nodes[1].Close())
	awaitView(t, nodes[0], func(v *kith.View) bool { return v.Unreachable.Has(lost) })
	require.Empty(t, nodes[0].Decisions())
	require.Len(t, nodes[0].View().Members, 2)
}

// TestResolverSettingsMustAgree: a node that would decide by another rule is refused, both values named.
func TestResolverSettingsMustAgree(t *testing.T) {
	t.Parallel()
	l := logger(t)
	const patience = 5 * time.Second
	first := start(t, l, kith.Config{Resolver: kith.Resolver{StableAfter: patience}})
	require.NoError(t, first.Ready(within(t)))
	for _, r := range []kith.Resolver{{Strategy: kith.DownAll, StableAfter: patience}, {StableAfter: time.Second},
		{StableAfter: patience, Role: "store"}} {
		other := start(t, l, kith.Config{Seeds: []string{first.Addr().String()}, Resolver: r})
		require.ErrorContains(t, other.Ready(within(t)), "kith.resolver")
	}
}

// TestResolverConfig: all faults at once, among those of the rest.
func TestResolverConfig(t *testing.T) {
	err := kith.Config{Resolver: kith.Resolver{Strategy: kith.LeaseMajority}, Logger: slog.Default()}.Validate()
	require.ErrorContains(t, err, "lease-majority needs a Lease")
	err = kith.Config{Resolver: kith.Resolver{Strategy: kith.StaticQuorum, StableAfter: 1, LeaseHold: -1}}.Validate()
	require.ErrorContains(t, err, "static-quorum needs QuorumSize")
	require.ErrorContains(t, err, "StableAfter is 1ns")
	require.ErrorContains(t, err, "LeaseHold is -1ns")
	require.ErrorContains(t, kith.Config{Resolver: kith.Resolver{Strategy: 99}}.Validate(), "unknown strategy 99")
}
