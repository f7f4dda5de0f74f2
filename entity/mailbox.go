// Mailboxes of Blocking entities: messages are copied into batches; an entity has an activity only while it is busy.

package entity

import (
	"time"

	"github.com/kith-io/kith/route"
)

const (
	keepActs   = 64          // spare activities that a shard keeps
	keepQuiet  = 2           // spare batches and activities that a shard keeps when none of its entities is busy
	quietAfter = time.Second // how long none must have become busy for that
)

// activity is what an entity holds beyond its record while it has messages or is to be stopped. One goroutine fills it
// and another works it off, so each message moves it between cores: it is two lines of memory, one for the goroutine
// that delivers and one for the goroutine that runs it, and what few messages need lies elsewhere.
type activity struct {
	// Fields of this line belong to the shard's lock.
	head, tail *batch    // waiting batches, oldest first
	bytes      int       // counted, the batch being worked off included
	next       *Entity   // in the list of entities that are ready
	s          *Shard    // its shard, for good
	press      *pressure // nil: no sender has heard that the mailbox is full
	phase      runPhase
	paced      bool // counts in Shard.halting
	begins     bool // it runs because of a state that came for its entity, and counts in Shard.halting
	told       bool // what the run has not begun was given up though the run has not ended (Shard.LeaveBehind)
	left       bool // that the state is lost was reported, though the run has not ended
	spoiled    bool // the run ends with the call that is made, and the instance with it (Withhold)
	_          [8]byte

	// Those of this one belong to the run while there is one.
	now     *batch // being worked off
	pos     int    // first record of it that is not done or begun
	frame   *RunFrame
	passage *passage      // nil: no state is on its way
	began   time.Duration // when the run did
	step    runStep
	halt    bool       // stop the instance when no message waits
	closing bool       // the shard was being stopped when the run began
	room    int8       // timers that the run may still ask for
	why     StopReason // of halt
	_       [19]byte
}

// runStep is where a run is with the message before activity.pos.
type runStep uint8

const (
	between runStep = 0 // done with it
	made    runStep = 1 // the instance was made for it; its handler is called next
	parting runStep = 2 // its handler wished to passivate; Stop is called next
	handed  runStep = 3 // its handler was asked for its state; Stop is called next
	said    runStep = 4 // its handler got the stop message; HandOver or Stop is called next
	parted  runStep = 5 // its handler wished to passivate and got the stop message; Stop is called next
)

type runPhase uint8

const (
	ready   runPhase = 0 // waits for Begin, in the list of those that are ready or with the runtime
	begun   runPhase = 1 // between Begin and End
	resting runPhase = 2 // End said again; the runtime begins the next run
	held    runPhase = 3 // waits for the end of a rest after a panic
)

// passage is a state on its way into a Blocking instance, or out of one.
type passage struct {
	asked  bool       // in this run the instance is asked for its state
	taken  bool       // brings was given to an instance
	tried  bool       // to make one
	brings *inherited // for the next instance
	gives  *State     // of the last one
}

// spare is what a shard keeps for entities that become busy.
type spare struct {
	acts    []*activity
	batches []*batch
}

// accept takes a message into the mailbox of e, or returns which bound left no room, or that e takes none.
func (s *Shard) accept(e *Entity, m *Message) route.Reason {
	if s.mute() {
		return route.BadID
	}
	r := record{from: m.From, corr: m.Corr}
	if m.From != nil {
		r.mark = markOf(m.Limit)
	}
	switch {
	case m.Loan != nil:
	case m.Sender != nil:
		return e.press(s, r, m)
	case m.Parked:
		return s.put(e, r, m.Payload, m.Headers, forced)
	default:
		return s.put(e, r, m.Payload, m.Headers, bounded)
	}
	s.lease.take(RecordOverhead, scant)
	a := e.act
	if a == nil {
		a = s.activate(e)
	}
	b := s.newBatch()
	a.append(b)
	r.end = uint32(len(m.Payload))
	if m.Headers != nil {
		r.end |= headed
		b.headers = append(b.headers[:0], m.Headers...)
	}
	b.lent, b.loan = true, m.Loan
	b.buf = m.Payload[:len(m.Payload):len(m.Payload)]
	b.append(r)
	b.counted += RecordOverhead
	a.bytes += RecordOverhead
	return route.OK
}

func (a *activity) append(b *batch) {
	if a.tail == nil {
		a.head = b
	} else {
		a.tail.next = b
	}
	a.tail = b
}

// shift takes the oldest of the batches that wait, nil when there is none.
func (a *activity) shift() *batch {
	b := a.head
	switch {
	case b == nil:
	case b == a.tail:
		a.head, a.tail = nil, nil
	default:
		a.head, b.next = b.next, nil
	}
	return b
}

// counted is what a message that waits counts, in bytes.
func counted(payload, headers []byte) int {
	n := len(payload) + RecordOverhead
	if headers != nil {
		n += len(headers) + headerLength
	}
	return n
}

// put copies a message to the mailbox of e, and makes e ready if it was idle, or returns which bound left no room;
// unless it is bounded there always is.
func (s *Shard) put(e *Entity, r record, payload, headers []byte, how claim) route.Reason {
	n := counted(payload, headers)
	a := e.act
	// One message may exceed the mailbox when nothing waits, else a large one could never be delivered.
	if a != nil && a.bytes > 0 && n > s.typ.MailboxBytes-a.bytes && how == bounded {
		return route.MailboxFull
	}
	if !s.lease.take(n, how) {
		return route.BudgetFull
	}
	if a == nil {
		a = s.activate(e)
	}
	b := a.tail
	if b == nil || b.full() {
		b = s.newBatch()
		a.append(b)
	}
	b.buf = append(b.buf, payload...)
	r.end = uint32(len(b.buf))
	if headers != nil {
		b.buf = append(append(b.buf, headers...), byte(len(headers)), byte(len(headers)>>8))
		r.end = uint32(len(b.buf)) | headed
	}
	b.append(r)
	b.counted += uint32(n)
	b.timers = b.timers || r.instance() != 0
	a.bytes += n
	return route.OK
}

// activate gives an idle entity an activity and puts it on the list of those that are ready.
func (s *Shard) activate(e *Entity) *activity {
	var a *activity
	if n := len(s.spare.acts); n > 0 {
		a = s.spare.acts[n-1]
		s.spare.acts = s.spare.acts[:n-1]
	} else {
		a = &activity{s: s}
	}
	e.act = a
	s.busy++
	s.busyAt = s.now
	if e.place&hurt != 0 && s.rests(e) {
		a.phase = held
	} else {
		s.makeReady(e)
	}
	return a
}

// makeReady puts e on the list of those that are ready.
func (s *Shard) makeReady(e *Entity) {
	e.act.phase = ready
	if s.readyTail == nil {
		s.readyHead = e
	} else {
		s.readyTail.act.next = e
	}
	s.readyTail = e
}

// deactivate takes the activity of e away: nothing waits.
func (s *Shard) deactivate(e *Entity) {
	a := e.act
	e.act = nil
	s.busy--
	s.unpace(a)
	*a = activity{s: s}
	if len(s.spare.acts) < keepActs {
		s.spare.acts = append(s.spare.acts, a)
	}
}

// Spare reports whether the shard keeps memory for busy entities that a Tick lets go once none has been busy for a
// second. Next says nothing of it: a runtime that cares for memory ticks such a shard now and then.
func (s *Shard) Spare() bool {
	return len(s.spare.acts) > keepQuiet || len(s.spare.batches) > keepQuiet
}

// trim lets go what a shard kept for busy entities, once none has been for a while: a node has many shards, and most of
// them are quiet.
func (s *Shard) trim() {
	if s.busy > 0 || !s.Spare() || s.now < s.busyAt+quietAfter {
		return
	}
	s.spare.acts = append([]*activity(nil), s.spare.acts[:min(len(s.spare.acts), keepQuiet)]...)
	s.spare.batches = append([]*batch(nil), s.spare.batches[:min(len(s.spare.batches), keepQuiet)]...)
}

func (s *Shard) newBatch() *batch {
	if n := len(s.spare.batches); n > 0 {
		b := s.spare.batches[n-1]
		s.spare.batches = s.spare.batches[:n-1]
		return b
	}
	return &batch{}
}

// finish returns a batch of e that is done, or dropped, and its bytes. No other is behind it.
func (s *Shard) finish(e *Entity, b *batch) {
	a := e.act
	a.bytes -= int(b.counted)
	s.lease.give(int(b.counted))
	if a.pressed() && a.bytes <= s.typ.MailboxBytes/2 {
		relieve(s, e)
	}
	if b.lent {
		b.loan.Release()
		b.lent, b.loan, b.buf, b.headers = false, nil, nil, b.headers[:0]
	}
	if b.timers {
		b.timers = false
		for i := range b.len() {
			if t, is := b.record(i).from.(*timer); is {
				s.timers.settle(t)
			}
		}
	}
	b.first.from = nil
	if b.n > 1 {
		clear(b.more)
		b.more = b.more[:0]
	}
	b.n, b.counted, b.buf = 0, 0, b.buf[:0]
	if len(s.spare.batches) < keepBatches && cap(b.buf) <= keepBytes {
		s.spare.batches = append(s.spare.batches, b)
	}
}

// takeAll takes what waits for e, which is busy and not in a run, and stops it.
func takeAll(s *Shard, e *Entity) {
	a := e.act
	if b := a.now; b != nil {
		from := a.pos
		if a.step == made { // its handler was not called
			from, a.step = from-1, between
		}
		takeBatch(s, e, b, from)
		a.now = nil
	}
	for b := a.shift(); b != nil; b = a.shift() {
		takeBatch(s, e, b, 0)
	}
	a.halt, a.why = true, s.why
}

// takeBatch takes the messages of a batch of e from one on. Those of timers go with their instance.
func takeBatch(s *Shard, e *Entity, b *batch, from int) {
	for i := from; i < b.len(); i++ {
		r := b.record(i)
		switch {
		case r.isBegin():
			continue
		case r.instance() != 0:
			r.drops(&s.stats.Tally)
			continue
		}
		m := Message{ID: []byte(e.id), From: r.from, Corr: r.corr}
		if r.from != nil {
			m.Limit = limitOf(r.mark, s.now)
		}
		m.Payload, m.Headers = b.message(i)
		keep(s, &m)
	}
	s.finish(e, b)
}

// Doing is what an entity is doing at a moment.
type Doing struct {
	Lives   bool          // it has an instance, or messages for one
	Busy    bool          // its handler runs, or is about to
	Waiting int           // messages in its mailbox that no run has taken up
	Bytes   int           // that its mailbox counts, those of messages that are being worked off included
	Idle    time.Duration // since it handled a message last; zero while it is busy
}

// Look says what an entity of a Blocking type is doing. It steps nothing.
func Look(id string, s *Shard, now time.Duration) Doing {
	e := s.table.find(HashID([]byte(id)), []byte(id))
	if e == nil {
		return Doing{}
	}
	a := e.act
	if a == nil {
		return Doing{Lives: true, Idle: max(now-e.used, 0)}
	}
	d := Doing{Lives: true, Busy: true, Bytes: a.bytes}
	for b := a.head; b != nil; b = b.next {
		d.Waiting += b.len()
	}
	return d
}
