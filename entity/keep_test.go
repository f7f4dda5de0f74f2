// Tests of entities that are kept alive: when they begin, when they begin again, and what ends them.

package entity

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

func alive(typ *Type) { typ.RestartBackoff, typ.RestartWindow = time.Second, 8*time.Second }

// keep keeps an entity of the rig's shard alive, with a serving context that the returned function ends.
func (r *rig) keep(k Keep) (end context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	k.ID = func(s route.ShardID) string { return fmt.Sprint("k", s) }
	KeepAlive(r.Shard, r.f.now, &k, func() context.Context { return ctx })
	r.runAll()
	return end
}

// TestKeptEntityBegins: it is made when its shard begins to live, once, and no handler gets a message for it (SHD-12).
func TestKeptEntityBegins(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(alive)
		r.keep(Keep{})
		require.Equal(t, []string{"k7 new"}, r.takeLog())
		require.Equal(t, route.OK, r.tell("k7", "1"))
		require.Equal(t, []string{"k7 got 1"}, r.takeLog())
		require.Equal(t, uint64(1), r.Stats().Delivered)
		r.Stop(r.f.now, StopMoved)
		r.runAll()
		require.True(t, r.Stopped())
		require.Equal(t, []string{"k7 stop"}, r.takeLog())
	})
}

// TestKeptEntityBeginsAgain: after a panic of its handler, a failed New, or Passivate, without a message; after a
// failure not before its rest is over.
func TestKeptEntityBeginsAgain(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(alive))
		r.f.unhandled = func(id string, why route.Reason, _ bool, payload string) {
			require.Fail(t, "nobody sent anything that was not handled", "%s %v %q", id, why, payload)
		}
		r.keep(Keep{})
		require.Equal(t, route.OK, r.tell("k7", "bad"))
		require.Equal(t, []string{"k7 new", "k7 got bad"}, r.takeLog())
		r.tickTo(time.Second - 1)
		require.Empty(t, r.takeLog(), "it rests")
		fails := 2
		r.f.make = func(id string) Handler {
			if fails--; fails >= 0 {
				return nil
			}
			r.f.log = append(r.f.log, "made")
			return &handler{r.f, id}
		}
		r.tickTo(time.Second)
		require.Equal(t, NewFailed, r.f.incidents[len(r.f.incidents)-1].Kind)
		r.tickTo(3 * time.Second)
		require.Empty(t, r.takeLog(), "it has failed three times, and rests for one, two and four seconds")
		r.tickTo(7*time.Second - 1)
		require.Empty(t, r.takeLog())
		r.tickTo(7 * time.Second)
		require.Equal(t, []string{"made"}, r.takeLog())
		require.Equal(t, uint64(3), r.Stats().Crashes)
		require.Zero(t, r.Stats().NotMade, "no message was dropped")

		r.f.make = nil
		r.f.receive = func(c *Context, _ []byte) error { c.Passivate(); return nil }
		require.Equal(t, route.OK, r.tell("k7", "go"))
		require.Equal(t, []string{"k7 got go", "k7 stop", "k7 new"}, r.takeLog(), "it begins afresh")
		r.tickTo(time.Minute)
		require.Empty(t, r.takeLog(), "once")
		require.Equal(t, 1, r.Stats().Live)
	})
}

// TestDaemonBackoffLaws: a daemon rests for the least time after it returned nil, and after each failure twice as long
// as after the one before, up to the type's window, from which on it counts anew; it is never called early, twice at
// once, or not again.
func TestDaemonBackoffLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.IntRange(1, 2000).Draw(t, "least")) * time.Millisecond
		window := least * time.Duration(rapid.IntRange(1, 40).Draw(t, "most"))
		r := newRig(t, Blocking, func(typ *Type) { typ.RestartBackoff, typ.RestartWindow = least, window })
		var began, ended []time.Duration
		var outcomes []int
		panics, failures := 0, 0
		end := r.keep(Keep{Run: func(_ context.Context, c *Context) error {
			began = append(began, r.f.now)
			r.f.now += time.Duration(rapid.Int64Range(0, int64(3*window)).Draw(t, "lives"))
			ended = append(ended, r.f.now)
			how := rapid.IntRange(0, 2).Draw(t, "outcome")
			outcomes = append(outcomes, how)
			switch how {
			case 0:
				return nil
			case 1:
				failures++
				return errors.New("as the dice fell")
			}
			panics++
			panic("as the dice fell")
		}})
		defer end()
		for len(began) < 12 {
			at, ok := r.Next()
			require.True(t, ok, "it is kept alive")
			r.tickTo(at)
		}
		rest, counts := time.Duration(0), time.Duration(0)
		for i := range began {
			if i > 0 {
				require.Equal(t, ended[i-1]+rest, began[i], "run %d", i)
			}
			switch {
			case outcomes[i] == 0, rest == 0, ended[i] >= counts:
				rest = least
			default:
				rest = min(2*rest, window)
			}
			counts = ended[i] + rest + window
		}
		st := r.Stats()
		require.Equal(t, uint64(panics), st.Panics)
		require.Equal(t, uint64(panics+failures), st.Crashes)
		told := map[IncidentKind]int{}
		for _, i := range r.f.incidents {
			told[i.Kind]++
		}
		require.Equal(t, panics, told[Panicked])
		require.Equal(t, failures, told[DaemonFailed])
	})
}

// TestDaemonStops: what a daemon returns when it was asked to end is no failure; it is not called again, nor when it
// had not begun.
func TestDaemonStops(t *testing.T) {
	r := newRig(t, Blocking, alive)
	runs := 0
	ctx, end := context.WithCancel(context.Background())
	k := &Keep{ID: func(route.ShardID) string { return "0" }, Run: func(ctx context.Context, _ *Context) error {
		runs++
		end()
		r.Stop(r.f.now, StopMoved)
		return ctx.Err()
	}}
	KeepAlive(r.Shard, 0, k, func() context.Context { return ctx })
	require.False(t, r.Stopped())
	r.runAll()
	require.True(t, r.Stopped())
	require.Equal(t, 1, runs)
	require.Empty(t, r.f.incidents)
	_, due := r.Next()
	require.False(t, due)

	r = newRig(t, Blocking, alive)
	KeepAlive(r.Shard, 0, k, context.Background)
	r.Stop(0, StopMoved)
	require.False(t, r.Stopped(), "it is on its way to its goroutine")
	r.runAll()
	require.True(t, r.Stopped())
	require.Equal(t, 1, runs, "it was not called")

	r = newRig(t, Blocking, alive)
	KeepAlive(r.Shard, 0, k, context.Background)
	r.f.unhandled = func(string, route.Reason, bool, string) { require.Fail(t, "there was no message") }
	r.Abandon()
	require.True(t, r.Stopped())
	require.Zero(t, r.Stats().Abandoned)
	require.Equal(t, 1, runs)
}

// TestDaemonAfterSuspension: when its node was suspended it begins again, which is no failure.
func TestDaemonAfterSuspension(t *testing.T) {
	r := newRig(t, Blocking, alive)
	ctx, suspend := context.WithCancel(context.Background())
	runs := 0
	k := &Keep{ID: func(route.ShardID) string { return "0" }, Run: func(ctx context.Context, _ *Context) error {
		if runs++; runs == 1 {
			suspend()
			return errors.New("closed")
		}
		return nil
	}}
	KeepAlive(r.Shard, 0, k, func() context.Context { return ctx })
	r.runAll()
	r.tickTo(5 * time.Second)
	require.Equal(t, 1, runs, "not while the context that it is given has ended")
	require.Empty(t, r.f.incidents)
	ctx = context.Background()
	r.tickTo(6 * time.Second)
	require.Equal(t, 2, runs)
	require.Zero(t, r.Stats().Crashes)
}

// TestDaemonTakesNoMessages: its shard refuses them at once, whatever their id, while it runs, while it rests, and at
// the deadline of a move: they would wait for as long as it lives (SHD-12).
func TestDaemonTakesNoMessages(t *testing.T) {
	r := newRig(t, Blocking, alive)
	o := &origin{}
	refuses := func() {
		t.Helper()
		for _, id := range []string{"k7", "another"} {
			require.Equal(t, route.BadID, r.deliver(id, "tell", nil, 0), id)
			require.Equal(t, route.BadID, r.deliver(id, "ask", o, 1), id)
		}
		require.Equal(t, 1, r.Stats().Live)
		require.Zero(t, r.Stats().QueuedBytes)
	}
	runs := 0
	r.keep(Keep{Run: func(context.Context, *Context) error {
		runs++
		require.Equal(t, route.BadID, r.deliver("k7", "tell", nil, 0))
		require.Equal(t, route.BadID, r.deliver("k7", "ask", o, 1))
		return nil
	}})
	require.Equal(t, 1, runs)
	refuses()
	r.tickTo(time.Second)
	require.Equal(t, 2, runs)
	Cut(r.Shard, r.f.now)
	refuses()
	require.EqualValues(t, 12, r.Stats().Refused[route.BadID])
	r.Stop(r.f.now, StopMoved)
	require.Equal(t, route.ShardStopping, r.deliver("k7", "tell", nil, 0), "its next home says so")
	r.runAll()
	require.True(t, r.Stopped())
	require.Empty(t, TakeLeft(r.Shard))
	require.Empty(t, o.answers, "whoever delivers answers")
	require.Empty(t, r.takeLog(), "no handler was called")
}

// TestKeptEntityNeedsNoRoom: neither a budget that is used up nor messages that came before it keep it from beginning.
func TestKeptEntityNeedsNoRoom(t *testing.T) {
	r := newRig(t, Blocking, alive, func(typ *Type) {
		typ.New = func(string, route.Fence) Handler { return &handler{&fake{}, "junk"} }
	})
	require.Equal(t, route.OK, r.deliver("k7", "junk", nil, 0))
	require.Equal(t, route.OK, r.deliver("another", "junk", nil, 0))
	r.pool.Limit = 1
	runs := 0
	r.keep(Keep{Run: func(context.Context, *Context) error { runs++; return errors.New("no") }})
	require.Equal(t, 1, runs)
	r.tickTo(time.Second)
	require.Equal(t, 2, runs)
	r.tickTo(3 * time.Second)
	require.Equal(t, 3, runs)
}
