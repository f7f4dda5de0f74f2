// Tests of timers: After, its bounds, its order and its end.

package entity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// wish makes the handler set a timer for each message "after <duration> <payload>".
func wish(r *rig) {
	r.f.receive = func(c *Context, p []byte) error {
		if after, ok := strings.CutPrefix(string(p), "after "); ok {
			d, payload, _ := strings.Cut(after, " ")
			wait, err := time.ParseDuration(d)
			require.NoError(r.t, err)
			b := []byte(payload)
			defer func() { clear(b) }() // the payload is copied
			return c.After(wait, b)
		}
		require.False(r.t, c.Asked() && string(p) != "ask")
		return nil
	}
}

func TestTimersDeliverInTimeAndOrder(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		wish(r)
		for _, m := range []string{"after 3s three", "after 1s one", "after 3s three too", "after -5s zero"} {
			r.tell("a", m)
		}
		r.takeLog()
		require.Equal(t, 4, r.Stats().Timers)
		require.NotZero(t, r.pool.Used())
		at, ok := r.Next()
		require.True(t, ok)
		require.Zero(t, at)
		r.tickTo(2 * time.Second)
		require.Equal(t, []string{"a got zero", "a got one"}, r.takeLog())
		r.tickTo(3 * time.Second)
		require.Equal(t, []string{"a got three", "a got three too"}, r.takeLog())
		_, ok = r.Next()
		require.False(t, ok)
		require.Zero(t, r.pool.Used())
		require.Equal(t, uint64(4), r.Stats().TimersFired)
	})
}

func TestTimersGoWithTheInstance(t *testing.T) {
	for name, end := range map[string]string{"passivated": "go", "panicked": "panic"} {
		t.Run(name, func(t *testing.T) {
			everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
				wish(r)
				timers := r.f.receive
				r.f.receive = func(c *Context, p []byte) error {
					switch string(p) {
					case "go":
						require.NoError(t, c.After(time.Second, []byte("of the same call")))
						c.Passivate()
					case "panic":
						require.NoError(t, c.After(time.Second, []byte("of the same call")))
						panic("ouch")
					}
					return timers(c, p)
				}
				r.tell("a", "after 1s old")
				r.tell("b", "after 1s of b")
				r.tell("a", end)
				r.tell("a", "after 2s new")
				r.takeLog()
				r.tickTo(5 * time.Second)
				require.Equal(t, []string{"b got of b", "a got new"}, r.takeLog())
				require.Equal(t, uint64(2), r.Stats().TimersDropped)
				require.Zero(t, r.pool.Used())
			})
		})
	}
}

func TestTimersHaveBounds(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
		var errs []error
		r.f.receive = func(c *Context, _ []byte) error {
			errs = append(errs, c.After(time.Second, []byte("x")))
			return nil
		}
		for range MaxTimers + 1 {
			r.tell("a", "1")
		}
		for i, err := range errs[:MaxTimers] {
			require.NoError(t, err, i)
		}
		require.ErrorIs(t, errs[MaxTimers], ErrTimersFull)
		r.tickTo(time.Second) // each timer sets another: there is room again for as many
		require.ErrorIs(t, errs[len(errs)-1], nil)
		require.Equal(t, MaxTimers, r.Stats().Timers)

		r.f.receive = func(c *Context, _ []byte) error {
			require.ErrorIs(t, c.After(1, make([]byte, MinMailboxBytes+1)), route.ErrTooLarge)
			require.NoError(t, c.After(1, make([]byte, MinMailboxBytes)))
			return nil
		}
		r.tell("b", "1")
		used := r.pool.Used()
		r.pool.Limit = 0
		r.f.receive = func(c *Context, _ []byte) error {
			require.ErrorIs(t, c.After(1, []byte("x")), route.ErrMailboxFull)
			return nil
		}
		if r.Type().Mode != Blocking { // a Blocking mailbox needs the budget for the message itself
			r.tell("c", "1")
		}
		require.Equal(t, used, r.pool.Used())
	})
}

func TestOneCallCannotSetMoreTimersThanAnEntityMay(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(c *Context, _ []byte) error {
			for range MaxTimers {
				require.NoError(t, c.After(time.Hour, nil))
			}
			require.ErrorIs(t, c.After(time.Hour, nil), ErrTimersFull)
			return nil
		}
		r.tell("a", "1")
		require.Equal(t, MaxTimers, r.Stats().Timers)
	})
}

func TestStopSetsNoTimers(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var err error
		r.f.stop = func(c *Context) { err = c.After(time.Second, nil) }
		r.tell("a", "1")
		r.Stop(r.f.now, StopMoved)
		r.runAll()
		require.ErrorIs(t, err, route.ErrShardStopping)
		require.True(t, r.Stopped())
		require.Zero(t, r.pool.Used())
	})
}

func TestRecurringTimerDoesNotAllocate(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		tick := []byte("tick")
		n := 0
		r.f.make = func(string) Handler { return tickHandler{tick, &n} }
		r.tell("a", "1")
		round := func() { r.tickTo(r.f.now + time.Second) }
		round()
		require.Zero(t, testing.AllocsPerRun(50, round))
		require.Greater(t, n, 50)
	})
}

type tickHandler struct {
	tick []byte
	n    *int
}

func (h tickHandler) Receive(c *Context, _ []byte) error {
	*h.n++
	return c.After(time.Second, h.tick)
}

func (tickHandler) Stop(*Context) {}

func TestManyDueTimersFireOverSeveralTicks(t *testing.T) {
	r := newRig(t, Worker)
	wish(r)
	for i := range fireAtOnce {
		r.tell(fmt.Sprint("e", i), "after 1s x")
		r.tell(fmt.Sprint("e", i), "after 1s y")
	}
	r.f.now = time.Second
	r.Tick(r.f.now)
	require.Equal(t, uint64(fireAtOnce), r.Stats().TimersFired)
	at, ok := r.Next()
	require.True(t, ok)
	require.LessOrEqual(t, at, r.f.now)
	r.Tick(r.f.now)
	require.Equal(t, uint64(2*fireAtOnce), r.Stats().TimersFired)
}

// TestTimerHeapLaws: whatever is set and taken, the top is the earliest, first set first among equals, every timer
// knows its place, and the entities' lists hold exactly the timers of the heap.
func TestTimerHeapLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h timerHeap
		es := []*Entity{{id: "a"}, {id: "b"}}
		var model []*timer
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Len(t, h.heap, len(model))
				slices.SortFunc(model, func(a, b *timer) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
				})
				if len(model) > 0 {
					require.Same(t, model[0], h.heap[0])
				}
				for i, x := range h.heap {
					require.EqualValues(t, i, x.pos)
				}
				listed := 0
				for _, e := range es {
					n := 0
					for x := e.timers; x != nil; x = x.next {
						require.Same(t, e, x.e)
						n++
					}
					require.Equal(t, e.running(), n)
					listed += n
				}
				require.Equal(t, len(model), listed)
			},
			"set": func(t *rapid.T) {
				e := es[rapid.IntRange(0, 1).Draw(t, "e")]
				if e.running() >= MaxTimers {
					t.Skip("full")
				}
				h.set(e, time.Duration(rapid.IntRange(0, 9).Draw(t, "at")), "", nil)
				i := slices.IndexFunc(h.heap, func(x *timer) bool { return x.seq == h.seq })
				model = append(model, h.heap[i])
			},
			"take": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "i")
				h.take(model[i])
				h.free(model[i])
				model = slices.Delete(model, i, i+1)
			},
		})
	})
}
