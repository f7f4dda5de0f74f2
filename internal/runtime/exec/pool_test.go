// Tests of the pool that runs Blocking entities: its bound, on both ways into it, and the order of turns.

package exec

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// No more Blocking entities run at a time than the pool takes, wherever their messages come from; the others wait for
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
			eventually(t, func() bool { return running.Load() == bound && x.Busy() > bound })
			for range entities {
				pass <- struct{}{}
			}
			eventually(t, func() bool { return running.Load() == 0 })
			require.EqualValues(t, bound, most.Load())
			eventually(t, func() bool { return x.Busy() == 0 })
		})
	}
}

// A handler that blocks holds up no other entity, of its own shard or of another, wherever the messages come from: all
// run at once, however many (SHD-5).
func TestBlockingEntitiesRunAtOnce(t *testing.T) {
	const entities = 3*maxTurn + 1
	for _, shards := range []uint32{1, 4} {
		var began atomic.Int64
		pass := make(chan struct{})
		x := newBare(t, typeOf(entity.Blocking, shards, func(*entity.Context, []byte) error {
			began.Add(1)
			<-pass
			return nil
		}))
		all := func() bool { return began.Load() == 2*entities }
		var frames []byte
		for i := range entities {
			env := x.envelope(fmt.Sprint("there", i), nil)
			frames = wire.AppendEnvelope(frames, &env)
		}
		x.read(t, 0, frames)
		for i := range entities {
			require.Equal(t, route.OK, x.send(fmt.Sprint("here", i), nil))
		}
		eventually(t, all)
		require.EqualValues(t, 2*entities, x.Busy())
		close(pass)
		eventually(t, func() bool { return x.Busy() == 0 })
	}
}

// Whatever comes at once from here and from another node is handled, all of it: no goroutine leaves an entity that is
// ready to another one that does not come.
func TestNoReadyEntityIsForgotten(t *testing.T) {
	const senders, rounds, ids = 3, 300, 24
	var handled atomic.Int64
	x := newBare(t, typeOf(entity.Blocking, 4, func(*entity.Context, []byte) error {
		if handled.Add(1)%64 == 0 {
			runtime.Gosched()
		}
		return nil
	}))
	var frames []byte
	for i := range ids {
		env := x.envelope(fmt.Sprint(i), nil)
		frames = wire.AppendEnvelope(frames, &env)
	}
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			for range rounds {
				for i := range ids {
					x.send(fmt.Sprint(i), nil)
				}
			}
		})
	}
	for range rounds {
		x.read(t, 0, frames)
	}
	all.Wait()
	eventually(t, func() bool { return handled.Load() == (senders+1)*rounds*ids && x.Busy() == 0 })
}

// A loop that stands still in the middle of a pass holds up what it has read, and no message that comes by another way
// (SHD-5).
func TestPassHoldsUpNobodyElse(t *testing.T) {
	var handled atomic.Int64
	x := newBare(t, typeOf(entity.Blocking, 1, func(*entity.Context, []byte) error {
		handled.Add(1)
		return nil
	}))
	env := x.envelope("read", nil)
	frame := wire.AppendEnvelope(nil, &env)
	p := x.passes[0]
	for i := range int64(3) {
		x.onLoop(t, 0, func() { p.frames(x.Clock.Now(), nil, x.other, frame) })
		require.Equal(t, route.OK, x.send("sent", nil))
		eventually(t, func() bool { return handled.Load() >= 3*i+2 && x.Busy() == 0 })
		x.onLoop(t, 0, func() { p.frames(x.Clock.Now(), nil, x.other, frame); p.flush() })
		eventually(t, func() bool { return handled.Load() == 3*i+3 && x.Busy() == 0 })
	}
}

// Entities of one shard that keep each other busy take no turn from those of another, also where one runs at a time.
func TestShardsTakeTurns(t *testing.T) {
	var over, handled atomic.Bool
	var x *bare
	x = newBare(t, typeOf(entity.Blocking, 16, func(c *entity.Context, to []byte) error {
		switch {
		case len(to) == 0:
			handled.Store(true)
		case !over.Load():
			x.send(string(to), []byte(c.ID))
		}
		return nil
	}))
	x.pool.most = 1
	var ids []string // two of one shard, and one of another
	for i := 0; len(ids) < 3; i++ {
		id := fmt.Sprint(i)
		if len(ids) == 0 || (x.host(id) == x.host(ids[0])) == (len(ids) == 1) {
			ids = append(ids, id)
		}
	}
	require.Equal(t, route.OK, x.send(ids[0], []byte(ids[1])))
	require.Equal(t, route.OK, x.send(ids[2], nil))
	eventually(t, handled.Load)
	over.Store(true)
	eventually(t, func() bool { return x.Busy() == 0 })
}

// The queue of hosts is first in, first out, and a host that is taken out of its turn leaves no trace.
func TestHostQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q hostQueue
		hosts, want := make([]Host, 8), []*Host(nil)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			h := &hosts[rapid.IntRange(0, len(hosts)-1).Draw(t, "host")]
			at := slices.Index(want, h)
			switch rapid.IntRange(0, 2).Draw(t, "verb") {
			case 0:
				if at < 0 {
					q.push(h)
					want = append(want, h)
				}
			case 1:
				require.Equal(t, at >= 0, q.remove(h))
				if at >= 0 {
					want = slices.Delete(want, at, at+1)
				}
			default:
				if first := q.pop(); len(want) > 0 {
					require.Same(t, want[0], first)
					want = want[1:]
				} else {
					require.Nil(t, first)
				}
			}
			require.Equal(t, len(want), q.n)
			require.LessOrEqual(t, cap(q.list), 64, "it does not grow")
			require.False(t, q.n == 0 && len(q.list) > 0)
		}
	})
}

// TestHandlerThatExits: a handler that ends its goroutine, as t.FailNow does, costs no place among those that run; its
// asker gets an error, and what waits is handled, by a new instance, on another goroutine (SHD-5).
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
			require.Equal(t, route.OK, h.Send(h.Lock(), &env, 0, "a"))
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
