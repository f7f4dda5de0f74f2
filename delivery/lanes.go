// Lanes: what waits for one receiver each, in order, and when it goes.

package delivery

import (
	"container/heap"
	"slices"
	"time"
)

// mostUnderWay is how many messages of one shard are on their way at once.
const mostUnderWay = 256

// message is one that waits.
type message struct {
	letter
	number  uint64
	version uint64 // of its record
	under   bool   // on its way
	gap     bool   // its receiver had not had the one before it: it waits until that is gone
	buried  bool   // it is being made a dead letter
	rests   int    // deliveries in a row without an answer
	next    time.Time
}

// size is how many bytes it counts for.
func (m *message) size() int64 { return int64(len(m.to) + len(m.body) + messageOverhead) }

// messageOverhead is what Queue.MaxBytes counts of a message beside payload and receiver.
const messageOverhead = 128

// lane is what waits for one receiver, in order.
type lane struct {
	list []*message
	due  time.Time // when to look at it
	at   int       // its place in the heap
}

// lanes is what waits in a shard.
type lanes struct {
	of    map[string]*lane
	order byDue
	under int
}

// byDue is a heap of lanes.
type byDue []*lane

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

// Swap keeps the places.
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push adds a lane.
func (h *byDue) Push(x any) {
	a := x.(*lane)
	a.at = len(*h)
	*h = append(*h, a)
}

// Pop takes the last one.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return a
}

// add puts a message behind the others to its receiver.
func (l *lanes) add(m *message) {
	a := l.of[m.to]
	if a == nil {
		a = &lane{}
		l.of[m.to] = a
		heap.Push(&l.order, a)
	}
	a.list = append(a.list, m)
	l.look(m)
}

// look wakes the lane of a message.
func (l *lanes) look(m *message) {
	if a := l.of[m.to]; a != nil {
		a.due = time.Time{}
		heap.Fix(&l.order, a.at)
	}
}

// remove takes a message out.
func (l *lanes) remove(m *message) {
	a := l.of[m.to]
	if a == nil {
		return
	}
	if i := slices.Index(a.list, m); i >= 0 {
		a.list = slices.Delete(a.list, i, i+1)
	}
	if l.look(m); len(a.list) == 0 {
		delete(l.of, m.to)
		heap.Remove(&l.order, a.at)
	}
}

// shipment is a message that goes.
type shipment struct {
	*message
	before uint64
}

// pick returns what goes now, at most window to one receiver, and when to look again.
func (l *lanes) pick(now time.Time, window int) (out []shipment, next time.Time) {
	next = now.Add(time.Hour)
	for len(l.order) > 0 && l.under < mostUnderWay {
		a := l.order[0]
		if a.due.After(now) {
			return out, a.due
		}
		a.due = now.Add(time.Hour)
		out = l.goes(a, now, window, out)
		heap.Fix(&l.order, a.at)
	}
	return out, next
}

// goes adds what of a lane goes now: nothing behind a message that rests.
func (l *lanes) goes(a *lane, now time.Time, window int, out []shipment) []shipment {
	before := uint64(0)
	if head := a.list[0]; head.rests+head.tries > 0 {
		window = 1 // what waits behind one that fails keeps no place of others
	}
	for i, m := range a.list {
		switch {
		case m.under:
		case i >= window || m.buried || before > 0 && m.gap:
			return out
		case m.next.After(now):
			a.due = m.next
			return out
		case l.under >= mostUnderWay:
			a.due = now
			return out
		default:
			m.under, m.gap = true, false
			l.under++
			out = append(out, shipment{m, before})
		}
		before = m.number
	}
	return out
}
