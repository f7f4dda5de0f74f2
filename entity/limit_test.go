// Tests of what only some messages have: the limit of an ask, and headers.

package entity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// An ask makes no entity if its asker has given up when it comes, and calls nothing; one that comes in time is handled,
// and its handler knows the limit (ACC-3).
func TestExpiredAsksAreRefusedWhenTheyCome(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.now = 5 * time.Second
		r.f.receive = func(c *Context, p []byte) error {
			require.Equal(t, 5*time.Second+time.Millisecond, c.limit)
			return c.Reply(p)
		}
		o := &origin{}
		late := Message{From: o, Corr: 1, ID: []byte("a"), Limit: 5 * time.Second}
		require.Equal(t, route.Expired, r.Deliver(r.f.now, &late))
		r.runAll()
		require.Empty(t, r.takeLog())
		require.Empty(t, o.answers, "the caller answers what is refused")
		require.Zero(t, r.Stats().Live)
		require.EqualValues(t, 1, r.Stats().Refused[route.Expired])
		late.Limit += time.Millisecond
		require.Equal(t, route.OK, r.Deliver(r.f.now, &late))
		r.runAll()
		require.Equal(t, []answer{{1, route.OK, ""}}, o.answers)
		r.f.receive = func(c *Context, _ []byte) error { require.Zero(t, c.limit); return nil }
		require.Equal(t, route.OK, r.tell("a", "no limit"))
	})
}

// What waits in a mailbox while its asker gives up is dropped when its turn comes, never before, and the asker gets an
// error in case it waits all the same. What waits behind it is handled (ACC-3).
func TestExpiredAsksAreDroppedInTheirMailbox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, Blocking)
		o, want, dropped := &origin{}, []answer(nil), uint64(0)
		r.f.receive = func(c *Context, p []byte) error {
			require.True(t, c.limit == 0 || c.limit > r.f.now)
			if c.Asked() {
				return c.Reply(p)
			}
			return nil
		}
		r.f.now = time.Duration(rapid.Int64Range(0, int64(120*24*time.Hour)).Draw(t, "now"))
		then := r.f.now + rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour}).Draw(t, "waits")
		n := rapid.IntRange(1, 6).Draw(t, "messages")
		for i := range n {
			m := Message{ID: []byte("a"), Payload: []byte(fmt.Sprint(i))}
			if rapid.Bool().Draw(t, "asks") {
				m.From, m.Corr = o, uint64(i)
				m.Limit = r.f.now + time.Duration(rapid.Int64Range(1, int64(2*(then-r.f.now))).Draw(t, "limit"))
				if m.Limit > then { // in whole milliseconds, rounded up: never early
					want = append(want, answer{m.Corr, route.OK, fmt.Sprint(i)})
				} else if m.Limit <= then-time.Millisecond {
					want = append(want, answer{m.Corr, route.Expired, ""})
					dropped++
				} else {
					m.From = nil // either may be
				}
			}
			require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
		}
		r.f.now = then
		r.runAll()
		require.Equal(t, want, o.answers)
		st := r.Stats()
		require.Equal(t, dropped, st.Expired)
		require.EqualValues(t, uint64(n)-dropped, st.Delivered)
		require.Zero(t, st.QueuedBytes)
	})
}

// A message that is handled behind the Stop of the instance before it has waited for that (ACC-3).
func TestExpiredAskBehindAStop(t *testing.T) {
	r := newRig(t, Blocking)
	r.f.receive = func(c *Context, p []byte) error {
		c.Passivate()
		return c.Reply(p)
	}
	o := &origin{}
	require.Equal(t, route.OK, r.deliver("a", "x", nil, 0))
	e := r.Ready()
	require.True(t, e.Begin(0))
	e.Enter(&r.frame, 0)
	require.True(t, e.Work(), "the instance is made")
	require.True(t, e.Work(), "it wishes to go")
	require.True(t, e.End(0))
	m := Message{From: o, Corr: 1, ID: []byte("a"), Limit: time.Second}
	require.Equal(t, route.OK, r.Deliver(0, &m))
	r.f.stop = func(*Context) { r.f.now = time.Minute }
	for ok := e.Begin(0); ok; ok = e.End(r.f.now) && e.Begin(r.f.now) {
		e.Enter(&r.frame, r.f.now)
		for e.Work() {
		}
	}
	require.Equal(t, []answer{{1, route.Expired, ""}}, o.answers)
}

// A limit comes back from its mark within a millisecond, never earlier, also when the count of milliseconds wraps.
func TestMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Duration(rapid.Int64Range(0, int64(200*24*time.Hour)).Draw(t, "now"))
		limit := now + time.Duration(rapid.Int64Range(-int64(20*24*time.Hour), int64(20*24*time.Hour)).Draw(t, "left"))
		if limit <= 0 {
			limit = 1
		}
		got := limitOf(markOf(limit), now)
		require.GreaterOrEqual(t, got, limit)
		require.LessOrEqual(t, got, limit+2*time.Millisecond)
	})
	require.Zero(t, markOf(0))
	require.Zero(t, limitOf(0, time.Hour))
	require.NotZero(t, markOf(math.MaxUint32*time.Millisecond+time.Millisecond), "no mark means no limit")
}

// Headers reach the handler of every mode as they were given, and are gone with the call. Timers have none.
func TestHeadersReachTheHandler(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var got []string
		r.f.receive = func(c *Context, p []byte) error {
			got = append(got, string(c.Headers())+":"+string(p))
			require.Equal(t, len(c.Headers()), cap(c.Headers()), "they do not reach into what is behind them")
			return c.After(0, []byte("timer"))
		}
		deliver := func(headers, payload string) {
			m := Message{ID: []byte("a"), Payload: []byte(payload), Headers: slices.Clip([]byte(headers))}
			if headers == "" {
				m.Headers = nil
			}
			require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
			clear(m.Headers) // a view
			clear(m.Payload)
		}
		deliver("trace", "1")
		deliver("", "2")
		deliver("tenant", "")
		deliver(strings.Repeat("h", 4<<10), "4")
		r.runAll()
		require.Equal(t, []string{"trace:1", ":2", "tenant:", strings.Repeat("h", 4<<10) + ":4"}, got)
		require.Zero(t, r.Stats().QueuedBytes)
		got = nil
		r.f.receive = func(c *Context, p []byte) error {
			got = append(got, string(c.Headers())+":"+string(p))
			return nil
		}
		r.tickTo(time.Second)
		require.Equal(t, []string{":timer", ":timer", ":timer", ":timer"}, got)
	})
}

// Headers that a call sets go with all that it sends from then on, and with nothing of the next call, nor of its timers
// and its stop. With takes others.
func TestSetHeaders(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(c *Context, p []byte) error {
			require.NoError(t, c.Tell("", "b", p))
			if string(p) == "set" {
				require.Empty(t, c.SetHeaders([]byte("trace:")))
				require.NoError(t, c.Tell("", "b", []byte("2")))
				require.NoError(t, c.With([]byte("own:")).Tell("", "b", []byte("3")))
				require.NoError(t, c.With(nil).Tell("", "b", []byte("4")))
				_, err := c.Ask(time.Second, "", "b", []byte("5"))
				require.Equal(t, r.typ.Mode == Blocking, err == nil)
				require.NoError(t, c.After(0, []byte("timer")))
				c.Passivate()
			}
			return nil
		}
		r.f.stop = func(c *Context) { require.NoError(t, c.Tell("", "b", []byte("stop"))) }
		require.Equal(t, route.OK, r.tell("a", "set"))
		require.Equal(t, route.OK, r.tell("a", "next"))
		r.runAll()
		require.Equal(t, []string{"book/b:set", "book/b:trace:2", "book/b:own:3", "book/b:4", "book/b:stop",
			"book/b:next"}, r.f.told)
		if r.typ.Mode == Blocking {
			require.Equal(t, []string{"book/b:trace:5 within 1s"}, r.f.asked)
		}
	})
}

// A payload that is lent has its headers beside it.
func TestHeadersOfALoan(t *testing.T) {
	r := newRig(t, Blocking)
	released := 0
	r.f.receive = func(c *Context, p []byte) error {
		r.f.log = append(r.f.log, string(c.Headers()))
		return nil
	}
	for _, h := range []string{"trace", ""} {
		m := Message{ID: []byte("a"), Payload: []byte("large"), Loan: &Loan{Release: func() { released++ }}}
		if h != "" {
			m.Headers = []byte(h)
		}
		require.Equal(t, route.OK, r.Deliver(0, &m))
		clear(m.Headers)
	}
	require.Equal(t, route.OK, r.tell("a", "small"))
	require.Equal(t, []string{"a new", "a got large", "trace", "a got large", "", "a got small", ""}, r.takeLog())
	require.Equal(t, 2, released)
}

// A handler gives headers on by itself, and the call frame forgets those of a message that Dispatch did not take.
func TestHeadersGoOnByTheHandlersWord(t *testing.T) {
	r := newRig(t, Worker)
	d := &CallFrame{}
	r.Use(d)
	r.callFrame.Bind()
	r.f.receive = func(c *Context, p []byte) error {
		require.NoError(t, c.Tell("", "b", p))
		return c.With(c.Headers()).Tell("other", "c", p)
	}
	require.Equal(t, route.OK, r.tell("a", "first"))
	e := r.Foresee(HashID([]byte("a")))
	d.With(time.Hour, []byte("trace-"))
	ok, _ := r.Dispatch(0, e, nil, 0, []byte("1"))
	require.True(t, ok)
	ok, _ = r.Dispatch(0, e, nil, 0, []byte("2"))
	require.True(t, ok)
	d.With(time.Hour, []byte("trace-"))
	r.Stop(0, StopMoved)
	ok, _ = r.Dispatch(0, e, nil, 0, []byte("3"))
	require.False(t, ok)
	require.False(t, d.more)
	require.Equal(t, []string{"book/b:first", "other/c:first", "book/b:1", "other/c:trace-1", "book/b:2", "other/c:2"},
		r.f.told)
}

// What only some messages have makes the record of the others no longer.
func TestRecordIsHalfALine(t *testing.T) {
	require.EqualValues(t, 32, unsafe.Sizeof(record{}))
}

// Neither a limit nor headers cost an allocation once buffers are warm.
func TestLimitsAndHeadersAllocateNothing(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.Type().New = func(string, route.Fence) Handler { return quick{} }
		m := Message{From: quick{}, Corr: 1, ID: []byte("a"), Payload: []byte("pay"), Headers: []byte("trace"),
			Limit: time.Hour}
		run := func() {
			if r.Deliver(0, &m) != route.OK {
				t.Error("not taken")
			}
			r.runAll()
		}
		run()
		require.Zero(t, testing.AllocsPerRun(100, run))
	})
}

// quick is a handler that answers, and an origin that hears it.
type quick struct{}

func (quick) Receive(c *Context, p []byte) error       { return c.Reply(p) }
func (quick) Stop(*Context)                            {}
func (quick) Reply(uint64, route.Reason, []byte) error { return nil }

// The context of an ask has its limit, that of what follows has not: neither a tell nor Stop.
func TestContextHasTheLimit(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var limits []any
		r.f.receive = func(c *Context, p []byte) error {
			limits = append(limits, c.Context().Value(limitKey{}))
			if c.Asked() {
				c.Passivate()
				return c.Reply(p)
			}
			return nil
		}
		r.f.stop = func(c *Context) { limits = append(limits, c.Context().Value(limitKey{}), len(c.Headers())) }
		m := Message{From: &origin{}, Corr: 1, ID: []byte("a"), Limit: 3 * time.Second, Headers: []byte("h")}
		require.Equal(t, route.OK, r.Deliver(0, &m))
		r.runAll()
		r.tell("a", "1")
		require.Len(t, limits, 4)
		require.InDelta(t, 3*time.Second, limits[0], float64(2*time.Millisecond), "a mailbox keeps it coarsely")
		require.Equal(t, []any{time.Duration(0), 0, time.Duration(0)}, limits[1:])
	})
}

// A reading of the clock that the goroutine brings along is good for one call: after it the clock is asked again.
func TestAReadingOfTheClockIsGoodForOneCall(t *testing.T) {
	r := newRig(t, Blocking)
	r.f.now = time.Second
	var limits []time.Duration
	r.f.receive = func(c *Context, p []byte) error {
		limits = append(limits, c.limit)
		r.f.now += time.Second
		return c.Reply(p)
	}
	o := &origin{}
	for i, limit := range []time.Duration{2 * time.Second, 2 * time.Second, 9 * time.Second,
		2500 * time.Millisecond} {
		m := Message{From: o, Corr: uint64(i), ID: []byte("a"), Limit: limit}
		require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
	}
	e := r.Ready()
	require.True(t, e.Begin(r.f.now))
	e.Enter(&r.frame, r.f.now)
	require.True(t, e.Work(), "the instance is made")
	require.True(t, e.Work(), "the clock is asked")
	require.True(t, e.Work(), "and again")
	r.frame.Saw(5 * time.Second)
	require.True(t, e.Work(), "it is told")
	require.False(t, e.Work(), "that was good for one call")
	require.False(t, e.End(r.f.now))
	require.Equal(t, []time.Duration{2 * time.Second, 9 * time.Second}, limits)
	require.Equal(t, []answer{{0, route.OK, ""}, {1, route.Expired, ""}, {2, route.OK, ""}, {3, route.Expired, ""}},
		o.answers)
}
