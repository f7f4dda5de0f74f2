// Dispatch beside Deliver: whatever handlers do, both leave the same behind, also where several shards share a call
// frame.

package entity

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/route"
)

// acting is a handler's Receive that does what the payload says.
func acting(c *Context, payload []byte) error {
	switch string(payload) {
	case "panic":
		panic("as told")
	case "fail":
		return errTest
	case "reply":
		if c.Asked() {
			return c.Reply([]byte("answer"))
		}
	case "detach":
		c.Detach()
	case "leave":
		c.Passivate()
	case "timer":
		return c.After(time.Second, []byte("plain"))
	case "timer and panic":
		_ = c.After(time.Second, []byte("plain"))
		panic("as told")
	case "cancel":
		c.CancelTimers()
	case "who":
		if c.Asked() {
			return c.Reply([]byte(c.ID + c.Type() + c.Fence.String()))
		}
	}
	return nil
}

var acts = []string{"plain", "plain", "panic", "fail", "reply", "detach", "leave", "timer", "timer and panic", "cancel",
	"who"}

// hand delivers a message as a runtime does that looks ahead. It says whether Hand took it.
func (r *rig) hand(id, payload string, from Origin, corr uint64) (reason route.Reason, handed bool) {
	e := r.Foresee(HashID([]byte(id)))
	if e == nil || !e.Is([]byte(id)) {
		return r.deliver(id, payload, from, corr), false
	}
	defer func() {
		if v := recover(); v != nil {
			r.callFrame.Recovered(v)
			reason, handed = route.OK, true
		}
	}()
	before, some := r.Next()
	ok, quiet := r.Dispatch(r.f.now, e, from, corr, []byte(payload))
	if !ok {
		return r.deliver(id, payload, from, corr), false
	}
	after, still := r.Next()
	require.True(r.t, !quiet || before == after && some == still, "quiet means that Next has not changed")
	return route.OK, true
}

func TestHandIsDeliver(t *testing.T) {
	handed := 0
	rapid.Check(t, func(t *rapid.T) {
		change := func(typ *Type) {
			typ.IdleAfter = 5 * time.Second
		}
		policy := Restart(rapid.IntRange(0, 2).Draw(t, "restart"))
		rest := time.Duration(rapid.IntRange(0, 2).Draw(t, "rest")) * time.Second
		policed := func(typ *Type) {
			typ.Restart = policy
			if policy != RestartResume && rest > 0 {
				typ.RestartBackoff, typ.RestartWindow = rest, 5*time.Second
			}
		}
		mode := rapid.SampledFrom([]Mode{Worker, Inline}).Draw(t, "mode")
		plain, ahead := newRig(t, mode, change, policed), newRig(t, mode, change, policed)
		var callFrame CallFrame
		ahead.Use(&callFrame)
		ahead.callFrame.Bind()
		other := newRig(t, mode) // shares the call frame
		other.Use(&callFrame)
		other.callFrame.Bind()
		plain.f.receive, ahead.f.receive, other.f.receive = acting, acting, acting
		var a, b origin
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "wait") == 0 {
				now := ahead.f.now + time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms"))*time.Millisecond
				plain.tickTo(now)
				ahead.tickTo(now)
			}
			id := rapid.SampledFrom([]string{"a", "entity-b", "an entity with a long id"}).Draw(t, "id")
			act := rapid.SampledFrom(acts).Draw(t, "act")
			var from1, from2 Origin
			if rapid.Bool().Draw(t, "ask") {
				from1, from2 = &a, &b
			}
			other.hand("entity-b", "reply", nil, 0)
			want := plain.deliver(id, act, from1, uint64(i+1))
			got, took := ahead.hand(id, act, from2, uint64(i+1))
			require.Equal(t, want, got)
			if took {
				handed++
			}
		}
		require.Equal(t, a.answers, b.answers)
		require.Equal(t, plain.takeLog(), ahead.takeLog())
		require.Equal(t, plain.Stats(), ahead.Stats())
		require.Equal(t, len(plain.f.incidents), len(ahead.f.incidents))
		for i := range plain.f.incidents {
			p, h := plain.f.incidents[i], ahead.f.incidents[i]
			p.Text, h.Text = "", "" // stacks
			require.Equal(t, p, h)
		}
		at1, ok1 := plain.Next()
		at2, ok2 := ahead.Next()
		require.Equal(t, ok1, ok2)
		require.Equal(t, at1, at2)
	})
	require.Greater(t, handed, 100, "the short way was gone")
}

func TestHandLeavesItToDeliver(t *testing.T) {
	r := newRig(t, Inline)
	r.Use(&CallFrame{})
	r.callFrame.Bind()
	require.Nil(t, r.Foresee(HashID([]byte("a"))), "nobody is there")
	require.Equal(t, route.OK, r.tell("a", "plain"))
	e := r.Foresee(HashID([]byte("a")))
	require.True(t, e.Is([]byte("a")))
	require.False(t, e.Is([]byte("b")))

	// Gone between the look and its turn.
	r.f.receive = acting
	require.Equal(t, route.OK, r.tell("a", "leave"))
	ok, _ := r.Dispatch(0, e, nil, 0, []byte("plain"))
	require.False(t, ok, "gone")

	// Made again: another record.
	require.Equal(t, route.OK, r.tell("a", "plain"))
	ok, _ = r.Dispatch(0, e, nil, 0, []byte("plain"))
	require.False(t, ok, "the old record stays gone")

	e = r.Foresee(HashID([]byte("a")))
	r.Stop(0, StopMoved)
	ok, _ = r.Dispatch(0, e, nil, 0, []byte("plain"))
	require.False(t, ok, "the shard is being stopped")
}

func TestHandOfWatchedCalls(t *testing.T) {
	r := newRig(t, Worker, func(typ *Type) { typ.SlowAfter = time.Second })
	r.Use(&CallFrame{})
	r.callFrame.Bind()
	require.Equal(t, route.OK, r.tell("a", "plain"))
	ok, _ := r.Dispatch(0, r.Foresee(HashID([]byte("a"))), nil, 0, nil)
	require.False(t, ok, "a call that is to be named while it runs takes the long way")
}

func TestTook(t *testing.T) {
	r := newRig(t, Inline)
	require.Equal(t, route.OK, r.tell("a", "plain"))
	e := r.Foresee(HashID([]byte("a")))
	r.Took(e, SlowAfter)
	require.Empty(t, r.f.incidents)
	r.Took(e, SlowAfter+1)
	require.Len(t, r.f.incidents, 1)
	require.Equal(t, Slow, r.f.incidents[0].Kind)
	require.Equal(t, "a", r.f.incidents[0].ID)
	require.Equal(t, uint64(1), r.Stats().Slow)
}

func TestRecoveredIsForHandlersOnly(t *testing.T) {
	var d CallFrame
	ours := errors.New("ours")
	require.PanicsWithError(t, "ours", func() { d.Recovered(ours) }, "what no handler did goes on")

	r := newRig(t, Inline)
	r.Use(&d)
	r.callFrame.Bind()
	require.Equal(t, route.OK, r.tell("a", "plain"))
	r.f.receive = func(c *Context, _ []byte) error {
		_, _ = r.Dispatch(0, c.e, nil, 0, nil)
		return nil
	}
	defer func() {
		var broken *invariant.Violation
		require.ErrorAs(t, recover().(error), &broken, "a shard stepped from inside its own handler")
	}()
	r.hand("a", "plain", nil, 0)
}
