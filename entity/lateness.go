// Lateness: how late timers are, counted in classes.

package entity

import (
	"slices"
	"time"
)

// LateClasses is how many classes a Lateness has.
const LateClasses = 16

// lateBounds are the longest delays of the classes but the last, which has no bound.
var lateBounds = [LateClasses - 1]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second,
	2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

// Lateness counts timers by how long after their time they were delivered: to a Worker or Inline handler, or into the
// mailbox of a Blocking entity. The zero value has counted none.
type Lateness struct {
	Counts [LateClasses]uint64 // by class: at most 1, 2, 5, 10, 20, 50 ms and so on to a minute, then more
	Max    time.Duration       // the longest
}

// Add counts one.
func (l *Lateness) Add(late time.Duration) {
	i, _ := slices.BinarySearch(lateBounds[:], late)
	l.Counts[i]++
	l.Max = max(l.Max, late)
}

// Merge adds what o has counted.
func (l *Lateness) Merge(o *Lateness) {
	for i := range l.Counts {
		l.Counts[i] += o.Counts[i]
	}
	l.Max = max(l.Max, o.Max)
}

// Quantile returns a delay that a part q of those counted, from 0 to 1, did not exceed: the bound of its class, or Max
// where that is less. Zero when none was counted.
func (l *Lateness) Quantile(q float64) time.Duration {
	total := uint64(0)
	for _, n := range l.Counts {
		total += n
	}
	left := uint64(q * float64(total))
	for i, bound := range lateBounds {
		if left <= l.Counts[i] {
			return min(bound, l.Max)
		}
		left -= l.Counts[i]
	}
	return l.Max
}
