// Calls into user code: New, Open, Receive, Stop and Keep.Run, each guarded against panics and against runtime.Goexit,
// the answers that asks are owed, and the beginnings of an entity that is kept alive.
//
// A call that ends its goroutine never comes back to its caller. So what follows a call that did not return, for
// whichever reason, is done where a panic is recovered, in the deferred function, which runs in any case.

package entity

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/route"
)

// receive gives one message to the entity, which has an instance, and sees to it that an ask is answered or detached.
// The context has been opened.
func (c *Context) receive(payload []byte) {
	c.tally.Delivered++
	switch {
	case !c.fired:
	case c.told == nil:
		c.tally.TimersHandled++
	default:
		c.tally.EndsHandled++
	}
	if err, returned := c.call(payload); returned {
		c.outcome(err, nil)
	}
}

// outcome sees to what a call of Receive has left: err is what it returned, text is the panic's, nil if there was none.
func (c *Context) outcome(err error, text []byte) {
	if c.from != nil && !c.answered && !c.detached {
		c.spent = true // perhaps it was kept, to answer later
	}
	if c.given {
		c.given = false
		if !c.detached {
			c.s.runtime.Answered(c.from, c.corr)
		}
	}
	switch {
	case text != nil:
		c.answer(route.HandlerPanic, text)
		if c.s.typ.Restart != RestartResume {
			c.endInstance(EndedPanicked)
			c.tally.Crashes++
			c.crashed = c.s.typ.minds()
			return
		}
	case err != nil && c.aside:
		c.tally.Failed++
		c.answer(route.HandlerNamed, turnedAway(err))
	case err != nil:
		c.tally.Failed++
		c.answer(failure(err))
	case c.from != nil && !c.answered && !c.detached:
		if c.failed != nil {
			c.answer(route.ReasonOf(c.failed), errorText(fmt.Errorf("the reply: %w", c.failed)))
		} else {
			c.tally.NoReply++
			c.answer(route.NoReply, nil)
		}
	}
	if !c.passivate {
		return
	}
	c.tally.Passivated++
	if c.s.typ.Mode == Blocking {
		c.e.act.step = parting // a call of its own: the node may have suspended itself during this one
		return
	}
	if c.sayLast(StopPassivated) {
		c.halt(StopPassivated)
	}
}

// answer answers the ask unless it was answered before. A detached ask is answered too: this is an error or a panic,
// and the holder of the token can only be late.
func (c *Context) answer(reason route.Reason, text []byte) {
	if c.from == nil || c.answered {
		return
	}
	c.answered = true
	if c.from.Reply(c.corr, reason, text) != nil {
		c.tally.AnswersLost++
	}
}

// call runs Receive. When that did not return its outcome has been seen to.
func (c *Context) call(payload []byte) (err error, returned bool) {
	defer func() {
		leaveCall(c)
		if v := recover(); v != nil || !returned {
			c.outcome(nil, c.caught(v))
		}
	}()
	enterCall(c)
	if c.s.ways&enclosed != 0 && !c.fired {
		c.aside = true
		return through(c.s.typ.Around, c, payload), true
	}
	return c.e.h.Receive(c, payload), true
}

// through calls Receive with what is around it.
func through(around []Around, c *Context, payload []byte) error {
	for len(around) > 0 && around[0].Receive == nil {
		around = around[1:]
	}
	if len(around) == 0 {
		c.aside = false
		return c.e.h.Receive(c, payload)
	}
	called := false
	defer func() { called = true }() // next may have been kept, for another message of c
	return around[0].Receive(c, payload, func(payload []byte) error {
		switch {
		case kept(c):
			return whose(c)
		case called:
			return ErrNextTwice
		}
		called = true
		return through(around[1:], c, payload)
	})
}

// makeInstance runs New or Open. If that fails the message is over, and the next one tries again.
func (c *Context) makeInstance(payload []byte) (ok bool) {
	var failed []byte
	defer func() {
		if !ok {
			c.noInstance(failed, payload)
		}
	}()
	return instantiate(c, &failed)
}

// instantiate makes the instance by New or Open, and gives it the state that waits for it. When there is none, failed
// becomes why.
func instantiate(c *Context, failed *[]byte) bool {
	c.e.instance++ // timers that Open sets are the new one's
	h := c.newHandler(failed)
	if h == nil || !inherit(c, h, failed) {
		return false
	}
	c.e.h = h
	c.tally.Made++
	return true
}

// newHandler returns what New or Open makes, or nil, and failed becomes why that is nothing. The ask is kept out of
// Open's hands.
func (c *Context) newHandler(failed *[]byte) (h Handler) {
	from, returned := c.from, false
	c.from = nil
	enterCall(c)
	defer func() {
		leaveCall(c)
		c.from, c.passivate = from, false
		if v := recover(); v != nil || !returned {
			h, *failed = nil, c.caught(v)
		}
	}()
	if c.s.typ.Mode == Blocking {
		if p := c.e.act.passage; p != nil {
			p.tried = true
		}
	}
	if c.s.typ.New != nil {
		h = c.s.typ.New(c.e.id, c.s.fence)
		*failed = []byte("New returned no handler")
	} else if made, err := c.s.typ.open(c); err != nil {
		*failed = errorText(err)
	} else {
		h, *failed = made, []byte("Open returned no handler")
	}
	if h == nil {
		c.report(Incident{Kind: NewFailed, Text: string(*failed)})
	}
	returned = true
	return h
}

// noInstance ends the message for which no instance could be made.
func (c *Context) noInstance(text, payload []byte) {
	ask := c.from != nil
	c.e.h = nil
	c.renew()
	c.tally.Crashes++
	c.tally.NotMade++
	c.answer(route.NewFailed, text)
	c.s.runtime.Unhandled(c.e, route.NewFailed, ask, payload)
	c.crashed, c.unmade = c.s.typ.minds(), true
}

// KeepAlive begins the entity of k now, and again when it has failed or let itself go, as long as the shard s is
// served. It is called once, as a verb of s, when the shard begins to live. serving returns a context that ends when
// the shard is being stopped or lost and when the node is suspended; one that was made later has ended.
func KeepAlive(s *Shard, now time.Duration, k *Keep, serving func() context.Context) {
	invariant.Check(s.typ.minds() && s.typ.RestartBackoff > 0 && (k.Run == nil || s.typ.Mode == Blocking),
		"entity: a type whose entities cannot be kept alive")
	s.advance(now)
	s.keep, s.serving = k, serving
	beginKept(s)
}

// beginKept begins the entity that is kept alive, unless it lives, rests, or there is none.
func beginKept(s *Shard) {
	if s.keep == nil || s.phase != serving {
		return
	}
	e := keptEntity(s)
	switch {
	case e == nil:
	case e.place&hurt != 0 && s.rests(e), s.going:
	case s.typ.Mode != Blocking && e.h == nil:
		began, c := s.enter(e)
		c.timerRoom = MaxTimers - e.running()
		c.open(nil, 0)
		begin(c)
		s.leave(c, began)
		s.handled(c, e)
	case s.keep.Run != nil, e.h == nil && e.act == nil: // else a message waits, for which it is made
		s.going = s.keep.Run != nil
		s.put(e, record{from: begins{}}, nil, nil, scant)
	}
}

// keptEntity returns the entity that is kept alive, made if need be; nil when there is no room.
func keptEntity(s *Shard) *Entity {
	id := s.keep.ID(s.id)
	e := s.table.find(HashID([]byte(id)), []byte(id))
	if e == nil && len(s.table.dense) < MaxEntities { // else: nobody else is in such a shard
		e = s.table.add(id)
		e.used = s.now
	}
	return e
}

// begin makes the instance of an entity that is kept alive, or is its life, or of one that is remembered or that got
// its state.
func begin(c *Context) {
	u := &c.s.upkeep
	st := brought(c)
	switch {
	case c.closing && (st == nil || asked(c) && c.s.moving.room > 0):
		return // the shard is being stopped; a state goes on with it
	case u.keep == nil && st == nil && c.s.typ.Remembered == nil:
		return
	case u.keep != nil && u.keep.Run != nil:
		live(c, u)
		return
	case c.e.h != nil:
		return // a message came first
	}
	made := false
	defer func() {
		if !made {
			c.endInstance(EndedPanicked)
			c.tally.Crashes++
			c.crashed = c.s.typ.minds()
		}
	}()
	var failed []byte
	made = instantiate(c, &failed)
}

// live is one life of an entity that has a Run. Whatever ends it, the entity rests then; the rest grows when it failed.
func live(c *Context, u *upkeep) {
	c.crashed, c.calm = true, true
	ctx := u.serving()
	if ctx.Err() != nil {
		return
	}
	c.tally.Made++
	switch err, returned := callRun(ctx, c, u.keep.Run); {
	case !returned:
	case err == nil || ctx.Err() != nil:
		c.tally.Stopped++
	default:
		c.report(Incident{Kind: DaemonFailed, Text: string(errorText(err))})
		lifeFailed(c)
	}
}

// lifeFailed says that the life of an entity that has a Run was a failure.
func lifeFailed(c *Context) {
	c.calm = false
	c.tally.Crashes++
}

// callRun calls Run. When that did not return, the life was a failure and has been counted.
func callRun(ctx context.Context, c *Context, run func(context.Context, *Context) error) (err error, returned bool) {
	c.s.runtime.Calling(c.e, RunCall)
	enterCall(c)
	defer func() {
		leaveCall(c)
		c.s.runtime.Returned(c.e, RunCall)
		if v := recover(); v != nil || !returned {
			c.caught(v)
			lifeFailed(c)
		}
	}()
	return run(ctx, c), true
}

// sayLast gives an instance that stops the type's StopMessage, if there is one, and reports whether the instance lives
// on for its Stop. It is a stop call as Stop is: it has the same time, and is named where it hangs.
func (c *Context) sayLast(why StopReason) (lives bool) {
	typ := c.s.typ
	if typ.StopMessage == nil {
		return true
	}
	c.from, c.halting, c.fired, c.why = nil, true, false, why
	c.limit, c.headers, c.sends = 0, nil, nil
	returned := false
	defer func() {
		leaveCall(c)
		if v := recover(); v != nil || !returned {
			c.caught(v)
			if lives = typ.Restart == RestartResume; !lives {
				c.parted = c.parted || why == StopPassivated
				c.tally.Crashes++
				c.endInstance(causeOf(why))
			}
		}
		c.s.runtime.Returned(c.e, StopCall)
		c.halting, c.passivate = false, false
	}()
	c.s.runtime.Calling(c.e, StopCall)
	enterCall(c)
	if err := c.e.h.Receive(c, bytes.Clone(typ.StopMessage)); err != nil {
		c.tally.Failed++
	}
	returned = true
	return true
}

// halt runs Stop and ends the instance.
func (c *Context) halt(why StopReason) {
	c.from, c.halting, c.fired, c.why = nil, true, false, why
	c.limit, c.headers, c.sends = 0, nil, nil // what it stops for is not the last message
	c.parted = c.parted || why == StopPassivated
	returned := false
	defer func() {
		leaveCall(c)
		if v := recover(); v != nil || !returned {
			c.caught(v)
		}
		c.s.runtime.Returned(c.e, StopCall)
		c.halting = false
		c.tally.Stopped++
		c.endInstance(causeOf(why))
	}()
	c.s.runtime.Calling(c.e, StopCall)
	enterCall(c)
	c.e.h.Stop(c)
	returned = true
}

// endInstance forgets the handler and the timers that it set.
func (c *Context) endInstance(why EndCause) {
	c.ends(why)
	c.e.h = nil
	c.renew()
}

// exited is what is reported of a call that has ended its goroutine: the testing package does in FailNow.
const exited = "runtime.Goexit was called"

// caught counts and reports a call that did not return, and returns what the caller of an ask gets. v is what recover
// returned, nil when the call has ended its goroutine.
func (c *Context) caught(v any) []byte {
	if v == nil {
		v = exited
	}
	if broken, ok := v.(*invariant.Violation); ok {
		panic(broken) // ours, not the user's: going on would break a promise
	}
	c.tally.Panics++
	said := fmt.Sprint(v)
	text := said + "\n" + string(debug.Stack())
	c.report(Incident{Kind: Panicked, Text: text[:min(len(text), MaxIncidentText)]})
	return []byte(said[:min(len(said), MaxErrorText)])
}

func (c *Context) slow(took time.Duration) {
	c.tally.Slow++
	c.report(Incident{Kind: Slow, Took: took})
}

func (c *Context) report(i Incident) {
	c.s.report(c.e, i)
}

func (s *Shard) report(e *Entity, i Incident) {
	i.Type, i.ID, i.Shard, i.Mode = s.typ.Name, e.id, s.id, s.typ.Mode
	s.runtime.Report(i)
}

// errorText returns the bounded text of an error. Error is user code too and may panic.
func errorText(err error) (text []byte) {
	defer func() {
		if recover() != nil {
			text = fmt.Appendf(nil, "%T", err)
		}
	}()
	if err == nil {
		return nil
	}
	s := err.Error()
	return []byte(s[:min(len(s), MaxErrorText)])
}

// BadPayload returns an error by which Receive says that it could not read a message and has done nothing with it: an
// caller of an ask gets route.ErrBadPayload with the text of err, and so knows that it was not executed. err must not
// be nil. An error that wraps it is an error like any other.
func BadPayload(err error) error { return &badPayload{err} }

type badPayload struct{ error }

// Unwrap returns what it is, and why.
func (b *badPayload) Unwrap() []error { return []error{route.ErrBadPayload, b.error} }

// failure is how an ask is answered when Receive returned err.
func failure(err error) (why route.Reason, payload []byte) {
	text := errorText(err)
	if _, ok := err.(*badPayload); ok { // wrapped it may be about another message
		return route.BadPayload, text
	}
	if payload, ok := named(err, text); ok {
		return route.HandlerNamed, payload
	}
	return route.HandlerFailed, text
}

// turnedAway is how an ask is answered that an Around has turned away with err.
func turnedAway(err error) (payload []byte) {
	text := errorText(err)
	defer func() {
		if recover() != nil {
			payload = route.TurnedAway(nil, text)
		}
	}()
	return route.TurnedAway(err, text)
}

// named is route.Named of an error with methods that may panic.
func named(err error, text []byte) (payload []byte, ok bool) {
	defer func() {
		if recover() != nil {
			payload, ok = nil, false
		}
	}()
	return route.Named(err, text)
}
