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
	from     Origin // for a timer's message the *timer
	corr     uint64
	end      uint32 // of its payload in the batch's buffer
	instance uint32 // for a timer's message the instance that set it, else 0
}

// batch is what one run works off: its bytes return to the bounds when all of it is done.
type batch struct {
	next    *batch
	records []record
	buf     []byte
	counted int // bytes counted against mailbox and budget
	timers  int // how many records are timers' messages
	loan    *Loan
}

func (b *batch) full() bool {
	return len(b.buf) >= batchBytes || len(b.records) >= batchRecords || b.loan != nil
}

// payload returns the payload of record i.
func (b *batch) payload(i int) []byte {
	at := uint32(0)
	if i > 0 {
		at = b.records[i-1].end
	}
	return b.buf[at:b.records[i].end:b.records[i].end]
}

// activity is what an entity holds beyond its record while it has messages or is to be stopped. Fields of the first
// group belong to the shard's lock, those of the second to the run.
type activity struct {
	head, tail *batch  // waiting batches, oldest first
	bytes      int     // counted, the batch being worked off included
	next       *Entity // in the list of entities that are ready
	phase      runPhase
	halt       bool // stop the instance when no message waits
	paced      bool // counts in Shard.halting

	now   *batch // being worked off
	pos   int    // first record of it that is not done
	ctx   Context
	tally Tally
}

type runPhase uint8

const (
	ready   runPhase = 0 // waits for Begin, in the list of those that are ready or with the runtime
	begun   runPhase = 1 // between Begin and End
	resting runPhase = 2 // End said again; the runtime begins the next run
	held    runPhase = 3 // waits for the end of a rest after a panic
)

// accept takes a message into the mailbox of e, or returns which bound left no room.
func (s *Shard) accept(e *Entity, m *Message) route.Reason {
	r := record{from: m.From, corr: m.Corr}
	if m.Loan == nil {
		return s.put(e, r, m.Payload, m.Parked)
	}
	s.lease.take(RecordOverhead, true)
	a := e.act
	if a == nil {
		a = s.activate(e)
	}
	b := s.newBatch()
	a.append(b)
	r.end = uint32(len(m.Payload))
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

// put copies a message to the mailbox of e, and makes e ready if it was idle, or returns which bound left no room; with
// force there always is.
func (s *Shard) put(e *Entity, r record, payload []byte, force bool) route.Reason {
	n := len(payload) + RecordOverhead
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
	b.records = append(b.records, r)
	b.counted += n
	if r.instance != 0 {
		b.timers++
	}
	a.bytes += n
	return route.OK
}

// activate gives an idle entity an activity and puts it on the list of those that are ready.
func (s *Shard) activate(e *Entity) *activity {
	var a *activity
	if n := len(s.acts); n > 0 {
		a = s.acts[n-1]
		s.acts = s.acts[:n-1]
	} else {
		a = &activity{}
	}
	c := &a.ctx
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
	timers, data := a.ctx.timers[:0], a.ctx.timerData[:0]
	*a = activity{}
	a.ctx.timers, a.ctx.timerData = timers, data
	if len(s.acts) < keepActs {
		s.acts = append(s.acts, a)
	}
}

// Spare reports whether the shard keeps memory for busy entities that a Tick lets go once none has been busy for a
// second. Next says nothing of it: a runtime that cares for memory ticks such a shard now and then.
func (s *Shard) Spare() bool { return len(s.acts) > keepQuiet || len(s.batches) > keepQuiet }

// trim lets go what a shard kept for busy entities, once none has been for a while: a node has many shards, and most of
// them are quiet.
func (s *Shard) trim() {
	if s.busy > 0 || !s.Spare() || s.now < s.busyAt+quietAfter {
		return
	}
	s.acts = append([]*activity(nil), s.acts[:min(len(s.acts), keepQuiet)]...)
	s.batches = append([]*batch(nil), s.batches[:min(len(s.batches), keepQuiet)]...)
}

func (s *Shard) newBatch() *batch {
	if n := len(s.batches); n > 0 {
		b := s.batches[n-1]
		s.batches = s.batches[:n-1]
		return b
	}
	return &batch{}
}

// finish returns a batch that is done, or dropped, and its bytes.
func (s *Shard) finish(a *activity, b *batch) {
	a.bytes -= b.counted
	s.lease.give(b.counted)
	if b.loan != nil {
		b.loan.Release()
		b.loan, b.buf = nil, nil
	}
	if b.timers > 0 {
		b.timers = 0
		for i := range b.records {
			if r := &b.records[i]; r.instance != 0 {
				s.timers.settle(r.from.(*timer))
			}
		}
	}
	clear(b.records)
	b.next, b.records, b.buf, b.counted = nil, b.records[:0], b.buf[:0], 0
	if len(s.batches) < keepBatches && cap(b.buf) <= keepBytes {
		s.batches = append(s.batches, b)
	}
}
