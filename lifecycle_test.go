// Tests of what an embedder can ask of the membership beside joining and leaving.

package kith_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// MEM-12: metadata and application versions reach every member.
func TestMetadataReachesAll(t *testing.T) {
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

// MEM-7: all nodes become ready, a further one is refused with the reason, and the cluster can be stopped.
func TestPrepareForFullShutdown(t *testing.T) {
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
	late := start(t, nil, kith.Config{Seeds: []string{nodes[0].Addr().String()}, JoinTimeout: patience / 20})
	<-late.Done()
	var end *kith.EndedError
	require.True(t, errors.As(late.Err(), &end))
	require.Equal(t, kith.EndJoinTimeout, end.Kind)
	require.Contains(t, end.Reason, "full shutdown")
	for _, n := range nodes {
		require.NoError(t, n.Leave(ctx))
	}
}
