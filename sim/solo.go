// Entity: one entity without a cluster, for unit tests of its handler.

package sim

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/route"
)

// Entity is one entity of a type without a cluster and without sockets, in the test's goroutine and on virtual time. It
// is run by what runs entities on a node: handlers are made by the type's New or Open, get a real Context, are called
// in the type's Mode, and panics, timers, idleness and Passivate have their effects. What the handler sends goes
// nowhere: it is recorded. Nothing here is safe for concurrent use but ReplyToken.
type Entity struct {
	t     TB
	typ   entity.Type
	id    string
	in    route.ShardID
	fence route.Fence
	r     *solo
	shard *entity.Shard // nil: not owned, until the next message
	state []entity.State
}

// handOverRoom is the default of Sharding.MaxHandOver.
const handOverRoom = 16 << 20

// NewEntity returns the entity id of a type, alone. Its handler is made with its first message.
func NewEntity(t TB, typ entity.Type, id string, cfg EntityConfig) *Entity {
	t.Helper()
	typ = typ.WithDefaults()
	err := errors.Join(typ.Validate(), route.CheckID(id))
	in := route.NoShard
	if err == nil {
		in, err = typ.ShardOf(id)
	}
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	if cfg.Fence.IsZero() {
		cfg.Fence = route.MakeFence(1, 1, 1)
	}
	if cfg.Start.IsZero() {
		cfg.Start = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	e := &Entity{t: t, typ: typ, id: id, in: in, fence: cfg.Fence}
	e.typ.SlowAfter = math.MaxInt64 // no call is slow, and the runtime hears of each
	if typ.Typed != nil {
		typ.Open, e.typ.Typed = typ.Typed.Open, nil
	}
	e.typ.New, e.typ.Open = e.watchNew(typ.New), e.watchOpen(typ.Open)
	e.r = &solo{cfg: cfg, now: origin, life: &lifetime.Shard{}}
	return e
}

func (e *Entity) watchNew(make func(string, route.Fence) entity.Handler) func(string, route.Fence) entity.Handler {
	if make == nil {
		return nil
	}
	return func(id string, f route.Fence) entity.Handler { return e.watch(make(id, f)) }
}

func (e *Entity) watchOpen(
	open func(*entity.Context) (entity.Handler, error),
) func(*entity.Context) (entity.Handler, error) {
	if open == nil {
		return nil
	}
	return func(c *entity.Context) (entity.Handler, error) {
		h, err := open(c)
		return e.watch(h), err
	}
}

func (e *Entity) watch(h entity.Handler) entity.Handler {
	if h == nil {
		return nil
	}
	if s, is := h.(entity.Stateful); is {
		return &statefulRecorder{recorder{h, e}, s}
	}
	return &recorder{h, e}
}

// statefulRecorder is the recorder of a handler with a state that moves with it.
type statefulRecorder struct {
	recorder
	entity.Stateful
}

// recorder is a handler that records its calls.
type recorder struct {
	h entity.Handler
	e *Entity
}

func (w *recorder) Receive(c *entity.Context, payload []byte) error {
	w.e.r.call.Received++
	err := w.h.Receive(c, payload)
	w.e.r.call.Err = errors.Join(w.e.r.call.Err, err)
	return err
}

func (w *recorder) Stop(c *entity.Context) {
	w.e.r.call.Stopped = append(w.e.r.call.Stopped, c.StopReason())
	w.h.Stop(c)
}

// Tell gives the entity a message that nobody waits for.
func (e *Entity) Tell(payload []byte) *Call { return e.Do(Message{Payload: payload}) }

// Ask gives the entity a message with a waiting sender, and returns what it got, as Call.Reply.
func (e *Entity) Ask(payload []byte) ([]byte, error) {
	return e.Do(Message{Payload: payload, Ask: true}).Reply()
}

// Do gives the entity a message and returns what came of it. Payload and Headers are views that are overwritten behind
// the call, as on a node: a handler that keeps them is found out.
func (e *Entity) Do(m Message) *Call {
	e.t.Helper()
	c := e.begin()
	msg := entity.Message{ID: []byte(e.id), Payload: slices.Clone(m.Payload), Headers: slices.Clone(m.Headers)}
	if m.Ask {
		c.asked = &asked{}
		e.r.asks++
		msg.From, msg.Corr = c.asked, e.r.asks
		if m.Within > 0 {
			msg.Limit = e.r.now + m.Within
		}
	}
	why := route.Suspended
	if !e.r.suspended {
		why = e.own().Deliver(e.r.now, &msg)
	}
	if why != route.OK {
		c.Refused = why.Err()
		if c.asked != nil {
			_ = c.asked.Reply(1, why, nil) // it never fails
		}
	}
	e.run()
	for _, view := range [][]byte{msg.Payload, msg.Headers} {
		for i := range view {
			view[i] = '!'
		}
	}
	return e.end()
}

// Advance lets d of virtual time pass: timers fire, contexts end, an idle entity is stopped. It returns what came of
// it, one Call for each moment at which something did.
func (e *Entity) Advance(d time.Duration) []*Call {
	e.t.Helper()
	var calls []*Call
	for to := e.r.now + d; ; {
		at := to
		if e.shard != nil {
			if next, ok := e.shard.Next(); ok {
				at = min(at, max(next, e.r.now))
			}
		}
		last := at >= to
		e.r.pass(at)
		if e.shard != nil {
			c := e.begin()
			e.shard.Tick(at)
			e.run()
			if e.end(); c.Received > 0 || len(c.Stopped) > 0 || c.Refused != nil || len(c.Incidents) > 0 {
				calls = append(calls, c)
				last = false // more may be due now
			}
		}
		if last {
			return calls
		}
	}
}

// Stop takes the entity's shard away, StopMoved or StopLeaving: the handler is stopped within d of its clock, zero for
// nobody knows how long. The next message finds the shard owned again, under a higher fence. The state of a Stateful
// handler goes to its next instance, as in a move between nodes.
func (e *Entity) Stop(why entity.StopReason, d time.Duration) *Call {
	e.t.Helper()
	if why != entity.StopMoved && why != entity.StopLeaving {
		e.t.Fatalf("sim: a shard is stopped by StopMoved or StopLeaving, not %v", why)
	}
	e.begin()
	if e.shard != nil {
		by := time.Duration(0)
		if d > 0 {
			by = e.r.now + d
		}
		e.r.life.Stop(by)
		entity.AskForState(e.shard, handOverRoom)
		e.shard.Stop(e.r.now, why)
		e.run()
		for !e.shard.Stopped() {
			e.shard.Tick(e.r.now)
			e.run()
		}
		e.state = entity.TakeStates(e.shard, handOverRoom)
		e.shard, e.r.entity = nil, nil
		e.fence = route.MakeFence(e.fence.Birth(), e.fence.Term(), e.fence.Epoch()+1)
	}
	return e.end()
}

// Suspend suspends the node: contexts of handlers end, the handler's Tell and Ask and messages to it are refused with
// route.ErrSuspended. Call it from EntityConfig.Answer to suspend in the middle of a call.
func (e *Entity) Suspend() {
	e.r.suspended = true
	e.r.life.Suspend()
}

// GiveUp makes the last asker wait no longer, as when its context has ended: Context of the handler, which has to be
// one of an ask with a time limit (Message.Within), ends because of route.ErrAskCancelled. Call it from
// EntityConfig.Answer for the middle of a call, or later for an ask that the handler has detached.
func (e *Entity) GiveUp() { e.r.cancels.Cancel(lifetime.Asked{Number: e.r.asks}) }

// Resume ends a suspension.
func (e *Entity) Resume() { e.r.suspended = false }

// Fence returns the fence under which the entity is owned now, or will be with the next message.
func (e *Entity) Fence() route.Fence { return e.fence }

// Now returns the time of day that the handler sees.
func (e *Entity) Now() time.Time { return e.r.Wall() }

// Timers returns the timers that run, the next to fire first.
func (e *Entity) Timers() []Timer {
	if e.r.entity == nil {
		return nil
	}
	var all []Timer
	e.r.entity.Timers(func(name string, at time.Duration, payload []byte) bool {
		all = append(all, Timer{name, at - e.r.now, slices.Clone(payload)})
		return true
	})
	return all
}

// own returns the entity's shard, made anew when it was taken away.
func (e *Entity) own() *entity.Shard {
	if e.shard == nil {
		e.r.life = &lifetime.Shard{}
		e.shard = entity.NewShard(&e.typ, e.in, e.fence, e.r, nil)
		entity.PoisonContexts(e.shard)
		entity.Resume(e.shard, e.r.now, nil, e.state)
		e.state = nil
	}
	return e.shard
}

// begin begins to record.
func (e *Entity) begin() *Call {
	e.r.call = &Call{before: e.Timers()}
	return e.r.call
}

// end returns what was recorded, with what became of the timers.
func (e *Entity) end() *Call {
	c, after := e.r.call, e.Timers()
	same := func(t Timer) func(Timer) bool {
		return func(o Timer) bool { return t.Name == o.Name && t.In == o.In && string(t.Payload) == string(o.Payload) }
	}
	for _, t := range after {
		if i := slices.IndexFunc(c.before, same(t)); i >= 0 {
			c.before = slices.Delete(c.before, i, i+1)
		} else {
			c.Set = append(c.Set, t)
		}
	}
	for _, t := range c.before {
		if t.In > 0 {
			c.Cancelled = append(c.Cancelled, t)
		}
	}
	c.before = nil
	return c
}

// run works everything off that waits for a Blocking handler.
func (e *Entity) run() {
	if e.shard == nil {
		return
	}
	for ready := e.shard.Ready(); ready != nil; ready = e.shard.Ready() {
		for ok := ready.Begin(e.r.now); ok; ok = ready.End(e.r.now) && ready.Begin(e.r.now) {
			for ready.Work() {
			}
		}
	}
}
