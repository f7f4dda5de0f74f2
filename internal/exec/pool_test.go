// Tests of the pool that runs Blocking entities: its bound, on both ways into it.

package exec

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// No more Blocking entities run at a time than the pool takes, whoever their messages come from; the others wait for
// their turn, and all get one (SHD-5).
func TestBlockingPoolIsBounded(t *testing.T) {
	const bound, entities = 4, 24
	var running, most atomic.Int64
	pass := make(chan struct{})
	x := newBare(t, typeOf(entity.Blocking, 4, func(*entity.Context, []byte) error {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-pass
		running.Add(-1)
		return nil
	}))
	x.pool.most = bound
	ways := map[string]func(){
		"from another node": func() {
			var frames []byte
			for i := range entities {
				env := x.envelope(fmt.Sprint(i), nil)
				frames = wire.AppendEnvelope(frames, &env)
			}
			x.read(t, 0, frames)
		},
		"from here": func() {
			for i := range entities {
				require.Equal(t, route.OK, x.send(fmt.Sprint(i), nil))
			}
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			send()
			eventually(t, func() bool { return running.Load() == bound && x.pool.some.Load() })
			for range entities {
				pass <- struct{}{}
			}
			eventually(t, func() bool { return running.Load() == 0 })
			require.EqualValues(t, bound, most.Load())
			require.False(t, x.pool.some.Load())
		})
	}
}

// TestHandlerThatExits: a handler that ends its goroutine, as t.FailNow does, costs no place among those that run; its
// asker is told, and what waits is handled, by a new instance, on another goroutine (SHD-5).
func TestHandlerThatExits(t *testing.T) {
	for _, latency := range []func(string, time.Duration){nil, func(string, time.Duration) {}} {
		const exits = 5
		var handled atomic.Int64
		var told sync.Map
		enter := make(chan struct{})
		x := newBare(t, typeOf(entity.Blocking, 1, func(_ *entity.Context, b []byte) error {
			if string(b) == "exit" {
				<-enter
				runtime.Goexit()
			}
			handled.Add(1)
			return nil
		}), func(cfg *Config) {
			cfg.Latency, cfg.LatencyEvery = latency, 1
			cfg.Incident = func(i entity.Incident) { told.Store(i.Kind, i.Text) }
		})
		x.pool.most = 1
		answered := x.cfg.Origin.(answers)
		for i := range int64(exits) {
			h, env := x.host("a"), x.envelope("a", []byte("exit"))
			env.Flags |= wire.FlagAsk
			require.Equal(t, route.OK, h.Send(h.Lock(), &env, "a"))
			require.Equal(t, route.OK, x.send("a", nil), "it waits in the same mailbox")
			enter <- struct{}{}
			require.Equal(t, route.HandlerPanic, <-answered.got)
			require.Equal(t, route.OK, x.send("b", nil))
			eventually(t, func() bool { return handled.Load() == 2*(i+1) && x.Busy() == 0 })
		}
		panics, _ := x.typ.Incidents()
		require.EqualValues(t, exits, panics)
		x.TellHook()
		text, _ := told.Load(entity.Panicked)
		require.Contains(t, text, "runtime.Goexit was called\n")
		require.Contains(t, text, "TestHandlerThatExits", "and where")
	}
}
