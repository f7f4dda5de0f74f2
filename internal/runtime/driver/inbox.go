// The inbox of the control goroutine: control frames, bounded and lossy, and the node's own commands, which are not.

package driver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/incall"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of what control frames may wait for the control goroutine. What is over them is dropped and counted: every
// exchange of the protocols is retried. Each peer stands in a line of its own, all non-members in one; a turn
// takes a few frames from each: a peer that sends many, or slow ones, waits behind its own.
const (
	inboxFrames = 16 << 10
	inboxBytes  = 64 << 20
	lineFrames  = 4 << 10  // of one line
	lineBytes   = 32 << 20 // likewise
	queueTurn   = 32       // frames of a line that a turn takes
	smallFrame  = 4 << 10  // body of a frame that is taken when all is full, if its line is empty
)

// frame is one control frame that arrived.
type frame struct {
	from    peer.ID
	kind    wire.Kind
	arrived time.Duration
	body    []byte
}

// inbox gathers input for the control goroutine. Frames are bounded here; jobs are bounded by their posters: one per
// waiting caller, per slot that wants its home, per hosted shard, per entry of a refusal.
type inbox struct {
	mu     sync.Mutex
	lines  map[peer.ID]*peerQueue // that are not empty
	order  []*peerQueue           // the same, in the order in which they began
	spare  []*peerQueue           // empty ones, for the next peers
	frames int                    // in all lines
	bytes  int                    // of their bodies
	jobs   []func()
	closed bool

	block []byte // of the next small bodies

	wake    chan struct{} // capacity 1
	dropped atomic.Uint64 // frames

	at atomic.Uint64 // incall.Here of the control goroutine, zero before and behind it
}

// peerQueue is the frames of one peer that wait, or of all non-members.
type peerQueue struct {
	who    peer.ID
	frames []frame
	bytes  int
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1), lines: map[peer.ID]*peerQueue{}} }

// runs notes that this is the control goroutine, until the function that it returns is called.
func (b *inbox) runs() (over func()) {
	b.at.Store(uint64(incall.Here()))
	return func() { b.at.Store(0) }
}

// mayWait returns ErrWouldBlock on the control goroutine, which waits for nobody: a function of the embedder that it
// calls, such as a strategy, would wait for itself.
func (b *inbox) mayWait() error {
	if incall.Known && b.at.Load() == uint64(incall.Here()) {
		return fmt.Errorf("%w: it runs on the control goroutine of its node", entity.ErrWouldBlock)
	}
	return nil
}

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// frame copies a control frame into the line of who: its sender, or zero for all non-members.
func (b *inbox) frame(who, from peer.ID, kind wire.Kind, arrived time.Duration, body []byte) {
	b.mu.Lock()
	l := b.lines[who]
	if b.closed || b.full(l, len(body)) {
		b.mu.Unlock()
		b.dropped.Add(1)
		return
	}
	if l == nil {
		l = b.begin(who)
	}
	l.frames = append(l.frames, frame{from, kind, arrived, b.keep(body)})
	l.bytes += len(body)
	b.frames++
	b.bytes += len(body)
	b.mu.Unlock()
	b.signal()
}

// full reports whether a frame finds no room. The lock is held.
func (b *inbox) full(l *peerQueue, n int) bool {
	if l == nil {
		return n > smallFrame && (b.frames >= inboxFrames || b.bytes+n > inboxBytes)
	}
	return b.frames >= inboxFrames || b.bytes+n > inboxBytes || len(l.frames) >= lineFrames || l.bytes+n > lineBytes
}

// begin opens a line. The lock is held.
func (b *inbox) begin(who peer.ID) *peerQueue {
	var l *peerQueue
	if n := len(b.spare); n > 0 {
		l, b.spare = b.spare[n-1], b.spare[:n-1]
	} else {
		l = &peerQueue{}
	}
	l.who = who
	b.lines[who] = l
	b.order = append(b.order, l)
	return l
}

// Bodies up to inboxSmall bytes, which heartbeats, statuses and acknowledgements have, share blocks of inboxBlock.
const (
	inboxSmall = 128
	inboxBlock = 4 << 10
)

// keep copies a body. A block is never used again: the handler of a frame may hold its body. The lock is held.
func (b *inbox) keep(body []byte) []byte {
	n := len(body)
	if n > inboxSmall {
		return append([]byte(nil), body...)
	}
	if n > cap(b.block)-len(b.block) {
		b.block = make([]byte, 0, inboxBlock)
	}
	b.block = append(b.block, body...)
	return b.block[len(b.block)-n : len(b.block) : len(b.block)]
}

// post hands f to the control goroutine and reports whether it will run.
func (b *inbox) post(f func()) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.jobs = append(b.jobs, f)
	b.mu.Unlock()
	b.signal()
	return true
}

// take moves the jobs that wait, and the first frames of each line, into the given slices. When frames are left, it
// wakes the control goroutine again.
func (b *inbox) take(frames []frame, jobs []func()) ([]frame, []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.order[:0]
	for _, l := range b.order {
		n := min(len(l.frames), queueTurn)
		for _, f := range l.frames[:n] {
			l.bytes -= len(f.body)
			b.bytes -= len(f.body)
			frames = append(frames, f)
		}
		b.frames -= n
		rest := copy(l.frames, l.frames[n:])
		clear(l.frames[rest:])
		if l.frames = l.frames[:rest]; rest > 0 {
			left = append(left, l)
			continue
		}
		delete(b.lines, l.who)
		if cap(l.frames) <= 2*queueTurn && len(b.spare) < maxSpareLines {
			b.spare = append(b.spare, l)
		}
	}
	clear(b.order[len(left):])
	if b.order = left; len(left) > 0 {
		b.signal()
	}
	jobs = append(jobs, b.jobs...)
	clear(b.jobs)
	b.jobs = b.jobs[:0]
	return frames, jobs
}

// maxSpareLines bounds the lines that are kept for peers to come.
const maxSpareLines = 64

// close refuses everything from here on and returns the jobs that were waiting.
func (b *inbox) close() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs := b.jobs
	b.closed, b.lines, b.order, b.spare, b.jobs, b.frames, b.bytes = true, nil, nil, nil, nil, 0, 0
	return jobs
}
