// Mail: what waits for a control connection. Segments of the courier, which may be parts of what shards hand over, go
// behind everything else, and few at a time: heartbeats and gossip do not wait for them.

package transport

import (
	"slices"

	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/wire"
)

// mailPiece is how many bytes of segments are given to a socket at once, unless one segment is larger.
const mailPiece = 32 << 10

// mailQueue is the queue of a control connection. The zero value with limits set is ready.
type mailQueue struct {
	front  ringbuf.Double // all but segments
	behind ringbuf.Double // segments
	rest   []byte         // whole segments that were taken from behind and are not written yet
}

func (q *mailQueue) limit(bytes int) { q.front.Limit, q.behind.Limit = bytes, bytes }

// reserve returns room for a frame of n bytes, as ringbuf.Double does.
func (q *mailQueue) reserve(kind wire.Kind, n int) ([]byte, error) {
	if kind == wire.KindSegment {
		return q.behind.Reserve(n)
	}
	return q.front.Reserve(n)
}

// next returns what is to be written next, which stays as it is until the call after; empty when nothing waits.
func (q *mailQueue) next() []byte {
	if q.front.Len() > 0 {
		return q.front.Swap()
	}
	if len(q.rest) == 0 {
		q.rest = q.behind.Swap()
	}
	n := 0
	for n < len(q.rest) {
		size := int(wire.ParseHeader(q.rest[n:]).Size)
		if n > 0 && n+size > mailPiece {
			break
		}
		n += size
	}
	b := q.rest[:n:n]
	q.rest = q.rest[n:]
	return b
}

// size returns how many bytes wait.
func (q *mailQueue) size() int { return q.front.Len() + q.behind.Len() + len(q.rest) }

// held returns the memory of the queue, bytes.
func (q *mailQueue) held() int { return q.front.Held() + q.behind.Held() }

// drop forgets what waits, and gives back the memory.
func (q *mailQueue) drop() {
	q.rest = nil
	q.front.Swap()
	q.behind.Swap()
	q.trim()
}

// trim gives back the memory of a queue in which nothing waits.
func (q *mailQueue) trim() {
	if q.size() == 0 {
		q.front.Trim()
		q.behind.Trim()
	}
}

// keep drops the frames that keeps refuses, and returns how many.
func (q *mailQueue) keep(keeps func(wire.Kind) bool) (dropped int) {
	for _, part := range [][]byte{q.front.Swap(), slices.Clone(q.rest), q.behind.Swap()} {
		for len(part) > 0 {
			h := wire.ParseHeader(part)
			if !keeps(h.Kind) {
				dropped++
			} else if room, err := q.reserve(h.Kind, int(h.Size)); err == nil { // there was room before
				copy(room, part[:h.Size])
			}
			part = part[h.Size:]
		}
	}
	q.rest = nil
	return dropped
}
