// Tests of what is around a type's messages: order, what is turned away, panics, and what it costs not to have it.

package entity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// noting returns an Around that notes its calls, and passes everything on.
func noting(f *fake, name string) Around {
	return Around{Receive: func(c *Context, payload []byte, next func([]byte) error) error {
		f.log = append(f.log, name+" in")
		err := next(append([]byte(name), payload...))
		f.log = append(f.log, fmt.Sprint(name, " out ", err))
		return err
	}}
}

// with returns an Around of a function.
func with(receive func(c *Context, payload []byte, next func([]byte) error) error) func(*Type) {
	return func(t *Type) { t.Around = append(t.Around, Around{Receive: receive}) }
}

// TestAroundReceive: the first is the outermost; each may change what the next one gets, and sees what it returns.
// Those without a Receive are passed by.
func TestAroundReceive(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		var r *rig
		r = again(func(typ *Type) {
			for _, name := range []string{"a", "b"} {
				late := func(c *Context, p []byte, n func([]byte) error) error { return noting(r.f, name).Receive(c, p, n) }
				typ.Around = append(typ.Around, Around{Receive: late}, Around{})
			}
		})
		r.f.receive = func(c *Context, p []byte) error {
			if string(p) == "babad" {
				return errTest
			}
			if c.Asked() {
				return c.Reply(p)
			}
			return nil
		}
		require.Equal(t, answer{42, route.OK, "bax"}, r.ask("e", "x"))
		require.Equal(t, []string{"e new", "a in", "b in", "e got bax", "b out <nil>", "a out <nil>"}, r.takeLog())
		require.Equal(t, route.OK, r.tell("e", "y"))
		require.Equal(t, []string{"a in", "b in", "e got bay", "b out <nil>", "a out <nil>"}, r.takeLog())
		got := r.ask("e", "bad")
		require.Equal(t, answer{42, route.HandlerFailed, "test error"}, got)
		require.True(t, route.MayHaveRun(route.ReplyError(got.reason, []byte(got.payload))))
		require.EqualValues(t, 1, r.Stats().Failed)
	})
}

// TestAroundTurnsAway: an error without a call of next is the asker's, with its identity, and has certainly not run;
// the entity lives on. An outer one may wrap what an inner one says, and it has not run either; one that says so after
// the handler was called does not hide that it was.
func TestAroundTurnsAway(t *testing.T) {
	denied := route.NewError("denied", route.KindDenied, "who are you?")
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(with(func(_ *Context, p []byte, next func([]byte) error) error {
			if err := next(p); err != nil {
				return fmt.Errorf("outer: %w", err)
			}
			if string(p) == "late" {
				return denied
			}
			return nil
		}), with(func(c *Context, p []byte, next func([]byte) error) error {
			switch string(p) {
			case "deny":
				return denied
			case "plain":
				return errors.New("no")
			case "cached":
				return c.Reply([]byte("kept"))
			case "nothing":
				return nil
			}
			return next(p)
		}))
		r.f.receive = func(c *Context, p []byte) error { return c.Reply(p) }
		for _, c := range []struct {
			payload, says string
			is            error
			ran           bool
		}{
			{"deny", "outer: who are you?", denied, false},
			{"plain", "outer: no", route.ErrHandler, false},
			{"nothing", "", route.ErrNoReply, true}, // nobody has said that it did not
		} {
			got := r.ask("e", c.payload)
			err := route.ReplyError(got.reason, []byte(got.payload))
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.ran, route.MayHaveRun(err), c.payload)
		}
		require.Equal(t, answer{42, route.OK, "kept"}, r.ask("e", "cached"))
		require.Equal(t, []string{"e new"}, r.takeLog(), "no handler was called")
		require.Equal(t, route.OK, r.tell("e", "deny"))
		require.EqualValues(t, 3, r.Stats().Failed)
		require.EqualValues(t, 5, r.Stats().Delivered)

		require.Equal(t, answer{42, route.OK, "x"}, r.ask("e", "x"), "it lives")
		require.Equal(t, answer{42, route.OK, "late"}, r.ask("e", "late"), "it had answered")
		require.Equal(t, []string{"e got x", "e got late"}, r.takeLog())
	})
}

// TestAroundErrorAfterTheHandler: what an Around says once the handler has been called is an error of the handler.
func TestAroundErrorAfterTheHandler(t *testing.T) {
	r := newRig(t, Worker, with(func(_ *Context, p []byte, next func([]byte) error) error {
		return errors.Join(next(p), errors.New("too late"))
	}))
	got := r.ask("e", "x")
	require.Equal(t, route.HandlerFailed, got.reason)
	require.True(t, route.MayHaveRun(route.ReplyError(got.reason, []byte(got.payload))))
	require.Equal(t, route.OK, r.tell("e", "y"))
	require.Equal(t, []string{"e new", "e got x", "e got y"}, r.takeLog())
}

// TestAroundErrorThatPanics: an error with methods that panic turns its message away all the same.
func TestAroundErrorThatPanics(t *testing.T) {
	r := newRig(t, Blocking, with(func(*Context, []byte, func([]byte) error) error { return unwrapsBadly{} }))
	got := r.ask("e", "x")
	err := route.ReplyError(got.reason, []byte(got.payload))
	require.ErrorIs(t, err, route.ErrHandler)
	require.False(t, route.MayHaveRun(err))
}

type unwrapsBadly struct{}

func (unwrapsBadly) Error() string { return "bad" }
func (unwrapsBadly) Unwrap() error { panic("no") }

// TestAroundNextTwice: the handler is called once for a message, whatever is done with next.
func TestAroundNextTwice(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		var kept func([]byte) error
		var elsewhere, twice, later error
		r := again(with(func(_ *Context, p []byte, next func([]byte) error) error {
			if kept != nil {
				later = kept(p)
				return next(p)
			}
			kept = next
			over := make(chan struct{})
			go func() { defer close(over); elsewhere = next(p) }()
			<-over
			err := next(p)
			twice = next(p)
			return err
		}))
		require.Equal(t, route.OK, r.tell("e", "x"))
		require.ErrorIs(t, elsewhere, ErrContextKept)
		require.ErrorIs(t, twice, ErrNextTwice)
		require.ErrorIs(t, kept([]byte("z")), ErrContextKept, "its call is over")
		require.Equal(t, route.OK, r.tell("e", "y"))
		require.ErrorIs(t, later, ErrNextTwice)
		require.Equal(t, []string{"e new", "e got x", "e got y"}, r.takeLog())
	})
}

// TestAroundKeptNext: a next that was not called is none of another message's.
func TestAroundKeptNext(t *testing.T) {
	var kept func([]byte) error
	var later error
	r := newRig(t, Blocking, with(func(_ *Context, p []byte, next func([]byte) error) error {
		if kept == nil {
			kept = next
			panic("oops")
		}
		later = kept(p)
		return nil
	}), func(typ *Type) { typ.Restart = RestartResume })
	require.Equal(t, route.OK, r.tell("e", "x"))
	require.Equal(t, route.OK, r.tell("e", "y"))
	require.ErrorIs(t, later, ErrNextTwice)
	require.Equal(t, []string{"e new"}, r.takeLog())
}

// TestAroundPanics: a panic of an Around is one of the handler, before the handler was called and after.
func TestAroundPanics(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(with(func(_ *Context, p []byte, next func([]byte) error) error {
			if string(p) == "before" {
				panic("oops")
			}
			err := next(p)
			if string(p) == "after" {
				panic("oops")
			}
			return err
		}))
		for _, p := range []string{"before", "after"} {
			r.takeLog()
			require.Equal(t, answer{42, route.HandlerPanic, "oops"}, r.ask("e", p))
			require.Equal(t, Panicked, r.f.incidents[len(r.f.incidents)-1].Kind)
		}
		require.Equal(t, route.OK, r.tell("e", "x"))
		require.Equal(t, []string{"e new", "e got after", "e new", "e got x"}, r.takeLog(), "each panic ends an instance")
		require.EqualValues(t, 2, r.Stats().Panics)
	})
}

// TestAroundLeavesOwnMessagesAlone: timers and the stop message are the entity's own; nobody has to pass them.
func TestAroundLeavesOwnMessagesAlone(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(with(func(_ *Context, p []byte, next func([]byte) error) error {
			if string(p) != "begin" {
				return errTest
			}
			return next(p)
		}), func(typ *Type) { typ.StopMessage = []byte("last") })
		r.f.receive = func(c *Context, p []byte) error {
			if string(p) == "begin" {
				return c.After(time.Second, []byte("timer"))
			}
			return nil
		}
		require.Equal(t, route.OK, r.tell("e", "begin"))
		r.tickTo(2 * time.Second)
		require.Equal(t, route.OK, r.tell("e", "other"))
		r.Stop(r.f.now, StopMoved)
		r.runAll()
		require.Equal(t, []string{"e new", "e got begin", "e got timer", "e got last", "e stop"}, r.takeLog())
	})
}

// TestEnterSend: what is around a send is called in order, and hears the outcome in the reverse one; the first refusal
// ends it, and a panic is one.
func TestEnterSend(t *testing.T) {
	var log []string
	guard := func(name string, f func()) (err error) {
		defer func() {
			if v := recover(); v != nil {
				log = append(log, name+" panics")
				err = fmt.Errorf("%s: %v", name, v)
			}
		}()
		f()
		return nil
	}
	of := func(name string, do func(m *Sending) error) Around {
		return Around{Send: func(m *Sending) (func([]byte, error), error) {
			log = append(log, name)
			if err := do(m); err != nil {
				return nil, err
			}
			return func(reply []byte, err error) { log = append(log, fmt.Sprintf("%s: %s %v", name, reply, err)) }, nil
		}}
	}
	plain := func(*Sending) error { return nil }
	header := func(m *Sending) error { m.Headers = append(slices.Clone(m.Headers), 'h'); return nil }
	list := []Around{of("a", header), {}, {Send: func(*Sending) (func([]byte, error), error) { return nil, nil }},
		of("b", header)}
	m := &Sending{ID: "e", Context: context.Background()}
	done, err := EnterSend(list, m, guard)
	require.NoError(t, err)
	require.Equal(t, "hh", string(m.Headers))
	done([]byte("r"), nil)
	require.Equal(t, []string{"a", "b", "b: r <nil>", "a: r <nil>"}, log)

	for _, c := range []struct {
		do    func(m *Sending) error
		is    error
		calls []string
	}{
		{func(*Sending) error { return errTest }, errTest, []string{"a", "b", "a:  test error"}},
		{func(*Sending) error { panic("oops") }, route.ErrPanic,
			[]string{"a", "b", "Around.Send panics", "a:  kith: handler panicked: Around.Send: oops"}},
	} {
		log = nil
		_, err := EnterSend([]Around{of("a", plain), of("b", c.do), of("c", plain)}, m, guard)
		require.ErrorIs(t, err, c.is)
		require.False(t, route.MayHaveRun(err))
		require.Equal(t, c.calls, log)
	}
	log = nil
	done, err = EnterSend([]Around{of("a", plain), {Send: func(*Sending) (func([]byte, error), error) {
		return func([]byte, error) { panic("oops") }, nil
	}}}, m, guard)
	require.NoError(t, err)
	done(nil, errTest)
	require.Equal(t, []string{"a", "Around.done panics", "a:  test error"}, log)
}

// TestAroundIsBounded: and a type that has none calls nothing.
func TestAroundIsBounded(t *testing.T) {
	typ := Type{Name: "a", New: func(string, route.Fence) Handler { return nil }}.WithDefaults()
	require.False(t, SendsAround(&typ))
	typ.Around = make([]Around, MaxAround)
	require.NoError(t, typ.Validate())
	require.False(t, SendsAround(&typ))
	typ.Around = append(typ.Around, Around{Send: func(*Sending) (func([]byte, error), error) { return nil, nil }})
	require.True(t, SendsAround(&typ))
	require.ErrorContains(t, typ.Validate(), "Around has 17 entries, must have at most 16")
}

// TestDispatchGoesAround: the short way is not taken past what is around a message; a Send alone takes nobody off it.
func TestDispatchGoesAround(t *testing.T) {
	for _, c := range []struct {
		around Around
		short  bool
	}{
		{Around{Receive: func(*Context, []byte, func([]byte) error) error { return errTest }}, false},
		{Around{Send: func(*Sending) (func([]byte, error), error) { return nil, nil }}, true},
	} {
		r := newRig(t, Worker, func(typ *Type) { typ.Around = []Around{c.around} })
		r.Use(&CallFrame{})
		require.Equal(t, route.OK, r.tell("e", "x"))
		e := r.Foresee(HashID([]byte("e")))
		require.NotNil(t, e)
		r.takeLog()
		ok, _ := r.Dispatch(0, e, nil, 0, []byte("y"))
		require.Equal(t, c.short, ok)
		require.Equal(t, c.short, len(r.takeLog()) == 1)
	}
}

// TestNoAroundAllocatesNothing: a message to an entity of a type that has none.
func TestNoAroundAllocatesNothing(t *testing.T) {
	for _, mode := range []Mode{Inline, Worker} {
		s, ids := benchShard(mode, 1)
		m, f := &Message{ID: ids[0], Payload: make([]byte, 64)}, &RunFrame{}
		require.Zero(t, testing.AllocsPerRun(100, func() { deliverAndRun(s, m, f) }))
	}
}

// BenchmarkAround is BenchmarkDeliver to a type that has one thing around its messages.
func BenchmarkAround(b *testing.B) {
	s, ids := benchShard(Worker, 1000)
	s.ways |= enclosed
	s.typ.Around = []Around{{Receive: func(_ *Context, p []byte, next func([]byte) error) error { return next(p) }}}
	m, f := &Message{Payload: make([]byte, 64)}, &RunFrame{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m.ID = ids[i%len(ids)]
		deliverAndRun(s, m, f)
	}
}
