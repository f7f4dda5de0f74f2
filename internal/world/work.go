// Queues of a process's workers and of its loop: what waits for whoever calls Worker and Inline handlers. A stop order
// stands behind what came before it.

package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/plane"
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
	p      *Process
	frames []waitingFrame
	orders []func() // behind all frames
	here   int      // bytes of the process's own in frames
	awake  bool
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

// queueOf returns the queue of a shard's host, nil for a Blocking type, whose hosts take messages at once.
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

// order has something done behind all frames that wait.
func (q *workQueue) order(run func()) {
	q.orders = append(q.orders, run)
	q.wake()
}

// wake has the goroutine run soon: others may come first.
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

// run works off what has gathered, batch by batch: first its frames, then its orders.
func (q *workQueue) run() {
	p := q.p
	for len(q.frames)+len(q.orders) > 0 {
		frames, orders := q.frames, q.orders
		q.frames, q.orders, q.here = nil, nil, 0
		for _, f := range frames {
			var e wire.Envelope
			if err := wire.ParseEnvelope(f.frame, &e); err != nil {
				p.World.Watcher.Violate(p, "frame", "a frame that waited does not parse: %v", err)
				continue
			}
			p.accept(f.from, &e)
			if f.done != nil {
				f.done()
			}
		}
		for _, run := range orders {
			run()
		}
	}
	q.awake = false
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

// envelope takes an envelope of another process and reports whether its credit is to be given back now, or by the
// worker that steps its shard.
func (p *Process) envelope(in *inbound, gen uint32, from peer.ID, frame []byte, e *wire.Envelope) (consumed bool) {
	r := p.Region(route.TypeID(e.Type))
	if r == nil || r.Type.Mode != entity.Worker || uint32(e.Shard) >= r.Type.Shards {
		var b *backTalk
		if e.Flags&wire.FlagWait != 0 {
			b = in.backTo(gen)
		}
		p.acceptOf(from, e, b)
		return true
	}
	done := func() { p.consume(in, gen, len(frame)) }
	r.queueOf(route.ShardID(e.Shard)).put(waitingFrame{from: from, frame: slices.Clone(frame), done: done})
	return false
}

// movesSince is the wire version in which moves came.
const movesSince = 5

// mark has markers go to the owners of their shards, whose slots are closed by now, as plane.Mark says.
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
