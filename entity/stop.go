// Time and the end of a shard: Tick, idle entities, Stop and Abandon.

package entity

import (
	"time"

	"github.com/kith-io/kith/route"
)

const (
	lookAtOnce  = 1024 // entities that one Tick looks at for idleness
	stopAtOnce  = 1024 // Worker and Inline entities that one step stops
	haltingMost = 128  // idle Blocking entities that are being stopped at a time: each has a goroutine then

	lookAgain = time.Millisecond // when so many are being stopped that looking for more must wait
)

// Next returns when Tick has something to do.
func (s *Shard) Next() (deadline time.Duration, ok bool) {
	s.news = false
	if s.phase != serving {
		return s.now, s.phase == stopping && s.typ.Mode != Blocking && len(s.table.dense) > 0
	}
	if len(s.timers.heap) > 0 {
		deadline, ok = s.timers.heap[0].at, true
	}
	if s.moving.first != nil && !s.withheld || s.watching != nil && len(s.watching.told) > 0 {
		return s.now, true
	}
	if at := nextBegin(s); s.moving.begins() && !s.withheld && (!ok || at < deadline) {
		deadline, ok = at, true
	}
	if at := nextBegin(s); s.recalled.recalls() && (!ok || at < deadline) {
		deadline, ok = at, true
	}
	if s.typ.IdleAfter > 0 && len(s.table.dense) > 0 && (!ok || s.sweepAt < deadline) {
		deadline, ok = s.sweepAt, true
	}
	return deadline, ok
}

// Tick delivers timers that are due and stops entities that are idle, or goes on stopping the shard. It does a bounded
// part of that: when more is to be done, Next says so.
func (s *Shard) Tick(now time.Duration) {
	s.advance(now)
	switch s.phase {
	case serving:
		if !s.withheld {
			takeUp(s)
			beginStates(s, stopAtOnce)
		}
		s.fire()
		tellEnds(s)
		beginRecalled(s, recallAtOnce)
		if s.typ.IdleAfter > 0 && s.now >= s.sweepAt {
			s.sweep()
		}
		s.trim()
	case stopping:
		s.pace()
	}
}

// sweep looks at entities from the end of the table to its begin, over as many Ticks as it takes, and stops those that
// are idle. Looking costs less than keeping them in order of use would cost every message.
func (s *Shard) sweep() {
	if s.cursor < 0 {
		s.cursor, s.sweepTo = len(s.table.dense)-1, s.now+s.typ.IdleAfter
	}
	for n := 0; s.cursor >= 0 && n < lookAtOnce; n++ {
		s.cursor = min(s.cursor, len(s.table.dense)-1)
		if s.cursor < 0 {
			break
		}
		e := s.table.dense[s.cursor]
		idle := e.used + s.typ.IdleAfter
		switch {
		case e.act != nil || e.place&hurt != 0: // busy: becomes idle later than any that is idle now
		case idle > s.now:
			s.sweepTo = min(s.sweepTo, idle)
		case s.typ.Mode != Blocking:
			s.stats.Passivated++
			s.halt(e, StopIdle)
		case s.halting >= haltingMost:
			s.sweepAt = s.now + lookAgain
			return
		default:
			s.haltLater(e, StopIdle)
		}
		s.cursor--
	}
	s.sweepAt = s.now
	if s.cursor < 0 {
		s.sweepAt = max(s.sweepTo, s.now+s.typ.IdleAfter/4)
	}
}

// haltLater makes an idle Blocking entity ready to be stopped.
func (s *Shard) haltLater(e *Entity, why StopReason) {
	a := s.activate(e)
	a.halt, a.paced, a.why = true, true, why
	s.halting++
}

// unpace ends the part of a in the number of entities being stopped.
func (s *Shard) unpace(a *activity) {
	if a.paced {
		a.paced = false
		s.halting--
	}
}

// Stop begins the end of the shard, StopMoved or StopLeaving: nothing new is accepted, running timers are dropped, what
// waits is worked off, or cut off where no entity may live (Withhold), then every entity's Stop is called, behind its
// HandOver if AskForState came before. Tick and the runs of Blocking entities carry it on until Stopped. Repeating it
// is harmless.
func (s *Shard) Stop(now time.Duration, why StopReason) {
	s.advance(now)
	if s.phase != serving && s.phase != cut {
		return
	}
	if s.withheld {
		Cut(s, now)
	}
	if s.phase == serving {
		takeUp(s)
	}
	if !s.withheld && (!s.moving.asked || s.moving.room == 0) {
		beginStates(s, MaxEntities) // nobody else will: their stop call is all that is left to them
	}
	s.phase, s.why = stopping, why
	s.lease.end()
	s.dropAll()
	s.cursor = len(s.table.dense) - 1
	s.pace()
}

// pace stops the next entities of a stopping shard, a bounded number at a time. Busy Blocking ones stop by themselves
// when they have worked off what waits.
func (s *Shard) pace() {
	if s.phase != stopping {
		return
	}
	if s.typ.Mode != Blocking {
		for n := 0; n < stopAtOnce && len(s.table.dense) > 0; n++ {
			s.halt(s.table.dense[len(s.table.dense)-1], s.why)
		}
		return
	}
	for s.halting < haltingMost {
		s.cursor = min(s.cursor, len(s.table.dense)-1)
		if s.cursor < 0 {
			return
		}
		if e := s.table.dense[s.cursor]; e.act == nil {
			s.haltLater(e, s.why)
		}
		s.cursor--
	}
}

// Stopping reports whether Stop or Abandon was called.
func (s *Shard) Stopping() bool { return s.phase == stopping || s.phase == abandoned }

// Stopped reports whether the end that Stop or Abandon began has come: no entity is left and no handler is running.
func (s *Shard) Stopped() bool { return s.Stopping() && len(s.table.dense) == 0 }

// Abandon ends the shard without calling any handler, because it is lost already: messages that wait are counted and
// given to Runtime.Unhandled, asks among them answered with Abandoned. Only runs of Blocking entities that are under
// way go on until their runtime calls End, which it may do as soon as the call that is being made returns; Stopped
// tells when the last one is over.
func (s *Shard) Abandon() {
	if s.phase == abandoned {
		return
	}
	s.phase = abandoned
	s.lease.end()
	s.dropAll()
	dropLeft(s)
	dropStates(s)
	s.readyHead, s.readyTail = nil, nil
	for i := len(s.table.dense) - 1; i >= 0; i-- {
		e := s.table.dense[i]
		if e.act == nil || e.act.phase != begun {
			s.discard(e)
			continue
		}
		s.discardWaiting(e, route.Abandoned) // a handler that never returns does not hold up these reports
	}
}

// LeaveBehind gives up the runs of Blocking entities of an abandoned shard that do not return from a call: what they
// had taken and not begun is abandoned too, and their End drops it without a word. It returns how many there are. The
// runtime calls it when it has waited for them long enough after Abandon: a run calls no handler any more by then, but
// for the one that has not returned.
//
// Nothing but that call orders what the run wrote before it, its place in the batch, against this look at it; there is
// no later write. So the race detector is kept from looking at it.
//
//go:norace
func (s *Shard) LeaveBehind() (runs int) {
	for _, e := range s.table.dense {
		a := e.act
		if s.phase != abandoned || a == nil || a.phase != begun {
			continue
		}
		runs++
		leaveRun(s, e)
		if a.now != nil && !a.told {
			from := a.pos
			if a.step == made { // New has returned; nobody calls the handler any more
				from, a.step = from-1, between
			}
			a.told = true
			s.discardBatch(e, a.now, from, a.now.len(), route.Abandoned)
		}
	}
	return runs
}

// Cut ends the working off of a shard that moves: it is at its deadline. From here on no handler is called for what
// waits, nor for what was sent to the shard before and comes only now. All that is taken, and TakeLeft returns it when
// the shard has stopped. Handlers that run are waited for, and the stop calls follow. Repeating it is harmless.
func Cut(s *Shard, now time.Duration) {
	s.advance(now)
	if s.moving.cut || s.phase == abandoned {
		return
	}
	s.moving.cut = true
	s.moving.left, s.moving.first = append(s.moving.left, s.moving.first...), nil
	if s.phase == serving {
		s.phase = cut
		s.lease.end()
	}
	for _, e := range s.table.dense {
		if a := e.act; a != nil && a.phase != begun { // the run of one that has begun ends with the call that is made
			takeAll(s, e)
		}
	}
}

// TakeLeft returns what a shard that has stopped did not work off, in the order of each entity, and forgets it. The
// slices are the caller's.
func TakeLeft(s *Shard) []Message {
	list := s.moving.left
	s.moving.left = nil
	return list
}

// dropLeft ends what an abandoned shard has taken, or was to begin with.
func dropLeft(s *Shard) {
	list := append(s.moving.left, s.moving.first...)
	s.moving.left, s.moving.first = nil, nil
	for i := range list {
		turnDown(s, &list[i], route.Abandoned)
	}
}
