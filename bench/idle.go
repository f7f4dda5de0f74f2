// Idle: many entities that do nothing, and what holding them costs the process.

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// Idle makes entities with a handler that has no state and does nothing, and counts them: what is measured beside them
// is what the library holds for each.
type Idle struct {
	made, handled atomic.Int64
	entity        kith.Handler
}

// NewIdle returns an Idle without entities.
func NewIdle() *Idle {
	i := &Idle{}
	i.entity = (*idleEntity)(i)
	return i
}

// Type declares the entities.
func (i *Idle) Type(name string, shards uint32, mode kith.Mode) kith.EntityType {
	return kith.EntityType{Name: name, Shards: shards, Mode: mode, New: func(string, kith.Fence) kith.Handler {
		i.made.Add(1)
		return i.entity // one value is every entity: the user's own state would come on top
	}}
}

// idleEntity is the handler of all of them.
type idleEntity Idle

// Receive counts.
func (i *idleEntity) Receive(*kith.Context, []byte) error {
	i.handled.Add(1)
	return nil
}

// Stop does nothing.
func (*idleEntity) Stop(*kith.Context) {}

// idleID is the id of an entity: 16 bytes, as those of all measures here.
func idleID(dst []byte, n int) []byte {
	dst = append(dst[:0], "entity-000000000"...)
	for at := len(dst) - 1; n > 0; at-- {
		dst[at], n = byte('0'+n%10), n/10
	}
	return dst
}

// ErrNotIdle is returned by Fill when entities did not come to rest in time.
var ErrNotIdle = errors.New("entities did not become idle")

// Fill sends a message to each entity from first up to but not including end, and waits until all of them have handled
// theirs and are idle again.
func (i *Idle) Fill(ctx context.Context, node *kith.Node, region *kith.Region, first, end int) error {
	const tellers = 4
	var wg sync.WaitGroup
	errs := make([]error, tellers)
	for w := range tellers {
		wg.Go(func() {
			id := make([]byte, 0, 16)
			for n := first + w; n < end && errs[w] == nil; n += tellers {
				id = idleID(id, n)
				errs[w] = region.TellWait(ctx, string(id), nil)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for {
		stats := node.Stats()
		made, handled := i.made.Load(), i.handled.Load()
		if made == int64(end) && handled == int64(end) && stats.BusyEntities == 0 && stats.MailboxBytes == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %d made, %d messages handled, %d busy: %w", ErrNotIdle, made, handled,
				stats.BusyEntities, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Held is what a process holds after a forced return of memory.
type Held struct {
	RSS, Peak  uint64        // bytes resident, now and at most; zero where the system does not tell
	Heap       uint64        // bytes of live objects
	GC         time.Duration // wall time of one full collection of a heap that had been collected before
	Goroutines int
	Cores      float64 // processor over time while nothing was done, as far as the caller of Hold has looked
}

// Hold collects garbage twice, returns what is free to the system, and looks.
func Hold() Held {
	runtime.GC() // what the fill left
	began := time.Now()
	runtime.GC()
	h := Held{GC: time.Since(began), Goroutines: runtime.NumGoroutine()}
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.Heap = m.HeapAlloc
	h.RSS, h.Peak = Resident()
	return h
}

// String is h for people.
func (h Held) String() string {
	mb := func(n uint64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " MB" }
	return fmt.Sprintf("resident %s, at most %s, live heap %s, a collection takes %v", mb(h.RSS), mb(h.Peak), mb(h.Heap),
		h.GC.Round(time.Millisecond))
}
