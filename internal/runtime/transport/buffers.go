// Buffers: the memory of all links of a node, by size class and under one budget.

package transport

import (
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/ringbuf"
)

// keepBuffers bounds the buffers that wait for the next link that needs one, in bytes.
const keepBuffers = 32 << 20

// buffers is ringbuf.Classes for many links. Its lock is taken when a buffer grows or goes back, under that link's own:
// not per message, nor per batch of a link in use.
type buffers struct {
	mu      sync.Mutex
	classes *ringbuf.Classes
	tight   atomic.Bool // half of the budget is out: a link with nothing to send gives its buffers back at once
}

func newBuffers(budget, most int) *buffers {
	return &buffers{classes: ringbuf.NewClasses(budget, most, min(keepBuffers, budget/8))}
}

// Get returns an empty buffer for n bytes, nil when the budget has none.
func (b *buffers) Get(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	buf := b.classes.Get(n)
	b.tight.Store(b.classes.Tight())
	return buf
}

// Put takes a buffer back.
func (b *buffers) Put(buf []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.classes.Put(buf)
	b.tight.Store(b.classes.Tight())
}

// trim gives to the collector what nobody has asked for since the last trim.
func (b *buffers) trim() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.classes.Trim()
}

// figures returns the bytes that are out and the times that there was none to be had.
func (b *buffers) figures() (out int, refused uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.classes.Out(), b.classes.Refused()
}
