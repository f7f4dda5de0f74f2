// Tests of permits with orders that wait behind what a worker does.

package exec

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// TestPermitThatCameTooLate: while the order that an entity may live waits behind a busy worker, its lease ends,
// wherever that is noticed: the entity does not begin, not for a moment, before it is permitted anew (SHD-12).
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

// TestNothingIsCalledWithoutItsLease: its lease is over, and its host does not know: a message that comes, small or
// large, on each way, looks and calls nothing (SHD-12).
func TestNothingIsCalledWithoutItsLease(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Inline, entity.Worker, entity.Blocking} {
		for _, flags := range []uint8{0, wire.FlagBulk} {
			for way, here := range map[string]bool{"here": true, "inbound": false} {
				t.Run(fmt.Sprintf("%s, %s, %d", mode, way, flags), func(t *testing.T) {
					calledWithLease(t, mode, flags, here)
				})
			}
		}
	}
}

func calledWithLease(t *testing.T, mode entity.Mode, flags uint8, here bool) {
	var over atomic.Bool // the time of the lease is
	var made, calls atomic.Int32
	x := newBare(t, typeOf(entity.Worker, 1, func(*entity.Context, []byte) error { return nil }))
	typ := entity.Type{Name: "lone", Shards: 1, Mode: mode, RestartBackoff: time.Millisecond,
		New: func(string, route.Fence) entity.Handler {
			made.Add(1)
			return handling(func(*entity.Context, []byte) error { calls.Add(1); return nil })
		}}
	lone := x.NewType(typ.WithDefaults(), func(h *Host) entity.Runtime { return alone{h} })
	KeepLeased(lone, &entity.Keep{ID: func(route.ShardID) string { return "one" }}, func() {
		if over.CompareAndSwap(true, false) {
			Withhold(lone.Host(0))
		}
	})
	x.large = Large{Payload: []byte("large"), Release: func() {}, Done: func(route.Reason) {}}
	lone.Begin(0, x.fence, nil, nil)
	h := lone.Host(0)
	x.SetTypes((&Types{}).With(x.typ).With(lone))
	Permit(h)
	LookAtLease(h)
	send := func() {
		env := wire.Envelope{Type: uint32(lone.id), Term: x.fence.Term(), Epoch: x.fence.Epoch(), ID: []byte("one"),
			Flags: flags, Payload: []byte("x")}
		if here {
			h.Send(h.Lock(), &env, 0, "one")
		} else {
			x.read(t, 0, wire.AppendEnvelope(nil, &env))
		}
	}
	eventually(t, func() bool { return made.Load() == 1 })
	send()
	eventually(t, func() bool { return calls.Load() == 1 })
	over.Store(true)
	send()
	if mode == entity.Blocking { // the message waits in its mailbox, and its run has ended
		eventually(t, func() bool { h.mu.Lock(); defer h.mu.Unlock(); return entity.Withheld(h.sh) })
	} else {
		eventually(t, func() bool { return len(x.told()) == 1 || calls.Load() > 1 })
	}
	require.EqualValues(t, 1, calls.Load())
	for _, r := range x.told() {
		require.Equal(t, route.Crashed, r.reason)
	}
}
