// budget: a bound on bytes that many locks share.

package driver

import (
	"sync/atomic"
	"time"
)

// budget is flow.Budget and entity.Budget for many goroutines.
type budget struct {
	limit int64
	used  atomic.Int64
	_     [64]byte
	kept  atomic.Int64 // of used: claimed by shards of Blocking types with nothing in their mailboxes
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

// Bound returns how many bytes may be out at once.
func (b *budget) Bound() int { return int(b.limit) }

// Give returns n bytes.
func (b *budget) Give(n int) { b.used.Add(-int64(n)) }

// Ample reports whether no more than half of the limit is out.
func (b *budget) Ample() bool { return b.used.Load() <= b.limit/2 }

// keepShare is what part of a budget shards may keep while nothing waits in their mailboxes.
const keepShare = 16

// Keep reports whether n bytes more may be kept in vain.
func (b *budget) Keep(n int) bool {
	if b.kept.Load()+int64(n) > b.limit/keepShare {
		return false // most of a node with very many shards are told so: no write
	}
	if b.kept.Add(int64(n)) > b.limit/keepShare {
		b.kept.Add(-int64(n))
		return false
	}
	return true
}

// GiveUp returns n bytes that were kept.
func (b *budget) GiveUp(n int) { b.kept.Add(-int64(n)) }

// waits returns how many bytes messages hold, as far as it is known without a look at all shards: what a shard keeps
// counts as empty.
func (b *budget) waits() int64 { return max(0, b.used.Load()-b.kept.Load()) }

// When memory is given back.
const (
	fallBytes = 64 << 20         // less is not worth a collection
	fallShare = 8                // what is left is at most such a part of the peak
	fallCalm  = 2 * time.Second  // for so long
	fallPause = 30 * time.Second // between two times
)

// fall finds the moment at which memory is to be given back to the system: messages held much of it, and hold little
// now. The runtime collects by itself when the heap has doubled, which it does not behind a peak, or after two minutes.
// The zero value has seen nothing.
type fall struct {
	peak  int64
	since time.Duration // when it was low first, in a row; 0: it is not
	last  time.Duration // when memory was given back last; 0: never
}

// step takes the time, above zero, and how many bytes messages hold, and reports whether memory is to be given back.
func (f *fall) step(now time.Duration, used int64) bool {
	f.peak = max(f.peak, used)
	if f.peak-used < fallBytes || used > f.peak/fallShare {
		f.since = 0
		return false
	}
	if f.since == 0 {
		f.since = now
	}
	if now-f.since < fallCalm || f.last != 0 && now-f.last < fallPause {
		return false
	}
	*f = fall{peak: used, last: now}
	return true
}
