// Timers of entities: a heap by time for the shard, a list for each entity.

package entity

import "time"

// timer is one running timer. It stands in the shard's heap and in its entity's list.
type timer struct {
	at         time.Duration
	seq        uint64 // orders timers of one instant by when they were set
	e          *Entity
	next, prev *timer // in the entity's list
	pos        int    // in the heap
	instance   uint32 // of the entity, that set it
	payload    []byte
	crash      *crash // not a timer of the entity but the next look at this record
}

const (
	keepTimers     = 64       // spare timers that a shard keeps
	keepTimerBytes = 4 << 10  // largest payload buffer that a spare timer keeps
	fireAtOnce     = 256      // timers that one Tick fires
	keepWishBytes  = 16 << 10 // largest buffer of wishes that a context keeps
)

type timerHeap struct {
	heap  []*timer
	spare []*timer
	seq   uint64
}

func (h *timerHeap) less(a, b *timer) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// set starts a timer of e; payload is copied.
func (h *timerHeap) set(e *Entity, at time.Duration, payload []byte) {
	var t *timer
	if n := len(h.spare); n > 0 {
		t = h.spare[n-1]
		h.spare = h.spare[:n-1]
	} else {
		t = &timer{}
	}
	h.seq++
	t.at, t.seq, t.e, t.instance = at, h.seq, e, e.instance
	t.payload = append(t.payload[:0], payload...)
	t.next, t.prev = e.timers, nil
	if t.next != nil {
		t.next.prev = t
	}
	e.timers = t
	e.place += oneTimer
	h.push(t)
}

func (h *timerHeap) push(t *timer) {
	t.pos = len(h.heap)
	h.heap = append(h.heap, t)
	h.up(t.pos)
}

// pull removes t from the heap alone.
func (h *timerHeap) pull(t *timer) {
	last := len(h.heap) - 1
	i := t.pos
	h.swap(i, last)
	h.heap[last] = nil
	h.heap = h.heap[:last]
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// take removes t from the heap and from its entity's list. The caller gives it to free when it is done with it.
func (h *timerHeap) take(t *timer) {
	h.pull(t)
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		t.e.timers = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.e.place -= oneTimer
	t.next, t.prev, t.e = nil, nil, nil
}

// free keeps t for the next set.
func (h *timerHeap) free(t *timer) {
	if len(h.spare) < keepTimers && cap(t.payload) <= keepTimerBytes {
		h.spare = append(h.spare, t)
	}
}

func (h *timerHeap) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].pos, h.heap[j].pos = i, j
}

func (h *timerHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.heap[i], h.heap[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *timerHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.heap); child++ {
			if h.less(h.heap[child], h.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

// setTimers starts the timers that were wished for during a call or a run of e, and stops those of an instance that is
// gone.
func (s *Shard) setTimers(c *Context, e *Entity) {
	if c.renewed {
		c.renewed = false
		s.dropTimers(e)
	}
	if len(c.timers) == 0 {
		return
	}
	if s.phase != serving {
		c.forgetTimers()
		return
	}
	for i := range c.timers {
		s.timers.set(e, c.timers[i].at, c.wishData(i))
	}
	c.timers, c.timerData = c.timers[:0], c.timerData[:0]
	if cap(c.timerData) > keepWishBytes {
		c.timerData = nil
	}
}

// dropAll stops all timers of a shard that is not served any more, and ends all rests.
func (s *Shard) dropAll() {
	for n := len(s.timers.heap); n > 0; n = len(s.timers.heap) {
		if t := s.timers.heap[n-1]; t.crash != nil {
			s.heal(t.crash)
		} else {
			s.dropTimer(t)
		}
	}
}

// dropTimers stops all timers of e.
func (s *Shard) dropTimers(e *Entity) {
	for t := e.timers; t != nil; t = e.timers {
		s.dropTimer(t)
	}
}

func (s *Shard) dropTimer(t *timer) {
	s.timers.take(t)
	s.lease.budget.Give(len(t.payload) + RecordOverhead)
	s.timers.free(t)
	s.stats.TimersDropped++
}

// fire delivers the timers that are due, as many as one Tick may.
func (s *Shard) fire() {
	for n := 0; n < fireAtOnce && len(s.timers.heap) > 0 && s.timers.heap[0].at <= s.now; n++ {
		t := s.timers.heap[0]
		if t.crash != nil {
			s.look(t.crash)
			continue
		}
		e := t.e
		s.timers.take(t)
		s.lease.budget.Give(len(t.payload) + RecordOverhead)
		s.stats.TimersFired++
		if s.typ.Mode == Blocking {
			s.put(e, record{instance: t.instance}, t.payload, true)
		} else {
			s.handle(e, nil, 0, t.payload)
		}
		s.timers.free(t)
	}
}
