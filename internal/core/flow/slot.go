// Slot: the route of one shard as a region sees it, and the messages that wait for it.

package flow

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// State is what a slot knows of its shard's home, and so what a sender does with a message.
type State uint8

// The states of a slot. Only Local and Remote are open; in the others messages park.
const (
	Unknown  State = 0 // nobody asked for the home yet
	Asking   State = 1 // Want made the runtime ask for the home, and messages wait for it
	Local    State = 2 // the shard lives on this node
	Remote   State = 3 // it lives at Home
	Draining State = 4 // the home is known, but parked messages go first
)

// String names the state.
func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Asking:
		return "asking"
	case Local:
		return "local"
	case Remote:
		return "remote"
	case Draining:
		return "draining"
	}
	return fmt.Sprintf("state-%d", uint8(s))
}

// Open reports whether messages go straight to the home.
func (s State) Open() bool { return s == Local || s == Remote }

// Slot is the route slot of one shard. Messages to an unknown home park in it in order; when the home is known they are
// peeked, sent and popped one by one, and only when none is left does the slot open, so that no later message overtakes
// a parked one. A message that waited longer than the Parking's time limit is failed by Expire, but not while the shard
// moves. Make one with MakeSlot; it is not safe for concurrent use.
type Slot struct {
	park  *Parking
	queue *ringbuf.Queue // nil while nothing is parked
	state State
	local bool          // where Draining leads
	busy  bool          // the oldest message is on its way already: a large one
	moves bool          // the shard leaves its home
	least time.Duration // nothing that waits is failed before: its shard moved until a time limit before that
	home  peer.ID
	fence route.Fence
	stats SlotStats
}

// SlotStats counts what became of messages that met a slot which was not open.
type SlotStats struct {
	Parked  uint64 // accepted into the queue
	Refused uint64 // found a bound reached
	Drained uint64 // popped on their way to the home
	Expired uint64 // waited too long, or nobody wanted them any more
	Failed  uint64 // failed by FailAll
}

// MakeSlot returns a slot that knows nothing, under the bounds of p.
func MakeSlot(p *Parking) Slot { return Slot{park: p} }

// State returns what is known of the home.
func (s *Slot) State() State { return s.state }

// IsLocal reports whether the home that is known, be it open or draining, is this node.
func (s *Slot) IsLocal() bool { return s.state >= Local && s.local }

// Home returns the node where the shard lives, zero when that is unknown.
func (s *Slot) Home() peer.ID { return s.home }

// Fence returns the fence under which it lives there, zero when that is unknown.
func (s *Slot) Fence() route.Fence { return s.fence }

// Stats returns the counters.
func (s *Slot) Stats() SlotStats { return s.stats }

// Parked returns how many messages wait and how many bytes they count.
func (s *Slot) Parked() (records, bytes int) {
	if s.queue == nil {
		return 0, 0
	}
	return s.queue.Len(), s.queue.Bytes()
}

// Park puts the message e to the entity id behind those that wait already; e.ID is ignored, and id and e.Payload are
// copied. It returns ErrOpen when the slot is open, or a *route.ParkFullError; then nothing has changed but a counter.
func (s *Slot) Park(now time.Duration, e *wire.Envelope, id string) error {
	if s.state.Open() {
		return ErrOpen
	}
	return s.put(now, e, id)
}

// Hold is Park for an envelope that stands for a large message, also when the slot is open: from here on it drains, and
// what comes later parks until the large message is through or has failed, so that none overtakes it. The runtime
// changes its fast path under the same lock.
func (s *Slot) Hold(now time.Duration, e *wire.Envelope, id string) error {
	if err := s.put(now, e, id); err != nil {
		return err
	}
	if s.state.Open() {
		s.set(Draining)
	}
	return nil
}

// Busy says that the large message which PeekParked returned is on its way to the home: while that is so, it and what
// waits behind it are not failed for having waited too long.
func (s *Slot) Busy() { s.busy = s.state == Draining && s.queue != nil }

func (s *Slot) put(now time.Duration, e *wire.Envelope, id string) error {
	size := wire.SizeEnvelope(len(id), len(e.Payload)) + e.More()
	records, bytes := s.Parked()
	err := error(nil)
	switch {
	case records >= s.park.records:
		err = s.park.fullRecords
	case size+ParkOverhead > s.park.bytes-bytes:
		err = s.park.fullBytes
	case !s.park.take(size + ParkOverhead):
		err = s.park.fullBudget
	}
	if err != nil {
		s.stats.Refused++
		return err
	}
	if s.queue == nil {
		s.queue = ringbuf.NewQueue(s.park.bytes)
	}
	wire.PutEnvelope(s.record(now, size), e, id)
	s.stats.Parked++
	return nil
}

// record makes a place behind what waits for a frame of n bytes, and returns it.
func (s *Slot) record(now time.Duration, n int) []byte {
	rec := reserve(s.queue, deadlineSize+n)
	binary.LittleEndian.PutUint64(rec, uint64(now+s.park.longest()))
	return rec[deadlineSize:]
}

func reserve(q *ringbuf.Queue, n int) []byte {
	rec, err := q.Reserve(n)
	invariant.Check(err == nil, "flow: parking queue is full within its bound")
	return rec
}

// Want reports, once, that messages wait for a home that nobody asked for: the slot is Asking then, and the runtime
// asks.
func (s *Slot) Want() bool {
	if s.state != Unknown || s.queue == nil {
		return false
	}
	s.set(Asking)
	return true
}

// Resolve takes the answer: the shard lives at home, which is this node if local, under fence f. The slot opens, or
// drains first when messages wait. It reports whether anything changed.
func (s *Slot) Resolve(local bool, home peer.ID, f route.Fence) bool {
	if s.state >= Local && s.local == local && s.home == home && s.fence == f {
		return false
	}
	s.local, s.home, s.fence = local, home, f
	s.moves = false
	s.set(Draining)
	s.OpenIfDrained()
	return true
}

// PeekParked returns the oldest waiting message while the slot drains: a whole envelope frame, stamped with the slot's
// fence and FlagParked. The view is valid until the next call of PopParked, Park, Expire or FailAll. The runtime sends
// it and calls PopParked, or leaves it when the link is full and comes back when there is room.
func (s *Slot) PeekParked() (frame []byte, ok bool) {
	if s.state != Draining || s.queue == nil {
		return nil, false
	}
	frame = s.queue.Peek()[deadlineSize:]
	wire.StampParked(frame, s.fence.Term(), s.fence.Epoch())
	return frame, true
}

// PopParked drops the message that PeekParked returned, which has been sent.
func (s *Slot) PopParked() {
	if s.state == Draining && s.queue != nil {
		s.pop()
		s.stats.Drained++
	}
}

// DropParked drops the message that PeekParked returned, and that nobody wants any more.
func (s *Slot) DropParked() {
	if s.state == Draining && s.queue != nil {
		s.pop()
		s.stats.Expired++
	}
}

// OpenIfDrained opens a draining slot in which nothing waits any more, and reports whether it did.
func (s *Slot) OpenIfDrained() bool {
	if s.state != Draining || s.queue != nil {
		return false
	}
	if s.local {
		s.set(Local)
	} else {
		s.set(Remote)
	}
	return true
}

// Forget makes the home unknown if it stands under the fence with exactly this term and epoch, and reports whether it
// did. Messages that wait go on waiting, and Want asks for them again.
func (s *Slot) Forget(term, epoch uint32) bool {
	if s.state < Local || s.fence.Term() != term || s.fence.Epoch() != epoch {
		return false
	}
	return s.Reset()
}

// Reset makes the home unknown whatever it was, also a question for it, and reports whether anything changed.
func (s *Slot) Reset() bool {
	s.moves = false
	if s.state == Unknown {
		return false
	}
	s.local, s.home, s.fence = false, peer.ID{}, route.Fence{}
	s.set(Unknown)
	return true
}

// Leave makes the home unknown because the shard moves: until the slot gets to know more, by Resolve or Reset, nothing
// that waits is failed for having waited too long, and then its time limit begins anew.
func (s *Slot) Leave() {
	s.Reset()
	s.moves = true
}

// Next returns when the oldest waiting message will have waited too long; never while it is on its way (Busy). (A
// sender that read its clock long before it got the slot's lock may leave a message with an earlier deadline behind it,
// which is failed with it.)
func (s *Slot) Next() (deadline time.Duration, ok bool) {
	if s.queue == nil || s.busy || s.moves {
		return 0, false
	}
	return max(s.least, time.Duration(binary.LittleEndian.Uint64(s.queue.Peek()))), true
}

// Expire fails every message that is overdue, oldest first, and returns how many: fail gets the whole frame, valid
// during the call, and answers it if it is an ask.
func (s *Slot) Expire(now time.Duration, fail func(frame []byte)) int {
	if s.moves && s.queue != nil {
		s.least = now + s.park.longest()
	}
	n := 0
	for deadline, ok := s.Next(); ok && deadline <= now; deadline, ok = s.Next() {
		s.failOne(fail)
		n++
	}
	s.stats.Expired += uint64(n)
	return n
}

// FailAll fails every message that waits, oldest first, and returns how many. A home that is known stays.
func (s *Slot) FailAll(fail func(frame []byte)) int {
	n := 0
	for s.queue != nil {
		s.failOne(fail)
		n++
	}
	s.stats.Failed += uint64(n)
	return n
}

func (s *Slot) failOne(fail func(frame []byte)) {
	if fail != nil {
		fail(s.queue.Peek()[deadlineSize:])
	}
	s.pop()
}

// pop drops the oldest message and gives its bytes back. When nobody waits any more for a home that was asked for, the
// next message asks anew: so the runtime hears of it, and looks after its time limit.
func (s *Slot) pop() {
	s.busy = false
	s.park.give(len(s.queue.Peek()) + ringbuf.RecordOverhead)
	s.queue.Pop()
	if s.queue.Len() > 0 {
		return
	}
	s.queue, s.least = nil, 0
	if s.state == Asking {
		s.set(Unknown)
	}
}

func (s *Slot) set(st State) {
	s.state, s.busy = st, false
}
