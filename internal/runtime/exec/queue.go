// execQueue: bytes and orders for one goroutine that runs handlers: a worker, or an event loop for what comes from this
// node. Gathering and working off alternate between two batches, as a link's buffers do.

package exec

import (
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/wire"
)

const (
	keepBatch  = 2 << 20 // most bytes of buffers that a batch keeps for later: two default windows
	chunkBytes = 16 << 10
	leastChunk = 256                    // of one behind fullChunks others
	fullChunks = keepBatch / chunkBytes // beyond so many a chunk gets a full buffer only when it goes on with the last one
	adoptBytes = 8 << 10                // a read pass at least this long hands its buffer over instead of copying it
)

// chunk is a run of whole frames of one origin: a connection, to which its bytes are to be given back as credit, or
// this node (nil).
type chunk struct {
	conn *transport.InConn
	from *Source
	buf  []byte
}

// hostTask is an order for one host.
type hostTask struct {
	h *Host
	o order
}

// batch is a run of whole frames, and orders that come after them. Its buffers are used again.
type batch struct {
	chunks []chunk
	orders []hostTask
	size   int // bytes of all frames
	spare  [][]byte
	kept   int // bytes of spare
	at     place
}

// place is how far its goroutine is with a batch: the chunk in hand, the end of what it has begun of that, and of a
// loop, which may go on later, how many orders it has carried out. Nobody else looks at it while the goroutine runs.
type place struct{ chunk, end, orders int }

func (b *batch) empty() bool { return len(b.chunks) == 0 && len(b.orders) == 0 }

// done reports whether a loop has worked off the whole batch.
func (b *batch) done() bool { return b.at.chunk == len(b.chunks) && b.at.orders == len(b.orders) }

func (b *batch) reset() {
	for i := range b.chunks {
		if c := cap(b.chunks[i].buf); c >= adoptBytes && b.kept+c <= keepBatch {
			b.kept += c
			b.spare = append(b.spare, b.chunks[i].buf[:0])
		}
	}
	clear(b.chunks)
	clear(b.orders)
	b.chunks, b.orders, b.size, b.at = b.chunks[:0], b.orders[:0], 0, place{}
}

// fresh returns an empty buffer that has room for n bytes, a new one for most, or more.
func (b *batch) fresh(n, most int) []byte {
	for len(b.spare) > 0 {
		last := len(b.spare) - 1
		buf := b.spare[last]
		b.spare[last] = nil
		b.spare, b.kept = b.spare[:last], b.kept-cap(buf)
		if cap(buf) >= n {
			return buf
		}
	}
	return make([]byte, 0, max(most, n))
}

// length returns for how many bytes the buffer of a new chunk is made. While little waits that is many, and buffers are
// used again. Where much waits, connections that take turns with short frames would have one of full length for each.
func (b *batch) length(conn *transport.InConn, from *Source) int {
	if len(b.chunks) < fullChunks {
		return chunkBytes
	}
	last := &b.chunks[len(b.chunks)-1]
	if last.conn != conn || last.from != from {
		return leastChunk
	}
	return min(chunkBytes, 2*cap(last.buf))
}

// room appends n bytes of an origin and returns them.
func (b *batch) room(conn *transport.InConn, from *Source, n int) []byte {
	last := len(b.chunks) - 1
	if last < 0 || b.chunks[last].conn != conn || b.chunks[last].from != from ||
		n > cap(b.chunks[last].buf)-len(b.chunks[last].buf) {
		b.chunks = append(b.chunks, chunk{conn, from, b.fresh(n, b.length(conn, from))})
		last++
	}
	c := &b.chunks[last]
	at := len(c.buf)
	c.buf = c.buf[:at+n]
	b.size += n
	return c.buf[at:]
}

// adopt takes a buffer with whole frames of an origin.
func (b *batch) adopt(conn *transport.InConn, from *Source, frames []byte) {
	b.chunks = append(b.chunks, chunk{conn, from, frames})
	b.size += len(frames)
}

// frames calls f for each frame of the batch, and gives the credit of each chunk back behind its last frame.
func (b *batch) frames(f func(from *Source, frame []byte)) {
	for i := range b.chunks {
		c := &b.chunks[i]
		for at := 0; at < len(c.buf); {
			n := wire.SizeOf(c.buf[at:])
			b.at = place{chunk: i, end: at + n}
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
//
// Senders write seat to awake for each message, on other cores than the goroutine, which reads what stands around it
// for each message: so these share no line of memory with that, nor with what stands before and behind the queue
// (TestSendersShareNoLineWithTheirReader).
type execQueue struct {
	_     [cacheLine]byte
	seat  sync.Mutex // of a loop: its holder steps what the loop alone does; see pass.sit and Idle
	mu    sync.Mutex
	in    batch
	here  int // bytes of this node in in
	awake bool
	_     [cacheLine]byte

	limit     int
	wake      func() bool       // has the goroutine call take until it returns nil; false when that was not possible
	callFrame *entity.CallFrame // of the goroutine, for the shards that it alone steps

	hurry atomic.Bool // a host's deadline has come: what waits for it is taken out of its turn

	out batch // being worked off; the goroutine's own
}

// cacheLine is how far apart two things are to be of which one is written while the other is read: a line of memory.
const cacheLine = 64

// firstChunks is for how many chunks a batch has room at once: the two arrays of a queue, one of which is written while
// the other is read, are too long to lie in one line.
const firstChunks = 8

func (q *execQueue) init(limit int, wake func() bool) {
	q.limit, q.wake = limit, wake
	q.in.chunks, q.out.chunks = make([]chunk, 0, firstChunks), make([]chunk, 0, firstChunks)
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

// reserve returns n bytes for the frame of a message of this node, nil when there is no room. The lock is held.
func (q *execQueue) reserve(n int) []byte {
	if q.here > 0 && n > q.limit-q.here {
		return nil
	}
	q.here += n
	return q.in.room(nil, nil, n)
}

// appendHere takes a message of this node, and reports whether there was room. The lock is held, and is given up.
func (q *execQueue) appendHere(env *wire.Envelope, id string) bool {
	b := q.reserve(wire.EnvelopeSize + len(id) + len(env.Payload) + env.More())
	if b == nil {
		q.mu.Unlock()
		return false
	}
	wire.PutEnvelope(b, env, id)
	q.unlock()
	return true
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
func (q *execQueue) appendRead(conn *transport.InConn, from *Source, frames []byte) (next []byte) {
	q.mu.Lock()
	if len(frames) >= adoptBytes && len(frames) >= cap(frames)/4 {
		q.in.adopt(conn, from, frames)
		next = q.in.fresh(chunkBytes, chunkBytes)
	} else {
		copy(q.in.room(conn, from, len(frames)), frames)
		next = frames[:0]
	}
	q.unlock()
	return next
}

// order takes an order for a host of this queue, behind all frames appended before.
func (q *execQueue) order(h *Host, o order) {
	q.mu.Lock()
	q.in.orders = append(q.in.orders, hostTask{h, o})
	if o == orderCut {
		q.hurry.Store(true)
	}
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
