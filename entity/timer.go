// Timers of entities: a heap by time for the shard, a list for each entity.

package entity

import (
	"cmp"
	"slices"
	"time"

	"github.com/kith-io/kith/route"
)

// timer is one timer that was set. While it runs it stands in the shard's heap and in its entity's list. That of a
// Blocking entity stays in the list when it is due, until its message has been handled or dropped: a run reads the list
// without the shard's lock, so while one goes on timers leave the heap but not the list.
type timer struct {
	at         time.Duration
	seq        uint64 // orders timers of one instant by when they were set
	e          *Entity
	next, prev *timer // in the entity's list
	name       string // of its entity's choice; empty: none
	payload    []byte
	crash      *crash // not a timer of the entity but the next look at this record
	pos        int32  // in the heap, or one of those below
	instance   uint32 // of the entity, that set it
	done       bool   // its message was handled, or it was cancelled; written by the entity's calls and runs alone
}

// Where a timer is that is not in the heap.
const (
	inMailbox = -1 // due: a record refers to it
	nowhere   = -2
)

// Reply makes a timer fit where a record has the origin of an ask. A timer has none, and Reply is never called.
func (*timer) Reply(uint64, route.Reason, []byte) error { return ErrNoAsk }

// instance returns the instance that set the timer with the message r, or that r tells of an end, zero for another
// message.
func (r *record) instance() uint32 {
	switch r.from.(type) {
	case *timer, *told:
		return r.mark
	}
	return 0
}

// drops counts a record of a timer that is dropped; ends of others are reported to nobody then.
func (r *record) drops(t *Tally) {
	if _, is := r.from.(*timer); is {
		t.TimersDropped++
	}
}

// counted is what a timer that is in no mailbox takes of the budget.
func (t *timer) counted() int { return len(t.name) + len(t.payload) + RecordOverhead }

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
	late  Lateness // of those that have fired
}

func (h *timerHeap) less(a, b *timer) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// set starts a timer of e; payload is copied.
func (h *timerHeap) set(e *Entity, at time.Duration, name string, payload []byte) {
	var t *timer
	if n := len(h.spare); n > 0 {
		t = h.spare[n-1]
		h.spare = h.spare[:n-1]
	} else {
		t = &timer{}
	}
	h.seq++
	t.at, t.seq, t.e, t.instance, t.name, t.done = at, h.seq, e, e.instance, name, false
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
	t.pos = int32(len(h.heap))
	h.heap = append(h.heap, t)
	h.up(int(t.pos))
}

// pull removes t from the heap alone, if it is there.
func (h *timerHeap) pull(t *timer) {
	if t.pos < 0 {
		return
	}
	last := len(h.heap) - 1
	i := int(t.pos)
	h.swap(i, last)
	h.heap[last] = nil
	h.heap = h.heap[:last]
	t.pos = nowhere
	if i < last {
		h.up(i)
		h.down(i)
	}
}

// unlink removes t from its entity's list.
func (t *timer) unlink() {
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

// take removes t from the heap and from its entity's list. The caller gives it to free when it is done with it.
func (h *timerHeap) take(t *timer) {
	h.pull(t)
	t.unlink()
}

// settle frees the timer of a record that is done with, or dropped.
func (h *timerHeap) settle(t *timer) {
	if t.e != nil {
		t.unlink()
	}
	h.free(t)
}

// free keeps t for the next set.
func (h *timerHeap) free(t *timer) {
	t.name = ""
	if len(h.spare) < keepTimers && cap(t.payload) <= keepTimerBytes {
		h.spare = append(h.spare, t)
	}
}

func (h *timerHeap) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].pos, h.heap[j].pos = int32(i), int32(j)
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

// dropTimers stops the timers of e, which is not in a run: all of them, or those that were cancelled. Messages of those
// that are due stay in the mailbox; while their instance lives (gone is false) it may still cancel them.
func (s *Shard) dropTimers(e *Entity, all, gone bool) {
	for t := e.timers; t != nil; {
		next := t.next
		switch {
		case !t.done && (!all || t.pos == inMailbox && !gone):
		case t.pos >= 0:
			s.dropTimer(t)
		case t.pos == inMailbox:
			t.unlink() // the record frees it
		default:
			t.unlink()
			s.timers.free(t)
		}
		t = next
	}
}

// dropTimer stops a timer that runs. While its entity is in a run it stays in the list, which the run's end clears.
func (s *Shard) dropTimer(t *timer) {
	s.timers.pull(t)
	s.lease.budget.Give(t.counted())
	s.stats.TimersDropped++
	if a := t.e.act; a == nil || a.phase != begun {
		t.unlink()
		s.timers.free(t)
	}
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
		s.lease.budget.Give(t.counted())
		s.stats.TimersFired++
		s.timers.late.Add(s.now - t.at)
		if s.typ.Mode == Blocking {
			s.timers.pull(t)
			t.pos = inMailbox
			s.put(e, record{from: t, mark: t.instance}, t.payload, nil, scant)
			continue
		}
		s.timers.take(t)
		s.handle(e, &Message{Payload: t.payload}, t)
		s.timers.free(t)
	}
}

// Timers yields the timers of e that run, the next to fire first: name, when it fires on the clock of Runtime.Now, and
// payload, a view that is valid until yield returns. It is for tests of handlers; the shard's lock is held, and no run
// of e goes on.
func (e *Entity) Timers(yield func(name string, at time.Duration, payload []byte) bool) {
	var all []*timer
	for t := e.timers; t != nil; t = t.next {
		if t.pos >= 0 && !t.done && t.instance == e.instance {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *timer) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	for _, t := range all {
		if !yield(t.name, t.at, t.payload) {
			return
		}
	}
}
