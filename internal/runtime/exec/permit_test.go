// Tests of permits whose orders wait behind what a worker does.

package exec

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// TestPermitThatCameTooLate: while the order that an entity may live waits behind a busy worker, its lease ends,
// whoever notices that: the entity does not begin, not for a moment, before it is permitted anew (SHD-12).
func TestPermitThatCameTooLate(t *testing.T) {
	for name, ends := range map[string]func(h *Host, over *atomic.Bool){
		"the holder says so":          func(h *Host, _ *atomic.Bool) { Withhold(h); LookAtLease(h) },
		"who is about to call, looks": func(_ *Host, over *atomic.Bool) { over.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy, goOn := make(chan struct{}), make(chan struct{})
			x := newBare(t, typeOf(entity.Worker, 1, func(*entity.Context, []byte) error {
				busy <- struct{}{}
				<-goOn
				return nil
			}))
			var made atomic.Int32
			var over atomic.Bool // its time is
			typ := entity.Type{Name: "lone", Shards: 1, Mode: entity.Worker, Restart: entity.RestartFresh,
				RestartBackoff: time.Millisecond, New: func(string, route.Fence) entity.Handler {
					made.Add(1)
					return handling(func(*entity.Context, []byte) error { return nil })
				}}
			lone := x.NewType(typ.WithDefaults(), func(h *Host) entity.Runtime { return alone{h} })
			KeepLeased(lone, &entity.Keep{ID: func(route.ShardID) string { return "one" }}, func() {
				if over.CompareAndSwap(true, false) {
					Withhold(lone.Host(0))
				}
			})
			lone.Begin(0, x.fence, nil, nil)
			h := lone.Host(0)
			x.SetTypes((&Types{}).With(x.typ).With(lone))

			require.Equal(t, route.OK, x.send("e", nil))
			<-busy
			Permit(h)
			LookAtLease(h)
			ends(h, &over)
			require.Equal(t, route.OK, x.send("e", nil))
			goOn <- struct{}{}
			<-busy // again: the orders have been carried out, or come next
			goOn <- struct{}{}
			require.Equal(t, route.OK, x.send("e", nil))
			<-busy
			goOn <- struct{}{}
			require.Zero(t, made.Load(), "nobody permits it")
			Permit(h)
			LookAtLease(h)
			eventually(t, func() bool { return made.Load() == 1 })
		})
	}
}
