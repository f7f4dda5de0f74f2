// Test of broken links as evidence on real sockets (FD-1).

package e2e_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// A node that is gone is unreachable because its connections were reset and its address refuses new ones. Silence would
// say so after an hour: the detector is that patient here.
func TestGoneNodeIsUnreachableWithoutSilence(t *testing.T) {
	t.Parallel()
	l := logger(t)
	pace := quick()
	pace.AcceptablePause = time.Hour
	var nodes []*kith.Node
	for i := range 4 {
		cfg := kith.Config{Name: "test", Listen: port.Keep(t), Membership: pace,
			Sharding: kith.Sharding{TakeoverTime: time.Second}, Resolver: kith.Resolver{Strategy: kith.ResolverOff},
			Logger: slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", i)}
		if i > 0 {
			cfg.Seeds = []string{nodes[0].Addr().String()}
		}
		n, err := kith.Start(context.Background(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 4 })
	}
	require.NoError(t, nodes[3].Close())
	for _, n := range nodes[:3] {
		awaitView(t, n, func(v *kith.View) bool { return v.Unreachable.Has(nodes[3].ID()) })
		require.Len(t, n.View().Unreachable, 1)
	}
}
