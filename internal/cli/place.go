// Places: where the two processes of a measurement run, and how long their parent waits between two looks.

package cli

import (
	"context"
	"time"
)

// Placements returns the cores of a sender and a receiver by the name that their figures end in: p1, both on one core,
// and p2, a core each. Fewer, or none, where cores or pinning are missing.
func Placements() map[string][2][]int {
	p := map[string][2][]int{}
	cpus, err := CPUs()
	if err != nil || !CanPin || len(cpus) == 0 {
		return p
	}
	p["p1"] = [2][]int{cpus[:1], cpus[:1]}
	if len(cpus) > 1 {
		p["p2"] = [2][]int{cpus[:1], cpus[1:2]}
	}
	return p
}

// Seconds returns how many have passed since a moment, to a thousandth.
func Seconds(since time.Time) float64 { return float64(time.Since(since).Milliseconds()) / 1000 }

// Pause waits d and reports whether ctx has not ended meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
