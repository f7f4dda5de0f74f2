// Crashes: what the restart policy says beyond the loss of the instance: rests, limits, and what is dropped.

package entity

import (
	"context"
	"math"
	"math/bits"
	"time"

	"github.com/kith-io/kith/route"
)

// crash is the record of an entity that panicked lately. While there is one the entity stays in the table, with or
// without an instance.
type crash struct {
	timer                // in the shard's heap: when to look at the record next
	panics int           // that count
	until  time.Duration // no instance is made before
	forget time.Duration // when the panics count no more: a window later
	closed bool          // what comes before until is refused
	barred bool          // it is not permitted to live: it rests until it is
	lived  bool          // what failed was not a message's New alone
}

// upkeep is what a shard knows of entities that fail, and of the one that it keeps alive.
type upkeep struct {
	crashes map[*Entity]*crash // records of entities that panicked lately; looked up, never walked

	keep    *Keep                  // nil: none is kept
	serving func() context.Context // of Keep.Run: what it returns has ended, or ends with the stop of the shard
	going   bool                   // Keep.Run is called, or will be by a record in the mailbox

	withheld  bool // it may not live
	permitted bool // it may again, once the run of its last instance has ended
}

// mute reports whether the shard's entity has a Run, in the place of messages: it would read them when that has
// returned.
func (u *upkeep) mute() bool { return u.keep != nil && u.keep.Run != nil }

// minds reports whether a panic has consequences beyond the loss of the instance.
func (t *Type) minds() bool {
	return t.Restart == RestartStop || t.Restart == RestartFresh && (t.RestartBackoff > 0 || t.MaxRestarts > 0)
}

// remembers reports whether panics of an entity are counted.
func (t *Type) remembers() bool { return t.RestartBackoff > 0 || t.MaxRestarts > 0 }

// rests reports whether e, of which there is a record, must not be made again yet.
func (s *Shard) rests(e *Entity) bool {
	r := s.crashes[e]
	return r.barred || r.until > s.now
}

// crash carries out the restart policy on e after a panic has ended its instance. A shard that is being stopped knows
// no rest: what waits is to be worked off.
func (s *Shard) crash(e *Entity, c *Context) {
	calm, lived := c.calm, !c.unmade
	c.crashed, c.calm, c.unmade, s.going = false, false, false, false
	if s.phase == abandoned {
		return
	}
	rest, gaveUp := time.Duration(0), s.typ.Restart == RestartStop
	if s.phase == serving && s.typ.remembers() {
		s.advance(s.runtime.Now()) // the now of the verb may be as old as the call was long
		r := s.record(e)
		r.lived = r.lived || lived
		if calm {
			r.panics = 1
		}
		rest = s.typ.rest(r.panics)
		if s.typ.MaxRestarts > 0 && r.panics > s.typ.MaxRestarts {
			rest, gaveUp = s.typ.RestartWindow, true
		}
		r.until, r.closed = s.now+rest, gaveUp
		r.forget = r.until + s.typ.RestartWindow
		if gaveUp && s.typ.Restart == RestartFresh {
			r.forget = r.until // it begins anew
		}
		s.lookAt(r)
	}
	if !gaveUp {
		return
	}
	tells, asks := 0, 0
	if e.act != nil {
		tells, asks = s.discardNow(e, route.Crashed)
		t, q := s.discardWaiting(e, route.Crashed)
		tells, asks = tells+t, asks+q
	}
	s.stats.GivenUp++
	s.stats.Dropped += uint64(tells + asks)
	s.report(e, Incident{Kind: GaveUp, Took: rest, Dropped: tells, Answered: asks})
}

// record counts a panic of e.
func (s *Shard) record(e *Entity) *crash {
	r := s.crashes[e]
	if r == nil {
		r = newRecord(s, e)
	} else {
		s.timers.pull(&r.timer)
	}
	if s.now >= r.forget {
		r.panics = 0
	}
	r.panics++
	return r
}

// newRecord makes the record of e, which has none. It is not in the heap.
func newRecord(s *Shard, e *Entity) *crash {
	r := &crash{}
	r.timer.crash, r.timer.e = r, e
	if s.crashes == nil {
		s.crashes = map[*Entity]*crash{}
	}
	s.crashes[e] = r
	e.place |= hurt
	return r
}

// rest is how long an entity rests after so many panics within the window.
func (t *Type) rest(panics int) time.Duration {
	if t.RestartBackoff == 0 {
		return 0
	}
	doublings := min(panics-1, bits.LeadingZeros64(uint64(t.RestartBackoff))-2) // so that it stays positive
	return min(t.RestartBackoff<<doublings, t.RestartWindow)
}

// never is when there is a look at a record if its entity is not permitted to live.
const never = time.Duration(math.MaxInt64 / 2)

// lookAt plans the next look at a record that is not in the heap: at the end of its rest, then at that of its window.
func (s *Shard) lookAt(r *crash) {
	r.at = r.forget
	switch {
	case r.barred:
		r.at = never
	case r.until > s.now:
		r.at = r.until
	}
	s.timers.seq++
	r.seq = s.timers.seq
	s.timers.push(&r.timer)
}

// look ends the rest of a record's entity, or forgets the record when the panics do not count any more.
func (s *Shard) look(r *crash) {
	if s.now >= r.forget {
		s.heal(r)
		return
	}
	s.timers.pull(&r.timer)
	s.wake(r)
	s.lookAt(r)
	beginKept(s)
	recallAgain(s, r)
}

// wake lets what waits for the record's entity go on.
func (s *Shard) wake(r *crash) {
	if a := r.e.act; a != nil && a.phase == held {
		s.makeReady(r.e)
	}
}

// heal forgets a record that is in the heap.
func (s *Shard) heal(r *crash) {
	e := r.e
	s.timers.pull(&r.timer)
	delete(s.crashes, e)
	e.place &^= hurt
	s.wake(r)
	if e.act == nil && e.h == nil {
		unseen(s, e, EndedNone)
		s.table.remove(e)
	}
	beginKept(s)
	recallAgain(s, r) // it may not have been looked at since its rest was over
}

// evictLook is how many entities are looked at to find one that has been idle for long.
const evictLook = 16

// evict makes room for one entity more when the type's share of this shard is used up: of the next few in the table,
// from where the last look ended, the one goes that has been idle for the longest. That comes near to the longest idle
// of all, and costs a message to an entity that is there nothing.
func (s *Shard) evict() {
	most := max(1, s.typ.MaxActive/max(1, s.runtime.Shards()))
	for n := 0; n < 2 && len(s.table.dense)+1-s.halting > most; n++ {
		var victim *Entity
		for range min(evictLook, len(s.table.dense)) {
			if s.hand--; s.hand < 0 || s.hand >= len(s.table.dense) {
				s.hand = len(s.table.dense) - 1
			}
			e := s.table.dense[s.hand]
			if e.act == nil && e.place&hurt == 0 && (victim == nil || e.used < victim.used) {
				victim = e
			}
		}
		switch {
		case victim == nil || s.typ.Mode == Blocking && s.halting >= haltingMost:
			return // all that were looked at are busy
		case s.typ.Mode == Blocking:
			s.haltLater(victim, StopEvicted)
		default:
			s.stats.Passivated++
			s.halt(victim, StopEvicted)
		}
		s.stats.Evicted++
	}
}

// enroll adds an entity to the table, or returns nil when that is full.
func enroll(s *Shard, id string) *Entity {
	if len(s.table.dense) >= MaxEntities {
		return nil
	}
	if s.typ.MaxActive > 0 {
		s.evict()
	}
	first := len(s.table.dense) == 0
	e := s.table.add(id)
	e.used = s.now
	if first {
		s.sweepAt, s.cursor = s.now+s.typ.IdleAfter, -1
	}
	return e
}
