// Batches: the messages that wait for one Blocking entity, copied one behind the other.

package entity

import (
	"time"

	"github.com/kith-io/kith/route"
)

// RecordOverhead is what a waiting message or timer counts beyond its payload, in bytes.
const RecordOverhead = 32

const (
	batchBytes   = 16 << 10 // a batch that holds so much takes no more messages
	batchRecords = 256
	keepBatches  = 64       // spare batches that a shard keeps
	keepBytes    = 32 << 10 // largest buffer that a spare batch keeps
)

// record is one message in a batch.
type record struct {
	from Origin // for a timer's message the *timer
	corr uint64
	end  uint32 // of its payload in the batch's buffer; headed
	mark uint32 // for a timer's message the instance that set it; for an ask its limit, see markOf; else 0
}

// begins stands where a record has the origin of an ask: the entity is to begin, and no caller waits.
type begins struct{}

// Reply is never called.
func (begins) Reply(uint64, route.Reason, []byte) error { return ErrNoAsk }

// isBegin reports whether a record is no message: its entity is to begin.
func (r *record) isBegin() bool { return r.from == begins{} }

// headed in record.end says that headers stand behind the payload, and behind them their length, two bytes; of a
// payload that is lent they stand in batch.headers.
const headed = 1 << 31

// markOf returns the mark of an ask: its limit in milliseconds, modulo 1<<32, rounded up; zero without one.
func markOf(limit time.Duration) uint32 {
	if limit == 0 {
		return 0
	}
	return max(1, uint32((limit+time.Millisecond-1)/time.Millisecond))
}

// limitOf returns the limit that a mark stands for, as seen at now, which is less than 24 days off.
func limitOf(mark uint32, now time.Duration) time.Duration {
	if mark == 0 {
		return 0
	}
	ms := now / time.Millisecond
	return max(1, (ms+time.Duration(int32(mark-uint32(ms))))*time.Millisecond)
}

// batch is what one run works off: its bytes return to the bounds when all of it is done. Most hold one message, for
// which the first line of memory is enough.
type batch struct {
	first   record
	buf     []byte
	counted uint32 // bytes counted against mailbox and budget
	n       uint16 // how many records there are
	timers  bool   // some of them are timers' messages
	lent    bool   // buf is not the batch's own

	next    *batch
	more    []record // those behind the first
	loan    *Loan    // of what is lent
	headers []byte   // and its headers
}

func (b *batch) full() bool {
	return len(b.buf) >= batchBytes || b.n >= batchRecords || b.lent
}

// record returns record i.
func (b *batch) record(i int) *record {
	if i == 0 {
		return &b.first
	}
	return &b.more[i-1]
}

// append adds one.
func (b *batch) append(r record) {
	if b.n == 0 {
		b.first = r
	} else {
		b.more = append(b.more, r)
	}
	b.n++
}

// len returns how many there are.
func (b *batch) len() int { return int(b.n) }

// message returns the payload and the headers of record i.
func (b *batch) message(i int) (payload, headers []byte) {
	at, end := uint32(0), b.record(i).end
	if i > 0 {
		at = b.record(i-1).end &^ headed
	}
	if end&headed == 0 {
		return b.buf[at:end:end], nil
	}
	end &^= headed
	if b.lent {
		return b.buf[at:end:end], b.headers[:len(b.headers):len(b.headers)]
	}
	size := uint32(b.buf[end-1])<<8 | uint32(b.buf[end-2])
	end -= headerLength
	split := end - size
	return b.buf[at:split:split], b.buf[split:end:end]
}

const headerLength = 2 // bytes of the length of headers
