// Counters: one that only grows, and one that goes both ways.

package replicated

import (
	"maps"
	"math"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func sortedIDs[T any](m map[peer.ID]T) []peer.ID {
	return slices.SortedFunc(maps.Keys(m), peer.ID.Compare)
}

// GCounter counts up: each node has a part of its own, and the value is their sum.
type GCounter struct{ parts map[peer.ID]uint64 }

// Add returns the counter with n more. A part that would pass the largest uint64 stays there.
func (c GCounter) Add(me peer.ID, n uint64) GCounter {
	if n == 0 {
		return c
	}
	parts := make(map[peer.ID]uint64, len(c.parts)+1)
	maps.Copy(parts, c.parts)
	parts[me] = plus(parts[me], n)
	return GCounter{parts}
}

func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Value returns the sum, at most the largest uint64.
func (c GCounter) Value() (sum uint64) {
	for _, n := range c.parts { // in any order: a sum
		sum = plus(sum, n)
	}
	return sum
}

// Kind is "counter".
func (GCounter) Kind() string { return "counter" }

// Merge takes the larger of each node's two parts.
func (c GCounter) Merge(other GCounter) GCounter {
	if len(c.parts) < len(other.parts) {
		c, other = other, c
	}
	var parts map[peer.ID]uint64
	for id, n := range other.parts { // in any order: each part by itself
		if n > c.parts[id] {
			if parts == nil {
				parts = maps.Clone(c.parts)
			}
			parts[id] = n
		}
	}
	if parts == nil {
		return c
	}
	return GCounter{parts}
}

// Since returns the parts that have grown.
func (c GCounter) Since(old GCounter) (d GCounter) {
	for id, n := range c.parts { // in any order: each part by itself
		if n > old.parts[id] {
			if d.parts == nil {
				d.parts = map[peer.ID]uint64{}
			}
			d.parts[id] = n
		}
	}
	return d
}

// Append appends the parts. It never fails.
func (c GCounter) Append(b []byte) ([]byte, error) { return appendCounts(b, c.parts), nil }

// Parse reads what Append appended.
func (GCounter) Parse(b []byte) (GCounter, error) {
	r := wire.NewReader(0, b)
	return done(GCounter{readCounts(&r)}, &r)
}

// Fold adds the part of gone to that of the zero identity.
func (c GCounter) Fold(gone peer.ID) GCounter {
	n := c.parts[gone]
	if n == 0 || gone.IsZero() {
		return c
	}
	c = c.Add(peer.ID{}, n)
	delete(c.parts, gone)
	return c
}

// PNCounter counts up and down.
type PNCounter struct{ up, down GCounter }

// Add returns the counter with n more, or less when n is below zero.
func (c PNCounter) Add(me peer.ID, n int64) PNCounter {
	if n >= 0 {
		c.up = c.up.Add(me, uint64(n))
	} else {
		c.down = c.down.Add(me, -uint64(n))
	}
	return c
}

// Value returns what was added less what was taken away. It wraps around like any int64.
func (c PNCounter) Value() int64 { return int64(c.up.Value() - c.down.Value()) }

// Kind is "up-down-counter".
func (PNCounter) Kind() string { return "up-down-counter" }

// Merge merges both directions, each as a GCounter.
func (c PNCounter) Merge(other PNCounter) PNCounter {
	return PNCounter{c.up.Merge(other.up), c.down.Merge(other.down)}
}

// Since returns the parts that have grown.
func (c PNCounter) Since(old PNCounter) PNCounter {
	return PNCounter{c.up.Since(old.up), c.down.Since(old.down)}
}

// Append appends both directions. It never fails.
func (c PNCounter) Append(b []byte) ([]byte, error) {
	return appendCounts(appendCounts(b, c.up.parts), c.down.parts), nil
}

// Parse reads what Append appended.
func (PNCounter) Parse(b []byte) (PNCounter, error) {
	r := wire.NewReader(0, b)
	return done(PNCounter{GCounter{readCounts(&r)}, GCounter{readCounts(&r)}}, &r)
}

// Fold folds both directions.
func (c PNCounter) Fold(gone peer.ID) PNCounter { return PNCounter{c.up.Fold(gone), c.down.Fold(gone)} }
