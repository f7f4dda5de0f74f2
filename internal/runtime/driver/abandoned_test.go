// A shard that was given up while a handler of it runs.

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// An abandoned shard stays in its place until its Blocking handler has returned: the node learns it then, and not
// before, so it orders the same shard to live here again only afterwards (SHD-9).
func TestAbandonedShardStaysUntilItsHandlerReturns(t *testing.T) {
	running, free := make(chan struct{}), make(chan struct{})
	d, err := Start(t.Context(), Config{}.WithDefaults())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	r, err := d.Register(entity.Type{Name: "slow", Shards: 1, New: func(string, route.Fence) entity.Handler {
		return &plain{func([]byte) { close(running); <-free }}
	}})
	require.NoError(t, err)
	require.NoError(t, d.Ready(t.Context()))
	require.NoError(t, r.Tell("a", nil))
	<-running
	h := r.hosts.Host(0)
	order := shard.HostOrder{Type: r.id, Fence: h.Fence(), Stop: true, Abandon: true}
	onControl(d, func() { d.hostOrder(&order) })
	onControl(d, func() {}) // what the order has posted is done
	require.Same(t, h, r.hosts.Host(0))
	again := shard.HostOrder{Type: r.id, Fence: route.MakeFence(h.Fence().Birth(), h.Fence().Term(), h.Fence().Epoch()+1)}
	onControl(d, func() { require.Panics(t, func() { d.hostOrder(&again) }, "two hosts of one shard") })
	close(free)
	eventually(t, func() bool { return r.hosts.Host(0) == nil })
	onControl(d, func() { d.hostOrder(&again) })
	require.NotNil(t, r.hosts.Host(0))
}
