// Tests of the host: mailboxes and budgets, passivation, idleness, Stop and Abandon.

package entity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

func TestMailboxIsBounded(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	payload := strings.Repeat("x", 256-RecordOverhead)
	for range 4 {
		require.Equal(t, route.OK, r.deliver("a", payload, nil, 0))
	}
	require.Equal(t, route.MailboxFull, r.deliver("a", "", nil, 0), "an empty message counts too")
	require.Equal(t, route.OK, r.deliver("b", payload, nil, 0), "one slow entity does not stop the others")
	o := &origin{}
	require.Equal(t, route.MailboxFull, r.deliver("a", "q", o, 1))
	require.Empty(t, o.answers, "the caller answers what is refused")
	require.Equal(t, 1280, r.Stats().QueuedBytes)
	require.Equal(t, uint64(2), r.Stats().Refused[route.MailboxFull])
	r.runAll()
	require.Equal(t, uint64(5), r.Stats().Delivered)
	require.Zero(t, r.Stats().QueuedBytes)
	require.Equal(t, route.OK, r.tell("a", payload))
}

func TestParkedMessagesAreNeverRefusedForAFullMailbox(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	r.pool.Limit = 0
	m := Message{ID: []byte("a"), Payload: make([]byte, MinMailboxBytes)}
	require.Equal(t, route.BudgetFull, r.Deliver(0, &m))
	require.Zero(t, r.Stats().Live, "what is refused makes no entity")
	m.Parked = true
	for range 5 {
		require.Equal(t, route.OK, r.Deliver(0, &m))
	}
	require.GreaterOrEqual(t, r.pool.Used(), 5*MinMailboxBytes)
	r.runAll()
	require.Equal(t, uint64(5), r.Stats().Delivered)
	require.Zero(t, r.pool.Used())
}

func TestOneMessageMayExceedAnEmptyMailbox(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = MinMailboxBytes })
	large := strings.Repeat("x", 100_000)
	require.Equal(t, route.OK, r.deliver("a", large, nil, 0))
	require.Equal(t, route.MailboxFull, r.deliver("a", "", nil, 0))
	r.runAll()
	require.Equal(t, []string{"a new", "a got " + large}, r.takeLog())
}

func TestNodeBudgetBoundsAllMailboxesTogether(t *testing.T) {
	r := newRig(t, Blocking)
	r.pool.Limit = 10_000
	accepted := 0
	for i := range 100 {
		if r.deliver(fmt.Sprint(i), strings.Repeat("x", 500-RecordOverhead), nil, 0) == route.OK {
			accepted++
		}
	}
	require.Equal(t, 20, accepted)
	require.Equal(t, uint64(80), r.Stats().Refused[route.BudgetFull])
	require.LessOrEqual(t, r.pool.Used(), r.pool.Limit)
	require.Equal(t, accepted, r.Stats().Live)
	r.runAll()
	require.Zero(t, r.pool.Used(), "empty mailboxes hold nothing of the budget")
	require.Equal(t, uint64(accepted), r.Stats().Delivered)
}

func TestMailboxRoomComesBackWhileABatchIsWorkedOff(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.MailboxBytes = 64 << 10 })
	payload := strings.Repeat("x", 1024-RecordOverhead)
	for range 64 {
		require.Equal(t, route.OK, r.deliver("a", payload, nil, 0))
	}
	require.Equal(t, route.MailboxFull, r.deliver("a", payload, nil, 0))
	e := r.Ready()
	require.True(t, e.Begin(0))
	for e.Work() {
	}
	require.Less(t, r.Stats().QueuedBytes, 64<<10+1)
	require.True(t, e.End(0))
	require.Less(t, r.Stats().QueuedBytes, 50<<10, "the first batch is done, the others still wait")
	require.Equal(t, route.OK, r.deliver("a", payload, nil, 0))
	require.Nil(t, r.Ready(), "it is running already")
}

func TestRunEndedEarlyGoesOnWhereItStopped(t *testing.T) {
	r := newRig(t, Blocking)
	for i := range 4 {
		r.deliver("a", fmt.Sprint(i), nil, 0)
	}
	e := r.Ready()
	require.Equal(t, "a", e.ID())
	require.True(t, e.Begin(0))
	require.True(t, e.Work())
	require.True(t, e.Work())
	r.deliver("a", "4", nil, 0)
	require.True(t, e.End(0))
	require.True(t, e.Begin(0))
	for e.Work() {
	}
	require.True(t, e.End(0))
	require.True(t, e.Begin(0))
	require.False(t, e.Work())
	require.False(t, e.End(0))
	require.Equal(t, []string{"a new", "a got 0", "a got 1", "a got 2", "a got 3", "a got 4"}, r.takeLog())
	require.Nil(t, r.Ready())
}

func TestEntityCannotBeRunTwiceAtOnce(t *testing.T) {
	r := newRig(t, Blocking)
	r.deliver("a", "1", nil, 0)
	e := r.Ready()
	require.True(t, e.Begin(0))
	require.Panics(t, func() { e.Begin(0) })
	require.True(t, e.Work(), "the instance is made")
	require.False(t, e.Work())
	require.False(t, e.End(0))
	require.Panics(t, func() { e.End(0) })
}

func TestReadyHandsOutEachEntityOnceInOrder(t *testing.T) {
	r := newRig(t, Blocking)
	for _, id := range []string{"c", "a", "b", "a", "c"} {
		r.deliver(id, "x", nil, 0)
	}
	var ids []string
	for e := r.Ready(); e != nil; e = r.Ready() {
		ids = append(ids, e.ID())
	}
	require.Equal(t, []string{"c", "a", "b"}, ids)
}

// TestPassivateStopsAndTheNextMessageMakesAFreshInstance pins SHD-12.
func TestPassivateStopsAndTheNextMessageMakesAFreshInstance(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(c *Context, p []byte) error {
			if string(p) == "go" {
				c.Passivate()
				return c.Reply([]byte("bye"))
			}
			return nil
		}
		r.f.stop = func(c *Context) {
			require.Equal(t, []any{"a", testFence, false}, []any{c.ID, c.Fence, c.Asked()})
			require.ErrorIs(t, c.Reply(nil), ErrNoAsk)
			require.NoError(t, c.Tell("", "b", []byte("flushed")))
		}
		r.tell("a", "1")
		require.Equal(t, answer{42, route.OK, "bye"}, r.ask("a", "go"))
		require.Equal(t, []string{"a new", "a got 1", "a got go", "a stop"}, r.takeLog())
		require.Zero(t, r.Stats().Live)
		require.Equal(t, []string{"book/b:flushed"}, r.f.told)
		r.tell("a", "2")
		require.Equal(t, []string{"a new", "a got 2"}, r.takeLog())
		require.Equal(t, Tally{Delivered: 3, Made: 2, Passivated: 1, Stopped: 1}, r.Stats().Tally)
	})
}

func TestMessagesBehindAPassivationReachTheFreshInstance(t *testing.T) {
	r := newRig(t, Blocking)
	r.f.receive = func(c *Context, p []byte) error {
		if string(p) == "go" {
			c.Passivate()
		}
		return nil
	}
	for _, p := range []string{"1", "go", "2"} {
		r.deliver("a", p, nil, 0)
	}
	e := r.Ready()
	require.True(t, e.Begin(0))
	for e.Work() {
	}
	r.deliver("a", "3", nil, 0)
	require.True(t, e.End(0))
	require.True(t, e.Begin(0))
	e.Work()
	require.False(t, e.End(0))
	require.Equal(t, []string{"a new", "a got 1", "a got go", "a stop", "a new", "a got 2", "a got 3"}, r.takeLog())
	require.Equal(t, 1, r.Stats().Live)
}

func TestIdleEntitiesAreStopped(t *testing.T) {
	const idle = 8 * time.Second
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(func(typ *Type) { typ.IdleAfter = idle })
		_, ok := r.Next()
		require.False(t, ok)
		r.tell("a", "1")
		r.tell("b", "1")
		r.tickTo(5 * time.Second)
		r.tell("b", "2")
		r.takeLog()
		r.tickTo(idle - 1)
		require.Empty(t, r.takeLog())
		r.tickTo(idle)
		require.Equal(t, []string{"a stop"}, r.takeLog(), "on the dot when nothing else was due")
		r.tickTo(5*time.Second + idle - 1)
		require.Empty(t, r.takeLog())
		r.tickTo(5*time.Second + idle + idle/4)
		require.Equal(t, []string{"b stop"}, r.takeLog(), "at most a quarter later")
		require.Zero(t, r.Stats().Live)
		require.Equal(t, uint64(2), r.Stats().Passivated)
		_, ok = r.Next()
		require.False(t, ok, "an empty shard has no deadline")
		r.tell("a", "3")
		require.Equal(t, []string{"a new", "a got 3"}, r.takeLog())
	})
}

// Zero and negative are no time: what a handler has in memory alone stays, and nothing is looked at.
func TestIdleEntitiesStayWithoutATime(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for _, never := range []time.Duration{0, -1, -time.Hour} {
			r := again(func(typ *Type) { typ.IdleAfter = never })
			require.NoError(t, r.typ.Validate())
			r.tell("a", "1")
			_, ok := r.Next()
			require.False(t, ok)
			r.takeLog()
			r.tickTo(1000 * time.Hour)
			require.Empty(t, r.takeLog())
			require.Equal(t, 1, r.Stats().Live)
		}
	})
}

func TestManyIdleEntitiesAreStoppedOverSeveralTicks(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(func(typ *Type) { typ.IdleAfter = time.Second })
		const n = 3000
		bound := uint64(stopAtOnce)
		if r.Type().Mode == Blocking {
			bound = haltingMost
		}
		for i := range n {
			r.tell(fmt.Sprint(i), "x")
		}
		r.f.now = time.Second
		r.Tick(r.f.now)
		r.runAll()
		require.Equal(t, bound, r.Stats().Stopped, "one step is bounded")
		r.tickTo(2 * time.Second)
		require.Zero(t, r.Stats().Live)
		require.Equal(t, uint64(n), r.Stats().Stopped)
		require.Empty(t, r.table.more)
		require.LessOrEqual(t, len(r.table.slots), 8192, "and so do its slots")
		require.LessOrEqual(t, cap(r.table.dense), 2048, "the table shrinks with its entities")
	})
}

func TestAMessageRevokesAnIdleStopThatHasNotBegun(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.IdleAfter = time.Second })
	r.tell("a", "1")
	r.f.now = time.Second
	r.Tick(r.f.now)
	e := r.Ready()
	require.NotNil(t, e)
	r.deliver("a", "2", nil, 0)
	require.True(t, e.Begin(r.f.now))
	e.Work()
	require.False(t, e.End(r.f.now))
	require.Equal(t, []string{"a new", "a got 1", "a got 2"}, r.takeLog())
	require.Zero(t, r.Stats().Passivated)
	require.Zero(t, r.halting)
}

func TestMessagesDuringAnIdleStopReachAFreshInstance(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.IdleAfter = time.Second })
	r.tell("a", "1")
	r.f.now = time.Second
	r.Tick(r.f.now)
	e := r.Ready()
	require.True(t, e.Begin(r.f.now))
	require.Equal(t, route.OK, r.deliver("a", "2", nil, 0))
	require.False(t, e.Work())
	require.True(t, e.End(r.f.now))
	require.True(t, e.Begin(r.f.now))
	require.True(t, e.Work())
	require.False(t, e.Work())
	require.False(t, e.End(r.f.now))
	require.Equal(t, []string{"a new", "a got 1", "a stop", "a new", "a got 2"}, r.takeLog())
	require.Equal(t, Tally{Delivered: 2, Made: 2, Passivated: 1, Stopped: 1}, r.Stats().Tally)
	require.Zero(t, r.halting)
}

func TestStopWorksOffWhatWaitsAndStopsEveryEntity(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		require.False(t, r.Stopping())
		o := &origin{}
		r.f.receive = func(c *Context, p []byte) error {
			require.NoError(t, c.After(time.Second, []byte("never")))
			if !c.Asked() {
				return nil
			}
			return c.Reply(p)
		}
		r.tell("idle", "0")
		for i := range 3 {
			require.Equal(t, route.OK, r.deliver("busy", fmt.Sprint(i), o, uint64(i)))
		}
		if r.Type().Mode == Blocking {
			begun := r.Ready() // the run that is under way when Stop comes still sets timers, in vain
			require.True(t, begun.Begin(0))
			require.True(t, begun.Work(), "New")
			require.True(t, begun.Work())
			defer func() { require.Equal(t, uint64(2), r.Stats().TimersDropped) }()
			r.Stop(r.f.now, StopMoved)
			require.True(t, begun.End(0))
			r.f.receive = func(c *Context, p []byte) error {
				require.ErrorIs(t, c.After(time.Second, nil), route.ErrShardStopping)
				return c.Reply(p)
			}
			for ok := begun.Begin(0); ok; ok = begun.End(0) && begun.Begin(0) {
				for begun.Work() {
				}
			}
		}
		r.Stop(r.f.now, StopMoved)
		r.Stop(r.f.now, StopMoved)
		require.True(t, r.Stopping())
		require.Equal(t, r.Type().Mode != Blocking, r.Stopped())
		require.Equal(t, route.ShardStopping, r.deliver("busy", "late", o, 9))
		require.Equal(t, route.ShardStopping, r.deliver("new", "late", o, 9))
		r.runAll()
		require.True(t, r.Stopped())
		log := r.takeLog()
		require.Less(t, slices.Index(log, "busy got 2"), slices.Index(log, "busy stop"))
		require.Contains(t, log, "idle stop")
		require.Len(t, o.answers, 3)
		require.Equal(t, uint64(2), r.Stats().Refused[route.ShardStopping])
		require.Zero(t, r.Stats().Timers)
		require.Zero(t, r.pool.Used())
		r.tickTo(10 * time.Second)
		require.Empty(t, r.takeLog())
	})
}

func TestStopOfManyEntitiesIsBoundedAtATime(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		const n = 3000
		for i := range n {
			r.tell(fmt.Sprint(i), "x")
		}
		r.deliver("17", "last words", nil, 0) // busy in Blocking
		r.Stop(r.f.now, StopMoved)
		if r.Type().Mode == Blocking {
			// A runtime may hold many at once, but no more than this.
			var held []*Entity
			for e := r.Ready(); e != nil; e = r.Ready() {
				held = append(held, e)
			}
			require.LessOrEqual(t, len(held), haltingMost+1)
			for _, e := range held {
				for ok := e.Begin(0); ok; ok = e.End(0) && e.Begin(0) {
					for e.Work() {
					}
				}
			}
			r.runAll()
		} else {
			require.Equal(t, uint64(stopAtOnce), r.Stats().Stopped)
			r.tickTo(r.f.now)
		}
		require.True(t, r.Stopped())
		require.Equal(t, uint64(n), r.Stats().Stopped)
	})
}

func TestStopOfAnEmptyShardIsDoneAtOnce(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		require.False(t, r.Stopped())
		r.Stop(0, StopMoved)
		require.True(t, r.Stopped())
	})
}

func TestAbandonCallsNothingAndAnswersWhatWaits(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		o := &origin{}
		r.f.receive = func(c *Context, _ []byte) error { return c.After(time.Second, nil) }
		r.tell("idle", "0")
		r.takeLog()
		if r.Type().Mode == Blocking {
			r.deliver("busy", "1", o, 1)
			r.deliver("busy", "2", nil, 0)
		}
		r.Abandon()
		r.Abandon()
		r.runAll()
		require.True(t, r.Stopped())
		require.Empty(t, r.takeLog())
		require.Zero(t, r.Stats().Live)
		require.Zero(t, r.Stats().Timers)
		require.Zero(t, r.pool.Used())
		require.Equal(t, route.Stopped, r.deliver("busy", "3", nil, 0))
		r.Stop(0, StopMoved)
		r.tickTo(time.Minute)
		require.Empty(t, r.takeLog())
		if r.Type().Mode == Blocking {
			require.Equal(t, []answer{{1, route.Abandoned, ""}}, o.answers)
			require.Equal(t, uint64(2), r.Stats().Abandoned)
		}
	})
}

func TestAbandonWhileAHandlerRuns(t *testing.T) {
	r := newRig(t, Blocking)
	o := &origin{}
	r.deliver("a", "1", nil, 0)
	r.deliver("a", "2", o, 2)
	e := r.Ready()
	require.True(t, e.Begin(0))
	require.True(t, e.Work(), "New")
	require.True(t, e.Work())
	r.deliver("a", "3", o, 3)
	r.deliver("b", "1", o, 4)
	b := r.Ready()
	r.Abandon()
	require.False(t, r.Stopped(), "a handler is running")
	require.False(t, b.Begin(0), "what had not begun never does")
	require.False(t, e.End(0))
	require.True(t, r.Stopped())
	require.Equal(t, []answer{{4, route.Abandoned, ""}, {3, route.Abandoned, ""}, {2, route.Abandoned, ""}}, o.answers)
	require.Equal(t, uint64(3), r.Stats().Abandoned)
	require.Zero(t, r.pool.Used())
}

func TestTimeNeverGoesBack(t *testing.T) {
	r := newRig(t, Worker, func(typ *Type) { typ.IdleAfter = time.Second })
	r.Tick(5 * time.Second)
	r.f.now = time.Second
	r.tell("a", "1")
	at, ok := r.Next()
	require.True(t, ok)
	require.Equal(t, 6*time.Second, at)
}

func TestShardSaysWhatItIs(t *testing.T) {
	r := newRig(t, Worker)
	require.Equal(t, []any{route.ShardID(7), testFence, "book"}, []any{r.ID(), r.Fence(), r.Type().Name})
	s := NewShard(r.Type(), 1, testFence, r.f, nil)
	require.Equal(t, route.OK, s.Deliver(0, &Message{ID: []byte("x")}), "no budget is no bound")
}

// Stop gets the reason, in every mode, and no other call does.
func TestStopKnowsItsReason(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		var why []StopReason
		fresh := func(change func(*Type)) *rig {
			r := again(change)
			why = nil
			r.f.receive = func(c *Context, p []byte) error {
				require.Equal(t, NotStopping, c.StopReason())
				if string(p) == "go" {
					c.Passivate()
				}
				return nil
			}
			r.f.stop = func(c *Context) { why = append(why, c.StopReason()) }
			return r
		}
		r := fresh(func(typ *Type) { typ.IdleAfter, typ.MaxActive = time.Second, 2 })
		r.tell("a", "go")
		require.Equal(t, []StopReason{StopPassivated}, why)
		r.tell("b", "1")
		r.tickTo(10 * time.Second)
		require.Equal(t, []StopReason{StopPassivated, StopIdle}, why)
		for _, id := range []string{"c", "d", "e"} {
			r.tell(id, "1")
		}
		require.Equal(t, []StopReason{StopPassivated, StopIdle, StopEvicted}, why)
		for _, reason := range []StopReason{StopMoved, StopLeaving} {
			r = fresh(func(*Type) {})
			r.tell("a", "1")
			r.deliver("b", "1", nil, 0)
			r.Stop(r.f.now, reason)
			r.Stop(r.f.now, StopMoved) // repeated
			r.runAll()
			require.Equal(t, []StopReason{reason, reason}, why)
		}
	})
}

// An entity that was to be stopped for idleness gets the shard's stop as the reason if its shard is stopped before
// that.
func TestStopOfTheShardComesFirst(t *testing.T) {
	r := newRig(t, Blocking, func(typ *Type) { typ.IdleAfter = time.Second })
	var why []StopReason
	r.f.stop = func(c *Context) { why = append(why, c.StopReason()) }
	r.tell("a", "1")
	r.f.now = 10 * time.Second
	r.Tick(r.f.now) // ready to be stopped, and not begun
	r.Stop(r.f.now, StopLeaving)
	r.runAll()
	require.Equal(t, []StopReason{StopLeaving}, why)
}

// A Worker or Inline entity that wishes to go within a call that takes long is stopped behind that call, as its own
// wish, without a limit: whatever became due meanwhile, idleness, a timer or the stop of the shard, comes later and
// finds it gone. What comes then makes it again, and each message is handled once (SHD-12).
func TestPassivationOfALongCall(t *testing.T) {
	for _, mode := range []Mode{Worker, Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, mode, func(typ *Type) { typ.IdleAfter = time.Second })
			var stops []string
			r.f.receive = func(c *Context, p []byte) error {
				if string(p) == "long" {
					require.NoError(t, c.After(time.Second, []byte("timer")))
					c.Passivate()
					r.f.now += time.Minute
				}
				return nil
			}
			r.f.stop = func(c *Context) {
				_, asked := c.Timer()
				stops = append(stops, fmt.Sprint(c.StopReason(), c.Asked(), asked, c.Context().Value(limitKey{}), c.Headers()))
			}
			m := Message{ID: []byte("a"), Payload: []byte("long"), From: &origin{}, Corr: 1, Limit: time.Second,
				Headers: []byte("h")}
			require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
			own := fmt.Sprint(StopPassivated, false, false, time.Duration(0), []byte(nil))
			require.Equal(t, []string{own}, stops)
			require.Equal(t, []string{"a new", "a got long", "a stop"}, r.takeLog())
			r.Tick(r.f.now)
			require.Empty(t, r.takeLog(), "neither its timer nor idleness finds it")
			require.Equal(t, route.OK, r.tell("a", "behind"))
			r.Stop(r.f.now, StopMoved)
			r.runAll()
			require.Equal(t, []string{"a new", "a got behind", "a stop"}, r.takeLog())
			moved := fmt.Sprint(StopMoved, false, false, time.Duration(0), []byte(nil))
			require.Equal(t, []string{own, moved}, stops)
			st := r.Stats()
			require.Equal(t, [4]uint64{2, 2, 1, 2}, [4]uint64{st.Delivered, st.Made, st.Passivated, st.Stopped})
			require.Positive(t, st.Slow)
			require.Equal(t, uint64(1), st.TimersDropped)
		})
	}
}
