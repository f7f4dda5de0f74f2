// Tests of what is called of an entity after its lease.

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/leases"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// TestNothingIsCalledWithoutItsLease: the lease is over, and the order that tells the host of it waits behind what its
// worker does: no message calls the entity, small or large, as on a node (SHD-12). Found by storm 1128403134.
func TestNothingIsCalledWithoutItsLease(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Inline, entity.Worker, entity.Blocking} {
		for name, size := range map[string]int{"small": 10, "large": 3000} {
			t.Run(mode.String()+", "+name, func(t *testing.T) {
				calls := 0
				lone := entity.Type{Name: "lone", Shards: 1, Mode: mode, RestartBackoff: time.Second,
					New: func(string, route.Fence) entity.Handler {
						return handlerFunc(func(*entity.Context, []byte) error { calls++; return nil })
					}}
				typ := &EntityType{Type: lone.WithDefaults(),
					Keep: &entity.Keep{ID: func(route.ShardID) string { return "one" }},
					Lease: &LeaseUse{Keep: time.Hour, Config: leases.Config{Hold: time.Hour, Renew: 20 * time.Minute,
						Timeout: time.Second, Backoff: time.Second}}}
				w := formed(t, 1, setup.Config{Data: setup.DataConfig{MaxPayload: 300, BulkChunk: 256}}, typ)
				p := w.Hosts[0].Process
				r := p.Region(route.TypeOf("lone"))
				send := func() {
					_, err := r.Send("one", make([]byte, size), 0)
					require.NoError(t, err)
					w.Advance(time.Second)
				}
				w.Advance(time.Second)
				send()
				require.Equal(t, 1, calls, "its lease is held")
				r.shards.Peek(0).withhold()
				send()
				require.Equal(t, 1, calls)
			})
		}
	}
}
