// Tests of named timers: set, replaced, cancelled, distinguished from messages; a law over all that handlers may do
// with them.

package entity

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

func TestTimerIsToldFromMessages(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var told []string
		r.f.receive = func(c *Context, p []byte) error {
			name, ok := c.Timer()
			told = append(told, fmt.Sprintf("%s %t %q", p, ok, name))
			if string(p) == "set" {
				require.NoError(t, c.SetTimer("idle", 2*time.Second, []byte("named")))
				return c.After(time.Second, []byte("bare"))
			}
			if ok {
				c.Passivate()
			}
			return nil
		}
		r.f.stop = func(c *Context) {
			_, ok := c.Timer()
			require.False(t, ok, "a stop is no timer's message")
		}
		r.tell("a", "set")
		r.tell("a", "plain")
		r.tickTo(time.Second)
		r.tell("a", "set")
		r.tickTo(2 * time.Second)
		require.Equal(t, []string{`set false ""`, `plain false ""`, `bare true ""`, `set false ""`, `bare true ""`}, told)
		r.tickTo(time.Hour)
		require.Len(t, told, 5, "the named ones went with their instances")
		require.Zero(t, r.pool.Used())
	})
}

// orders makes handlers do what messages say: "set name duration payload", "cancel name", "cancel all".
func orders(r *rig) (done *[]bool) {
	done = new([]bool)
	r.f.receive = func(c *Context, p []byte) error {
		for order := range strings.SplitSeq(string(p), "; ") {
			switch w := strings.Fields(order); {
			case w[0] == "set":
				d, err := time.ParseDuration(w[2])
				require.NoError(r.t, err)
				require.NoError(r.t, c.SetTimer(w[1], d, []byte(w[3])))
			case order == "cancel all":
				c.CancelTimers()
			case w[0] == "cancel":
				*done = append(*done, c.CancelTimer(w[1]))
			}
		}
		return nil
	}
	return done
}

func TestNamedTimersTakeEachOthersPlace(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		done := orders(r)
		r.tell("a", "set x 1s one; set y 1s two")
		r.tell("a", "set x 3s three; set x 2s four; set z 1s five; cancel z; cancel z; cancel nobody")
		require.Equal(t, []bool{true, false, false}, *done)
		require.Equal(t, 2, r.Stats().Timers)
		r.takeLog()
		r.tickTo(time.Second)
		require.Equal(t, []string{"a got two"}, r.takeLog())
		r.tickTo(5 * time.Second)
		require.Equal(t, []string{"a got four"}, r.takeLog())
		r.tell("a", "cancel x; set x 1s six; cancel all; cancel x; set x 2s seven")
		require.Equal(t, []bool{true, false, false, false, false}, *done)
		r.takeLog()
		r.tickTo(time.Minute)
		require.Equal(t, []string{"a got seven"}, r.takeLog())
		require.Zero(t, r.pool.Used())
		st := r.Stats()
		require.Equal(t, []uint64{3, 4}, []uint64{st.TimersFired, st.TimersDropped})
	})
}

// A timer of a Blocking entity that is due waits in the mailbox: a message that is handled before it may still cancel
// it, or set it anew.
func TestTimerThatIsDueIsCancelled(t *testing.T) {
	r := newRig(t, Blocking)
	done := orders(r)
	r.tell("a", "set x 1s one; set y 1s two; set z 1s three")
	r.takeLog()
	r.deliver("a", "cancel x; set y 5s four", nil, 0)
	r.f.now = time.Second
	r.Tick(r.f.now) // behind the message
	require.Equal(t, uint64(3), r.Stats().TimersFired)
	r.runAll()
	require.Equal(t, []bool{true}, *done)
	require.Equal(t, []string{"a got cancel x; set y 5s four", "a got three"}, r.takeLog())
	r.deliver("a", "set x 1s five", nil, 0) // a new one of the name, with the message of a cancelled one before it
	r.runAll()
	r.takeLog()
	r.tickTo(time.Minute)
	require.Equal(t, []string{"a got five", "a got four"}, r.takeLog())
	require.Zero(t, r.pool.Used())
	require.Equal(t, uint64(2), r.Stats().TimersDropped)
}

// A timer is due and its message waits when its shard begins to stop. What waits is worked off, run by run, and a
// handler that cancels the timer meanwhile is heeded (ACC-4).
func TestTimerThatIsDueIsCancelledWhileItsShardStops(t *testing.T) {
	r := newRig(t, Blocking)
	done := orders(r)
	r.tell("a", "set x 1s one; set y 1s two; set z 1h three")
	r.takeLog()
	r.deliver("a", "first", nil, 0)
	e := r.Ready()
	require.True(t, e.Begin(r.f.now))
	r.deliver("a", "cancel x; cancel z", nil, 0) // in a run of its own
	r.f.now = time.Second
	r.Tick(r.f.now)
	r.Stop(r.f.now, StopMoved)
	for ok := true; ok; ok = e.End(r.f.now) && e.Begin(r.f.now) {
		for e.Work() {
		}
	}
	require.Equal(t, []bool{true, false}, *done, "z went with the stop")
	require.Equal(t, []string{"a got first", "a got cancel x; cancel z", "a got two", "a stop"}, r.takeLog())
	require.True(t, r.Stopped())
	require.Zero(t, r.pool.Used())
	require.Equal(t, uint64(2), r.Stats().TimersDropped)
}

// Timers fire while their entity is in a run, and the shard stops meanwhile: what the run has cancelled stays so.
func TestTimersDuringARun(t *testing.T) {
	r := newRig(t, Blocking)
	orders(r)
	r.tell("a", "set x 1s one; set y 2s two; set z 3s three")
	r.takeLog()
	r.deliver("a", "cancel x; set y 9s four", nil, 0)
	e := r.Ready()
	require.True(t, e.Begin(r.f.now))
	require.False(t, e.Work())
	r.f.now = 2 * time.Second
	r.Tick(r.f.now) // x and y are due, and were cancelled by the run
	r.Stop(r.f.now, StopMoved)
	require.Zero(t, r.Stats().Timers, "z was dropped")
	for ok := e.End(r.f.now); ok; ok = e.End(r.f.now) {
		ok = e.Begin(r.f.now)
		for ok && e.Work() {
		}
	}
	r.runAll()
	require.Equal(t, []string{"a got cancel x; set y 9s four", "a stop"}, r.takeLog())
	require.True(t, r.Stopped())
	require.Zero(t, r.pool.Used())
}

func TestNamedTimersHaveBounds(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		set := func(c *Context, i int) error { return c.SetTimer(fmt.Sprint("t", i), time.Second, []byte("x")) }
		r.f.receive = func(c *Context, p []byte) error {
			switch string(p) {
			case "fill":
				for i := range MaxTimers {
					require.NoError(t, set(c, i))
				}
				require.ErrorIs(t, set(c, MaxTimers), ErrTimersFull)
				require.ErrorIs(t, c.After(1, nil), ErrTimersFull)
				for range 1000 {
					require.NoError(t, set(c, 7), "it takes its own place")
				}
			case "again":
				require.NoError(t, set(c, 3), "it takes the place of one that was set before")
				require.ErrorIs(t, set(c, MaxTimers), ErrTimersFull)
				require.True(t, c.CancelTimer("t4"))
				require.NoError(t, set(c, MaxTimers))
				require.ErrorIs(t, c.SetTimer("t5", 1, make([]byte, DefaultMailboxBytes)), route.ErrTooLarge)
				require.True(t, c.CancelTimer("t5"), "on an error nothing has changed")
			}
			return nil
		}
		r.tell("a", "fill")
		require.Equal(t, MaxTimers, r.Stats().Timers)
		r.tell("a", "again")
		require.Equal(t, MaxTimers-1, r.Stats().Timers)
		r.pool.Limit = 0
		r.f.receive = func(c *Context, p []byte) error {
			require.ErrorIs(t, set(c, 6), route.ErrBudgetFull)
			require.True(t, c.CancelTimer("t6"), "on an error nothing has changed")
			require.True(t, c.CancelTimer("t7"))
			return nil
		}
		m := Message{ID: []byte("a"), Parked: true}
		require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
		r.runAll()
		require.Equal(t, MaxTimers-3, r.Stats().Timers)
		r.Stop(r.f.now, StopMoved)
		r.runAll()
		require.Zero(t, r.pool.Used())
	})
}

func TestTimerForEverIsNeverEarly(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.now = time.Hour
		r.f.receive = func(c *Context, p []byte) error { return c.After(math.MaxInt64, []byte("never")) }
		r.tell("a", "1")
		r.tickTo(1000 * time.Hour)
		require.Equal(t, []string{"a new", "a got 1"}, r.takeLog())
	})
}

func TestNowIsTheRuntimes(t *testing.T) {
	r := newRig(t, Worker)
	r.f.now = time.Minute
	var at time.Time
	r.f.receive = func(c *Context, _ []byte) error { at = c.Now(); return nil }
	r.tell("a", "1")
	require.Equal(t, r.f.Wall(), at)
}

func TestNamedTimerDoesNotAllocate(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		tick := []byte("tick")
		r.f.receive = func(c *Context, _ []byte) error {
			c.CancelTimer("other")
			_ = c.SetTimer("other", time.Hour, tick)
			return c.SetTimer("tick", time.Second, tick)
		}
		r.tell("a", "1")
		round := func() { r.f.log = r.f.log[:0]; r.tickTo(r.f.now + time.Second) }
		for range 5 {
			round()
		}
		require.LessOrEqual(t, testing.AllocsPerRun(50, round), 1.0, "the rig writes down what was called")
	})
}

// timerModel knows the timers of one entity that have not come.
type timerModel struct {
	name string
	due  time.Duration
}

// TestTimerLaws: whatever handlers do with timers, and however runs, ticks and calls follow each other: the message of
// a timer comes once, not before its time, to the instance that set it, with its name; a cancelled one never;
// CancelTimer says whether there was one; all others come.
func TestTimerLaws(t *testing.T) {
	for _, mode := range []Mode{Blocking, Worker} {
		t.Run(mode.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { timerLaw(t, mode) })
		})
	}
}

func timerLaw(t *rapid.T, mode Mode) {
	r := newRig(t, mode, func(typ *Type) { typ.Restart = Restart(rapid.IntRange(0, 1).Draw(t, "restart")) })
	live := map[string]map[string]timerModel{"a": {}, "b": {}} // by entity and payload
	next, fuel := 0, 60
	cancel := func(id, name string) (was bool) {
		for n, m := range live[id] { // at most one, so the order does not show
			if name != "" && m.name == name {
				delete(live[id], n)
				was = true
			}
		}
		return was
	}
	act := func(c *Context) {
		name := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "name")
		switch fuel--; rapid.IntRange(0, 9).Draw(t, "does") {
		case 0:
			c.CancelTimers()
			clear(live[c.ID])
		case 1, 2:
			require.Equal(t, cancel(c.ID, name), c.CancelTimer(name))
		case 3:
			c.Passivate()
			clear(live[c.ID])
		case 4:
			if r.Type().Restart == RestartFresh {
				clear(live[c.ID])
			}
			panic("handler")
		default:
			next++
			d := time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
			if fuel > 0 && c.SetTimer(name, d, []byte(fmt.Sprint(next))) == nil {
				cancel(c.ID, name)
				live[c.ID][fmt.Sprint(next)] = timerModel{name, r.f.now + d}
			}
		}
	}
	r.f.receive = func(c *Context, p []byte) error {
		name, ok := c.Timer()
		require.Equal(t, string(p) != "message", ok)
		if ok {
			m, is := live[c.ID][string(p)]
			require.True(t, is, "timer %s of %s came twice, or was cancelled", p, c.ID)
			require.Equal(t, m.name, name)
			require.GreaterOrEqual(t, r.f.now, m.due, "early")
			delete(live[c.ID], string(p))
		}
		for range rapid.IntRange(0, 3).Draw(t, "acts") {
			act(c)
			if c.passivate {
				break
			}
		}
		return nil
	}
	var runs []*modelRun
	m := &hostModel{rig: r}
	t.Repeat(map[string]func(*rapid.T){
		"": func(*rapid.T) { m.collect(); runs = m.runs },
		"deliver": func(t *rapid.T) {
			r.deliver(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id"), "message", nil, 0)
		},
		"time": func(t *rapid.T) {
			r.f.now += time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond
			r.Tick(r.f.now)
		},
		"run": func(t *rapid.T) {
			for range rapid.IntRange(1, 6).Draw(t, "steps") {
				if len(runs) > 0 {
					m.stepRun(rapid.IntRange(0, len(runs)-1).Draw(t, "which"), rapid.IntRange(0, 7).Draw(t, "early") == 0)
					m.collect()
					runs = m.runs
				}
			}
		},
	})
	fuel = 0
	m.finish(t)
	for range 3 {
		r.f.now += time.Minute
		r.Tick(r.f.now)
		m.finish(t)
	}
	require.Empty(t, live["a"], "they have not come")
	require.Empty(t, live["b"], "they have not come")
	require.Zero(t, r.pool.Used())
	require.Zero(t, r.Stats().Timers)
	for _, e := range r.table.dense {
		require.Nil(t, e.timers)
		require.Zero(t, e.running())
	}
}
