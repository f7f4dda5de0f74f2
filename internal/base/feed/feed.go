// Package feed hands what happens to readers, each at its own pace and with a bound.
package feed

import (
	"context"
	"iter"
	"sync"
)

// MaxPending bounds what waits for one reader; one that is further behind begins anew.
const MaxPending = 1024

// Feed hands events to every reader. The zero value has none. It is safe for concurrent use.
type Feed[E any] struct {
	mu      sync.Mutex
	readers map[*Reader[E]]struct{}
	ended   bool
}

// Reader is one reader's place. Its fields are guarded by the feed's lock.
type Reader[E any] struct {
	pending []E
	wake    chan struct{} // capacity 1
}

// Read reports whether anybody reads: a later reader has missed what was not handed out.
func (f *Feed[E]) Read() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.readers) > 0
}

// Hand calls first under the lock that Enter takes, and gives events to all readers. One that is further behind than
// MaxPending gets missed in place of all that waits for it and of the rest of events.
func (f *Feed[E]) Hand(events []E, missed E, first func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first()
	for r := range f.readers {
		for _, e := range events {
			if len(r.pending) >= MaxPending {
				r.pending = append(r.pending[:0], missed)
				break
			}
			r.pending = append(r.pending, e)
		}
		r.signal()
	}
}

// End lets readers finish what they have and then stop.
func (f *Feed[E]) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for r := range f.readers {
		r.signal()
	}
}

func (r *Reader[E]) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Pending returns how much waits for a reader.
func (f *Feed[E]) Pending(r *Reader[E]) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(r.pending)
}

// Enter adds a reader that gets what begin returns under the lock, and what is handed out after it.
func (f *Feed[E]) Enter(begin func() E) *Reader[E] {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &Reader[E]{pending: []E{begin()}, wake: make(chan struct{}, 1)}
	r.signal()
	if f.readers == nil {
		f.readers = map[*Reader[E]]struct{}{}
	}
	f.readers[r] = struct{}{}
	return r
}

// Leave takes a reader away.
func (f *Feed[E]) Leave(r *Reader[E]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
}

// Take appends what waits for a reader to into, and reports whether more can come.
func (f *Feed[E]) Take(r *Reader[E], into []E) (events []E, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events = append(into, r.pending...)
	clear(r.pending)
	r.pending = r.pending[:0]
	return events, !f.ended
}

// Stream is the iterator of one reader, which gets what begin returns first. It ends with ctx or with the feed. It may
// be ranged over several times; each time it begins anew.
func (f *Feed[E]) Stream(ctx context.Context, begin func() E) iter.Seq[E] {
	return func(yield func(E) bool) {
		r := f.Enter(begin)
		defer f.Leave(r)
		var batch []E
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			}
			batch, more = f.Take(r, batch[:0])
			for _, e := range batch {
				if !yield(e) {
					return
				}
			}
		}
	}
}
