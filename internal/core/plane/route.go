// Routes: what becomes of the slot of a shard when its home is announced, closed, doubted, or gone.

package plane

import (
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Next is what the runtime does after a verb on a slot.
type Next uint8

// The ways to go on.
const (
	Rest   Next = iota // nothing
	Flush              // Drain the slot, which opens it
	LookUp             // have the node asked for the home
	Forget             // have the node forget the home, in a turn of its own, and call Rehome then
)

// Home is what the node says of where a shard lives. The zero value: nobody knows.
type Home struct {
	At     peer.ID
	Fence  route.Fence
	Local  bool // At is this node
	Gone   bool // it cannot be reached any more: At is forgotten or, of a local one, its host has the order to stop
	Moving bool // the shard leaves its home, and the next one will be announced: what waits until then does not expire
}

// Move takes the node's word on a home. What waited goes first: Flush. A home that is the slot's already changes
// nothing, nor does a local one that got the order to stop since: the node says so next. News of a home that is
// forgotten come late: the slot is closed, and the node has to Forget it.
func Move(s *flow.Slot, h Home) Next {
	switch {
	case h.Moving:
		s.Leave()
		return want(s)
	case h.At == peer.ID{}:
		return Close(s)
	case h.Gone && h.Local:
		return Rest
	case h.Gone:
		s.Reset()
		return Forget
	case s.Resolve(h.Local, h.At, h.Fence):
		return Flush
	}
	return Rest
}

// Close makes the home unknown: new messages wait, and those that wait already make the node ask for it.
func Close(s *flow.Slot) Next {
	s.Reset()
	return want(s)
}

// Rehome closes a slot that leads to a home which the node has been made to forget, and asks for another if something
// waits. One that leads elsewhere by now stays.
func Rehome(s *flow.Slot, at peer.ID, term, epoch uint32) Next {
	if Leads(s, at, term, epoch) {
		s.Reset()
	}
	return want(s)
}

// Leads reports whether a slot, open or draining, leads to that node, which is not this one, under a fence of that term
// and epoch.
func Leads(s *flow.Slot, at peer.ID, term, epoch uint32) bool {
	f := s.Fence()
	return s.State() >= flow.Remote && !s.IsLocal() && s.Home() == at && f.Term() == term && f.Epoch() == epoch
}

// Doubts reports whether a refusal by the node from puts the route of a slot in doubt: then the node has to forget the
// home, unless it has another by now.
func Doubts(s *flow.Slot, from peer.ID, k *RefusalKey) bool {
	return WrongHome(k.Reason) && Leads(s, from, k.Term, k.Epoch)
}

// Park makes a message wait for its shard's home. Errors are those of flow.Slot.Park.
func Park(s *flow.Slot, now time.Duration, e *wire.Envelope, id string) (Next, error) {
	if err := s.Park(now, e, id); err != nil {
		return Rest, err
	}
	return want(s), nil
}

// Hold makes the envelope of a large message wait in its place, in an open slot too: that is closed from here on, so
// the runtime closes its fast path under the same lock, and goes on with Flush. Errors are those of flow.Slot.Hold.
func Hold(s *flow.Slot, now time.Duration, e *wire.Envelope, id string) (Next, error) {
	open := s.State().Open()
	if err := s.Hold(now, e, id); err != nil {
		return Rest, err
	}
	if open {
		return Flush, nil
	}
	return want(s), nil
}

// Expire fails what has waited too long in a slot, as flow.Slot.Expire does. watch says that something waits on, so
// that the runtime looks again; when the last is gone that a drain had stopped at, the slot may open: Flush.
func Expire(s *flow.Slot, now time.Duration, fail func(frame []byte)) (next Next, watch bool) {
	s.Expire(now, fail)
	if n, _ := s.Parked(); n > 0 {
		return Rest, true
	}
	if s.State() == flow.Draining {
		return Flush, false
	}
	return Rest, false
}

func want(s *flow.Slot) Next {
	if s.Want() {
		return LookUp
	}
	return Rest
}

// AsksItself says whether a handler of a shard may wait for an answer of that same shard; s is its slot: not when
// the shard leaves or stops here, because its stop waits for the handler, and the answer for the stop.
func AsksItself(s *flow.Slot) route.Reason {
	if s.State() < flow.Local {
		return route.ShardStopping
	}
	return route.OK
}
