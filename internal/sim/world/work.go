// Queues of a process's workers and of its loop: what waits for the caller of Worker and Inline handlers. A stop order
// stands behind what came before it.

package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// workers is how many workers a process has.
const workers = 2

// retryDrain is the pause before a drain that met a full queue is tried again.
const retryDrain = 5 * time.Millisecond

// workQueue gathers for one goroutine of a process. What comes from others is bounded by their credit, what comes from
// the process itself by DataConfig.LocalBuffer.
type workQueue struct {
	p     *Process
	pile                // what waits
	at    pile          // what the goroutine is at
	here  int           // bytes of the process's own that wait
	awake bool          // it runs, or is about to
	calls bool          // a handler is called
	toil  time.Duration // that the handler takes
	busy  bool          // a handler takes its time
	done  func()        // follows when it has, unless it is nil
	turn  bool          // of the loop, whether it works before it reads when it goes on
	reads []unread      // of the loop: what came for it meanwhile
	moves int           // of the loop: shards that move
	kept  int64         // bytes of others that are not worked off
}

// pile is frames, and orders behind them.
type pile struct {
	frames []waitingFrame
	orders []queuedOrder
}

func (k *pile) empty() bool { return len(k.frames)+len(k.orders) == 0 }

// queuedOrder is an order to a host.
type queuedOrder struct {
	host any
	run  func()
}

// unread is what came on a data connection and was not read.
type unread struct {
	conn *conn
	body []byte
}

// waitingFrame is an envelope in a queue. done, unless it is nil, follows when it has been handled.
type waitingFrame struct {
	from  peer.ID
	frame []byte
	done  func()
	own   bool // counts in here
}

func (p *Process) openQueues() {
	p.loop = &workQueue{p: p}
	for range workers {
		p.workers = append(p.workers, &workQueue{p: p})
	}
}

// queueOf returns the queue of a shard's host, nil for a Blocking type: its hosts take messages at once.
func (r *Region) queueOf(n route.ShardID) *workQueue {
	switch r.Type.Mode {
	case entity.Worker:
		return r.Process.workers[int(n)%len(r.Process.workers)]
	case entity.Inline:
		return r.Process.loop
	}
	return nil
}

// own takes a frame of the process itself, or returns an error when as much waits as may.
func (q *workQueue) own(frame []byte) error {
	if most := q.p.World.Config.Data.LocalBuffer; q.here > 0 && len(frame) > most-q.here {
		q.p.World.Plane.QueueFull++
		return fmt.Errorf("%w: %d bytes", route.ErrQueueFull, most)
	}
	q.here += len(frame)
	q.put(waitingFrame{from: q.p.ID, frame: frame, own: true})
	q.bounds()
	return nil
}

func (q *workQueue) put(f waitingFrame) {
	q.p.keeps(f.frame)
	q.frames = append(q.frames, f)
	q.wake()
}

// order makes a host do something behind all frames that wait.
func (q *workQueue) order(host any, run func()) {
	q.orders = append(q.orders, queuedOrder{host, run})
	q.wake()
}

// wake makes the goroutine run soon: others may come first.
func (q *workQueue) wake() {
	if q.awake {
		return
	}
	q.awake = true
	d := time.Duration(0)
	if most := q.p.World.Config.Data.WorkDelay; most > 0 {
		d = time.Duration(q.p.World.workRand.Int64N(int64(most)))
	}
	q.p.Later(d, func() { q.p.pass(q.run) })
}

// run works off what has gathered, batch by batch: first its frames, then its orders. A handler that takes its time
// interrupts it.
func (q *workQueue) run() {
	for !q.busy && !(q.at.empty() && q.empty()) {
		if q.at.empty() {
			q.at, q.pile, q.here = q.pile, pile{}, 0
		}
		q.next()
	}
	q.awake = q.busy
}

// next does one thing.
func (q *workQueue) next() {
	p, k := q.p, &q.at
	if len(k.frames) == 0 {
		run := k.orders[0].run
		k.orders = k.orders[1:]
		q.call(run)
		q.rests(nil)
		return
	}
	f := k.frames[0]
	k.frames = k.frames[1:]
	var e wire.Envelope
	if err := wire.ParseEnvelope(f.frame, &e); err != nil {
		p.World.Watcher.Violate(p, "frame", "a frame that waited does not parse: %v", err)
		return
	}
	q.call(func() { p.accept(f.from, &e) })
	if !q.rests(f.done) && f.done != nil {
		f.done()
	}
}

// call does something that may call handlers.
func (q *workQueue) call(do func()) {
	q.calls = true
	do()
	q.calls = false
}

// mostToil bounds what the handlers of one step take together: a shard that begins with what was handed over calls
// hundreds of them in one step, and a worker that stood still for minutes would outlast a run.
const mostToil = 2 * time.Second

// Toil makes the handler that runs now take d: its worker, or the loop, goes on after that. Of a Blocking handler it
// does nothing.
func Toil(p *Process, d time.Duration) {
	for _, q := range append(p.workers[:workers:workers], p.loop) {
		if q.calls && p.running == nil {
			q.toil = min(q.toil+d, mostToil)
		}
	}
}

// rests reports whether the handler that was called takes its time. Then done follows it.
func (q *workQueue) rests(done func()) bool {
	if q.toil == 0 {
		return false
	}
	d := q.toil
	q.toil, q.busy, q.done = 0, true, done
	q.p.Later(d, q.goOn)
	return true
}

// goOn follows a handler that has taken its time. The loop reads and works in turn.
func (q *workQueue) goOn() {
	q.busy = false
	if done := q.done; done != nil {
		q.done = nil
		done()
	}
	q.turn = !q.turn
	if q.turn {
		q.p.pass(q.run)
	}
	q.read()
	if !q.turn && !q.busy {
		q.p.pass(q.run)
	}
}

// later keeps what came on a data connection while the loop does not read.
func (q *workQueue) later(c *conn, body []byte) {
	q.p.World.placeAll(body, q.p)
	q.reads = append(q.reads, unread{c, body})
}

// read reads what came, until a handler takes its time.
func (q *workQueue) read() {
	for len(q.reads) > 0 && !q.busy && q.p.Alive {
		next := q.reads[0]
		q.reads = q.reads[1:]
		behind := q.reads
		q.reads = nil
		q.p.data(next.conn, next.body)
		q.reads = append(q.reads, behind...) // behind what of it was not read
	}
}

// reset drops what came on a connection that is over and was not read.
func (q *workQueue) reset(c *conn) {
	kept := q.reads[:0]
	for _, u := range q.reads {
		if u.conn == c {
			q.p.World.lostInFlight(u.body)
		} else {
			kept = append(kept, u)
		}
	}
	q.reads = kept
}

// skim gives a host at the deadline of its move all that waits for it at a worker that is busy, and its orders: nothing
// is handled of it, it is handed over.
func (q *workQueue) skim(host any, takes func(e *wire.Envelope) bool) {
	var orders []queuedOrder
	for _, k := range []*pile{&q.at, &q.pile} {
		k.frames = slices.DeleteFunc(k.frames, func(f waitingFrame) bool {
			var e wire.Envelope
			if wire.ParseEnvelope(f.frame, &e) != nil || !takes(&e) {
				return false
			}
			q.p.accept(f.from, &e)
			if f.done != nil {
				f.done()
			}
			return true
		})
		k.orders = slices.DeleteFunc(k.orders, func(o queuedOrder) bool {
			if o.host == host {
				orders = append(orders, o)
			}
			return o.host == host
		})
	}
	for _, o := range orders {
		o.run()
	}
}

// here takes an envelope of the process itself for a shard that lives on it: into the queue of its host, or to the host
// at once. An error says that it was not taken.
func (p *Process) here(r *Region, n route.ShardID, frame []byte) error {
	if q := r.queueOf(n); q != nil {
		return q.own(frame)
	}
	var e wire.Envelope
	if err := wire.ParseEnvelope(frame, &e); err != nil {
		p.World.Watcher.Violate(p, "frame", "a local frame does not parse: %v", err)
		return nil
	}
	p.keeps(frame)
	return p.deliver(p.ID, &e, nil).Err()
}

// forwardHere is here for a message that was parked: one that the host does not take is refused.
func (r *Region) forwardHere(n route.ShardID, e *wire.Envelope, frame []byte) plane.Step {
	p := r.Process
	if q := r.queueOf(n); q != nil {
		if q.own(frame) != nil {
			p.retry()
			return plane.NoRoom
		}
		return plane.Sent
	}
	p.keeps(frame)
	p.accept(p.ID, e)
	return plane.Sent
}

// retry goes on with drains in a while.
func (p *Process) retry() {
	if p.retrying {
		return
	}
	p.retrying = true
	p.Later(retryDrain, func() {
		p.retrying = false
		p.roomy()
	})
}

// local takes a frame of the process itself for which there is room whatever waits.
func (p *Process) local(frame []byte) {
	var e wire.Envelope
	if err := wire.ParseEnvelope(frame, &e); err != nil {
		p.World.Watcher.Violate(p, "frame", "a local frame does not parse: %v", err)
		return
	}
	p.keeps(frame)
	if q := p.Region(route.TypeID(e.Type)).queueOf(route.ShardID(e.Shard)); q != nil {
		q.put(waitingFrame{from: p.ID, frame: frame})
		return
	}
	p.accept(p.ID, &e)
}

// moves says whether a shard moves: from the order to hand it over until it has ended, or stays.
func (h *hosted) moves(moves bool) {
	if h.moving == moves {
		return
	}
	h.moving = moves
	if moves {
		h.r.Process.loop.moves++
	} else {
		h.r.Process.loop.moves--
	}
}

// queues reports whether an envelope of another process for a shard of a type waits in the queue of its worker or loop.
func queues(r *Region) bool {
	at := r.Process.loop
	return r.Type.Mode == entity.Worker || r.Type.Mode == entity.Inline && plane.ReadsOn(at.moves, at.kept)
}

// envelope takes an envelope of another process and reports whether its credit is to be given back now, or when it has
// been worked off.
func (p *Process) envelope(in *inbound, gen uint32, from peer.ID, frame []byte, e *wire.Envelope) (consumed bool) {
	r := p.Region(route.TypeID(e.Type))
	if r == nil || !queues(r) || uint32(e.Shard) >= r.Type.Shards {
		var b *backTalk
		if e.Flags&wire.FlagWait != 0 {
			b = in.backTo(gen)
		}
		p.acceptOf(from, e, b)
		return true
	}
	q, n := r.queueOf(route.ShardID(e.Shard)), len(frame)
	q.kept += int64(n)
	done := func() {
		q.kept -= int64(n)
		p.consume(in, gen, n)
	}
	q.put(waitingFrame{from: from, frame: slices.Clone(frame), done: done})
	return false
}

// movesSince is the wire version in which moves came.
const movesSince = 5

// mark sends markers to the owners of their shards, with slots closed by now, as plane.Mark says.
func mark(p *Process, list []shard.Mark) {
	for _, m := range list {
		l := p.linkOf(m.To, uint32(m.Shard))
		if l.conn.forgotten {
			continue // its removal counts as the marker
		}
		r, slot := p.Region(m.Type), (*flow.Slot)(nil)
		if r != nil && uint32(m.Shard) < r.Type.Shards {
			slot = r.Slot(m.Shard)
		}
		asks, next, err := plane.Mark(slot, l.flow, p.clock(), wire.Marker{Type: uint32(m.Type), Shard: uint32(m.Shard),
			Term: m.Number.Term, Seq: m.Number.Seq})
		for _, corr := range asks {
			p.goes(corr, peer.ID{}, route.Fence{}) // nowhere yet
		}
		if next == plane.LookUp {
			r.follow(m.Shard, next)
		}
		if err == nil { // else the move is given up for want of it
			l.wake()
		}
	}
}

// MarkFits reports whether a process can take back what waits in its link for a shard at its owner: then its marker
// waits for none of that.
func MarkFits(p *Process, owner peer.ID, key ShardKey) bool {
	_, _, large := p.linkOf(owner, uint32(key.Shard)).flow.Waiting(uint32(key.Type), uint32(key.Shard))
	return !large
}

// marked takes a marker off a data connection. What came before it stands in the queues of the workers by then, and the
// stop that follows it does so there.
func marked(p *Process, from peer.ID, frame []byte) {
	m, err := wire.ParseMarker(frame[wire.HeaderSize:])
	if err != nil {
		p.World.Watcher.Violate(p, "frame", "marker of %s: %v", p.World.Name(from), err)
		return
	}
	p.post(shard.MarkedCommand{Type: route.TypeID(m.Type), Shard: route.ShardID(m.Shard),
		Number: shard.Number{Term: m.Term, Seq: m.Seq}, From: from})
}
