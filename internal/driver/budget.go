// budget: a bound on bytes that many locks share.

package driver

import "sync/atomic"

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

// Bound returns how many bytes may be out at once.
func (b *budget) Bound() int { return int(b.limit) }

// Give returns n bytes.
func (b *budget) Give(n int) { b.used.Add(-int64(n)) }

// Ample reports whether no more than half of the limit is out.
func (b *budget) Ample() bool { return b.used.Load() <= b.limit/2 }
