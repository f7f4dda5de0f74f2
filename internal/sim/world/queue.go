// The event queue: everything that will happen, ordered by virtual time and then by the order in which it was planned.

package world

import "time"

type event struct {
	at  time.Duration
	seq uint64
	run func()
}

func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue is a binary heap. Two events of one time run in the order in which they were pushed, so no run depends on how
// the heap happens to lie in memory.
type queue struct {
	heap []event
	seq  uint64
}

func (q *queue) push(at time.Duration, run func()) {
	q.seq++
	q.heap = append(q.heap, event{at, q.seq, run})
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q.heap[i].before(q.heap[up]) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *queue) pop() event {
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && q.heap[child+1].before(q.heap[child]) {
			child++
		}
		if !q.heap[child].before(q.heap[i]) {
			return top
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}

// next returns the time of the earliest event.
func (q *queue) next() (at time.Duration, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}
