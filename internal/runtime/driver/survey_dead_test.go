// Surveys while a member is dead.

package driver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/survey"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// A survey does not wait for a member with a broken connection: where the others' shards live is answered at once,
// and the dead one is named (OPS-1).
func TestSurveyWaitsForNoDeadMember(t *testing.T) {
	a, err := Start(t.Context(), Config{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	require.NoError(t, a.Ready(t.Context()))
	r, err := a.Register(entity.Type{Name: "orders", Shards: 8,
		New: func(string, route.Fence) entity.Handler { return nil }})
	require.NoError(t, err)
	b, err := Start(t.Context(), Config{Seeds: []string{a.self.Addr.String()}}.WithDefaults())
	require.NoError(t, err)
	require.NoError(t, b.Ready(t.Context()))
	ask := func(within time.Duration) survey.Result {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		result, err := Survey(ctx, r)
		require.NoError(t, err)
		require.NoError(t, ctx.Err(), "it has not waited for its end")
		return result
	}
	require.Empty(t, ask(time.Minute).Missing)
	require.NoError(t, b.Close())
	eventually(t, func() bool { return transport.Cut(b.self, a.wires) })
	for _, m := range a.View().Members {
		if m.ID == b.self {
			require.Equal(t, peer.SetOf(b.self), ask(time.Hour).Missing)
		}
	}
	require.Contains(t, ask(time.Hour).Answers, a.self)
}
