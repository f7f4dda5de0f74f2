// Handing over: what is taken at the deadline of a move, and what the next instance begins with.

package entity

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// lines returns messages as text: their entities, what they say, whether they are asks.
func lines(list []Message) (l []string) {
	for _, m := range list {
		l = append(l, fmt.Sprintf("%s %s%s %v", m.ID, m.Headers, m.Payload, m.From != nil))
	}
	return l
}

// At the deadline of a move what waits is taken in order, with its asker, the rest of its time and its headers, and no
// handler is called for it. Handlers that run are waited for; every instance is stopped; the bounds get their bytes
// back; timers go with their instance (SHD-9).
func TestCutTakesWhatWaits(t *testing.T) {
	r := newRig(t, Blocking)
	o := &origin{}
	r.f.receive = func(c *Context, _ []byte) error { return c.SetTimer("t", time.Second, nil) }
	require.Equal(t, route.OK, r.tell("idle", "0"))
	r.f.receive = nil
	for _, m := range []string{"1", "2", "3"} {
		require.Equal(t, route.OK, r.deliver("a", m, nil, 0))
	}
	a := r.Ready()
	require.True(t, a.Begin(r.f.now))
	require.True(t, a.Work(), "it makes the instance")
	require.True(t, a.Work(), "it handles the first")
	require.Equal(t, route.OK, r.deliver("new", "6", nil, 0))
	m := Message{ID: []byte("a"), Payload: []byte("4"), Headers: []byte("h"), From: o, Corr: 9, Limit: time.Minute}
	require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
	released := 0
	m = Message{ID: []byte("a"), Payload: []byte("5"), Loan: &Loan{Release: func() { released++ }}}
	require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
	r.Stop(r.f.now, StopMoved)
	r.takeLog()
	Cut(r.Shard, r.f.now)
	Cut(r.Shard, r.f.now)
	require.False(t, r.Stopped(), "a handler runs")
	for ok := a.End(r.f.now) && a.Begin(r.f.now); ok; ok = a.End(r.f.now) && a.Begin(r.f.now) {
		for a.Work() {
		}
	}
	r.runAll()
	require.True(t, r.Stopped())
	require.ElementsMatch(t, []string{"a stop", "idle stop"}, r.takeLog(), "new was never made")
	left := TakeLeft(r.Shard)
	require.Equal(t, []string{"new 6 false", "a 2 false", "a 3 false", "a h4 true", "a 5 false"}, lines(left))
	require.Equal(t, uint64(9), left[3].Corr)
	require.Equal(t, time.Minute, left[3].Limit)
	require.Equal(t, 1, released)
	require.Zero(t, r.pool.Used())
	require.Zero(t, r.Stats().QueuedBytes)
	require.Empty(t, o.answers)
	require.Empty(t, TakeLeft(r.Shard))
}

// What was sent before a move and comes only behind its deadline is taken too, in the modes that handle at once, and
// then the stop calls follow.
func TestCutBeforeTheStop(t *testing.T) {
	for _, mode := range []Mode{Worker, Inline} {
		r := newRig(t, mode)
		require.Equal(t, route.OK, r.tell("a", "1"))
		Cut(r.Shard, r.f.now)
		require.False(t, r.Stopping())
		require.Equal(t, route.OK, r.tell("a", "2"))
		require.Equal(t, route.OK, r.tell("b", "3"))
		_, ok := r.Next()
		require.False(t, ok)
		r.Stop(r.f.now, StopMoved)
		require.True(t, r.Stopped())
		require.Equal(t, []string{"a new", "a got 1", "a stop"}, r.takeLog())
		require.Equal(t, route.ShardStopping, r.tell("a", "4"))
		require.Equal(t, []string{"a 2 false", "b 3 false"}, lines(TakeLeft(r.Shard)))
	}
}

// A run that was cut between New and the first message, or while it wished to passivate, hands over what it has not
// handled, and stops what it has made.
func TestCutInTheMiddleOfARun(t *testing.T) {
	for step := range 3 {
		r := newRig(t, Blocking)
		r.f.receive = func(c *Context, _ []byte) error { c.Passivate(); return nil }
		r.deliver("a", "1", nil, 0)
		r.deliver("a", "2", nil, 0)
		r.Stop(r.f.now, StopMoved)
		a := r.Ready()
		require.True(t, a.Begin(r.f.now))
		for range step {
			require.True(t, a.Work())
		}
		Cut(r.Shard, r.f.now)
		for ok := a.End(r.f.now) && a.Begin(r.f.now); ok; ok = a.End(r.f.now) && a.Begin(r.f.now) {
			for a.Work() {
			}
		}
		require.True(t, r.Stopped())
		require.Equal(t, []string{"a 1 false", "a 2 false"}[min(step, 2)/2:], lines(TakeLeft(r.Shard)), "step %d", step)
		require.Equal(t, map[int]int{0: 0, 1: 2, 2: 3}[step], len(r.takeLog()), "step %d", step)
	}
}

// What the last owner left is handled before anything else, also when the mailbox is too small for it, and when a
// message or the stop comes first (transfer-first, parked-never-refused).
func TestResumeComesFirst(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for _, first := range []string{"tick", "message", "stop", "cut"} {
			r := again(func(t *Type) { t.MailboxBytes = MinMailboxBytes })
			o := &origin{}
			var left []Message
			for i := range 100 {
				left = append(left, Message{ID: []byte("a"), Payload: fmt.Appendf(nil, "%02d", i)})
			}
			left = append(left, Message{ID: []byte("b"), Payload: []byte("ask"), From: o, Corr: 3},
				Message{ID: []byte("b"), Payload: []byte("late"), From: o, Corr: 4, Limit: 1})
			r.f.now = time.Second
			r.f.receive = func(c *Context, p []byte) error {
				if c.Asked() {
					return c.Reply(p)
				}
				return nil
			}
			Resume(r.Shard, r.f.now, left, nil)
			switch first {
			case "tick":
				r.tickTo(r.f.now)
				r.runAll()
				r.tell("a", "new")
			case "message":
				r.deliver("c", "other", nil, 0)
				r.runAll()
				r.tell("a", "new")
			case "stop":
				r.Stop(r.f.now, StopMoved)
				r.runAll()
				for !r.Stopped() {
					r.Tick(r.f.now)
					r.runAll()
				}
			case "cut":
				Cut(r.Shard, r.f.now)
				r.Stop(r.f.now, StopMoved)
				r.runAll()
				require.Empty(t, r.takeLog())
				require.GreaterOrEqual(t, len(TakeLeft(r.Shard)), 101)
				continue
			}
			got, log := []string{}, r.takeLog()
			if other := slices.Index(log, "c got other"); first == "message" && r.Type().Mode != Blocking {
				require.Greater(t, other, slices.Index(log, "a got 99"))
			}
			for _, l := range log {
				if len(l) > 6 && l[:6] == "a got " {
					got = append(got, l[6:])
				}
			}
			for i := range 100 {
				require.Equal(t, fmt.Sprintf("%02d", i), got[i])
			}
			require.Equal(t, first != "stop", len(got) == 101 && got[100] == "new")
			require.ElementsMatch(t, []answer{{3, route.OK, "ask"}, {4, route.Expired, ""}}, o.answers)
		}
	})
}

// A shard that is lost tells of what it was to begin with, and of what it has taken.
func TestAbandonTellsOfWhatIsHandedOver(t *testing.T) {
	for _, taken := range []bool{false, true} {
		r := newRig(t, Worker)
		o := &origin{}
		var told []string
		r.f.unhandled = func(id string, why route.Reason, ask bool, payload string) {
			told = append(told, fmt.Sprintf("%s %s %v %v", id, payload, why == route.Abandoned, ask))
		}
		Resume(r.Shard, r.f.now, []Message{{ID: []byte("a"), Payload: []byte("1")},
			{ID: []byte("a"), Payload: []byte("2"), From: o, Corr: 5}}, nil)
		if taken {
			Cut(r.Shard, r.f.now)
		}
		r.Abandon()
		require.Equal(t, []string{"a 1 true false", "a 2 true true"}, told)
		require.Equal(t, []answer{{5, route.Abandoned, ""}}, o.answers)
		require.Empty(t, TakeLeft(r.Shard))
		require.Equal(t, uint64(2), r.Stats().Abandoned)
	}
}
