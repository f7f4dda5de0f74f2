// Tests of asks by Call: the caller's goroutine calls the handler of an Inline entity.

package exec

import (
	"encoding/binary"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/incall"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// ask asks as a driver does when its route leads here, and reports whether the handler was called before it returned.
func (x *bare) ask(id string, payload []byte) (called bool) {
	h, env := x.host(id), x.envelope(id, payload)
	env.Flags, env.Corr = wire.FlagAsk, 1
	h.Lock()
	if now, idle := Idle(h); idle {
		Call(h, now, &env, 0, id)
		return true
	}
	if h.Send(0, &env, 0, id) != route.OK {
		panic("refused")
	}
	return false
}

// got returns how the next ask of this node was answered.
func (x *bare) got() route.Reason { return <-x.cfg.Origin.(answers).got }

// mayCallNow reports whether an ask now would be handled by its caller.
func (x *bare) mayCallNow(id string) bool {
	h := x.host(id)
	h.Lock()
	_, idle := Idle(h)
	h.Unlock()
	if idle {
		h.queue.seat.Unlock()
		if !h.singleThreaded {
			h.mu.Unlock()
		}
	}
	return idle
}

// loops has execution step Inline shards on so many loops.
func loops(n int) func(*Config) { return func(c *Config) { c.Loops = make([]*loop.Loop, n) } }

// An ask to an Inline entity here is handled by the goroutine that asks, while the loop has nothing to do: with a
// Context that is the handler's there and nowhere else, and a payload that is the handler's own (CARD-3).
func TestAskIsHandledByItsCaller(t *testing.T) {
	for _, n := range []int{1, 2} {
		var at uintptr
		x := newBare(t, typeOf(entity.Inline, 4, func(c *entity.Context, payload []byte) error {
			at = incall.Here()
			clear(payload)
			return c.Reply(nil)
		}), loops(n))
		payload := []byte("mine")
		require.True(t, x.ask("a", payload))
		require.Equal(t, incall.Here(), at)
		require.Equal(t, route.OK, x.got())
		require.Equal(t, "mine", string(payload))
		require.EqualValues(t, 1, x.Handled())
	}
}

// Nobody calls a handler himself while the loop has something to do, or a handler of its shards runs, wherever that is:
// then the ask waits for its turn (SHD-5).
func TestNobodyCallsOutOfTurn(t *testing.T) {
	inside, on := make(chan struct{}), make(chan struct{})
	x := newBare(t, typeOf(entity.Inline, 4, func(c *entity.Context, payload []byte) error {
		if len(payload) > 0 {
			inside <- struct{}{}
			<-on
		}
		if c.Asked() {
			return c.Reply(nil)
		}
		return nil
	}))
	called := make(chan bool, 1)
	run := func(f func()) {
		go f()
		<-inside
		require.False(t, x.mayCallNow("a"), "a handler runs")
		require.False(t, x.mayCallNow("b"), "of another shard too: the loop is not idle")
		require.False(t, x.ask("b", nil))
		on <- struct{}{}
		require.Equal(t, route.OK, x.got())
	}
	run(func() { x.send("a", []byte("wait")) })
	eventually(t, func() bool { return x.mayCallNow("a") })
	run(func() { called <- x.ask("a", []byte("wait")) })
	require.True(t, <-called)
	require.Equal(t, route.OK, x.got())
}

// While a caller runs a handler, nothing of the loop does; what comes meanwhile is handled behind it, in order.
func TestLoopWaitsForACaller(t *testing.T) {
	var got []string
	inside, on, all := make(chan struct{}), make(chan struct{}), make(chan struct{})
	x := newBare(t, typeOf(entity.Inline, 4, func(c *entity.Context, payload []byte) error {
		if c.Asked() {
			inside <- struct{}{}
			<-on
		}
		if got = append(got, string(payload)); len(got) == 4 {
			close(all)
		}
		return nil
	}))
	go x.ask("a", []byte("ask"))
	<-inside
	for _, s := range []string{"1", "2", "3"} {
		require.Equal(t, route.OK, x.send("b", []byte(s)))
	}
	on <- struct{}{}
	<-all
	require.Equal(t, []string{"ask", "1", "2", "3"}, got)
}

// A gate that is closed, a shard that is at its deadline or lost, and what waits behind a gate leave an ask to the
// loop, which knows what is to be done.
func TestCallerHeedsGateAndDeadline(t *testing.T) {
	var early atomic.Int64
	var x *bare
	x = newBare(t, typeOf(entity.Inline, 4, func(c *entity.Context, payload []byte) error {
		if x.Gate.Closed() {
			early.Add(1)
		}
		return c.Reply(nil)
	}))
	require.True(t, x.ask("a", nil))
	require.Equal(t, route.OK, x.got())
	x.Gate.Order()
	require.False(t, x.ask("a", nil))
	eventually(t, func() bool { return x.passes[0].waits.Load() })
	require.False(t, x.ask("a", nil))
	x.Gate.Judge(false, false)
	for range 2 {
		require.Equal(t, route.OK, x.got())
	}
	require.Zero(t, early.Load())
	h := x.host("a")
	h.lose()
	require.False(t, x.ask("a", nil))
	eventually(t, func() bool { return len(x.told()) == 1 })
	require.Equal(t, []refusal{{x.typ, nil, "a", true, route.NotOwner}}, x.told())
}

// A handler that panics on the goroutine of its caller ends its own message, as on a loop: the caller goes on. One that
// ends that goroutine ends no more than that: the loop and others go on.
func TestCallerOutlivesTheHandler(t *testing.T) {
	for _, n := range []int{1, 2} {
		x := newBare(t, typeOf(entity.Inline, 1, func(c *entity.Context, payload []byte) error {
			switch string(payload) {
			case "panic":
				panic("told to")
			case "exit":
				runtime.Goexit()
			}
			return c.Reply(nil)
		}), loops(n))
		for range 3 {
			require.True(t, x.ask("a", []byte("panic")))
			require.Equal(t, route.HandlerPanic, x.got())
			var over sync.WaitGroup
			over.Go(func() {
				x.ask("a", []byte("exit"))
				t.Error("it went on")
			})
			over.Wait()
			require.Equal(t, route.HandlerPanic, x.got())
			require.True(t, x.ask("a", nil))
			require.Equal(t, route.OK, x.got())
			require.Equal(t, route.OK, x.send("a", nil))
			eventually(t, func() bool { return x.mayCallNow("a") })
		}
	}
}

// What another loop leaves because a caller has the shard's lock is handled when the caller has done, by the loop.
func TestCallerLeavesWhatIsLeft(t *testing.T) {
	inside, on, got := make(chan struct{}), make(chan struct{}), make(chan uintptr, 4)
	x := newBare(t, typeOf(entity.Inline, 1, func(c *entity.Context, payload []byte) error {
		if c.Asked() {
			inside <- struct{}{}
			<-on
		} else {
			got <- incall.Here()
		}
		return nil
	}), loops(2))
	caller := make(chan uintptr, 1)
	go func() {
		caller <- incall.Here()
		require.True(t, x.ask("a", nil))
	}()
	<-inside
	env := x.envelope("a", []byte("left"))
	x.read(t, 1, wire.AppendEnvelope(nil, &env))
	require.Empty(t, got)
	close(on)
	require.NotEqual(t, <-caller, <-got)
}

// Messages of one goroutine come in their order whichever goroutine calls the handler, and no two calls into a shard
// are made at a time, while others ask and tell and other nodes send (SHD-5). The race detector looks on.
func TestOrderWhoeverCalls(t *testing.T) {
	const senders, each = 4, 3000
	for _, n := range []int{1, 2} {
		var next [senders + 1]uint64
		calls, byCaller := 0, atomic.Int64{}
		wrong := atomic.Pointer[string]{}
		x := newBare(t, typeOf(entity.Inline, 1, func(c *entity.Context, payload []byte) error {
			calls++
			who, number := payload[0], binary.LittleEndian.Uint64(payload[1:])
			if number != next[who] {
				s := strings.Repeat("|", int(who)) + " is out of order"
				wrong.Store(&s)
			}
			next[who]++
			if c.Asked() {
				return c.Reply(nil)
			}
			return nil
		}), loops(n), func(c *Config) { c.Origin = answers{make(chan route.Reason, senders*each)} })
		message := func(who byte, number uint64) []byte {
			return binary.LittleEndian.AppendUint64([]byte{who}, number)
		}
		var all sync.WaitGroup
		for who := range byte(senders) {
			all.Go(func() {
				for k := range uint64(each) {
					if k%3 != 0 {
						require.Equal(t, route.OK, x.send("a", message(who, k)))
						continue
					}
					for spins := 0; k%30 == 0 && spins < 1000 && !x.mayCallNow("a"); spins++ {
						runtime.Gosched()
					}
					if x.ask("a", message(who, k)) {
						byCaller.Add(1)
					}
				}
			})
		}
		for k := range uint64(each) {
			env := x.envelope("a", message(senders, k))
			x.read(t, n-1, wire.AppendEnvelope(nil, &env))
		}
		all.Wait()
		eventually(t, func() bool { return x.Handled() >= senders*each })
		eventually(t, func() bool { return x.mayCallNow("a") })
		require.Nil(t, wrong.Load())
		require.Equal(t, (senders+1)*each, calls)
		require.Len(t, x.cfg.Origin.(answers).got, senders*each/3)
		require.NotZero(t, byCaller.Load())
	}
}

// BenchmarkCalled is an ask of this node to an Inline entity with an idle loop.
func BenchmarkCalled(b *testing.B) {
	x := newBare(b, typeOf(entity.Inline, 4, func(c *entity.Context, payload []byte) error { return c.Reply(nil) }),
		func(c *Config) { c.Origin = answers{make(chan route.Reason, 1)} })
	payload := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		x.ask("a", payload)
		x.got()
	}
}
