// SPSC: a bounded ring between one producer and one consumer, without locks.

package ringbuf

import (
	"math/bits"
	"sync/atomic"
)

// MaxSPSC is the largest capacity of an SPSC, in entries.
const MaxSPSC = 1 << 30

// pad keeps words that different cores write at least two cache lines apart: 64 bytes are a line on amd64, and the
// prefetcher pulls lines in pairs.
type pad [128]byte

// SPSC is a bounded first-in first-out ring. Push may be called by one goroutine at a time and Pop by one at a time,
// and the two may be different ones running at once. Each side remembers the last index it saw of the other and reads
// the shared word again only when the ring looks full or empty, so that in steady flow the cache lines stay put.
// An SPSC must not be copied after first use. Make one with NewSPSC.
type SPSC[T any] struct {
	_     pad
	buf   []T
	mask  uint64
	_     pad
	tail  atomic.Uint64 // entries ever pushed; written by the producer
	seen  uint64        // the producer's last sight of head
	_     pad
	head  atomic.Uint64 // entries ever popped; written by the consumer
	known uint64        // the consumer's last sight of tail
	_     pad
}

// NewSPSC returns a ring of at least capacity entries: the next power of two, at least 2 and at most MaxSPSC.
func NewSPSC[T any](capacity int) *SPSC[T] {
	capacity = min(max(capacity, 2), MaxSPSC)
	size := uint64(1) << bits.Len64(uint64(capacity-1))
	return &SPSC[T]{buf: make([]T, size), mask: size - 1}
}

// Push appends v and reports whether there was room.
func (q *SPSC[T]) Push(v T) bool {
	at := q.tail.Load()
	if at-q.seen > q.mask {
		if q.seen = q.head.Load(); at-q.seen > q.mask {
			return false
		}
	}
	q.buf[at&q.mask] = v
	q.tail.Store(at + 1)
	return true
}

// Pop takes the oldest entry and reports whether there was one. The ring keeps no reference to it.
func (q *SPSC[T]) Pop() (v T, ok bool) {
	at := q.head.Load()
	if at == q.known {
		if q.known = q.tail.Load(); at == q.known {
			return v, false
		}
	}
	var zero T
	slot := &q.buf[at&q.mask]
	v, *slot = *slot, zero
	q.head.Store(at + 1)
	return v, true
}

// Len returns the number of entries; while the other side runs it is a number that was true during the call, or newer.
func (q *SPSC[T]) Len() int {
	// head first: tail never falls behind a head read earlier, so the difference cannot be negative.
	head := q.head.Load()
	return int(min(q.tail.Load()-head, q.mask+1))
}

// Cap returns the number of entries that fit.
func (q *SPSC[T]) Cap() int { return len(q.buf) }
