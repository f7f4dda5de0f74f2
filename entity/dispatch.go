// Hand: the short way of a message to an entity that was looked up ahead, for runtimes that handle many in a row.

package entity

import (
	"time"

	"github.com/kith-io/kith/internal/base/incall"
	"github.com/kith-io/kith/internal/base/invariant"
)

// CallFrame is what calls into Worker and Inline handlers need once for each goroutine: the Context of the call that is
// being made. All shards that one goroutine steps may share one; the zero value is ready.
type CallFrame struct {
	ctx *Context // nil: none was needed yet
	at  uintptr  // incall.Here of the goroutine that calls Dispatch

	poisons bool // each call gets a context of its own

	more    bool // With has said something of the message that is next
	limit   time.Duration
	headers []byte
}

// With gives the next Dispatch what only some messages have, as Message has it: the limit, and headers, which are a
// view.
func (d *CallFrame) With(limit time.Duration, headers []byte) {
	d.more, d.limit, d.headers = true, limit, headers
}

// Bind tells the call frame on which goroutine the next calls of Dispatch run: this one. It is called once before many
// of them.
func (d *CallFrame) Bind() { d.at = incall.Here() }

// beginCall readies the call frame's context for a call for e.
func (s *Shard) beginCall(e *Entity) *Context {
	invariant.Check(!s.inCall, "entity: a shard is stepped from inside its own handler")
	s.inCall = true
	c := s.callFrame.ctx
	if c == nil || c.spent {
		c = s.callFrame.renew()
	}
	c.s, c.tally, c.Fence, c.Shard = s, &s.stats.Tally, s.fence, s.id
	c.ID, c.e = e.id, e
	return c
}

// renew gives the call frame a context for the next call.
func (d *CallFrame) renew() *Context {
	if d.ctx == nil {
		d.ctx = &Context{}
	}
	d.ctx = forNext(d.ctx)
	return d.ctx
}

// endCall ends it.
func (s *Shard) endCall(c *Context) {
	c.from = nil
	if s.callFrame.poisons {
		poison(c)
	}
	s.inCall = false
}

// PoisonContexts gives each call of the shard a Context of its own, which shows no entity any more when the call has
// returned: so tests find handlers that keep theirs. It comes before the first message, and behind Use.
func PoisonContexts(s *Shard) {
	if s.callFrame == nil {
		s.callFrame = &CallFrame{}
	}
	s.poisons, s.callFrame.poisons = true, true
}

// Foresee looks up the entity that a message with that hash of its id is probably for. A caller with several messages
// asks for all of them first and then whether each Is that entity: the waits for memory of one are spent on the others.
// It changes nothing and promises nothing; nil is as good an answer as any. The goroutine that may call Deliver may
// call it.
func (s *Shard) Foresee(hash uint64) *Entity {
	if s.phase != serving { // Dispatch looks here first too: so this line of the shard is on its way as well
		return nil
	}
	return s.table.likely(hash)
}

// Dispatch is Deliver of a message to the entity e of this shard, which Foresee named and which Is the receiver. ok is
// false, and nothing has happened, when that is not enough to deliver it: Deliver does then. quiet means that nothing
// has changed of what Next tells. The shard is Worker or Inline and has a CallFrame by Use; the caller looks at the
// runtime's Now before and behind it and calls Took.
//
// A panic of the handler comes through, so that one guard serves for many messages: the caller defers
//
//	func() {
//		if v := recover(); v != nil {
//			callFrame.Recovered(v)
//		}
//	}()
//
// and goes on with the next message.
func (s *Shard) Dispatch(now time.Duration, e *Entity, from Origin, corr uint64, payload []byte) (ok, quiet bool) {
	d := s.callFrame
	if s.phase != serving || s.ways != 0 || e.h == nil { // no instance: it rests after a panic, or is gone
		d.more = false
		return false, false
	}
	s.advance(now)
	c := s.beginCall(e)
	c.timerRoom = MaxTimers - e.running()
	c.open(from, corr)
	if d.more {
		d.more, c.limit, c.headers = false, d.limit, d.headers
	}
	c.tally.Delivered++
	c.at = d.at
	err := e.h.Receive(c, payload)
	c.at = 0
	if err != nil || c.from != nil || c.passivate {
		c.outcome(err, nil)
	}
	s.endCall(c)
	return true, s.handled(c, e)
}

// Recovered takes what recover returned in the goroutine in which Hand has panicked, inside the deferred function. What
// does not come from a handler is panicked with again.
func (d *CallFrame) Recovered(v any) {
	c := d.ctx
	if c == nil || c.at == 0 {
		panic(v)
	}
	leaveCall(c)
	c.outcome(nil, c.caught(v))
	c.s.endCall(c)
	c.s.handled(c, c.e)
}

// Exited ends the call of a Worker or Inline handler that has ended its goroutine (runtime.Goexit), in a function that
// is deferred there by the caller of Deliver, so that the shard can be stepped on. What the call left was seen to.
func Exited(s *Shard) {
	if !s.inCall {
		return
	}
	c := s.callFrame.ctx
	s.endCall(c)
	s.handled(c, c.e)
}

// Took says how long a Hand took, when the runtime's clock has moved meanwhile. e is its entity, gone or not.
func (s *Shard) Took(e *Entity, took time.Duration) {
	if took > s.slow {
		s.stats.Slow++
		s.report(e, Incident{Kind: Slow, Took: took})
	}
}
