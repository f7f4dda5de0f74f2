// The queue of a swarm: a heap of small values, because a day of a hundred nodes is hundreds of millions of events.

package scale

import "time"

// moment is one planned thing: a tick of a node, or a letter that arrives, by its slot. Equal times go by seq.
type moment struct {
	at   time.Duration
	seq  uint64
	node int32
	slot int32 // of the letter; negative: a tick of node
}

func (m moment) before(o moment) bool { return m.at < o.at || m.at == o.at && m.seq < o.seq }

// moments is a heap of four children a node: half as deep as a binary one, and its children lie side by side.
type moments struct {
	heap []moment
	seq  uint64
}

func (q *moments) push(at time.Duration, node, slot int32) {
	q.seq++
	m := moment{at, q.seq, node, slot}
	q.heap = append(q.heap, m)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !m.before(q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = m
}

// pop takes the earliest; the queue must not be empty.
func (q *moments) pop() moment {
	top, n := q.heap[0], len(q.heap)-1
	last := q.heap[n]
	q.heap = q.heap[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		best := first
		for c := first + 1; c < min(first+4, n); c++ {
			if q.heap[c].before(q.heap[best]) {
				best = c
			}
		}
		if !q.heap[best].before(last) {
			break
		}
		q.heap[i] = q.heap[best]
		i = best
	}
	q.heap[i] = last
	return top
}
