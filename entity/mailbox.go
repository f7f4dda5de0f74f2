// Mailboxes of Blocking entities: batches of copied messages, held only while an entity has some.

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
	keepActs     = 64       // spare activities that a shard keeps

	keepQuiet  = 2           // spare batches and activities that a shard keeps when none of its entities is busy
	quietAfter = time.Second // how long none must have become busy for that
)

// record is one message in a batch.
type record struct {
	from Origin // for a timer's message the *timer
	corr uint64
	end  uint32 // of its payload in the batch's buffer; headed
	mark uint32 // for a timer's message the instance that set it; for an ask its limit, see markOf; else 0
}

// begins stands where a record says who asked: the entity is to begin. Nobody asked.
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

// limitOf returns the limit whose mark it is, as seen at now, which is less than 24 days off.
func limitOf(mark uint32, now time.Duration) time.Duration {
	if mark == 0 {
		return 0
	}
	ms := now / time.Millisecond
	return max(1, (ms+time.Duration(int32(mark-uint32(ms))))*time.Millisecond)
}

// instance returns the instance that set the timer whose message r is, zero for another message.
func (r *record) instance() uint32 {
	if _, is := r.from.(*timer); !is {
		return 0
	}
	return r.mark
}

// batch is what one run works off: its bytes return to the bounds when all of it is done.
type batch struct {
	next    *batch
	records []record
	buf     []byte
	counted int // bytes counted against mailbox and budget
	timers  int // how many records are timers' messages
	loan    *Loan
	headers []byte // of the loan
}

func (b *batch) full() bool {
	return len(b.buf) >= batchBytes || len(b.records) >= batchRecords || b.loan != nil
}

// message returns the payload and the headers of record i.
func (b *batch) message(i int) (payload, headers []byte) {
	at, end := uint32(0), b.records[i].end
	if i > 0 {
		at = b.records[i-1].end &^ headed
	}
	if end&headed == 0 {
		return b.buf[at:end:end], nil
	}
	end &^= headed
	if b.loan != nil {
		return b.buf[at:end:end], b.headers[:len(b.headers):len(b.headers)]
	}
	size := uint32(b.buf[end-1])<<8 | uint32(b.buf[end-2])
	end -= headerLength
	split := end - size
	return b.buf[at:split:split], b.buf[split:end:end]
}

const headerLength = 2 // bytes of the length of headers

// activity is what an entity holds beyond its record while it has messages or is to be stopped. Fields of the first
// group belong to the shard's lock, those of the second to the run.
type activity struct {
	head, tail *batch  // waiting batches, oldest first
	bytes      int     // counted, the batch being worked off included
	next       *Entity // in the list of entities that are ready
	phase      runPhase
	halt       bool       // stop the instance when no message waits
	paced      bool       // counts in Shard.halting
	pressed    []Sender   // were told that the mailbox is full
	forced     int        // bytes taken beyond MailboxBytes since the first of them was
	allowed    int        // most that these may come to
	allowing   int        // senders that it comes from
	told       bool       // what the run has not begun was given up though the run has not ended (Shard.LeaveBehind)
	spoiled    bool       // the run ends with the call that is made, and the instance with it (Withhold)
	why        StopReason // of halt
	begins     bool       // it runs because of a state that came for its entity, and counts in Shard.halting

	passage passage

	now   *batch // being worked off
	pos   int    // first record of it that is not done or begun
	step  runStep
	ctx   *Context
	tally Tally
	began time.Duration // when the run did
}

// runStep is where a run is with the message before activity.pos.
type runStep uint8

const (
	between runStep = 0 // done with it
	made    runStep = 1 // the instance was made for it; its handler is called next
	parting runStep = 2 // its handler wished to passivate; Stop is called next
	handed  runStep = 3 // its handler was asked for its state; Stop is called next
)

type runPhase uint8

const (
	ready   runPhase = 0 // waits for Begin, in the list of those that are ready or with the runtime
	begun   runPhase = 1 // between Begin and End
	resting runPhase = 2 // End said again; the runtime begins the next run
	held    runPhase = 3 // waits for the end of a rest after a panic
)

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
	default:
		return s.put(e, r, m.Payload, m.Headers, m.Parked)
	}
	s.lease.take(RecordOverhead, true)
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
	b.loan, b.buf, b.records = m.Loan, m.Payload[:len(m.Payload):len(m.Payload)], append(b.records, r)
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

// counted is what a message that waits counts, in bytes.
func counted(payload, headers []byte) int {
	n := len(payload) + RecordOverhead
	if headers != nil {
		n += len(headers) + headerLength
	}
	return n
}

// put copies a message to the mailbox of e, and makes e ready if it was idle, or returns which bound left no room; with
// force there always is.
func (s *Shard) put(e *Entity, r record, payload, headers []byte, force bool) route.Reason {
	n := counted(payload, headers)
	a := e.act
	// One message may exceed the mailbox when nothing waits, else a large one could never be delivered.
	if a != nil && a.bytes > 0 && n > s.typ.MailboxBytes-a.bytes && !force {
		return route.MailboxFull
	}
	if !s.lease.take(n, force) {
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
	b.records = append(b.records, r)
	b.counted += n
	if r.instance() != 0 {
		b.timers++
	}
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
		a = &activity{ctx: &Context{}}
	}
	c := a.ctx
	c.ID, c.Fence, c.Shard = e.id, s.fence, s.id
	c.s, c.e, c.tally = s, e, &a.tally
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
	c := forNext(a.ctx)
	*a = activity{ctx: c}
	c.doing = doing{e: e, wishes: wishes{timers: c.timers[:0], timerData: c.timerData[:0]}}
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

// finish returns a batch that is done, or dropped, and its bytes.
func (s *Shard) finish(a *activity, b *batch) {
	a.bytes -= b.counted
	s.lease.give(b.counted)
	if len(a.pressed) > 0 && a.bytes <= s.typ.MailboxBytes/2 {
		a.relieve()
	}
	if b.loan != nil {
		b.loan.Release()
		b.loan, b.buf, b.headers = nil, nil, b.headers[:0]
	}
	if b.timers > 0 {
		b.timers = 0
		for i := range b.records {
			if r := &b.records[i]; r.instance() != 0 {
				s.timers.settle(r.from.(*timer))
			}
		}
	}
	clear(b.records)
	b.next, b.records, b.buf, b.counted = nil, b.records[:0], b.buf[:0], 0
	if len(s.spare.batches) < keepBatches && cap(b.buf) <= keepBytes {
		s.spare.batches = append(s.spare.batches, b)
	}
}

// takeAll takes what waits for the entity of a, which is not in a run, and has it stopped.
func (a *activity) takeAll() {
	if b := a.now; b != nil {
		from := a.pos
		if a.step == made { // its handler was not called
			from, a.step = from-1, between
		}
		a.takeBatch(b, from)
		a.now = nil
	}
	for b := a.head; b != nil; {
		next := b.next
		a.takeBatch(b, 0)
		b = next
	}
	a.head, a.tail = nil, nil
	a.halt, a.why = true, a.ctx.s.why
}

// takeBatch takes the messages of a batch from one on. Those of timers go with their instance.
func (a *activity) takeBatch(b *batch, from int) {
	s := a.ctx.s
	for i := from; i < len(b.records); i++ {
		r := &b.records[i]
		switch {
		case r.isBegin():
			continue
		case r.instance() != 0:
			s.stats.TimersDropped++
			continue
		}
		m := Message{ID: []byte(a.ctx.e.id), From: r.from, Corr: r.corr}
		if r.from != nil {
			m.Limit = limitOf(r.mark, s.now)
		}
		m.Payload, m.Headers = b.message(i)
		keep(s, &m)
	}
	s.finish(a, b)
}
