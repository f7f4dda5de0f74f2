// LeastShards: as many shards everywhere, the default.

package strategy

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// What LeastShards goes by where nothing is given: limits of one round, and when one begins.
const (
	DefaultAbsolute  = 20 // shards, or a fiftieth of all of them where that is more
	DefaultPercent   = 10 // of all shards
	DefaultThreshold = 1  // shards
)

// LeastShards gives a shard to the region with the fewest among those of the newest version of the application. It
// moves shards while the region with the most has more than Threshold above the one with the fewest, a round at a time:
// the next one begins when the moves of the last have ended. The zero value is ready. It keeps nothing and may be
// copied.
type LeastShards struct {
	Absolute int // moves of one round at most; 0 means DefaultAbsolute, or a fiftieth of all shards
	Percent  int // the same as a part of all shards, at least one; 0 means DefaultPercent
	// Threshold is the difference between most and fewest shards that a round must find exceeded; 0 means
	// DefaultThreshold, which ends as even as can be. A larger one moves less as nodes come and go, and leaves regions so
	// far apart. A type with a negative one is refused.
	Threshold int
}

// Allocate returns the most suitable region.
func (l LeastShards) Allocate(v *View, _ route.ShardID) (peer.ID, error) {
	var c versions
	var best *Region
	for i := range v.Regions { // sorted: of equals the first is the most suitable
		r := &v.Regions[i]
		if r.Eligible() && (best == nil || cmp.Or(c.compare(best.AppVersion, r.AppVersion), r.total()-best.total()) < 0) {
			best = r
		}
	}
	if best == nil {
		return peer.ID{}, ErrNoRegion
	}
	return best.ID, nil
}

// total is how many shards a region will have when its moves have ended, as if nothing moved away.
func (r *Region) total() int { return r.Count + r.Coming }

// limit returns how many of n shards one round may move.
func (l LeastShards) limit(n int) int {
	return max(1, min(n*cmp.Or(l.Percent, DefaultPercent)/100, cmp.Or(l.Absolute, max(DefaultAbsolute, n/50))))
}

// Even reports whether regions of which one has the most shards and one the fewest are left as they are.
func (l LeastShards) Even(most, fewest int) bool {
	return most-fewest <= max(1, cmp.Or(l.Threshold, DefaultThreshold))
}

// Rebalance is the newer algorithm of the reference, when the threshold is exceeded: first whatever a region has above
// the optimum, the mean rounded up; then, while regions lack two or more to it, one shard from each that has the
// optimum. The oldest shards of a region go first, each to the region that is the most suitable by then.
func (l LeastShards) Rebalance(v *View) ([]Move, error) {
	if len(v.Moving) > 0 || v.Holds() != 0 {
		return nil, nil
	}
	regions := eligible(v)
	total, most, fewest := 0, 0, math.MaxInt
	for _, r := range regions {
		n := len(r.Shards)
		total, most, fewest = total+n, max(most, n), min(fewest, n)
	}
	if total == 0 || l.Even(most, fewest) {
		return nil, nil
	}
	var c versions
	slices.SortFunc(regions, c.suits)
	optimal := (total + len(regions) - 1) / len(regions)
	limit := min(l.limit(total), v.Room())
	moves := above(regions, optimal, limit)
	if len(moves) == 0 {
		moves = level(regions, optimal, limit)
	}
	place(regions, moves)
	return moves, nil
}

// eligible returns the regions that may be chosen; they are the view's own.
func eligible(v *View) (regions []*Region) {
	for i := range v.Regions {
		if r := &v.Regions[i]; r.Eligible() {
			regions = append(regions, r)
		}
	}
	return regions
}

// above names what regions have above the optimum.
func above(regions []*Region, optimal, limit int) (moves []Move) {
	for _, r := range regions {
		for i := 0; i < len(r.Shards)-optimal && len(moves) < limit; i++ {
			moves = append(moves, Move{Shard: r.Shards[i], From: r.ID})
		}
	}
	return moves
}

// level names one shard of each region that has the optimum, as many as others lack beyond one.
func level(regions []*Region, optimal, limit int) (moves []Move) {
	below := 0
	for _, r := range regions {
		below += max(0, optimal-1-len(r.Shards))
	}
	for _, r := range regions {
		if len(r.Shards) >= optimal && len(moves) < min(below, limit) {
			moves = append(moves, Move{Shard: r.Shards[0], From: r.ID})
		}
	}
	return moves
}

// place completes moves with where they go. The versions are equal, or nothing would move; so the fewest shards decide.
// No move ends where it began: while one has no target, some region has fewer shards than what its source keeps.
func place(regions []*Region, moves []Move) {
	if len(moves) == 0 {
		return
	}
	left := make(fill, len(regions))
	at := map[peer.ID]int{}
	for i, r := range regions {
		left[i], at[r.ID] = filled{r.ID, len(r.Shards)}, i
	}
	for _, m := range moves {
		left[at[m.From]].shards--
	}
	heap.Init(left)
	for i := range moves {
		moves[i].To = left[0].id
		left[0].shards++
		heap.Fix(left, 0)
	}
}

// filled is a region and how many shards it has, with those that are on their way to it.
type filled struct {
	id     peer.ID
	shards int
}

// fill is a heap of regions, the one with the fewest shards first.
type fill []filled

func (f fill) Len() int      { return len(f) }
func (f fill) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f fill) Push(any)      {} // it never grows
func (f fill) Pop() any      { return nil }
func (f fill) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(f[i].shards, f[j].shards), f[i].id.Compare(f[j].id)) < 0
}
