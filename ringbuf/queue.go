// Queue: a bounded first-in first-out queue of byte records in one growing ring of bytes.

package ringbuf

import (
	"encoding/binary"

	"github.com/kith-io/kith/internal/base/invariant"
)

const (
	// RecordOverhead is what each record of a Queue counts beyond its own bytes: its length.
	RecordOverhead = 4
	// QueueKeep is the most memory in bytes that an empty Queue keeps.
	QueueKeep = 4 << 10

	queueFirst = 256 // first allocation
)

// Queue holds records one behind the other, each whole in memory, so that Peek can hand out a view. Records count their
// bytes plus RecordOverhead against Limit. Memory doubles as needed, never exceeds twice Limit, and is given back when
// the queue runs empty and holds more than QueueKeep. It is not locked. The zero value with Limit set is ready; a limit
// of zero admits nothing.
type Queue struct {
	// Limit is the most bytes that the queue may hold, RecordOverhead of each record included.
	Limit int

	ring []byte
	head int // offset of the oldest record
	tail int // offset behind the newest record
	// wrap is the offset at which reading goes back to zero, because the record written next did not fit behind it; 0
	// while the records lie in one piece.
	wrap    int
	records int
	bytes   int
}

// NewQueue returns an empty queue that holds at most limit bytes and no memory yet.
func NewQueue(limit int) *Queue { return &Queue{Limit: limit} }

// Push appends a copy of rec, which may be empty. ErrFull, and no change, when the queue would exceed Limit.
func (q *Queue) Push(rec []byte) error {
	span, err := q.Reserve(len(rec))
	if err != nil {
		return err
	}
	copy(span, rec)
	return nil
}

// Reserve appends a record of n bytes (n not negative) and returns it for the caller to fill: what it held before is
// arbitrary. ErrFull, and no change, when the queue would exceed Limit.
func (q *Queue) Reserve(n int) ([]byte, error) {
	invariant.Check(n >= 0, "ringbuf: Queue.Reserve of a negative length")
	// Written so that no sum can overflow for whatever n a caller believed.
	if q.Limit-q.bytes < RecordOverhead || n > q.Limit-q.bytes-RecordOverhead || n > 1<<31-1 {
		return nil, ErrFull
	}
	need := n + RecordOverhead
	if !q.fit(need) {
		q.grow(need)
	}
	span := q.ring[q.tail : q.tail+need : q.tail+need]
	binary.LittleEndian.PutUint32(span, uint32(n))
	q.tail += need
	q.bytes += need
	q.records++
	return span[RecordOverhead:], nil
}

// fit makes tail point at need free bytes in one piece and reports whether there are any.
func (q *Queue) fit(need int) bool {
	if q.wrap > 0 {
		return q.head-q.tail >= need
	}
	if len(q.ring)-q.tail >= need {
		return true
	}
	if q.head < need {
		return false
	}
	q.wrap, q.tail = q.tail, 0
	return true
}

// grow moves all records to the front of a ring that is at least twice as large and has room for need more. Twice the
// limit always has room: what is lost to records staying whole is less than the largest record.
func (q *Queue) grow(need int) {
	size := max(len(q.ring), queueFirst/2)
	for ok := true; ok; ok = size < q.bytes+need {
		size *= 2
	}
	if size/2 > q.Limit {
		size = 2 * q.Limit
	}
	invariant.Check(size > len(q.ring) && size >= q.bytes+need, "ringbuf: Queue is within its limit and has no room")
	ring := make([]byte, size)
	n := 0
	if q.wrap > 0 {
		n = copy(ring, q.ring[q.head:q.wrap])
		n += copy(ring[n:], q.ring[:q.tail])
	} else {
		n = copy(ring, q.ring[q.head:q.tail])
	}
	invariant.Check(n == q.bytes, "ringbuf: Queue bytes do not add up")
	q.ring, q.head, q.tail, q.wrap = ring, 0, n, 0
}

// Peek returns the oldest record as a view that is valid until it is popped, nil when the queue is empty.
func (q *Queue) Peek() []byte {
	if q.records == 0 {
		return nil
	}
	at := q.head + RecordOverhead
	end := at + int(binary.LittleEndian.Uint32(q.ring[q.head:]))
	return q.ring[at:end:end]
}

// Pop drops the oldest record, if there is one.
func (q *Queue) Pop() {
	if q.records == 0 {
		return
	}
	size := RecordOverhead + int(binary.LittleEndian.Uint32(q.ring[q.head:]))
	q.head += size
	q.bytes -= size
	q.records--
	if q.records == 0 {
		q.Reset()
		return
	}
	if q.wrap > 0 && q.head == q.wrap {
		q.head, q.wrap = 0, 0
	}
}

// Reset drops all records, and the memory when it is more than QueueKeep.
func (q *Queue) Reset() {
	q.head, q.tail, q.wrap, q.records, q.bytes = 0, 0, 0, 0, 0
	if len(q.ring) > QueueKeep {
		q.ring = nil
	}
}

// Len returns the number of records.
func (q *Queue) Len() int { return q.records }

// Bytes returns what the records count against Limit: their bytes and RecordOverhead each.
func (q *Queue) Bytes() int { return q.bytes }

// Held returns the memory of the queue in bytes.
func (q *Queue) Held() int { return len(q.ring) }
