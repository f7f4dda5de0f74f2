// A node without a logger: losses and incidents that no callback hears.

package e2e_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/logs/logstest"
)

// What is lost is logged by default, as are incidents, and nothing else; what a callback hears is not logged, and with
// a logger of its own the node leaves the default one alone (OPS-1).
func TestLossesAndIncidentsAreHeard(t *testing.T) { // not parallel: the default logger is everybody's
	was := slog.Default()
	t.Cleanup(func() { slog.SetDefault(was) })
	const unmade = `msg="entity could not be made"`
	own := &logstest.Text{}
	for _, c := range []struct {
		edit              func(cfg *kith.Config)
		losses, incidents int
	}{
		{func(*kith.Config) {}, 1, 1},
		{func(cfg *kith.Config) { cfg.Undelivered = func(kith.Undelivered) {} }, 0, 1},
		{func(cfg *kith.Config) { cfg.Incident = func(kith.Incident) {} }, 1, 0},
		{func(cfg *kith.Config) { cfg.Logger = slog.New(slog.NewTextHandler(own, nil)) }, 0, 0},
		{func(cfg *kith.Config) { cfg.Logger = slog.New(slog.DiscardHandler) }, 0, 0},
	} {
		text := &logstest.Text{}
		slog.SetDefault(slog.New(slog.NewTextHandler(text, nil)))
		cfg := kith.Config{Name: "unheard"}
		c.edit(&cfg)
		node, err := kith.Start(context.Background(), cfg)
		require.NoError(t, err)
		region, err := node.Register(kith.EntityType{Name: "unheard",
			Open: func(*kith.Context) (kith.Handler, error) { return nil, errors.New("no store") }})
		require.NoError(t, err)
		require.NoError(t, region.Tell("anna", nil))
		_, err = region.Ask(context.Background(), "anna", nil) // behind the tell
		require.ErrorIs(t, err, kith.ErrNewFailed)
		require.NoError(t, node.Close())
		require.Len(t, text.Lines("messages not delivered"), c.losses, "%s", text)
		require.Equal(t, c.incidents > 0, text.Count(unmade) > 0, "%s", text)
		require.Len(t, text.Lines(""), c.losses+len(text.Lines(unmade)), "nothing else: %s", text)
	}
	require.NotZero(t, own.Count("messages not delivered"))
	require.NotZero(t, own.Count(unmade))
}
