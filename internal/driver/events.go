// Events: a stream per reader that begins with a snapshot, misses nothing, and is bounded (MEM-3).

package driver

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/membership"
)

// Snapshot is the kind of an Event that carries a View from which a reader starts, or starts again.
const Snapshot membership.EventKind = 0

// MaxPendingEvents bounds what waits for one reader; one that is further behind starts again from a Snapshot.
const MaxPendingEvents = 1024

// Event is one change of membership, or a Snapshot.
type Event struct {
	membership.Event
	// View is the snapshot of the Snapshot, or the one that this change led to. Never nil.
	View *membership.View
	// Missed, in a Snapshot, says that the reader was too slow and changes before it were dropped.
	Missed bool
}

// String prints the event as one line.
func (e Event) String() string {
	switch {
	case e.Kind == Snapshot && e.Missed:
		return "snapshot (missed)"
	case e.Kind == Snapshot:
		return "snapshot"
	}
	return e.Event.String()
}

// broadcaster holds the current view and hands changes to every reader.
type broadcaster struct {
	view atomic.Pointer[membership.View]

	mu      sync.Mutex
	readers map[*eventReader]struct{}
	ended   bool
}

// eventReader is one reader's place. Its fields are guarded by the broadcaster's lock.
type eventReader struct {
	pending []Event
	wake    chan struct{} // capacity 1
}

func newBroadcaster(first *membership.View) *broadcaster {
	b := &broadcaster{readers: map[*eventReader]struct{}{}}
	b.view.Store(first)
	return b
}

// publish makes v current and hands out the events that led to it.
func (b *broadcaster) publish(v *membership.View, events []membership.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view.Store(v)
	for r := range b.readers {
		for _, e := range events {
			if len(r.pending) >= MaxPendingEvents {
				// This view contains all events of this call, those not handed out yet included.
				r.pending = append(r.pending[:0], Event{View: v, Missed: true})
				break
			}
			r.pending = append(r.pending, Event{Event: e, View: v})
		}
		r.signal()
	}
}

// end lets readers finish what they have and then stop.
func (b *broadcaster) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for r := range b.readers {
		r.signal()
	}
}

func (r *eventReader) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (b *broadcaster) enter() *eventReader {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &eventReader{pending: []Event{{View: b.view.Load()}}, wake: make(chan struct{}, 1)}
	r.signal()
	b.readers[r] = struct{}{}
	return r
}

func (b *broadcaster) leave(r *eventReader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.readers, r)
}

// take moves what is pending to into and reports whether more can come.
func (b *broadcaster) take(r *eventReader, into []Event) (events []Event, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events = append(into, r.pending...)
	clear(r.pending)
	r.pending = r.pending[:0]
	return events, !b.ended
}

// stream is the iterator of one reader. It may be ranged over several times; each time it begins anew.
func (b *broadcaster) stream(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		r := b.enter()
		defer b.leave(r)
		var batch []Event
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			}
			batch, more = b.take(r, batch[:0])
			for _, e := range batch {
				if !yield(e) {
					return
				}
			}
		}
	}
}
