// The end of an outage, as an event.

package driver

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// A member that answers again, or has shards that may live elsewhere, has had an outage: its end is an event, reported
// once, with how long it took and why it is over (AVL-5).
func TestEndOfAnOutage(t *testing.T) {
	gone, back := peer.ID{Addr: peer.MustAddr("n1:1"), Inc: 1}, peer.ID{Addr: peer.MustAddr("n2:1"), Inc: 2}
	v := &membership.View{Members: []membership.Member{{ID: back, Status: membership.Up}}}
	var d takeover
	d.init(&Config{}, slog.New(slog.DiscardHandler))
	require.Empty(t, d.over(time.Second, v))
	d.open = []node.Outage{{Member: gone, Since: time.Second, Decided: true, Until: 20 * time.Second, Shards: 25},
		{Member: back, Since: 2 * time.Second}}
	over := d.over(23*time.Second, v)
	require.Len(t, over, 2)
	for i, want := range []struct {
		id   peer.ID
		took time.Duration
		why  string
	}{{gone, 22 * time.Second, "what lived there may be served elsewhere, 25 shards"},
		{back, 21 * time.Second, "it answers again"}} {
		require.Equal(t, membership.OutageOver, over[i].Kind)
		require.Equal(t, want.id, over[i].Member.ID)
		require.Equal(t, want.took, over[i].For)
		require.Equal(t, want.why, over[i].Detail)
	}
	require.Contains(t, over[0].String(), "outage-over n1:1#1 after 22s: what lived there")
	require.Empty(t, d.over(24*time.Second, v), "once")
}

// Each type says what it was registered as.
func TestKindsOfTypes(t *testing.T) {
	runs := func(context.Context, *entity.Context) error { return nil }
	require.Equal(t, "entities", kindOf(false, nil))
	require.Equal(t, "singleton", kindOf(false, &Keep{}))
	require.Equal(t, "daemons", kindOf(false, &Keep{Keep: entity.Keep{Run: runs}}))
	require.Equal(t, "pool", kindOf(true, nil))
}
