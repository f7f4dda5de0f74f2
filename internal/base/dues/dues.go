// Package dues holds many things each of which is due at some time. To find those that are due costs by how many these
// are: of the others most are not looked at, and none is touched.
package dues

import (
	"math"
	"sync/atomic"
	"time"
)

// Never is the time of what is not due.
const Never = time.Duration(math.MaxInt64)

// blockSize is how many times lie side by side: 2 KiB.
const blockSize = 256

// block is some of the things of a table. Its times lie side by side, so that to look at all of them costs little.
type block[T any] struct {
	least *atomic.Int64 // no later than any of at
	at    [blockSize]atomic.Int64
	what  [blockSize]*T // nil: free
	used  int
}

// leasts are those of so many blocks. A look for a block with something due touches these alone.
type leasts [64]atomic.Int64

// Table holds things and when each is due. The zero value is empty. Its methods are called by one goroutine at a time;
// Due.Set may be called meanwhile.
type Table[T any] struct {
	blocks []*block[T]
	leasts []*leasts // of the blocks
	n      int
	room   int // no block before it has a free place
}

// Due is when one thing of a table is due. Add comes first, and nothing after Remove. At may be called by any
// goroutine, Set by one at a time.
type Due[T any] struct {
	at atomic.Int64 // what its place in the block has: a reader of it alone needs no line that others write
	in *block[T]
	i  uint32
	no uint32 // of the block
}

// At returns when the thing is due.
func (d *Due[T]) At() time.Duration { return time.Duration(d.at.Load()) }

// Set makes it due at another time, Never when it is not. One for which Over looks meanwhile is found by it, or by the
// next that comes when it is due.
func (d *Due[T]) Set(at time.Duration) {
	if d.at.Load() == int64(at) {
		return
	}
	d.at.Store(int64(at))
	d.in.at[d.i].Store(int64(at)) // before least is looked at: Over does it the other way round
	d.in.lower(int64(at))
}

// lower makes least no later than at.
func (b *block[T]) lower(at int64) {
	for {
		old := b.least.Load()
		if old <= at || b.least.CompareAndSwap(old, at) {
			return
		}
	}
}

// Len returns how many things there are.
func (t *Table[T]) Len() int { return t.n }

// Add takes a thing, which is not due yet, and its time.
func (t *Table[T]) Add(d *Due[T], what *T) {
	for t.room < len(t.blocks) && t.blocks[t.room].used == blockSize {
		t.room++
	}
	if t.room == len(t.blocks) {
		if t.room/len(leasts{}) == len(t.leasts) {
			t.leasts = append(t.leasts, &leasts{})
		}
		b := &block[T]{least: &t.leasts[t.room/len(leasts{})][t.room%len(leasts{})]}
		b.least.Store(int64(Never))
		for i := range b.at {
			b.at[i].Store(int64(Never))
		}
		t.blocks = append(t.blocks, b)
	}
	b := t.blocks[t.room]
	i := 0
	for b.what[i] != nil {
		i++
	}
	b.what[i] = what
	b.used++
	t.n++
	d.in, d.i, d.no = b, uint32(i), uint32(t.room)
	d.at.Store(int64(Never))
}

// Remove forgets a thing, if it was not forgotten before.
func (t *Table[T]) Remove(d *Due[T], what *T) {
	b := d.in
	if b.what[d.i] != what {
		return
	}
	b.at[d.i].Store(int64(Never))
	b.what[d.i] = nil
	b.used--
	t.n--
	t.room = min(t.room, int(d.no))
	for last := len(t.blocks) - 1; last >= 0 && t.blocks[last].used == 0; last-- {
		t.blocks[last] = nil
		t.blocks = t.blocks[:last]
	}
}

// All yields all things, in no order.
func (t *Table[T]) All(yield func(*T) bool) {
	for _, b := range t.blocks {
		for _, v := range b.what {
			if v != nil && !yield(v) {
				return
			}
		}
	}
}

// Over appends to list what is due at now or was before, and goes on doing so until its time is set anew.
func (t *Table[T]) Over(now time.Duration, list []*T) []*T {
	for n, b := range t.blocks {
		if t.leasts[n/len(leasts{})][n%len(leasts{})].Load() <= int64(now) {
			list = b.over(now, list)
		}
	}
	return list
}

func (b *block[T]) over(now time.Duration, list []*T) []*T {
	// First, so that a time that is set behind the look at it lowers it again.
	b.least.Store(int64(Never))
	least := int64(Never)
	for i := range b.at {
		at := b.at[i].Load()
		least = min(least, at)
		if at <= int64(now) && b.what[i] != nil {
			list = append(list, b.what[i])
		}
	}
	b.lower(least)
	return list
}
