// Shard: the host of one shard's entities, stepped by its runtime.

package entity

import (
	"bytes"
	"time"

	"github.com/kith-io/kith/route"
)

// Shard hosts the entities of one shard under one fence. Its verbs are Deliver, Tick, Stop and Abandon; all are called
// by one goroutine at a time, under the lock or on the worker that orders the shard's messages.
//
// Worker and Inline handlers are called inside Deliver, Tick and Stop. Blocking handlers never are: these verbs copy
// messages into mailboxes and make entities ready, Ready hands them out, and the runtime runs each on a goroutine (or a
// coroutine) of its own that lives as long as the entity has work:
//
//	lock; ok := e.Begin(now); unlock           // takes a batch of messages
//	for ok {
//	    e.Enter(frame, now)                    // that of the goroutine
//	    for e.Work() {}                        // one call into user code each, without the lock
//	    lock; ok = e.End(now) && e.Begin(now); unlock
//	}
//
// with Ready asked again after every verb and every End. One entity has one call at a time, in the order of Deliver.
type Shard struct {
	// What every message touches comes first, by the goroutine that writes it: a shard is cold when its message comes, and
	// one goroutine delivers while others run Blocking entities. TestLinesOfAShard knows the lines. This one hardly
	// changes.
	typ       *Type
	runtime   Runtime
	fence     route.Fence
	callFrame *CallFrame
	id        route.ShardID
	phase     shardPhase
	why       StopReason // of stopping
	calling

	// These two lines are of Blocking entities that become busy, and idle.
	readyHead, readyTail *Entity
	spare                spare
	lease                lease
	busy                 int           // entities that have an activity
	busyAt               time.Duration // when one last became busy
	halting              int           // Blocking entities made ready only to be stopped

	// The first count is the one of each message.
	table table
	now   time.Duration
	stepped
	stats Stats
	slow  time.Duration // a call that takes longer is reported

	timers timerHeap
	upkeep
	sweepAt time.Duration // when to look for idle entities
	sweepTo time.Duration // the earliest that one of those seen so far becomes idle
	cursor  int           // where in the table the look, or the stop, goes on; below zero when it is over
	hand    int           // where in the table the last look for an entity to evict ended
	moving  moving
	recalled
	watching *watching // nil: nobody watches, or is watched
}

// stepped is what a step of a shard leaves to the next.
type stepped struct {
	inCall bool // a Worker or Inline handler is being called
	news   bool // perhaps of what Next tells, which nobody has asked for since; of Blocking entities
}

// Quiet reports whether all that Blocking entities have seen of Deliver, Begin and End since the last Next has changed
// nothing of what that tells. It says nothing of other verbs.
func (s *stepped) Quiet() bool { return !s.news }

// calling is what all calls of a shard have in common.
type calling struct {
	ways    ways // what is around each call
	poisons bool // each gets a Context of its own
}

// moving is what a shard knows of the move that ends it, and of the one that began it.
type moving struct {
	cut   bool      // at its deadline: what waits is taken, and no handler is called for it
	left  []Message // taken, in the order of each entity
	first []Message // of the last owner: handled before anything else
	states
}

type shardPhase uint8

const (
	serving   shardPhase = 0
	stopping  shardPhase = 1
	abandoned shardPhase = 2
	cut       shardPhase = 3 // it is to be stopped, and its deadline came first
)

// Tally counts what came of calls into handlers.
type Tally struct {
	Delivered     uint64 // messages given to a handler, the failed ones included
	NotMade       uint64 // messages dropped because New or Open made no handler for them; asks among them were answered
	Failed        uint64 // Receive returned an error: of them, and of stop messages, which are not among them
	Panics        uint64 // New, Open, Receive or Stop panicked
	Crashes       uint64 // instances that a panic ended, or that New or Open failed to make
	NoReply       uint64 // asks left without a reply
	AnswersLost   uint64 // answers that the origin did not take
	Made          uint64 // instances made
	Passivated    uint64 // instances that let themselves go
	Stopped       uint64 // instances stopped, for whatever reason
	Slow          uint64 // calls longer than SlowAfter
	TimersDropped uint64 // timers that went with their instance or with the shard
	TimersHandled uint64 // of Delivered, messages of timers
	EndsHandled   uint64 // of Delivered, messages that tell of the end of another entity
	Expired       uint64 // asks that lay in a mailbox until nobody waited any more: no handler was called
	HandedOver    uint64 // states that instances have handed over
	TakenUp       uint64 // states that instances have taken up
}

func (t *Tally) add(o *Tally) {
	t.Delivered += o.Delivered
	t.NotMade += o.NotMade
	t.Failed += o.Failed
	t.Panics += o.Panics
	t.Crashes += o.Crashes
	t.NoReply += o.NoReply
	t.AnswersLost += o.AnswersLost
	t.Made += o.Made
	t.Passivated += o.Passivated
	t.Stopped += o.Stopped
	t.Slow += o.Slow
	t.TimersDropped += o.TimersDropped
	t.TimersHandled += o.TimersHandled
	t.EndsHandled += o.EndsHandled
	t.Expired += o.Expired
	t.HandedOver += o.HandedOver
	t.TakenUp += o.TakenUp
}

// Stats is what a shard counts. Blocking calls are counted when their run ends.
type Stats struct {
	Tally
	Refused     [route.Reasons]uint64 // messages refused, by reason
	Abandoned   uint64                // accepted messages that Abandon dropped
	Dropped     uint64                // accepted messages that were dropped because their entity was given up
	GivenUp     uint64                // entities given up after a panic, as Restart and MaxRestarts say
	Evicted     uint64                // idle entities stopped because of MaxActive
	TimersFired uint64
	Late        Lateness // of these
	Live        int      // entities
	Crashed     int      // of them, those that panicked within the type's RestartWindow, if it counts panics
	Timers      int      // running
	QueuedBytes int      // in mailboxes, RecordOverhead of each message included
	Filled      uint64   // times that a mailbox became full for senders that wait
	Full        int      // mailboxes for which they wait now
}

// NewShard returns the empty host of shard id of type t, owned under fence f. t has its defaults filled in and is not
// changed while the shard lives. budget bounds its mailboxes together with those of other shards, nil for no bound.
func NewShard(t *Type, id route.ShardID, f route.Fence, r Runtime, budget Budget) *Shard {
	if budget == nil {
		budget = unbounded{}
	}
	s := &Shard{table: newTable(), typ: t, id: id, fence: f, runtime: r, lease: lease{budget: budget}, cursor: -1}
	s.slow, s.ways = t.slowAfter()
	if t.receives() {
		s.ways |= enclosed
	}
	return s
}

// Use gives the shard the call frame of the goroutine that steps it, before its first message. A shard that is given
// none makes its own.
func (s *Shard) Use(d *CallFrame) { s.callFrame = d }

// ID returns the shard's number.
func (s *Shard) ID() route.ShardID { return s.id }

// Type returns the shard's type.
func (s *Shard) Type() *Type { return s.typ }

// Fence returns the fence under which the shard is owned.
func (s *Shard) Fence() route.Fence { return s.fence }

// Stats returns the counters.
func (s *Shard) Stats() Stats {
	st := s.stats
	st.Live, st.Crashed, st.QueuedBytes = len(s.table.dense), len(s.crashes), s.lease.used
	st.Timers, st.Late = len(s.timers.heap)-st.Crashed, s.timers.late
	return st
}

// Deliver takes one message. route.OK means that it was accepted: a Worker or Inline handler has handled it, or it lies
// in its entity's mailbox, and an ask will be answered. Any other reason means that it was refused and counted, and
// that the caller answers it if it is an ask: MailboxFull, BudgetFull, TableFull, ShardStopping, Stopped, Crashed,
// BadID, Expired. Everything in m is a view that is copied where it is kept.
func (s *Shard) Deliver(now time.Duration, m *Message) route.Reason {
	s.advance(now)
	if s.phase != serving {
		return s.refuse(m)
	}
	if m.Limit != 0 && m.Limit <= now && m.From != nil {
		return s.count(route.Expired)
	}
	h := m.Hash
	if h == 0 {
		h = HashID(m.ID)
	}
	e := s.table.find(h, m.ID)
	if e == nil {
		return s.deliverNew(m)
	}
	if e.place&hurt != 0 && s.rests(e) && (s.typ.Mode != Blocking || s.crashes[e].closed) {
		return s.count(route.Crashed)
	}
	if s.typ.Mode == Blocking {
		if why := s.accept(e, m); why != route.OK {
			return s.count(why)
		}
		return route.OK
	}
	s.handle(e, m, nil)
	return route.OK
}

// deliverNew makes the entity for its first message.
func (s *Shard) deliverNew(m *Message) route.Reason {
	s.news = true
	if s.moving.first != nil && !s.withheld {
		takeUp(s)
		return s.Deliver(s.now, m)
	}
	id := string(m.ID) // the one copy
	if route.CheckID(id) != nil {
		return s.count(route.BadID)
	}
	e := enroll(s, id)
	if e == nil {
		return s.count(route.TableFull)
	}
	if s.typ.Mode != Blocking {
		s.handle(e, m, nil)
		return route.OK
	}
	if why := s.accept(e, m); why != route.OK {
		s.table.remove(e)
		return s.count(why)
	}
	return route.OK
}

// refuse is Deliver of a shard that is not served any more.
func (s *Shard) refuse(m *Message) route.Reason {
	switch s.phase {
	case abandoned:
		return s.count(route.Stopped)
	case cut: // it was sent before the move, and comes behind what was slow
		if s.mute() {
			return s.count(route.BadID)
		}
		keep(s, m)
		return route.OK
	}
	return s.count(route.ShardStopping)
}

func (s *Shard) count(r route.Reason) route.Reason {
	s.stats.Refused[r]++
	return r
}

// handle calls a Worker or Inline handler for one message, which is that of t if it is not nil.
func (s *Shard) handle(e *Entity, m *Message, t *timer) {
	began, c := s.enter(e)
	c.timerRoom = MaxTimers - e.running()
	c.open(m.From, m.Corr)
	c.limit, c.headers = m.Limit, m.Headers
	if t != nil {
		c.fired, c.timerName, c.told = true, t.name, nil
	}
	if c.e.h != nil || c.makeInstance(m.Payload) {
		c.receive(m.Payload)
	}
	s.leave(c, began)
	s.handled(c, e)
}

// handled follows a call for a message: timers that were asked for are set, and an entity that is gone is forgotten. It
// reports whether there was nothing of that.
func (s *Shard) handled(c *Context, e *Entity) (quiet bool) {
	e.used = s.now
	quiet = true
	if c.touched {
		quiet = false
		s.carryOut(c, e)
		if c.crashed {
			s.crash(e, c)
		}
	}
	if e.h == nil {
		quiet = false
		part(s, e, c)
		if e.place&hurt == 0 {
			s.remove(e)
		}
		beginKept(s)
	}
	return quiet
}

// halt stops a Worker or Inline entity and removes it.
func (s *Shard) halt(e *Entity, why StopReason) {
	if e.h != nil { // else it rested after a panic
		began, c := s.enter(e)
		if c.sayLast(why) {
			if h, ok := asks(c, why); ok {
				handOver(c, h, why)
			}
			c.halt(why)
		}
		s.leave(c, began)
		c.touched, c.renewed, c.cancelled = false, false, false
		watchedOut(s, e, c)
	}
	s.remove(e)
}

func (s *Shard) enter(e *Entity) (began time.Duration, c *Context) {
	if s.callFrame == nil {
		s.callFrame = &CallFrame{}
	}
	c = s.beginCall(e)
	if s.ways&watched != 0 {
		s.runtime.Calling(e, StepCall)
	}
	return s.runtime.Slewed(), c
}

func (s *Shard) leave(c *Context, began time.Duration) {
	if took := s.runtime.Slewed() - began; took > s.slow {
		c.slow(took)
	}
	if s.ways&watched != 0 {
		s.runtime.Returned(c.e, StepCall)
	}
	s.endCall(c)
}

// AnyReady reports whether Ready would return an entity.
func (s *Shard) AnyReady() bool { return s.readyHead != nil }

// Ready returns the next entity that must be run and hands it to the caller, or nil. Ask until nil after every verb and
// every End; a caller that bounds its goroutines may leave the rest for later.
func (s *Shard) Ready() *Entity {
	e := s.readyHead
	if e == nil {
		return nil
	}
	s.readyHead, e.act.next = e.act.next, nil
	if s.readyHead == nil {
		s.readyTail = nil
	}
	return e
}

func (s *Shard) advance(now time.Duration) { s.now = max(s.now, now) }

// Resume gives a shard that has taken nothing yet what its last owner handed over: what that did not work off, in
// order, and states of its instances. The messages are handled before anything else, by the next Tick or before the
// first message, and no full mailbox refuses them. Their slices belong to the shard. What cannot be taken all the same
// ends as Runtime.Unhandled says, and an ask is answered. A state comes to the next instance of its entity before any
// message: one is made for it by the next Ticks, if no message comes before. It counts against the budget until that is
// done or has failed. States are copied; each is of another entity.
func Resume(s *Shard, now time.Duration, list []Message, states []State) {
	s.advance(now)
	bring(s, states)
	s.moving.first = list
	if s.typ.Mode == Blocking && list != nil {
		takeUp(s)
	}
}

// takeUp handles what the last owner left, or puts it into mailboxes.
func takeUp(s *Shard) {
	list := s.moving.first
	s.moving.first = nil
	for i := range list {
		m := &list[i]
		m.Parked = true
		if why := s.Deliver(s.now, m); why != route.OK {
			turnDown(s, m, why)
		}
	}
}

// turnDown ends a message that was accepted, and that no handler will get.
func turnDown(s *Shard, m *Message, why route.Reason) {
	if m.From != nil && m.From.Reply(m.Corr, why, nil) != nil {
		s.stats.AnswersLost++
	}
	switch why {
	case route.Expired: // nobody waits any more
		s.stats.Expired++
		return
	case route.Abandoned:
		s.stats.Abandoned++
	}
	s.runtime.Unhandled(&Entity{id: string(m.ID)}, why, m.From != nil, m.Payload)
}

// keep takes a copy of a message.
func keep(s *Shard, m *Message) {
	c := Message{From: m.From, Corr: m.Corr, Limit: m.Limit, ID: bytes.Clone(m.ID), Payload: bytes.Clone(m.Payload),
		Headers: bytes.Clone(m.Headers)}
	s.moving.left = append(s.moving.left, c)
	if m.Loan != nil {
		m.Loan.Release()
	}
}
