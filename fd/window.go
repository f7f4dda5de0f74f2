// Window: the last heartbeat intervals with their mean and deviation, in whole microseconds.

package fd

import (
	"math/bits"
	"time"
)

// Bounds of a window. With them the running sums fit into 64 bits.
const (
	maxSamplesLimit = 4096
	maxInterval     = time.Minute // longer intervals count as this
)

// Window keeps the most recent intervals, at most a fixed number, and their running sums. Make it with NewWindow.
type Window struct {
	limit      int
	at         []uint32 // microseconds, a ring once full
	next       int
	sum, sumSq uint64
}

// NewWindow returns an empty window of at most limit intervals (2 to 4096, clamped).
func NewWindow(limit int) Window { return Window{limit: min(max(limit, 2), maxSamplesLimit)} }

// Add records one interval, dropping the oldest of a full window. Negative counts as zero, over a minute as a minute.
func (w *Window) Add(interval time.Duration) {
	v := int64(min(max(interval, 0), maxInterval) / time.Microsecond)
	if len(w.at) < w.limit {
		w.at = append(w.at, uint32(v))
	} else {
		old := uint64(w.at[w.next])
		w.sum, w.sumSq = w.sum-old, w.sumSq-old*old
		w.at[w.next] = uint32(v)
		w.next = (w.next + 1) % w.limit
	}
	w.sum, w.sumSq = w.sum+uint64(v), w.sumSq+uint64(v)*uint64(v)
}

// Len returns how many intervals are held.
func (w *Window) Len() int { return len(w.at) }

// Mean returns the mean interval, rounded down to a microsecond; zero when empty.
func (w *Window) Mean() time.Duration {
	if len(w.at) == 0 {
		return 0
	}
	return time.Duration(w.sum/uint64(len(w.at))) * time.Microsecond
}

// Variance returns the population variance in square microseconds, rounded down. It is exact: the sums are whole
// numbers, so it is never negative.
func (w *Window) Variance() uint64 {
	n := uint64(len(w.at))
	if n == 0 {
		return 0
	}
	hi, lo := bits.Mul64(n, w.sumSq)
	h2, l2 := bits.Mul64(w.sum, w.sum)
	lo, borrow := bits.Sub64(lo, l2, 0)
	hi, _ = bits.Sub64(hi, h2, borrow)
	q, _ := bits.Div64(hi, lo, n) // hi < n, because the dividend is at most n times a 64-bit number
	return q / n
}

// StdDeviation returns the square root of Variance, rounded down to a microsecond.
func (w *Window) StdDeviation() time.Duration {
	return time.Duration(isqrt(w.Variance())) * time.Microsecond
}

// isqrt is the integer square root.
func isqrt(v uint64) uint64 {
	if v == 0 {
		return 0
	}
	x := uint64(1) << ((bits.Len64(v) + 1) / 2) // not below the root
	for {
		y := (x + v/x) / 2
		if y >= x {
			return x
		}
		x = y
	}
}
