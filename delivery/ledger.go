// Ledgers: one shard of a queue under one fence: what it holds, and its commits, one under way while the next gathers.

package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/store"
)

const (
	backoffFirst = 10 * time.Millisecond // before a call of the store that failed is made again; it doubles
	backoffMost  = time.Second
	mostAsked    = 4096             // requests of one shard that wait at once
	forgetAfter  = 30 * time.Second // how long a shard that went is kept in mind
)

// forever is a time by which each dead letter is listed.
var forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// op is what is to be done in the store.
type op struct {
	request
	m     *message // that is stored, acknowledged, buried or sent again; else nil
	kind  opKind
	ask   kith.ReplyToken // of the asker that waits for it
	asked bool
	at    time.Time // since when it waits
}

// opKind is what an op is about.
type opKind byte

const (
	opSend    opKind = iota // store a message
	opAck                   // take it away: it was acknowledged
	opBury                  // make it a dead letter
	opRevive                // make a dead letter the last message
	opDiscard               // take a dead letter away
	opList                  // read a page of dead letters
	opFind                  // read one, for opRevive
	opDrop                  // look for one, for opDiscard
)

// answer replies to the asker that waits.
func (o *op) answer(b []byte) {
	if !o.asked {
		return
	}
	o.asked = false
	if err := o.ask.Reply(b); err != nil { // too large, or the asker is gone, which needs no second word
		_ = o.ask.Fail(err)
	}
}

// ledger is one shard. Methods are safe for concurrent use.
type ledger struct {
	d     *desk
	shard store.Shard
	fence kith.Fence
	bell  chan struct{} // holds one: look at the lanes

	mu      sync.Mutex
	hosted  bool // its messages are sent from here
	working bool // works goes on
	ready   bool // it knows what is stored
	queue   []*op
	batch   []*op // of the commit that is under way
	most    int   // writes of one commit
	asks    int   // requests that wait
	lanes   lanes
	count   int   // messages that are stored, or are to be
	bytes   int64 // of them
	dead    []uint64
	graves  int    // dead letters, with those that are being made
	last    uint64 // the highest number that was given
	floor   uint64 // of the shard
	lost    *failure
	era     int // how often all of it was forgotten
	leaving bool
	quiet   chan struct{} // closed when works has ended; nil: nobody waits for that
}

func newLedger(d *desk, s store.Shard, f kith.Fence) *ledger {
	return &ledger{d: d, shard: s, fence: f, bell: make(chan struct{}, 1), most: store.MaxWrites,
		lanes: lanes{of: map[string]*lane{}}}
}

// takes takes a request, and the duty to answer it, or says why not.
func (l *ledger) takes(o *op, c *kith.Context) *failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case l.asks >= mostAsked:
		l.d.full.Add(1)
		return fails(codeFull, fmt.Errorf("%d requests wait for the store", l.asks))
	case o.kind == opSend && !l.room(o.m):
		l.d.full.Add(1)
		return l.isFull()
	}
	if o.kind == opSend {
		l.holds(o.m, 1)
	}
	l.asks++
	o.ask = c.Detach()
	l.puts(o)
	return nil
}

// room reports whether one more message may wait. One may where none does, however large.
func (l *ledger) room(m *message) bool {
	return l.count == 0 || l.count < l.d.messages && l.bytes+m.size() <= l.d.bytes
}

// isFull says that there is none.
func (l *ledger) isFull() *failure {
	return fails(codeFull, fmt.Errorf("%d messages, %d bytes; must be at most %d and %d", l.count, l.bytes, l.d.messages,
		l.d.bytes))
}

// holds counts a message in, or out.
func (l *ledger) holds(m *message, n int) {
	l.count += n
	l.bytes += int64(n) * m.size()
}

// puts queues an op. The lock is held.
func (l *ledger) puts(o *op) {
	o.at = l.d.ground.Now()
	l.queue = append(l.queue, o)
	l.starts()
}

// starts has works begun, if there is something to do. The lock is held.
func (l *ledger) starts() {
	if !l.working && l.lost == nil && (len(l.queue) > 0 || l.hosted && !l.ready) {
		l.working = true
		l.d.spawn(l.works)
	}
}

// idle reports whether works has nothing to do, and that it has ended then.
func (l *ledger) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && (len(l.queue) > 0 || l.hosted && !l.ready) {
		return false
	}
	l.working = false
	if l.quiet != nil {
		l.d.ground.Close(l.quiet)
		l.quiet = nil
	}
	if !l.hosted {
		l.leaves()
	}
	return true
}

// settles waits until nothing is to be done, or ctx ends.
func (l *ledger) settles(ctx context.Context) {
	l.mu.Lock()
	if !l.working {
		l.mu.Unlock()
		return
	}
	if l.quiet == nil {
		l.quiet = make(chan struct{})
	}
	quiet := l.quiet
	l.mu.Unlock()
	l.d.ground.Wait(ctx, ground.Forever, quiet)
}

// leaves forgets what is stored later, if nobody hosts the shard here then: another node may have it. The lock is held.
func (l *ledger) leaves() {
	if l.leaving || l.lost != nil {
		return
	}
	l.leaving = true
	l.d.spawn(func() {
		l.d.ground.Wait(l.d.ctx, forgetAfter, nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.leaving = false; !l.hosted && !l.working {
			l.empties()
		}
	})
}

// works reads what is stored, and then makes one commit after the other, as long as there is something to do.
func (l *ledger) works() {
	for failures := 0; !l.idle(); {
		if failed := l.d.ended(); failed != nil {
			l.dies(failed, false)
			continue
		}
		if !l.step() {
			l.gives()
			l.d.ground.Wait(l.d.ctx, rest(l.d.ground, backoffFirst, backoffMost, failures), nil)
			failures++
			continue
		}
		failures = 0
	}
}

// step does one thing. False: the store does not answer.
func (l *ledger) step() bool {
	if !l.recovers() {
		return false
	}
	if o := l.reads(); o != nil {
		return l.serves(o)
	}
	writes := l.gathers()
	return len(writes) == 0 || l.commits(writes)
}

// gives answers the requests that have waited for too long: those with a commit under way may take place.
func (l *ledger) gives() {
	since := l.d.ground.Now().Add(-2 * l.d.patience)
	var late []*op
	l.mu.Lock()
	l.queue = slices.DeleteFunc(l.queue, func(o *op) bool {
		if !o.asked || o.at.After(since) {
			return false
		}
		l.undo(o)
		late = append(late, o)
		return true
	})
	var maybe []*op
	for _, o := range l.batch {
		if o.asked && !o.at.After(since) {
			maybe = append(maybe, o)
		}
	}
	l.mu.Unlock()
	for _, o := range late {
		o.answer(fails(codeAway, nil).answer())
	}
	for _, o := range maybe {
		o.answer(fails(codeUnknown, nil).answer())
	}
}

// undo takes back what a request that is not done has counted. The lock is held.
func (l *ledger) undo(o *op) {
	l.asks--
	switch o.kind {
	case opSend:
		l.holds(o.m, -1)
	case opRevive:
		l.holds(o.m, -1)
		l.finds(o.number)
	case opDiscard:
		l.finds(o.number)
	}
}

// judge notes what a call of the store has said that wrote nothing, and reports whether it was nil.
func (l *ledger) judge(err error) bool {
	switch {
	case err == nil:
		l.d.works(l.shard.N)
		return true
	case errors.Is(err, store.ErrFenced):
		l.d.fenced.Add(1)
		l.dies(fails(codeLost, nil), false)
	case errors.Is(err, store.ErrStoreWentBack):
		l.d.stop(err)
		l.dies(fails(codeWentBack, err), false)
	default:
		l.d.fails(l.shard.N, err)
	}
	return false
}

// reads takes what asks for a dead letter only, if that is next.
func (l *ledger) reads() *op {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 && l.queue[0].kind >= opList {
		o := l.queue[0]
		l.queue = slices.Delete(l.queue, 0, 1)
		l.asks--
		return o
	}
	return nil
}

// gathers returns the writes of the next commit, as many as one may have, and gives messages their numbers: above the
// shard's floor, so they never restart. What asks for a dead letter ends it.
func (l *ledger) gathers() (writes []store.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size, floor := 0, l.floor
	for _, o := range l.queue {
		if o.kind >= opList {
			break
		}
		w := l.writes(o)
		for i := range w {
			size += w[i].Size()
		}
		if len(writes)+len(w) > max(l.most, len(w)) || size > store.MaxBytes && len(writes) > 0 {
			break
		}
		for i := range w {
			if w[i].Delete {
				floor = max(floor, w[i].Raises())
			}
		}
		writes = append(writes, w...)
		l.batch = append(l.batch, o)
	}
	l.floor = floor
	l.queue = slices.Delete(l.queue, 0, len(l.batch))
	return writes
}

// writes returns what an op writes. The lock is held.
func (l *ledger) writes(o *op) []store.Write {
	switch o.kind {
	case opSend, opRevive:
		l.last = max(l.last, l.floor) + 1
		o.m.number, o.m.version = l.last, l.last
		w := []store.Write{l.d.write(o.m.number, o.m.version)}
		w[0].Outbox, w[0].New = o.m.encode(), true
		if o.kind == opRevive {
			gone := l.d.write(o.number, o.number+2)
			gone.Delete = true
			w = append(w, gone)
		}
		return w
	case opBury:
		w := l.d.write(o.m.number, o.m.version+1)
		w.State, w.Due = o.m.encode(), time.UnixMilli(l.d.ground.Wall().UnixMilli())
		return []store.Write{w}
	case opDiscard:
		w := l.d.write(o.number, o.number+2)
		w.Delete = true
		return []store.Write{w}
	}
	w := l.d.write(o.m.number, o.m.version+1)
	w.Delete = true
	return []store.Write{w}
}

// commits commits the writes of the batch: it repeats what is not known, until it is. False: there was nothing written,
// and works is to rest.
func (l *ledger) commits(writes []store.Write) bool {
	for failures := 0; ; failures++ {
		ctx, cancel := l.d.within()
		err := l.d.store.Commit(ctx, l.shard, l.fence, writes...)
		cancel()
		switch {
		case err == nil:
			l.d.works(l.shard.N)
			l.d.commits.Add(1)
			l.d.writes.Add(uint64(len(writes)))
			l.written()
			return true
		case errors.Is(err, store.ErrFenced):
			l.d.fenced.Add(1)
			l.dies(fails(codeLost, nil), failures > 0)
			return true
		case errors.Is(err, store.ErrStoreWentBack), errors.Is(err, store.ErrVersion): // nobody else writes under this fence
			l.d.stop(errors.Join(store.ErrStoreWentBack, err))
			l.dies(fails(codeWentBack, err), true)
			return true
		case errors.Is(err, store.ErrTooLarge):
			return l.splits(err)
		}
		l.d.unknown.Add(1)
		l.d.fails(l.shard.N, err)
		l.gives()
		if l.d.ground.Wait(l.d.ctx, rest(l.d.ground, backoffFirst, backoffMost, failures), nil); l.d.ctx.Err() != nil {
			l.dies(fails(codeLost, nil), true)
			return true
		}
	}
}

// written does what follows from a commit that took place, and tells of it.
func (l *ledger) written() {
	l.mu.Lock()
	batch := l.batch
	l.batch = nil
	l.most = store.MaxWrites
	for _, o := range batch {
		l.done(o)
	}
	l.mu.Unlock()
	l.d.ground.Ring(l.bell)
	for _, o := range batch {
		o.answer([]byte{byte(codeOK)})
	}
}

// done does what follows from one op. The lock is held.
func (l *ledger) done(o *op) {
	switch o.kind {
	case opSend:
		l.asks--
		l.d.stored.Add(1)
		l.lanes.add(o.m)
	case opAck:
		l.holds(o.m, -1)
	case opBury:
		l.d.buried.Add(1)
		l.holds(o.m, -1)
		l.lanes.remove(o.m)
		i, _ := slices.BinarySearch(l.dead, o.m.number)
		l.dead = slices.Insert(l.dead, i, o.m.number)
	case opRevive:
		l.asks--
		l.graves--
		l.d.again.Add(1)
		l.lanes.add(o.m)
	case opDiscard:
		l.asks--
		l.graves--
		l.d.discarded.Add(1)
	}
}

// splits does with a batch that the store does not take what can be done: its ops come one by one, and one that is by
// itself is refused.
func (l *ledger) splits(err error) bool {
	l.mu.Lock()
	batch := l.batch
	l.batch = nil
	if len(batch) > 1 {
		l.most = 1
		l.queue = append(batch, l.queue...)
		l.mu.Unlock()
		return true
	}
	o := batch[0]
	switch o.kind {
	case opSend, opRevive, opDiscard:
		l.undo(o)
	case opBury:
		l.graves--
		o.m.buried, o.m.next = false, l.d.ground.Now().Add(l.d.retryMost)
		l.lanes.look(o.m)
	default:
		l.queue = append(l.queue, o)
	}
	l.mu.Unlock()
	l.d.fails(l.shard.N, err)
	o.answer(fails(codeTooLarge, err).answer())
	return o.kind != opAck
}

// finds lists a dead letter again. The lock is held.
func (l *ledger) finds(number uint64) {
	i, _ := slices.BinarySearch(l.dead, number)
	l.dead = slices.Insert(l.dead, i, number)
}

// dies ends the ledger: what waits gets f, and what was sent to the store too; maybe: that may have taken place.
func (l *ledger) dies(f *failure, maybe bool) {
	l.mu.Lock()
	if l.lost != nil {
		l.mu.Unlock()
		return
	}
	queue, batch := l.queue, l.batch
	l.lost, l.queue, l.batch, l.asks = f, nil, nil, 0
	l.empties()
	l.mu.Unlock()
	l.d.works(l.shard.N)
	these := f
	if maybe && f.code == codeLost {
		these = fails(codeMaybe, nil)
	}
	for _, o := range queue {
		o.answer(f.answer())
	}
	for _, o := range batch {
		o.answer(these.answer())
	}
}

// empties forgets what is stored. The lock is held.
func (l *ledger) empties() {
	l.era++
	l.ready, l.lanes, l.dead, l.count, l.bytes, l.graves = false, lanes{of: map[string]*lane{}}, nil, 0, 0, 0
}

// waiting returns how many messages and dead letters the shard has.
func (l *ledger) waiting() (messages int, bytes int64, dead int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.bytes, l.graves
}
