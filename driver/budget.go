// budget: a bound on bytes that many locks share; and the bell of those who wait for room.

package driver

import (
	"sync"
	"sync/atomic"
)

// budget is flow.Budget and entity.Budget for many goroutines.
type budget struct {
	limit int64
	used  atomic.Int64
}

// Take claims n bytes and reports whether the limit allowed it.
func (b *budget) Take(n int) bool {
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// Force claims n bytes whatever the limit says.
func (b *budget) Force(n int) { b.used.Add(int64(n)) }

// Give returns n bytes.
func (b *budget) Give(n int) { b.used.Add(-int64(n)) }

// roomBell wakes those who wait for room somewhere. Ringing costs one load when nobody waits.
type roomBell struct {
	waiting atomic.Int32
	mu      sync.Mutex
	ch      chan struct{}
}

// listen returns a channel that the next ring closes. leave must follow.
func (b *roomBell) listen() <-chan struct{} {
	b.waiting.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *roomBell) leave() { b.waiting.Add(-1) }

func (b *roomBell) ring() {
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
