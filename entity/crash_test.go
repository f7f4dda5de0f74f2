// Tests of the restart policy: rests, limits, what waits and what is dropped, and that nothing is kept for ever.

package entity

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// crashing is a rig with handlers that panic at "bad".
func crashing(r *rig) *rig {
	r.f.receive = func(c *Context, p []byte) error {
		if string(p) == "bad" {
			panic("ouch")
		}
		if c.Asked() {
			return c.Reply(p)
		}
		return nil
	}
	return r
}

// After a panic no instance is made before the back-off is over. A Blocking entity's messages wait for that, others are
// refused with a reason of their own.
func TestCrashedEntityRests(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(func(typ *Type) { typ.RestartBackoff = time.Second }))
		blocking := r.Type().Mode == Blocking
		require.Equal(t, route.OK, r.tell("a", "bad"))
		require.Equal(t, route.OK, r.tell("b", "1"), "others go on")
		r.takeLog()
		r.tickTo(time.Second - 1)
		o := &origin{}
		reason := r.deliver("a", "2", o, 9)
		r.runAll()
		require.Empty(t, r.takeLog(), "nothing is made while it rests")
		require.Equal(t, 1, r.Stats().Crashed)
		r.tickTo(time.Second)
		if blocking {
			require.Equal(t, route.OK, reason)
			require.Equal(t, []string{"a new", "a got 2"}, r.takeLog())
			require.Equal(t, []answer{{9, route.OK, "2"}}, o.answers)
		} else {
			require.Equal(t, route.Crashed, reason)
			require.Equal(t, uint64(1), r.Stats().Refused[route.Crashed])
			require.Empty(t, r.takeLog())
		}
		require.Equal(t, answer{42, route.OK, "3"}, r.ask("a", "3"))
	})
}

// The back-off doubles with each panic in the window, up to the window, and is forgotten after it.
func TestBackoffDoubles(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(func(typ *Type) { typ.RestartBackoff, typ.RestartWindow = time.Second, 5*time.Second }))
		crash := func() {
			r.takeLog()
			require.Equal(t, route.OK, r.tell("a", "bad"))
			require.Contains(t, r.takeLog(), "a got bad")
		}
		for _, rest := range []time.Duration{1, 2, 4, 5, 5} {
			crash()
			end := r.f.now + rest*time.Second
			r.tickTo(end - 1)
			r.deliver("a", "early", nil, 0)
			r.runAll()
			require.Empty(t, r.takeLog(), "rests for %d s", rest)
			r.tickTo(end)
		}
		r.tickTo(r.f.now + 6*time.Second)
		require.Zero(t, r.Stats().Crashed, "forgotten")
		crash()
		end := r.f.now + time.Second
		r.tickTo(end)
		require.Equal(t, answer{42, route.OK, "x"}, r.ask("a", "x"), "the first rest again")
	})
}

// More panics than the limit within the window: the entity is given up for a window, what waits is dropped and
// reported, and then it begins anew.
func TestEntityThatPanicsTooOftenIsGivenUp(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(func(typ *Type) { typ.MaxRestarts, typ.RestartWindow = 2, 10*time.Second }))
		blocking := r.Type().Mode == Blocking
		for range 2 {
			require.Equal(t, route.OK, r.tell("a", "bad"))
			require.Equal(t, answer{42, route.OK, "1"}, r.ask("a", "1"), "made again at once")
		}
		o := &origin{}
		require.Equal(t, route.OK, r.deliver("a", "bad", o, 1))
		behind := r.deliver("a", "2", o, 2)
		r.deliver("a", "3", nil, 0)
		r.runAll()
		gaveUp := r.f.incidents[len(r.f.incidents)-1]
		want := Incident{Type: "book", ID: "a", Shard: 7, Mode: r.Type().Mode, Kind: GaveUp, Took: 10 * time.Second}
		if blocking {
			want.Dropped, want.Answered = 1, 1
			require.Equal(t, []answer{{1, route.HandlerPanic, "ouch"}, {2, route.Crashed, ""}}, o.answers)
		} else {
			require.Equal(t, route.Crashed, behind)
		}
		require.Equal(t, want, gaveUp)
		require.Equal(t, uint64(want.Dropped+want.Answered), r.Stats().Dropped)
		require.Equal(t, uint64(1), r.Stats().GivenUp)
		require.Zero(t, r.Stats().QueuedBytes)
		require.Equal(t, route.Crashed, r.tell("a", "4"), "a Blocking one too: it may be long")
		r.tickTo(10*time.Second - 1)
		require.Equal(t, route.Crashed, r.tell("a", "5"))
		r.tickTo(10 * time.Second)
		require.Zero(t, r.Stats().Live, "nothing is kept of it")
		require.Equal(t, route.OK, r.tell("a", "bad"))
		require.Equal(t, answer{42, route.OK, "6"}, r.ask("a", "6"), "the count began anew")
	})
}

// RestartStop drops what waits; the next message makes the entity again.
func TestRestartStopDropsWhatWaits(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(func(typ *Type) { typ.Restart = RestartStop }))
		var gone []string
		r.f.unhandled = func(id string, why route.Reason, ask bool, payload string) {
			gone = append(gone, fmt.Sprint(id, " ", why, " ", ask, " ", payload))
		}
		o := &origin{}
		require.Equal(t, route.OK, r.deliver("a", "bad", o, 1))
		if r.Type().Mode == Blocking {
			require.Equal(t, route.OK, r.deliver("a", "2", o, 2))
			require.Equal(t, route.OK, r.deliver("a", "3", nil, 0))
		}
		r.runAll()
		require.Equal(t, answer{1, route.HandlerPanic, "ouch"}, o.answers[0])
		if r.Type().Mode == Blocking {
			require.Equal(t, []answer{{2, route.Crashed, ""}}, o.answers[1:])
			require.Equal(t, uint64(2), r.Stats().Dropped)
			require.Equal(t, []string{"a crashed true 2", "a crashed false 3"}, gone, "each is named")
		}
		require.Equal(t, GaveUp, r.f.incidents[1].Kind)
		require.Zero(t, r.f.incidents[1].Took)
		require.Zero(t, r.Stats().Live)
		require.Zero(t, r.pool.Used())
		r.takeLog()
		require.Equal(t, answer{42, route.OK, "3"}, r.ask("a", "3"))
		require.Equal(t, []string{"a new", "a got 3"}, r.takeLog())
	})
}

// A shard that is being stopped has no patience: what waits for a resting entity is worked off at once.
func TestStopEndsRests(t *testing.T) {
	r := crashing(newRig(t, Blocking, func(typ *Type) { typ.RestartBackoff = 30 * time.Second }))
	r.tell("a", "bad")
	r.tell("a", "1")
	r.tell("b", "bad")
	r.takeLog()
	r.Stop(r.f.now, StopMoved)
	r.runAll()
	require.Equal(t, []string{"a new", "a got 1", "a stop"}, r.takeLog())
	require.True(t, r.Stopped())
	_, ok := r.Next()
	require.False(t, ok)
}

// Neither idleness nor the bound on active entities makes a shard forget that an entity panicked.
func TestRestingEntityIsNotPassivated(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(func(typ *Type) {
			typ.RestartBackoff, typ.IdleAfter, typ.MaxActive = 20*time.Second, time.Second, 1
		}))
		r.tell("a", "bad")
		r.tell("b", "1")
		r.tell("c", "1")
		r.tickTo(10 * time.Second)
		require.Equal(t, 1, r.Stats().Live)
		require.Equal(t, 1, r.Stats().Crashed)
		r.tickTo(2 * time.Minute)
		require.Zero(t, r.Stats().Live)
	})
}

// Of many entities only so many stay active; it is those that had messages lately. Pins SHD-12.
func TestMaxActive(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(func(typ *Type) { typ.MaxActive = 40 })
		r.f.shards = 4 // this shard's share is ten
		for i := range 200 {
			r.f.now += time.Second
			require.Equal(t, route.OK, r.tell(string(rune('a'+i%26))+string(rune('a'+i/26)), "x"))
			r.f.now += time.Second
			require.Equal(t, route.OK, r.tell("busy", "x"))
			require.LessOrEqual(t, r.Stats().Live, 11)
		}
		st := r.Stats()
		require.Equal(t, uint64(201), st.Made, "the one that always has messages was never stopped")
		require.Equal(t, st.Evicted, st.Passivated)
		require.Equal(t, st.Evicted, st.Stopped)
		require.GreaterOrEqual(t, st.Evicted, uint64(190))
		r.f.shards = 40 // more shards live here now: the share is one
		for range 12 {
			r.tell("other"+string(rune('a'+r.Stats().Live)), "x")
		}
		require.LessOrEqual(t, r.Stats().Live, 3)
	})
}

// CancelTimers stops what runs, what was asked for in the same call, and what is due and waits.
func TestCancelTimers(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again()
		r.f.receive = func(c *Context, p []byte) error {
			switch string(p) {
			case "set":
				require.NoError(t, c.After(time.Second, []byte("old")))
			case "reset":
				require.NoError(t, c.After(time.Second, []byte("older")))
				c.CancelTimers()
				for range MaxTimers {
					require.NoError(t, c.After(time.Minute, []byte("new")))
				}
				require.ErrorIs(t, c.After(0, nil), ErrTimersFull)
			case "cancel":
				c.CancelTimers()
			}
			return nil
		}
		r.tell("a", "set")
		r.tell("a", "reset")
		require.Equal(t, MaxTimers, r.Stats().Timers)
		r.takeLog()
		r.tickTo(30 * time.Second)
		require.Empty(t, r.takeLog())
		r.f.now = time.Minute
		if r.Type().Mode == Blocking { // they are due and wait behind the message
			r.deliver("a", "cancel", nil, 0)
			r.Tick(r.f.now)
			r.runAll()
			require.Equal(t, []string{"a got cancel"}, r.takeLog())
		}
		r.tell("a", "cancel")
		require.Zero(t, r.Stats().Timers)
		require.Zero(t, r.pool.Used())
	})
}

// A type that gives SlowAfter has every call announced, and those over it reported, in each mode.
func TestWatchedCalls(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(func(typ *Type) { typ.SlowAfter = time.Second })
		r.f.receive = func(_ *Context, p []byte) error {
			if string(p) == "slow" {
				r.f.now += time.Second + 1
			}
			return nil
		}
		r.tell("a", "quick")
		want := []string{"calling a", "a new", "a got quick", "returned a"}
		if r.Type().Mode == Blocking { // where each is a call of its own
			want = slices.Insert(want, 2, "returned a", "calling a")
		}
		require.Equal(t, want, r.takeLog())
		require.Empty(t, r.f.incidents)
		r.tell("a", "slow")
		require.Equal(t, []Incident{{Type: "book", ID: "a", Shard: 7, Mode: r.Type().Mode, Kind: Slow,
			Took: time.Second + 1}}, r.f.incidents)
		require.Equal(t, uint64(1), r.Stats().Slow)
	})
}

// Every call of Stop and HandOver is enclosed, of any type, also one that panics (SHD-12).
func TestStopCallsAreEnclosed(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := counters(again)
		enclosed := func(call string) []string { return []string{"calling " + call, "returned " + call} }
		r.f.receive = func(c *Context, _ []byte) error {
			c.Passivate()
			return nil
		}
		r.tell("a", "go")
		require.Equal(t, enclosed("stop a"), r.f.stops)
		r.f.receive, r.f.stops = nil, nil
		r.f.handOver = func(string) ([]byte, error) { panic("boom") }
		r.f.stop = func(*Context) {
			require.Equal(t, append(enclosed("hand-over b"), "calling stop b"), r.f.stops)
			panic("boom")
		}
		r.tell("b", "stay")
		r.moves(plenty)
		require.Equal(t, append(enclosed("hand-over b"), enclosed("stop b")...), r.f.stops)
	})
}

// A rest begins when the handler has panicked, not when the batch was begun in which it did.
func TestRestBeginsWithThePanic(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(func(typ *Type) { typ.RestartBackoff = time.Second })
		r.f.receive = func(*Context, []byte) error {
			r.f.now += time.Minute // while the verb goes on
			panic("late")
		}
		r.tell("a", "1")
		at, ok := r.Next()
		require.True(t, ok)
		require.Equal(t, time.Minute+time.Second, at)
	})
}
