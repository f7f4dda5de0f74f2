// Running a Blocking entity: Begin and End under the shard's lock, Work without it.

package entity

import (
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/route"
)

// Begin starts a run of an entity that Ready returned, or for which End said again. It reports whether there is work;
// if not the runtime forgets the entity. The shard's lock is held.
func (e *Entity) Begin(now time.Duration) bool {
	a := e.act
	if a == nil {
		return false // the shard was abandoned
	}
	s := a.s
	s.advance(now)
	if a.paced || e.place&hurt != 0 || s.moving.in != nil {
		s.news = true
	}
	if e.place&hurt != 0 && s.rests(e) { // it was ready when its permission was taken away
		waitOn(s, e)
		return false
	}
	invariant.Check(a.phase != begun && a.phase != held, "entity: an entity is run twice at once, or while it rests")
	if a.now == nil && a.head != nil {
		a.now, a.pos = a.shift(), 0
	}
	if a.now != nil {
		// Messages that came after the decision to passivate revoke it: nothing was called yet.
		a.halt = false
		if !a.begins {
			s.unpace(a)
		}
	}
	invariant.Check(a.now != nil || a.halt || a.step >= parting, "entity: an entity with nothing to do is ready")
	if a.halt && e.h != nil && s.phase == serving && !s.moving.cut {
		s.stats.Passivated++
	}
	a.phase, a.began = begun, s.now
	a.room = int8(MaxTimers - e.running())
	a.closing = s.phase != serving
	if a.closing && a.step != said { // else it got the reason already
		a.why = s.why // also of one that was to go because it was idle
	}
	if s.moving.in != nil || s.moving.asked {
		passIn(s, e)
	}
	return true
}

// Enter gives the run of e that has begun, and has not called Work, the frame of the goroutine that is to call Work.
// A run that is given none makes its own. now is what Runtime.Now may be taken for until the first call, which must
// follow at once; zero means that it is asked.
func (e *Entity) Enter(f *RunFrame, now time.Duration) {
	a := e.act
	a.frame, f.now = f, now
	c := f.context()
	s := a.s
	c.ID, c.Fence, c.Shard = e.id, s.fence, s.id
	c.s, c.e, c.tally = s, e, &f.tally
	c.timerRoom, c.closing = int(a.room), a.closing
}

// Work makes one call into user code: it makes the instance for the next message of the run, handles the message, or
// stops the instance. It reports whether the run has more. The runtime calls it without the shard's lock until it
// returns false, or ends the run earlier: what is left comes first in the next one. User code may block here, so the
// runtime looks before each call whether a handler may still be called: a node may have suspended itself meanwhile.
// A handler that calls runtime.Goexit ends the goroutine of Work, which does not return then: the call counts as one
// that panicked, and the runtime ends the run on another one.
func (e *Entity) Work() (more bool) {
	if e.act.s.ways&watched != 0 {
		return e.watched()
	}
	return e.work()
}

func (e *Entity) work() (more bool) {
	a := e.act
	if a.frame == nil {
		e.Enter(&RunFrame{}, 0)
	}
	c := a.frame.context()
	step, now := a.step, a.frame.now
	a.step, a.frame.now = between, 0
	switch {
	case step == parting && c.s.typ.StopMessage != nil:
		a.step = parted
		c.sayLast(StopPassivated)
		return true
	case step == parting, step == parted:
		if e.h != nil {
			c.halt(StopPassivated)
		}
		return a.more()
	case step >= handed, a.now == nil:
		return a.part(e, c, step)
	case step == between:
		a.pos++
	}
	r := a.now.record(a.pos - 1)
	payload, headers := a.now.message(a.pos - 1)
	switch timers, limit := r.instance() != 0, a.limit(r, now); {
	case r.isBegin():
		c.open(nil, 0)
		begin(c)
	case timers && !c.openOwn(r):
	case limit < 0:
		a.frame.tally.Expired++
		if r.from.Reply(r.corr, route.Expired, nil) != nil {
			a.frame.tally.AnswersLost++
		}
	default:
		if !timers {
			c.open(r.from, r.corr)
			c.limit, c.headers = limit, headers
		}
		if e.h != nil {
			c.receive(payload)
		} else if c.makeInstance(payload) {
			a.step = made
		}
		c.from = nil
		if a.s.poisons && a.step != made {
			poison(c)
		}
	}
	return a.more() && !c.crashed
}

// part makes the next call of the end of an instance that has nothing left to handle. Each is a call of its own, as
// after a message, also when it does not return.
func (a *activity) part(e *Entity, c *Context, step runStep) (more bool) {
	if step < handed && e.h != nil && c.s.typ.StopMessage != nil {
		a.step = said
		c.sayLast(a.why)
		return true
	}
	if h, ok := asks(c, a.why); ok && step != handed {
		a.step = handed
		handOver(c, h, a.why)
		return true
	}
	a.halt = false
	if e.h != nil {
		c.halt(a.why)
	}
	return a.more()
}

// more reports whether the run has a call to make, that of an idle entity's stop left aside.
func (a *activity) more() bool {
	return a.step != between || a.now != nil && a.pos < a.now.len()
}

// limit returns the limit of a message that is next, zero when there is none, below zero when it is over. now is zero
// when nobody has looked. The run may have waited: what its begin has seen of the time counts too.
func (a *activity) limit(r *record, now time.Duration) time.Duration {
	if r.from == nil || r.mark == 0 || r.instance() != 0 {
		return 0
	}
	if now == 0 { // a clock costs as much as all else here
		now = a.s.runtime.Now()
	}
	now = max(a.began, now)
	if l := limitOf(r.mark, now); l > now {
		return l
	}
	return -1
}

// watched is Work for a type with calls that are timed.
func (e *Entity) watched() (more bool) {
	s := e.act.s
	s.runtime.Calling(e, StepCall)
	began := s.runtime.Slewed()
	defer func() { // also when it ends the goroutine
		if took := s.runtime.Slewed() - began; took > s.slow {
			e.act.frame.ctx.slow(took)
		}
		s.runtime.Returned(e, StepCall)
	}()
	return e.work()
}

// End ends the run and reports whether the entity must be run again: the runtime calls Begin for it, now or after
// others had their turn. If not, the entity is idle or gone and the runtime forgets it. The shard's lock is held. Other
// entities may have become ready.
func (e *Entity) End(now time.Duration) (again bool) {
	a := e.act
	invariant.Check(a != nil && a.phase == begun, "entity: the end of a run that did not begin")
	s := a.s
	s.advance(now)
	e.used = s.now
	a.phase = resting
	quiet := s.phase == serving && !s.moving.cut && !a.paced && !a.begins && !a.spoiled && a.passage == nil &&
		(a.now == nil || !a.now.timers)
	if a.now != nil && a.pos == a.now.len() && a.step != made {
		s.finish(e, a.now)
		a.now = nil
	}
	if a.begins {
		a.begins = false
		s.unpace(a)
	}
	if a.passage != nil {
		passOut(s, a)
	}
	if !leaveFrame(s, e) || !quiet || e.place&hurt != 0 || e.h == nil {
		s.news = true
	}
	if a.spoiled {
		spoil(s, e)
	}
	if s.moving.cut && s.phase != abandoned {
		takeAll(s, e)
	}
	switch {
	case s.phase == abandoned:
		s.discard(e)
		return false
	case e.place&hurt != 0 && s.rests(e):
		waitOn(s, e)
		return false
	case a.now != nil || a.head != nil || a.step >= parting:
		return true
	case e.h == nil && e.place&hurt != 0:
		s.deactivate(e) // its record is kept
		beginKept(s)
		recallAgain(s, s.crashes[e])
		return false
	case e.h == nil:
		s.remove(e)
		s.pace()
		beginKept(s)
		return false
	case a.halt:
		return true
	case s.phase == stopping:
		a.halt, a.why = true, s.why
		return true
	}
	s.deactivate(e)
	return false
}

// leaveFrame ends what the run of e has to do with its frame: what the calls wished for is carried out, and counted. It
// reports whether there was nothing but to count.
func leaveFrame(s *Shard, e *Entity) (quiet bool) {
	f := e.act.frame
	if f == nil { // it made no call
		if s.phase != serving {
			s.dropTimers(e, true, false)
		}
		watchersCome(s, e)
		return true
	}
	e.act.frame = nil
	c, t := f.ctx, &f.tally
	quiet = !c.touched && !c.crashed && !c.parted
	if c.touched || s.phase != serving {
		s.carryOut(c, e)
	}
	s.stats.Delivered += t.Delivered
	if t.Delivered = 0; *t != (Tally{}) {
		s.stats.Tally.add(t)
		*t = Tally{}
	}
	part(s, e, c)
	if e.place&seen != 0 {
		if c.crashed && s.mute() {
			runEnded(s, e, c)
		}
		watchersCome(s, e)
	}
	if c.crashed {
		s.crash(e, c)
	}
	c.s, c.headers, c.told = nil, nil, nil // it may be long before the goroutine has another run
	return quiet
}

// waitOn lets what waits for an entity that rests wait on.
func waitOn(s *Shard, e *Entity) {
	watchersCome(s, e)
	if a := e.act; a.now == nil && a.head == nil {
		s.deactivate(e)
	} else {
		a.phase = held
	}
}

// Running yields the Blocking entities with a run that has begun and not ended. The shard's lock is held.
func (s *Shard) Running(yield func(*Entity) bool) {
	for _, e := range s.table.dense {
		if e.act != nil && e.act.phase == begun && !yield(e) {
			return
		}
	}
}

// discard drops what waits for e without calling anything, answers the asks among it, and removes e.
func (s *Shard) discard(e *Entity) {
	leaveState(s, e)
	if e.act != nil {
		s.discardNow(e, route.Abandoned)
		s.discardWaiting(e, route.Abandoned)
	}
	s.remove(e)
}

// discardNow drops what is left of the batch in hand, as discardWaiting does the others.
func (s *Shard) discardNow(e *Entity, why route.Reason) (tells, asks int) {
	a := e.act
	if a.now == nil {
		return 0, 0
	}
	if a.step == made { // LeaveBehind, if it came before, has taken it for the call that had not returned
		tells, asks = s.discardBatch(e, a.now, a.pos-1, a.pos, why)
		a.step = between
	}
	if a.told {
		a.pos = a.now.len()
	}
	t, q := s.discardBatch(e, a.now, a.pos, a.now.len(), why)
	s.finish(e, a.now)
	a.now = nil
	return tells + t, asks + q
}

// discardWaiting drops what waits for e behind the batch in hand, answers the asks among it with the reason, and
// returns how many there were.
func (s *Shard) discardWaiting(e *Entity, why route.Reason) (tells, asks int) {
	a := e.act
	for b := a.shift(); b != nil; b = a.shift() {
		t, q := s.discardBatch(e, b, 0, b.len(), why)
		s.finish(e, b)
		tells, asks = tells+t, asks+q
	}
	return tells, asks
}

func (s *Shard) discardBatch(e *Entity, b *batch, from, to int, why route.Reason) (tells, asks int) {
	for i := from; i < to; i++ {
		r := b.record(i)
		switch {
		case r.isBegin():
			continue
		case r.instance() != 0:
			r.drops(&s.stats.Tally)
			continue
		}
		if r.from == nil {
			tells++
		} else {
			asks++
			if r.from.Reply(r.corr, why, nil) != nil {
				s.stats.AnswersLost++
			}
		}
		if why == route.Abandoned {
			s.stats.Abandoned++
		}
		payload, _ := b.message(i)
		s.runtime.Unhandled(e, why, r.from != nil, payload)
	}
	return tells, asks
}

// remove forgets an entity that has no instance any more, or one that is not asked.
func (s *Shard) remove(e *Entity) {
	unseen(s, e, EndedLost)
	s.dropTimers(e, true, true)
	if e.act != nil {
		s.deactivate(e)
	}
	s.table.remove(e)
}
