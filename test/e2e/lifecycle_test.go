// Tests of what an embedder can ask of the membership beside joining and leaving.

package e2e_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// MEM-12: metadata and application versions reach every member.
func TestMetadataReachesAll(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) { cfg.AppVersion = []string{"1.9", "1.10"}[i] }, nil)
	ctx := within(t)
	require.NoError(t, nodes[1].SetMetadata(ctx, "schema", []byte("7")))
	awaitView(t, nodes[0], func(v *kith.View) bool {
		b, ok := v.MetadataValue("schema")
		return ok && string(b) == "7"
	})
	require.NoError(t, nodes[0].SetMetadata(ctx, "schema", nil))
	awaitView(t, nodes[1], func(v *kith.View) bool { return len(v.Metadata) == 0 })
	require.Error(t, nodes[0].SetMetadata(ctx, strings.Repeat("k", 100), nil))
	a, _ := nodes[1].View().Member(nodes[0].ID())
	b, _ := nodes[1].View().Member(nodes[1].ID())
	require.Negative(t, kith.CompareVersions(a.AppVersion, b.AppVersion))
}

// GOS-10: with the overview each node learns which version the others hold; alone or without it, only whether they have
// the present one.
func TestVersions(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, func(i int, cfg *kith.Config) {
		cfg.Membership = quick()
		cfg.Membership.Overview = i == 0
	}, nil)
	ctx := within(t)
	eventually(t, func() bool {
		known, err := nodes[0].Versions(ctx)
		require.NoError(t, err)
		return len(known) == 2 && known[0].Version == known[1].Version && known[0].Current && known[1].Current
	}, "each says what it has")
	eventually(t, func() bool {
		known, err := nodes[1].Versions(ctx)
		require.NoError(t, err)
		return known[0].Current && known[1].Current
	}, "both have seen the same")
	known, err := nodes[1].Versions(ctx)
	require.NoError(t, err)
	other := 0
	if known[0].ID == nodes[1].ID() {
		other = 1
	}
	require.Zero(t, known[other].Version, "not remembered")
	require.NoError(t, nodes[1].Close())
	_, err = nodes[1].Versions(ctx)
	require.Error(t, err)
}

// MEM-7: all nodes become ready, a further one is refused with the reason, and the cluster can be stopped.
func TestPrepareForFullShutdown(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	ctx := within(t)
	require.NoError(t, nodes[1].PrepareForFullShutdown(ctx))
	for _, n := range nodes {
		eventually(t, func() bool {
			for _, m := range n.View().Members {
				if m.Status != kith.ReadyForShutdown {
					return false
				}
			}
			return n.View().Converged
		}, "all are ready")
		require.NoError(t, n.Ready(ctx))
	}
	c, err := nodes[0].Convergence(ctx)
	require.NoError(t, err)
	require.True(t, c.Converged)
	late := start(t, nil, kith.Config{Seeds: []string{nodes[0].Addr().String()}, JoinTimeout: 1500 * time.Millisecond})
	<-late.Done()
	var end *kith.EndedError
	require.True(t, errors.As(late.Err(), &end))
	require.Equal(t, kith.EndJoinTimeout, end.Kind)
	require.Contains(t, end.Reason, "full shutdown")
	require.NoError(t, nodes[0].ShutdownFrom(ctx, kith.ReasonSignal, kith.PhaseClusterLeave), "a ready member leaves")
	require.ErrorAs(t, nodes[0].Err(), &end)
	require.Equal(t, kith.EndLeft, end.Kind)
	require.NoError(t, nodes[1].Leave(ctx))
}

// MEM-9: a node that is alone goes over to another cluster at the same address, under a new incarnation; one in company
// gets the error that it may not. What it hosted is stopped first.
func TestJoinCluster(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	ctx := within(t)
	_, err := nodes[0].JoinCluster(ctx, []string{nodes[1].Addr().String()})
	require.ErrorIs(t, err, kith.ErrNotAlone)
	require.NoError(t, nodes[0].Err())

	lone := start(t, nil, kith.Config{})
	require.NoError(t, lone.Ready(ctx))
	flushed := make(chan struct{})
	require.NoError(t, lone.OnShutdown(kith.PhaseServiceStop, "flush", func(context.Context) error {
		close(flushed)
		return nil
	}))
	next, err := lone.JoinCluster(ctx, []string{nodes[0].Addr().String()})
	require.NoError(t, err)
	<-flushed
	require.Equal(t, kith.ReasonRejoin, lone.ShutdownReason())
	t.Cleanup(func() { require.NoError(t, next.Close()) })
	require.NoError(t, next.Ready(ctx))
	require.Equal(t, lone.Addr(), next.Addr())
	require.NotEqual(t, lone.ID(), next.ID())
	require.Equal(t, nodes[0].View().ClusterID, next.View().ClusterID)
	var end *kith.EndedError
	require.ErrorAs(t, lone.Err(), &end)
	require.Equal(t, kith.EndRejoin, end.Kind)
	again, err := lone.JoinCluster(ctx, nil)
	require.NoError(t, err)
	require.Same(t, next, again)
	for _, n := range nodes {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 3 })
	}
}

// A call with a context that ends in the middle leaves a node that a later call leads on (MEM-9).
func TestJoinClusterInTwoCalls(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 1, nil, nil)
	lone := start(t, nil, kith.Config{})
	require.NoError(t, lone.Ready(within(t)))
	ctx, cancel := context.WithCancel(within(t))
	require.NoError(t, lone.OnShutdown(kith.PhaseServiceStop, "cut", func(context.Context) error {
		cancel()
		return nil
	}))
	_, err := lone.JoinCluster(ctx, []string{nodes[0].Addr().String()})
	require.ErrorIs(t, err, context.Canceled)
	next, err := lone.JoinCluster(within(t), []string{nodes[0].Addr().String()})
	require.NoError(t, err)
	t.Cleanup(func() { closes(t, next) })
	require.NoError(t, next.Ready(within(t)))
	require.Equal(t, nodes[0].View().ClusterID, next.View().ClusterID)
}

// A node on which fences may have been issued refuses a cluster that was born earlier.
func TestJoinClusterBornEarlier(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 1, nil, nil)
	ctx := within(t)
	lone := start(t, nil, kith.Config{MinBirth: nodes[0].View().Birth}) // so it forms a cluster that is born later
	_, err := lone.Register(echoType("echo", kith.Worker, newLedger(), func() *kith.Node { return lone }))
	require.NoError(t, err)
	require.NoError(t, lone.Ready(ctx))
	require.Greater(t, lone.View().Birth, nodes[0].View().Birth)
	next, err := lone.JoinCluster(ctx, []string{nodes[0].Addr().String()})
	require.NoError(t, err)
	<-next.Done()
	var end *kith.EndedError
	require.ErrorAs(t, next.Err(), &end)
	require.Equal(t, kith.EndJoinRefused, end.Kind)
	require.Contains(t, end.Reason, "birth")
}

// JOIN-1: a node with settings that do not fit is refused, with both values.
func TestSettingsMustAgree(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 1, nil, nil)
	other := start(t, nil, kith.Config{Seeds: []string{nodes[0].Addr().String()},
		Sharding: kith.Sharding{TakeoverTime: 90 * time.Second}})
	<-other.Done()
	var end *kith.EndedError
	require.ErrorAs(t, other.Err(), &end)
	require.Equal(t, kith.EndJoinRefused, end.Kind)
	require.Contains(t, end.Reason, `setting "kith.takeover-time" is "`)
	require.Contains(t, end.Reason, `in the cluster and "1m30s" at the joiner`)
	require.Len(t, nodes[0].View().Members, 1)
}

// JOIN-1: two clusters of one name that list each other as seeds find out, over real connections.
func TestTwinClusters(t *testing.T) {
	t.Parallel()
	a := start(t, nil, kith.Config{})
	ctx := within(t)
	require.NoError(t, a.Ready(ctx))
	// The upper bits of a birth are the millisecond in which its node started: in the same one either may be the older.
	require.Eventually(t, func() bool { return time.Now().UnixMilli() > int64(a.View().Birth>>20) }, patience,
		time.Millisecond)
	l := logger(t)
	cfg := kith.Config{Listen: "127.0.0.1:0", Name: "test", Membership: quick(),
		Sharding: kith.Sharding{TakeoverTime: never},
		Resolver: kith.Resolver{Strategy: kith.ResolverOff}}
	cfg.Membership.SeedCheckInterval = 50 * time.Millisecond
	cfg.Logger = slog.New(slog.NewTextHandler(l, nil))
	own := port.Keep(t)  // of the twin, which must head its own list
	seed := port.Keep(t) // is the twin's seed later, and nobody while the twin forms its own cluster
	cfg.Listen, cfg.Seeds = own, []string{own, seed}
	cfg.Membership.SeedTimeout = 200 * time.Millisecond
	twin, err := kith.Start(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	require.NoError(t, twin.Ready(ctx))
	told := false
	for ev := range twin.Events(ctx) {
		switch ev.Kind {
		case kith.Snapshot:
			other := start(t, nil, kith.Config{Listen: seed, Seeds: []string{a.Addr().String()}})
			require.Equal(t, seed, other.Addr().String())
		case kith.DuplicateCluster:
			require.Equal(t, a.View().ClusterID, ev.Duplicate.ClusterID)
			require.Equal(t, a.View().Birth, ev.Duplicate.Birth)
			require.Equal(t, seed, ev.Duplicate.Via.String())
			told = true
		}
	}
	require.True(t, told, "of the twin")
	select {
	case <-twin.Done():
	case <-ctx.Done():
		require.FailNow(t, "the twin does not end", "born %d, the other cluster %d", twin.View().Birth, a.View().Birth)
	}
	var end *kith.EndedError
	require.ErrorAs(t, twin.Err(), &end, "it is alone, and the younger one")
	require.Equal(t, kith.EndDuplicate, end.Kind)
}
