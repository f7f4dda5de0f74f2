// Recall: what waits in a link for a shard that moves, taken back, so that the marker of the move need not wait behind
// all that the link holds, nor for the credit of it.

package flow

import (
	"time"

	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/wire"
)

// Waiting returns how many envelopes wait for a shard of a type, and their bytes. large says that one of them stands
// for a large message.
func (l *Link) Waiting(typ, shard uint32) (frames, bytes int, large bool) {
	for _, b := range [...][]byte{l.rest, l.q.Gathered()} {
		for len(b) > 0 {
			n := frameSize(b)
			if of(b[:n], typ, shard) {
				frames++
				bytes += n
				large = large || b[5]&wire.FlagBulk != 0
			}
			b = b[n:]
		}
	}
	return frames, bytes, large
}

// Withdraw takes the envelopes that wait for a shard out of the link and gives them to f, the oldest first, each a view
// that is valid during the call. The others stay as they are.
func (l *Link) Withdraw(typ, shard uint32, f func(frame []byte)) {
	n, tells := withdraw(l.rest, typ, shard, f)
	if n < len(l.rest) {
		l.rest, l.restMarks, l.tally.restMarks = l.rest[:n], l.restMarks[:0], l.tally.restMarks[:0]
		l.tally.rest -= tells
	}
	n, tells = withdraw(l.q.Gathered(), typ, shard, f)
	if n < l.q.Len() {
		l.q.Truncate(n)
		l.marks, l.tally.marks, l.nextMark = l.marks[:0], l.tally.marks[:0], 0
		l.tally.gathered -= tells
	}
}

// withdraw moves the frames that stay together, and returns their bytes and how many of the others are tells.
func withdraw(b []byte, typ, shard uint32, f func(frame []byte)) (n, tells int) {
	for at := 0; at < len(b); {
		frame := b[at : at+frameSize(b[at:])]
		at += len(frame)
		if !of(frame, typ, shard) {
			n += copy(b[n:], frame)
			continue
		}
		if wire.IsTell(frame) {
			tells++
		}
		f(frame)
	}
	return n, tells
}

func of(frame []byte, typ, shard uint32) bool {
	t, s, ok := wire.AddressOf(frame)
	return ok && t == typ && s == shard
}

// PutFirst puts back messages that were on their way to the home, before those that wait already: all that take
// gives it, in order, whole envelope frames that it copies, so many of so many bytes. They were accepted already, and
// held in the link, so they may exceed the bounds of the slot and the budget; nothing else parks until what waits is
// below them. It reports false, and take was not called, when the slot is open.
func (s *Slot) PutFirst(now time.Duration, records, bytes int, take func(put func(frame []byte))) bool {
	if s.state.Open() {
		return false
	}
	more := bytes + records*ParkOverhead
	s.park.force(more)
	old := s.queue
	_, waits := s.Parked()
	s.queue = ringbuf.NewQueue(max(s.park.bytes, waits+more))
	take(func(frame []byte) {
		copy(s.record(now, len(frame)), frame)
		s.stats.Parked++
	})
	for old != nil && old.Len() > 0 {
		rec := old.Peek()
		copy(reserve(s.queue, len(rec)), rec)
		old.Pop()
	}
	return true
}
