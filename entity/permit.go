// Permits: an entity that is kept alive may live only as long as its runtime permits it: it holds the lease.

package entity

import "time"

// Withhold ends the entity of k, which is kept alive in s, and keeps it from beginning again before Permit. Its
// instance is dropped without a call of Stop: at once, or, when one of its handlers is being called, with the end of
// the run, which the runtime ends as soon as that call returns. What waits for it waits on in its mailbox, or goes to
// the next owner of the shard; in modes other than Blocking what comes is refused with route.Crashed. It may be called
// before KeepAlive, with the same k: then nothing is permitted from the start. Repeating it is harmless.
func Withhold(s *Shard, now time.Duration, k *Keep) {
	s.advance(now)
	s.permitted = false
	if s.phase == abandoned || s.withheld {
		return
	}
	s.withheld = true
	if s.keep == nil {
		s.keep = k
	}
	if s.phase != serving { // nothing begins any more: what is left goes to the next owner
		Cut(s, now)
	} else {
		bar(s)
	}
	for _, e := range s.table.dense {
		if a := e.act; a != nil && a.phase == begun {
			a.spoiled = true
			continue
		}
		unmake(s, e)
	}
}

// Permit ends that: the entity begins as soon as it does not rest, and nothing of its last instance is being called.
func Permit(s *Shard, now time.Duration) {
	s.advance(now)
	if !s.withheld || s.phase != serving {
		return
	}
	for _, e := range s.table.dense {
		if a := e.act; a != nil && a.spoiled {
			s.permitted = true
			return
		}
	}
	allow(s)
}

// Withheld reports whether the entity that is kept alive is not permitted to live.
func Withheld(s *Shard) bool { return s.withheld }

// Spoiled reports whether a run of an entity goes on that is to end, since it is not permitted to live.
func Spoiled(e *Entity) bool { return e.act != nil && e.act.spoiled }

// bar gives the entity that is kept alive a record by which it rests until that is permitted.
func bar(s *Shard) {
	e := keptEntity(s)
	if e == nil {
		return
	}
	r := s.crashes[e]
	if r == nil {
		r = newRecord(s, e)
	} else {
		s.timers.pull(&r.timer)
	}
	r.barred = true
	s.lookAt(r)
}

// allow lets the entity go on, or rest for as long as its failures have it rest.
func allow(s *Shard) {
	s.withheld, s.permitted = false, false
	if r := s.crashes[keptEntity(s)]; r != nil {
		r.barred = false
		s.look(r)
	}
	takeUp(s)
}

// spoil ends what a run has left of an entity that is not permitted to live, and carries out a permission that waited
// for that.
func spoil(s *Shard, e *Entity) {
	e.act.spoiled = false
	unmake(s, e)
	if s.permitted && s.phase == serving {
		allow(s)
	}
}

// unmake drops the instance of an entity that is not in a run.
func unmake(s *Shard, e *Entity) {
	if a := e.act; a != nil {
		if a.step == made {
			a.pos-- // it was made for a message that no handler has got
		}
		a.step = between
		if s.phase == serving {
			a.halt = a.now == nil && a.head == nil // it may be on the list of those that are ready
		}
	}
	unseen(s, e, EndedLost)
	e.h = nil
	s.dropTimers(e, true, true)
}
