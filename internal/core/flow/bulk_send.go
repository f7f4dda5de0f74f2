// BulkSender: the sending side of the bulk connection to one peer.

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

// BulkTransfer is one large message at its sender. The runtime fills in Begin, but for its number, and Payload, which
// is read until the transfer is over, and not changed.
type BulkTransfer struct {
	Begin   wire.BulkBegin
	Payload []byte
	Owner   any // the runtime's own

	generation uint32
	state      bulkState
	sent       int
	allowed    int
	since      time.Duration // of the last progress
}

type bulkState uint8

const (
	bulkIdle   bulkState = 0 // not with a sender, or over
	bulkQueued bulkState = 1
	bulkBegun  bulkState = 2
	bulkWhole  bulkState = 3 // the receiver has all of it
)

// Ref returns how an envelope names the message. It is valid once the receiver has all of it.
func (x *BulkTransfer) Ref() wire.BulkRef {
	return wire.BulkRef{Generation: x.generation, Number: x.Begin.Number}
}

// Sent returns how many bytes of the payload have been handed to the connection.
func (x *BulkTransfer) Sent() int { return x.sent }

// Whole reports whether the receiver has all of it and waits for the envelope that stands for it.
func (x *BulkTransfer) Whole() bool { return x.state == bulkWhole }

// BulkEvent is what an answer of the receiver means to the runtime.
type BulkEvent uint8

// The events of a transfer.
const (
	BulkNothing  BulkEvent = 0 // a late answer
	BulkMayGo    BulkEvent = 1 // Append has more to say
	BulkIsWhole  BulkEvent = 2 // the envelope that stands for it may go
	BulkHasEnded BulkEvent = 3 // it is over, with a reason: route.OK when it was taken
)

// BulkSender says what is to be written on a bulk connection: each message begins, sends as far as it is granted, in
// chunks that take turns with those of other messages, and is over when the receiver says so, when its connection
// breaks or when it is cancelled. Its methods are called under one lock; it holds what waits over broken connections,
// while what has begun ends with its own. Make one with NewBulkSender.
type BulkSender struct {
	chunk int
	stall time.Duration

	up         bool
	resting    bool // none begins
	generation uint32
	number     uint32          // of the newest that began on this connection
	queue      []*BulkTransfer // not begun, oldest first
	live       []*BulkTransfer // begun, by number
	aborts     []uint32        // to be sent
	turn       int             // of live: which sends the next chunk
	moved      time.Duration   // when anything moved on the link
	full       error
	stats      stats.BulkSent
}

// NewBulkSender returns a sender to a peer, without a connection. Its frames carry at most chunk bytes, and it
// gives up a message for which nothing moves for so long as stall. Numbers that are not positive mean the defaults.
func NewBulkSender(to peer.ID, chunk int, stall time.Duration) *BulkSender {
	if chunk <= 0 {
		chunk = DefaultBulkChunk
	}
	if stall <= 0 {
		stall = DefaultBulkStall
	}
	return &BulkSender{chunk: min(chunk, wire.MaxBulkChunk), stall: stall,
		full: &route.BulkFullError{Bound: "large messages", Limit: MaxBulkQueued, Peer: to}}
}

// Add queues a transfer that is with no sender. A *route.BulkFullError when MaxBulkQueued wait.
func (s *BulkSender) Add(now time.Duration, x *BulkTransfer) error {
	invariant.Check(x.state == bulkIdle && len(x.Payload) > 0 && len(x.Payload) <= wire.MaxBulkSize,
		"flow: a bulk transfer is sent twice, or of no size")
	if len(s.queue) >= MaxBulkQueued {
		return s.full
	}
	if s.Idle() {
		s.moved = now
	}
	x.Begin.Size = uint32(len(x.Payload))
	x.state, x.sent, x.allowed, x.since = bulkQueued, 0, 0, now
	s.queue = append(s.queue, x)
	return nil
}

// Idle reports whether nothing waits and nothing is under way.
func (s *BulkSender) Idle() bool { return len(s.queue)+len(s.live)+len(s.aborts) == 0 }

// Underway returns how many transfers wait and how many have begun.
func (s *BulkSender) Underway() (queued, begun int) { return len(s.queue), len(s.live) }

// Stats returns the counters.
func (s *BulkSender) Stats() stats.BulkSent { return s.stats }

// Connected says that a connection of that generation stands: numbers start anew.
func (s *BulkSender) Connected(now time.Duration, generation uint32) {
	invariant.Check(!s.up && generation > s.generation, "flow: a bulk connection's generation does not grow")
	s.up, s.generation, s.number, s.moved = true, generation, 0, now
}

// Broken says that the connection is gone. It appends those that had begun to dst: they are over, lost. What waits goes
// on the next connection.
func (s *BulkSender) Broken(dst []*BulkTransfer) []*BulkTransfer {
	s.up, s.resting, s.aborts, s.turn = false, false, nil, 0
	for _, x := range s.live {
		s.stats.Lost++
		x.state = bulkIdle
	}
	dst = append(dst, s.live...)
	s.live = nil
	return dst
}

// Rest says whether no transfer is to begin on this connection, so that it can be made anew without loss once Rested.
func (s *BulkSender) Rest(on bool) { s.resting = on }

// Rested reports whether a sender that rests has nothing on its connection any more.
func (s *BulkSender) Rested() bool { return s.resting && len(s.live)+len(s.aborts) == 0 }

// FailAll appends everything to dst, begun or not: the peer is gone for good.
func (s *BulkSender) FailAll(dst []*BulkTransfer) []*BulkTransfer {
	dst = s.Broken(dst)
	for _, x := range s.queue {
		s.stats.Lost++
		x.state = bulkIdle
	}
	dst = append(dst, s.queue...)
	s.queue = nil
	return dst
}

// Append appends what is to be written next, at most one chunk and a few small frames, or nothing. It counts as sent.
func (s *BulkSender) Append(now time.Duration, dst []byte) []byte {
	if !s.up {
		return dst
	}
	for _, n := range s.aborts {
		dst = appendBulk(dst, wire.KindBulkAbort, func(b []byte) []byte { return wire.AppendBulkNumber(b, n) })
	}
	s.aborts = s.aborts[:0]
	for !s.resting && len(s.queue) > 0 && len(s.live) < MaxBulkActive {
		x := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		s.number++
		x.Begin.Number, x.generation, x.state, x.since = s.number, s.generation, bulkBegun, now
		s.live = append(s.live, x)
		dst = appendBulk(dst, wire.KindBulkBegin, func(b []byte) []byte { return wire.AppendBulkBegin(b, &x.Begin) })
	}
	for range s.live {
		if s.turn++; s.turn >= len(s.live) {
			s.turn = 0
		}
		x := s.live[s.turn]
		if n := min(s.chunk, x.allowed-x.sent); n > 0 {
			dst = wire.AppendBulkChunk(dst, x.Begin.Number, x.Payload[x.sent:x.sent+n])
			x.sent += n
			s.stats.Bytes += uint64(n)
			break
		}
	}
	return dst
}

func appendBulk(dst []byte, k wire.Kind, body func([]byte) []byte) []byte {
	dst, at := wire.BeginFrame(dst, k, 0, 0)
	dst = body(dst)
	wire.EndFrame(dst, at)
	return dst
}

// Handle takes an answer of the receiver and says what it means for which transfer; end belongs to BulkHasEnded. An
// error means that the receiver makes no sense; nothing has changed then.
func (s *BulkSender) Handle(now time.Duration, k wire.Kind, body []byte) (x *BulkTransfer, e BulkEvent, end BulkEnd,
	err error) {
	switch k {
	case wire.KindBulkGrant:
		g, err := wire.ParseBulkGrant(body)
		if err != nil {
			return nil, 0, end, err
		}
		return s.granted(now, g)
	case wire.KindBulkWhole:
		n, err := wire.ParseBulkNumber(k, body)
		if err != nil {
			return nil, 0, end, err
		}
		x, err := s.find(n)
		if x == nil || err != nil {
			return nil, BulkNothing, end, err
		}
		if x.state != bulkBegun || x.sent < len(x.Payload) {
			return nil, 0, end, fmt.Errorf("%w: message %d is whole before it was sent", ErrBulkProtocol, n)
		}
		x.state, x.since, s.moved = bulkWhole, now, now
		return x, BulkIsWhole, end, nil
	case wire.KindBulkOver:
		o, err := wire.ParseBulkOver(body)
		if err != nil {
			return nil, 0, end, err
		}
		return s.over(now, o)
	}
	return nil, 0, end, fmt.Errorf("%w: %s is no answer", ErrBulkProtocol, k)
}

func (s *BulkSender) granted(now time.Duration, g wire.BulkGrant) (x *BulkTransfer, e BulkEvent, end BulkEnd,
	err error) {
	x, err = s.find(g.Number)
	if x == nil || err != nil {
		return nil, BulkNothing, end, err
	}
	if n := int(g.Allowed); n <= x.allowed || n > len(x.Payload) {
		return nil, 0, end, fmt.Errorf("%w: %d bytes of message %d granted, which has %d, after %d", ErrBulkProtocol,
			g.Allowed, g.Number, len(x.Payload), x.allowed)
	}
	x.allowed, x.since, s.moved = int(g.Allowed), now, now
	return x, BulkMayGo, end, nil
}

func (s *BulkSender) over(now time.Duration, o wire.BulkOver) (x *BulkTransfer, e BulkEvent, end BulkEnd, err error) {
	x, err = s.find(o.Number)
	if x == nil || err != nil {
		return nil, BulkNothing, end, err
	}
	reason := route.Reason(o.Status)
	taken := reason == route.OK
	early := x.state != bulkWhole && !x.Begin.Reply || x.sent < len(x.Payload)
	if !reason.Known() || taken && early {
		return nil, 0, end, fmt.Errorf("%w: message %d is over with status %d", ErrBulkProtocol, o.Number, o.Status)
	}
	if taken {
		s.stats.Taken++
	} else {
		s.stats.Refused++
	}
	s.moved = now
	s.remove(x)
	return x, BulkHasEnded, BulkEnd{reason, int(o.Limit)}, nil
}

// find returns the transfer of a number, nil when it is over here already.
func (s *BulkSender) find(number uint32) (*BulkTransfer, error) {
	if !s.up || number == 0 || number > s.number {
		return nil, fmt.Errorf("%w: an answer for message %d, the newest is %d", ErrBulkProtocol, number, s.number)
	}
	for _, x := range s.live {
		if x.Begin.Number == number {
			return x, nil
		}
	}
	return nil, nil
}

// remove takes a transfer out of those that have begun. The turn stays as it is.
func (s *BulkSender) remove(x *BulkTransfer) {
	i := slices.Index(s.live, x)
	s.live = slices.Delete(s.live, i, i+1)
	if i <= s.turn {
		s.turn--
	}
	x.state = bulkIdle
}

// Cancel ends a transfer, whatever became of it at its receiver: it reports whether it was not over already. Its
// payload is not read any more when it returns.
func (s *BulkSender) Cancel(x *BulkTransfer) bool {
	if !s.drop(x) {
		return false
	}
	s.stats.Cancelled++
	return true
}

func (s *BulkSender) drop(x *BulkTransfer) bool {
	switch x.state {
	case bulkIdle:
		return false
	case bulkQueued:
		i := slices.Index(s.queue, x)
		s.queue = slices.Delete(s.queue, i, i+1)
		x.state = bulkIdle
	default:
		s.aborts = append(s.aborts, x.Begin.Number)
		s.remove(x)
	}
	return true
}

// Tick ends what has stalled and appends it to dst: a transfer that has begun and was neither granted more nor taken
// for so long, or one that waits on a link where nothing moved for so long. One that has arrived whole waits for
// its envelope, or for its entity, and does not stall.
func (s *BulkSender) Tick(now time.Duration, dst []*BulkTransfer) []*BulkTransfer {
	first := len(dst)
	for _, x := range s.live {
		if x.state == bulkBegun && now-x.since >= s.stall {
			dst = append(dst, x)
		}
	}
	if now-s.moved >= s.stall {
		for _, x := range s.queue {
			if now-x.since >= s.stall {
				dst = append(dst, x)
			}
		}
	}
	for _, x := range dst[first:] {
		s.drop(x)
		s.stats.Stalled++
	}
	return dst
}
