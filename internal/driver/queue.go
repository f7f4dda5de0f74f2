// execQueue: bytes and orders for one goroutine that runs handlers: a worker, or an event loop for what comes from this
// node. Gathering and working off alternate between two batches, as a link's buffers do.

package driver

import (
	"sync"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

const (
	keepBatch  = 2 << 20 // most bytes of buffers that a batch keeps for later: two default windows
	chunkBytes = 16 << 10
	adoptBytes = 8 << 10 // a read pass at least this long hands its buffer over instead of copying it
)

// chunk is a run of whole frames of one origin: a connection, whose bytes are to be given back as credit, or this node
// (nil).
type chunk struct {
	conn *transport.InConn
	from *remote
	buf  []byte
}

// hostTask is an order for one host.
type hostTask struct {
	h *host
	o order
}

// batch is a run of whole frames, and orders that come after them. Its buffers are used again.
type batch struct {
	chunks []chunk
	orders []hostTask
	size   int // bytes of all frames
	spare  [][]byte
	kept   int // bytes of spare
}

func (b *batch) empty() bool { return len(b.chunks) == 0 && len(b.orders) == 0 }

func (b *batch) reset() {
	for i := range b.chunks {
		if c := cap(b.chunks[i].buf); b.kept+c <= keepBatch {
			b.kept += c
			b.spare = append(b.spare, b.chunks[i].buf[:0])
		}
	}
	clear(b.chunks)
	clear(b.orders)
	b.chunks, b.orders, b.size = b.chunks[:0], b.orders[:0], 0
}

// fresh returns an empty buffer that has room for n bytes.
func (b *batch) fresh(n int) []byte {
	for len(b.spare) > 0 {
		last := len(b.spare) - 1
		buf := b.spare[last]
		b.spare[last] = nil
		b.spare, b.kept = b.spare[:last], b.kept-cap(buf)
		if cap(buf) >= n {
			return buf
		}
	}
	return make([]byte, 0, max(chunkBytes, n))
}

// room appends n bytes of an origin and returns them.
func (b *batch) room(conn *transport.InConn, from *remote, n int) []byte {
	last := len(b.chunks) - 1
	if last < 0 || b.chunks[last].conn != conn || b.chunks[last].from != from ||
		n > cap(b.chunks[last].buf)-len(b.chunks[last].buf) {
		b.chunks = append(b.chunks, chunk{conn, from, b.fresh(n)})
		last++
	}
	c := &b.chunks[last]
	at := len(c.buf)
	c.buf = c.buf[:at+n]
	b.size += n
	return c.buf[at:]
}

// adopt takes a buffer with whole frames of an origin.
func (b *batch) adopt(conn *transport.InConn, from *remote, frames []byte) {
	b.chunks = append(b.chunks, chunk{conn, from, frames})
	b.size += len(frames)
}

// frames calls f for each frame of the batch, and gives the credit of each chunk back behind its last frame.
func (b *batch) frames(f func(from *remote, frame []byte)) {
	for i := range b.chunks {
		c := &b.chunks[i]
		for at := 0; at < len(c.buf); {
			n := wire.SizeOf(c.buf[at:])
			f(c.from, c.buf[at:at+n:at+n])
			at += n
		}
		if c.conn != nil {
			c.conn.Consumed(len(c.buf))
		}
	}
}

// execQueue gathers for one goroutine. What comes over connections is bounded by their credit, what comes from this
// node by limit.
type execQueue struct {
	limit int
	wake  func() bool // has the goroutine call take until it returns nil; false when that was not possible
	full  error
	desk  *entity.Desk // of the goroutine, for the shards that it alone steps

	mu    sync.Mutex
	in    batch
	here  int // bytes of this node in in
	awake bool

	out batch // being worked off; the goroutine's own
}

func (q *execQueue) init(self peer.ID, limit int, wake func() bool) {
	q.limit, q.wake = limit, wake
	q.full = &RefusedError{Peer: self, Reason: route.QueueFull, Limit: limit}
}

// unlock gives up the lock after an append and wakes the goroutine if it sleeps.
func (q *execQueue) unlock() {
	wake := !q.awake
	q.awake = true
	q.mu.Unlock()
	if wake && !q.wake() {
		q.mu.Lock()
		q.awake = false // the ticker tries again
		q.mu.Unlock()
	}
}

// appendHere takes a message of this node under the route e; stale means that the route has changed.
func (q *execQueue) appendHere(s *regionSlot, e *routeEntry, env *wire.Envelope, id string) (stale bool, err error) {
	n := wire.EnvelopeSize + len(id) + len(env.Payload)
	q.mu.Lock()
	if s.route.Load() != e {
		q.mu.Unlock()
		return true, nil
	}
	if q.here > 0 && n > q.limit-q.here {
		q.mu.Unlock()
		return false, q.full
	}
	q.here += n
	wire.PutEnvelope(q.in.room(nil, nil, n), env, id)
	q.unlock()
	return false, nil
}

// appendFrame takes a parked frame of this node, and reports whether there was room.
func (q *execQueue) appendFrame(f []byte) bool {
	q.mu.Lock()
	if q.here > 0 && len(f) > q.limit-q.here {
		q.mu.Unlock()
		return false
	}
	q.here += len(f)
	copy(q.in.room(nil, nil, len(f)), f)
	q.unlock()
	return true
}

// appendRead takes the frames that one read pass gathered for this queue, and returns the buffer for the next pass: it
// keeps a long one, and copies a short one, which would hold much memory for few bytes.
func (q *execQueue) appendRead(conn *transport.InConn, from *remote, frames []byte) (next []byte) {
	q.mu.Lock()
	if len(frames) >= adoptBytes && len(frames) >= cap(frames)/4 {
		q.in.adopt(conn, from, frames)
		next = q.in.fresh(chunkBytes)
	} else {
		copy(q.in.room(conn, from, len(frames)), frames)
		next = frames[:0]
	}
	q.unlock()
	return next
}

// order takes an order for a host of this queue, behind all frames appended before.
func (q *execQueue) order(h *host, o order) {
	q.mu.Lock()
	q.in.orders = append(q.in.orders, hostTask{h, o})
	q.unlock()
}

// take returns what has gathered, or nil, and then the goroutine is asleep. The batch is valid until the next take.
func (q *execQueue) take() *batch {
	q.out.reset()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.in.empty() {
		q.awake = false
		return nil
	}
	q.in, q.out = q.out, q.in
	q.here = 0
	return &q.out
}

// poke wakes the goroutine if something waits and no wake-up is on its way.
func (q *execQueue) poke() {
	q.mu.Lock()
	if q.awake || q.in.empty() {
		q.mu.Unlock()
		return
	}
	q.unlock()
}

// worker runs the handlers of Worker types whose shards are its own, without locks.
type worker struct {
	d     *Driver
	queue execQueue
	bell  chan struct{} // capacity 1
	stop  chan struct{}
	count execCounters
	ahead ahead
	timed sampler
}

func newWorker(d *Driver) *worker {
	w := &worker{d: d, bell: make(chan struct{}, 1), stop: make(chan struct{})}
	w.queue.init(d.self, d.cfg.localBuffer(), func() bool {
		select {
		case w.bell <- struct{}{}:
		default:
		}
		return true
	})
	w.ahead.d, w.ahead.queue, w.queue.desk = d, &w.queue, &w.ahead.desk
	return w
}

// run is the worker's goroutine.
func (w *worker) run() {
	for {
		over := false
		select {
		case <-w.bell:
		case <-w.stop:
			over = true
		}
		for b := w.queue.take(); b != nil; b = w.queue.take() {
			w.work(b)
		}
		if over {
			return
		}
	}
}

func (w *worker) work(b *batch) {
	now := w.d.now()
	if w.d.held(now) {
		w.d.wait(nil)
		now = w.d.now()
	}
	frames, timed := 0, w.d.cfg.Latency != nil
	w.count.enter(w.d)
	for i := range b.chunks {
		c := &b.chunks[i]
		for rest := c.buf; len(rest) > 0; {
			rest = w.ahead.look(rest)
			if frames%stallStep < w.ahead.n {
				w.count.enter(w.d)
			}
			frames += w.ahead.n
			w.frames(now, c.from, timed)
		}
		if c.conn != nil {
			c.conn.Consumed(len(c.buf))
		}
	}
	for _, t := range b.orders {
		w.d.goOn(nil)
		t.h.obey(now, t.o)
	}
	w.count.leave()
	w.count.handled.Add(uint64(frames))
}

// frames works off what was looked at.
func (w *worker) frames(now time.Duration, from *remote, timed bool) {
	a := &w.ahead
	for at := 0; at < a.n; at++ {
		end := a.n
		if timed {
			end = min(end, at+w.timed.room())
		}
		to := a.run(now, from, at, end)
		w.timed.pass(to - at)
		if at = to; at == a.n {
			return
		}
		w.d.goOn(nil)
		if timed {
			w.timeFrame(now, from, &a.next[at])
		} else {
			w.frame(now, from, &a.next[at])
		}
	}
}

// frame works off one.
func (w *worker) frame(now time.Duration, from *remote, x *foreseen) {
	if x.kind != wire.KindEnvelope || x.bad != nil {
		w.nonsense(from, x)
		return
	}
	h, reason := w.d.hostOf(&w.ahead.cache, &x.env)
	if reason == route.OK {
		reason = h.deliver(now, from, &x.env, x.hash)
		h.settle()
	}
	if reason != route.OK {
		w.d.refuse(w.ahead.cache.region(w.d, &x.env), from, &x.env, reason)
	}
}

// nonsense notes a frame that a peer sent and that made no sense.
func (w *worker) nonsense(from *remote, x *foreseen) {
	if from == nil {
		w.d.count.nonsense.Add(1) // cannot be: this node has made it
		return
	}
	w.d.nonsense(from.id, x.kind, x.bad)
}
