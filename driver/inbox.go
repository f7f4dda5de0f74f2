// The inbox of the control goroutine: control frames, bounded and lossy, and the node's own commands, which are not.

package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of what control frames may wait for the control goroutine. What is over them is dropped and counted: every
// exchange of the protocols is retried.
const (
	inboxFrames = 16 << 10
	inboxBytes  = 64 << 20
)

// frame is one control frame that arrived.
type frame struct {
	from    peer.ID
	kind    wire.Kind
	arrived time.Duration
	body    []byte
}

// inbox gathers input for the control goroutine. Frames are bounded here; jobs are bounded by whoever posts them: one
// per waiting caller, per slot that wants its home, per hosted shard, per entry of a refusal.
type inbox struct {
	mu     sync.Mutex
	frames []frame
	bytes  int
	jobs   []func()
	closed bool

	room []byte // of the next small bodies

	wake    chan struct{} // capacity 1
	dropped atomic.Uint64 // frames
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// frame takes a control frame, whose body it copies.
func (b *inbox) frame(from peer.ID, kind wire.Kind, arrived time.Duration, body []byte) {
	b.mu.Lock()
	if b.closed || len(b.frames) >= inboxFrames || b.bytes+len(body) > inboxBytes {
		b.mu.Unlock()
		b.dropped.Add(1)
		return
	}
	b.frames = append(b.frames, frame{from, kind, arrived, b.keep(body)})
	b.bytes += len(body)
	b.mu.Unlock()
	b.signal()
}

// Bodies up to inboxSmall bytes, which heartbeats, statuses and receipts have, share rooms of inboxRoom.
const (
	inboxSmall = 128
	inboxRoom  = 4 << 10
)

// keep copies a body. A room is never used again: who handles a frame may hold its body. The lock is held.
func (b *inbox) keep(body []byte) []byte {
	n := len(body)
	if n > inboxSmall {
		return append([]byte(nil), body...)
	}
	if n > cap(b.room)-len(b.room) {
		b.room = make([]byte, 0, inboxRoom)
	}
	b.room = append(b.room, body...)
	return b.room[len(b.room)-n : len(b.room) : len(b.room)]
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

// take moves everything that waits into the given slices.
func (b *inbox) take(frames []frame, jobs []func()) ([]frame, []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	frames, jobs = append(frames, b.frames...), append(jobs, b.jobs...)
	clear(b.frames)
	clear(b.jobs)
	b.frames, b.jobs, b.bytes = b.frames[:0], b.jobs[:0], 0
	return frames, jobs
}

// close refuses everything from here on and returns the jobs that were waiting.
func (b *inbox) close() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs := b.jobs
	b.closed, b.frames, b.jobs, b.bytes = true, nil, nil, 0
	return jobs
}
