// Recall: entities that live without messages, since the application remembers them in a store of its own.

package entity

import "time"

// recallAtOnce is how many entities one Tick begins that were recalled.
const recallAtOnce = 64

// recalled is what a shard knows of entities that are to begin without a message.
type recalled struct {
	ids  []string // those that were not looked at yet are from next on
	next int
	done func() // is called when all have been
}

// Recall begins entities of a shard without a message, each unless it lives or rests after a failure, by the next
// Ticks, a few at a time. done is called, in a verb of the shard, when the last of them has begun or is about to; never
// when the shard is being stopped or lost before. The strings belong to the shard. The type has a Remembered.
func Recall(s *Shard, now time.Duration, ids []string, done func()) {
	s.advance(now)
	if s.phase != serving {
		return
	}
	recall(s, ids...)
	s.recalled.done = done
}

// recall adds to what is to begin.
func recall(s *Shard, ids ...string) {
	s.recalled.ids = append(s.recalled.ids, ids...)
}

// recalls reports whether there is anything that is to begin, or a caller that waits to hear that there is not.
func (r *recalled) recalls() bool { return len(r.ids) > 0 || r.done != nil }

// beginRecalled makes instances of the next entities that are to begin.
func beginRecalled(s *Shard, most int) {
	r := &s.recalled
	for n := 0; n < most && r.next < len(r.ids); n++ {
		if s.typ.Mode == Blocking && s.halting >= haltingMost {
			return
		}
		id := r.ids[r.next]
		r.ids[r.next] = ""
		r.next++
		beginOne(s, id)
	}
	if r.next < len(r.ids) {
		return
	}
	r.ids, r.next = r.ids[:0], 0
	if cap(r.ids) > recallAtOnce {
		r.ids = nil
	}
	if done := r.done; done != nil {
		r.done = nil
		done()
	}
}

// part notes that an entity has let itself go, if it has: it is remembered no more.
func part(s *Shard, e *Entity, c *Context) {
	if !c.parted {
		return
	}
	c.parted = false
	if r := s.crashes[e]; r != nil {
		r.lived = false
	}
}

// recallAgain begins the entity of a record again when its rest is over. Only one that has lived, or was recalled:
// an id for which New has never made anything may be any that somebody sent a message to.
func recallAgain(s *Shard, r *crash) {
	if r.lived && s.typ.Remembered != nil && s.phase == serving {
		recall(s, r.e.id)
	}
}
