// The world's own parts: order of events, clocks, pipes, faults, coroutines.

package world

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

func TestQueueRunsByTimeThenByPlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var q queue
	type ran struct {
		at  time.Duration
		nth int
	}
	var got []ran
	for i := range 2000 {
		at := time.Duration(rng.IntN(50))
		q.push(at, func() { got = append(got, ran{at, i}) })
	}
	for len(q.heap) > 0 {
		q.pop().run()
	}
	require.Len(t, got, 2000)
	for i := 1; i < len(got); i++ {
		a, b := got[i-1], got[i]
		require.True(t, a.at < b.at || a.at == b.at && a.nth < b.nth, "%v before %v", a, b)
	}
}

// TestPipeKeepsOrder: one connection is first in, first out, whatever is lost and however often it stalls.
func TestPipeKeepsOrder(t *testing.T) {
	var got []int
	typ := &EntityType{Type: entity.Type{Name: "log", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(_ *entity.Context, b []byte) error { got = append(got, int(b[0])); return nil })
		}}}
	w := formed(t, 2, setup.Config{Network: setup.Network{Loss: 0.3, Jitter: 20 * time.Millisecond}}, typ)
	r := w.Hosts[1].Process.Region(route.TypeOf("log")) // the shard's home is the coordinator's node, which is the first
	for i := range 200 {
		_, err := r.Send("x", []byte{byte(i)}, 0)
		require.NoError(t, err)
		if i == 50 {
			w.Net.Cuts[1][0] = true
			w.After(3*time.Second, w.Net.Heal)
		}
		w.Advance(5 * time.Millisecond)
	}
	w.Advance(time.Minute)
	require.Len(t, got, 200)
	for i, v := range got {
		require.Equal(t, i, v)
	}
	sent := w.Hosts[1].Process.link(w.Hosts[0].Process.ID, 0).flow.Stats().Sent
	require.Positive(t, sent, "the messages went over the network")
	require.Empty(t, broken(w))
}

// TestPausedProcessDoesNothing: no step, no answer, and everything at once when it goes on.
func TestPausedProcessDoesNothing(t *testing.T) {
	w := formed(t, 3, setup.Config{Resolver: ResolverOff})
	p := w.Hosts[2].Process
	p.Pause(20 * time.Second)
	seq := p.View.Seq
	w.Advance(19 * time.Second)
	require.Equal(t, seq, p.View.Seq)
	require.NotEmpty(t, p.deferred)
	require.True(t, w.Hosts[0].Process.View.Unreachable.Has(p.ID))
	w.Advance(2 * time.Second)
	require.Empty(t, p.deferred)
	require.True(t, w.Until(time.Minute, w.Converged))
}

// TestStaleFenceIsRefused: an envelope under another fence than the one under which the shard lives is not delivered;
// an ask gets the error, and the sender's route is asked for again (SHD-9).
func TestStaleFenceIsRefused(t *testing.T) {
	got := 0
	typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, Mode: entity.Inline,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { got++; return nil })
		}}}
	w := formed(t, 2, setup.Config{}, typ)
	a, b := w.Hosts[0].Process, w.Hosts[1].Process
	_, err := b.Region(route.TypeOf("t")).Send("x", nil, 0)
	require.NoError(t, err)
	w.Advance(5 * time.Second)
	require.Equal(t, 1, got)
	f := a.Region(route.TypeOf("t")).shards.Peek(0).shard.Fence()
	for _, e := range []wire.Envelope{
		{Term: f.Term(), Epoch: f.Epoch() - 1}, {Term: f.Term(), Epoch: f.Epoch() + 1},
		{Term: f.Term() + 1, Epoch: f.Epoch()}, {},
	} {
		e.Type, e.ID = uint32(route.TypeOf("t")), []byte("x")
		before := a.dropped[route.NotOwner]
		a.accept(b.ID, &e)
		require.Equal(t, before+1, a.dropped[route.NotOwner], "under %d.%d", e.Term, e.Epoch)
	}
	require.Equal(t, 1, got)
	require.Empty(t, broken(w))
}

// TestGivenUpHostTakesNothing: what waits for the worker of a shard that the node gives up reaches no handler and is
// refused, as others own the shard by now. Storms do not get there: a node that is downed ends in the same step, and
// one that is suspended and lives on loses no shard (SHD-9, MEM-10).
func TestGivenUpHostTakesNothing(t *testing.T) {
	got := 0
	typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, Mode: entity.Worker,
		New: func(string, route.Fence) entity.Handler {
			return handlerFunc(func(*entity.Context, []byte) error { got++; return nil })
		}}}
	w := formed(t, 1, setup.Config{Data: setup.DataConfig{WorkDelay: time.Second}}, typ)
	p := w.Hosts[0].Process
	r := p.Region(route.TypeOf("t"))
	_, err := r.Send("x", nil, 0)
	require.NoError(t, err)
	w.Advance(5 * time.Second)
	require.Equal(t, 1, got)
	_, err = r.Send("x", nil, 0)
	require.NoError(t, err)
	p.host(shard.HostOrder{Type: r.ID, Fence: r.Slot(0).Fence(), Stop: true, Abandon: true})
	w.Advance(5 * time.Second)
	require.Equal(t, 1, got)
	require.Equal(t, 1, w.Plane.AfterAbandon)
	require.Equal(t, uint64(1), p.dropped[route.NotOwner])
	require.Empty(t, broken(w))
}

// TestBlockingHandlersAsk: a handler that waits for another entity is put aside, also when that one lives in its own
// shard and asks back in turn.
func TestBlockingHandlersAsk(t *testing.T) {
	typ := &EntityType{Type: entity.Type{Name: "chain", Shards: 2}}
	typ.New = func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, b []byte) error {
			if id == "e0" {
				return c.Reply([]byte("end"))
			}
			next := "e" + string(id[1]-1)
			got, err := c.Ask(time.Second, "", next, b)
			if err != nil {
				return err
			}
			return c.Reply(append(got, id...))
		})
	}
	w := formed(t, 2, setup.Config{}, typ)
	var reply []byte
	var failed error
	done := false
	err := w.Hosts[1].Process.Ask(10*time.Second, "chain", "e9", nil, func(b []byte, err error) {
		reply, failed, done = b, err, true
	})
	require.NoError(t, err)
	require.True(t, w.Until(10*time.Second, func() bool { return done }))
	require.NoError(t, failed)
	require.Equal(t, "ende1e2e3e4e5e6e7e8e9", string(reply))
	require.Empty(t, w.Hosts[0].Process.tasks)
	require.Empty(t, w.Hosts[1].Process.tasks)
}

// TestCrashUnwindsWaitingHandlers: a handler that waits when its process dies is unwound, its defers run, and it never
// goes on.
func TestCrashUnwindsWaitingHandlers(t *testing.T) {
	wentOn, unwound := false, false
	typ := &EntityType{Type: entity.Type{Name: "stuck", Shards: 4}}
	typ.New = func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, b []byte) error {
			if id == "mute" {
				c.Detach()
				return nil
			}
			defer func() { unwound = true }()
			_, _ = c.Ask(time.Hour, "", "mute", b)
			wentOn = true
			return nil
		})
	}
	w := formed(t, 1, setup.Config{}, typ)
	p := w.Hosts[0].Process
	_, err := p.Region(route.TypeOf("stuck")).Send("waiter", nil, 0)
	require.NoError(t, err)
	w.Advance(time.Second)
	require.Len(t, p.tasks, 1)
	p.Crash(true)
	require.True(t, unwound)
	require.False(t, wentOn)
}

// TestClocksDrift: a process finds the moment at which its own clock shows a time, fast or slow.
func TestClocksDrift(t *testing.T) {
	for _, drift := range []int64{0, 1, 500, -500, 100_000} {
		p := &Process{World: &World{}, clocks: clocks{origin: -time.Hour, drift: drift}}
		for _, clock := range []time.Duration{time.Hour, time.Hour + 7, 2*time.Hour + 123_456_789, 30 * time.Hour} {
			at := p.reaches(clock)
			require.GreaterOrEqual(t, p.clockAt(at), clock)
			require.Less(t, p.clockAt(at-3), clock)
		}
	}
}

// ACC-4: a process's slewed clock does what a driver's ticks do to its own: it keeps up while the process runs, lags by
// the whole of a pause after it, and catches up by steps below which no call looks slow.
func TestSlewedClockOfAProcess(t *testing.T) {
	var s slewing
	now, pause := time.Hour, 4*time.Second
	s.begin(now)
	shows := now // as ticks move it, one by one
	look := func() {
		t.Helper()
		require.Equal(t, shows, s.to(now))
	}
	tick := func() {
		now += plane.ClockTick
		shows = plane.Slew(shows, now)
	}
	for range 10 {
		tick()
	}
	look()
	now += pause
	shows = plane.Slew(shows, now)
	s.resume(now)
	look()
	require.Greater(t, now-shows, pause-plane.SlewStep-plane.ClockTick)
	for i := range 2000 {
		tick()
		if i%7 == 0 {
			look()
		}
	}
	require.Equal(t, now, shows, "it has caught up")
	look()
}
