// BulkReceiver: the receiving side of one bulk connection.

package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// BulkReceiver gathers the large messages of one connection. Each claims room for all of itself before its first byte
// is granted; then its sender may be a window ahead of what has arrived. So what a node holds is bounded by the room
// that all its receivers share, whatever the senders do. Its methods are called under one lock; answers gather until
// AppendAnswers takes them. Make one with NewBulkReceiver.
type BulkReceiver struct {
	from   peer.ID
	conn   uint64
	window int
	limit  int
	stall  time.Duration
	room   BulkHolder

	last    uint32 // newest number
	live    []*bulkIn
	answers []byte
	stats   stats.BulkReceived
}

// bulkIn is one message at its receiver.
type bulkIn struct {
	begin   wire.BulkBegin
	buf     []byte // from the first chunk on
	got     int
	allowed int // zero while it waits for room
	state   LargeState
	began   time.Duration // when it was admitted
	since   time.Duration // when something of it came last
}

func (m *bulkIn) size() int { return int(m.begin.Size) }

// NewBulkReceiver returns the receiver of the connection that the runtime calls conn, of the peer whose share its
// messages are in, which takes messages of at most limit bytes, grants window bytes ahead and gives up a message of
// which nothing came for so long as stall, one that falls behind BulkLeastRate, and one that nobody claims for twice as
// long. Numbers that are not positive mean the defaults, for limit wire.MaxBulkSize.
func NewBulkReceiver(from peer.ID, conn uint64, window, limit int, stall time.Duration, room BulkHolder) *BulkReceiver {
	if window <= 0 {
		window = DefaultBulkWindow
	}
	if limit <= 0 {
		limit = wire.MaxBulkSize
	}
	if stall <= 0 {
		stall = DefaultBulkStall
	}
	return &BulkReceiver{from: from, conn: conn, window: window, limit: limit, stall: stall, room: room}
}

// Stats returns the counters.
func (r *BulkReceiver) Stats() stats.BulkReceived { return r.stats }

// Underway returns how many messages have begun and are not over.
func (r *BulkReceiver) Underway() int { return len(r.live) }

// Claims returns how many bytes of the room its messages hold, and how many messages wait for some.
func (r *BulkReceiver) Claims() (held, waiting int) {
	for _, m := range r.live {
		switch m.state {
		case LargeWaits:
			waiting++
		case LargeMoving, LargeWhole:
			held += m.size()
		}
	}
	return held, waiting
}

// Begin takes the begin of a message. end is what the runtime says to it: any reason but route.OK refuses it. An error
// means that the sender breaks the protocol; nothing has changed then.
func (r *BulkReceiver) Begin(now time.Duration, b wire.BulkBegin, end BulkEnd) error {
	switch {
	case b.Number != r.last+1:
		return fmt.Errorf("%w: message %d begins behind message %d", ErrBulkProtocol, b.Number, r.last)
	case len(r.live) >= MaxBulkActive:
		return fmt.Errorf("%w: more than %d messages at a time", ErrBulkProtocol, MaxBulkActive)
	case len(r.answers) > maxBulkAnswer:
		return fmt.Errorf("%w: answers are not read", ErrBulkProtocol)
	}
	r.last = b.Number
	if int(b.Size) > r.limit && end.Reason == route.OK {
		end = BulkEnd{route.TooLarge, r.limit}
	}
	if end.Reason != route.OK {
		r.stats.Refused++
		r.over(b.Number, end)
		return nil
	}
	m := &bulkIn{begin: b, began: now, since: now}
	r.live = append(r.live, m)
	if r.room.Take(r.from, r.key(m), m.size()) {
		m.state.Step(LargeBegins)
		r.grant(m, r.window)
	}
	return nil
}

func (r *BulkReceiver) key(m *bulkIn) BulkKey { return BulkKey{r.conn, m.begin.Number} }

// Admitted says that the room has n bytes for a message that waited. If that is over, they are given back.
func (r *BulkReceiver) Admitted(now time.Duration, number uint32, n int) {
	m := r.find(number)
	if m == nil || !m.state.Step(LargeBegins) {
		r.room.Give(r.from, n)
		return
	}
	m.began, m.since = now, now
	r.grant(m, r.window)
}

func (r *BulkReceiver) grant(m *bulkIn, upTo int) {
	m.allowed = min(upTo, m.size())
	g := wire.BulkGrant{Number: m.begin.Number, Allowed: uint32(m.allowed)}
	r.answers = appendBulk(r.answers, wire.KindBulkGrant, func(b []byte) []byte { return wire.AppendBulkGrant(b, g) })
}

func (r *BulkReceiver) over(number uint32, end BulkEnd) {
	o := wire.BulkOver{Number: number, Status: uint16(end.Reason), Limit: uint64(end.Limit)}
	r.answers = appendBulk(r.answers, wire.KindBulkOver, func(b []byte) []byte { return wire.AppendBulkOver(b, o) })
}

// AppendAnswers appends what is to be written back, and forgets it.
func (r *BulkReceiver) AppendAnswers(dst []byte) []byte {
	dst = append(dst, r.answers...)
	r.answers = r.answers[:0]
	return dst
}

// Chunk says where n bytes of a message go that are about to be read, which Filled ends. It is nil when the message is
// over here, and the bytes are to be read and dropped. Before the first chunk, Buffer wants memory. An error means that
// the sender breaks the protocol.
func (r *BulkReceiver) Chunk(number uint32, n int) ([]byte, error) {
	if number == 0 || number > r.last {
		return nil, fmt.Errorf("%w: a chunk of message %d, the newest is %d", ErrBulkProtocol, number, r.last)
	}
	m := r.find(number)
	if m == nil {
		return nil, nil
	}
	if n <= 0 || n > m.allowed-m.got {
		return nil, fmt.Errorf("%w: %d bytes of message %d, %d are granted", ErrBulkProtocol, n, number, m.allowed-m.got)
	}
	if m.buf == nil {
		m.buf = make([]byte, m.size())
	}
	return m.buf[m.got : m.got+n : m.got+n], nil
}

// Wants returns how many bytes of memory a message needs that was admitted and has none yet, zero if it needs none. A
// runtime with threads makes them outside of its lock and gives them to Provide; else Chunk makes them.
func (r *BulkReceiver) Wants(number uint32) int {
	if m := r.find(number); m != nil && m.state == LargeMoving && m.buf == nil {
		return m.size()
	}
	return 0
}

// Provide gives a message the memory that Wants named, unless it needs none any more.
func (r *BulkReceiver) Provide(number uint32, buf []byte) {
	if r.Wants(number) == len(buf) && len(buf) > 0 {
		r.find(number).buf = buf
	}
}

// Filled says that n bytes have been read where Chunk pointed, and reports whether the message is whole with them. The
// sender of a message gets that from here; a reply is the runtime's to Take at once.
func (r *BulkReceiver) Filled(now time.Duration, number uint32, n int) (whole bool) {
	r.stats.Bytes += uint64(n)
	m := r.find(number)
	if m == nil {
		return false
	}
	m.got += n
	m.since = now
	switch {
	case m.got == m.size():
		m.state.Step(LargeArrives)
		if !m.begin.Reply {
			r.answers = appendBulk(r.answers, wire.KindBulkWhole,
				func(b []byte) []byte { return wire.AppendBulkNumber(b, number) })
		}
		return true
	case m.allowed < m.size() && m.allowed-m.got <= r.window/2:
		r.grant(m, m.got+r.window)
	}
	return false
}

// IsReply reports whether a message that is not over is a reply.
func (r *BulkReceiver) IsReply(number uint32) bool {
	m := r.find(number)
	return m != nil && m.begin.Reply
}

// Take hands out the payload of a message that is whole, once, for its entity or its asker: the caller owns it. It goes
// on counting against the room until the caller gives its bytes back, and its sender hears nothing until End.
func (r *BulkReceiver) Take(number uint32) (b wire.BulkBegin, payload []byte, ok bool) {
	m := r.find(number)
	if m == nil || !m.state.Step(LargeGoes) {
		return wire.BulkBegin{}, nil, false
	}
	payload, m.buf = m.buf, nil
	return m.begin, payload, true
}

// End tells the sender how a message ended, route.OK for one that was taken, and forgets it. It reports whether the
// message was not over already.
func (r *BulkReceiver) End(number uint32, end BulkEnd) bool {
	m := r.find(number)
	if m == nil {
		return false
	}
	taken := end.Reason == route.OK
	invariant.Check(!taken || m.state == LargeSent, "flow: a large message ends well that nobody took")
	if taken {
		r.stats.Taken++
	} else {
		r.stats.Refused++
	}
	r.remove(m)
	r.over(number, end)
	return true
}

// Abort takes the sender's end of a message. A number that never began is an error.
func (r *BulkReceiver) Abort(number uint32) error {
	if number == 0 || number > r.last {
		return fmt.Errorf("%w: an end of message %d, the newest is %d", ErrBulkProtocol, number, r.last)
	}
	if m := r.find(number); m != nil {
		r.stats.Aborted++
		r.remove(m)
	}
	return nil
}

// Broken says that the connection is gone: what is under way is dropped.
func (r *BulkReceiver) Broken() {
	for len(r.live) > 0 {
		r.stats.Broken++
		r.remove(r.live[0])
	}
	r.answers = nil
}

// Tick ends messages that were admitted and of which nothing came for too long, or too little, and those that are whole
// and that nobody claims: their senders hold room that others wait for.
func (r *BulkReceiver) Tick(now time.Duration) {
	for i := 0; i < len(r.live); {
		m := r.live[i]
		if why := r.overdue(now, m); why != nil {
			*why++
			r.remove(m)
			r.over(m.begin.Number, BulkEnd{Reason: route.TimedOut})
			continue
		}
		i++
	}
}

// overdue returns the counter of what a message is guilty of, nil when it may go on.
func (r *BulkReceiver) overdue(now time.Duration, m *bulkIn) *uint64 {
	switch {
	case m.state == LargeWaits || m.state == LargeSent:
		return nil
	case m.state == LargeWhole:
		if now-m.since >= bulkUnclaimed*r.stall {
			return &r.stats.Unclaimed
		}
	case now-m.since >= r.stall:
		return &r.stats.Stalled
	case m.got < int((now-m.began-r.stall).Seconds()*BulkLeastRate):
		return &r.stats.Slow
	}
	return nil
}

// remove forgets a message and gives its room back, unless the room went over to the code that took the message.
func (r *BulkReceiver) remove(m *bulkIn) {
	r.live = slices.DeleteFunc(r.live, func(o *bulkIn) bool { return o == m })
	m.buf = nil
	switch m.state {
	case LargeWaits:
		r.room.Drop(r.from, r.key(m))
	case LargeMoving, LargeWhole:
		r.room.Give(r.from, m.size())
	}
	m.state.Step(LargeEnds)
}

func (r *BulkReceiver) find(number uint32) *bulkIn {
	for _, m := range r.live {
		if m.begin.Number == number {
			return m
		}
	}
	return nil
}
