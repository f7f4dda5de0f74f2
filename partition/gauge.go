// Gauge: how many messages a second all instances of a partition handle, and what number of instances follows.

package partition

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
)

// gaugeEvery is the time between two looks at the instances. Tests have less.
var gaugeEvery = 10 * time.Second

const (
	gaugeHolds = 2  // looks in a row that want another number before the definition follows
	gaugeSlack = 80 // percent of its load that an instance carries at most after their number has fallen
)

// gauge is what the node of the first instance knows of the load of all.
type gauge struct {
	next time.Time    // when it is measured; of the hub's goroutine
	load atomic.Int64 // as it was measured last

	// Of one task at a time.
	at    time.Time
	last  map[kith.ID]uint64 // calls that each node had handled in all
	times int                // looks in a row that wanted another number
}

// take takes the totals of those of so many nodes that have answered, and returns how many messages a second all
// together have handled since the last look. Nodes that are new, or have not answered, count as the mean of the others;
// it returns false where fewer than half are known, or the last look is too long ago.
func (g *gauge) take(now time.Time, totals map[kith.ID]uint64, nodes int) (load int, ok bool) {
	window, sum, known := now.Sub(g.at), uint64(0), 0
	for id, total := range totals { // a sum: the order does not show
		if was, had := g.last[id]; had && total >= was {
			sum += total - was
			known++
		}
	}
	g.at, g.last = now, totals
	if known == 0 || 2*known < nodes || window <= 0 || window > 3*gaugeEvery {
		return 0, false
	}
	rate := float64(sum) / window.Seconds() * float64(nodes) / float64(known)
	return int(math.Round(min(rate, cluster.MaxPartitionLoad))), true
}

// follow returns the hint under which a partition has as many instances as a load wants, and whether it replaces the
// hint that is in force. The number falls only where the rest then has room left, so that a load near the border of two
// numbers does not change it to and fro.
func (g *gauge) follow(c Count, hint, load int) (next int, ok bool) {
	now, low := c.Of(0, hint), min(load*100/gaugeSlack, cluster.MaxPartitionLoad)
	switch {
	case c.Of(0, load) > now:
		next = load
	case c.Of(0, low) < now:
		next = low
	default:
		g.times = 0
		return hint, false
	}
	if g.times++; g.times < gaugeHolds {
		return hint, false
	}
	g.times = 0
	return next, true
}

// measures reports whether the load is measured.
func (c *Config) measures() bool { return c.Instances.Kind == cluster.CountScaled && c.Hint == 0 }
