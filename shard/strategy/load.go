// LoadAware: as much load everywhere, by what regions have measured of their shards.

package strategy

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Weights say how much the figures of a load count against each other. Each figure is first made a part of the sum over
// all shards, so that the weights have no unit. Up to MaxWeight each.
type Weights struct{ Entities, Rate, HandlerTime, Queued int }

// MaxWeight is the largest weight.
const MaxWeight = 100

// DefaultTolerance is how many percent a region may be off the mean by LoadAware where nothing is given.
const DefaultTolerance = 10

// LoadAware makes the load of all regions even by few moves of heavy shards. It begins when a region is more than
// Tolerance percent above or below the mean, and brings that one to within three quarters of it: noise of less than
// the last quarter moves nothing then. Where that takes more than twice the moves that are needed at least it goes only
// to within seven eighths, or to the edge. A shard that alone has more than the mean is left a region of its own, and
// the others share the rest evenly. While moves are under way, and until every figure has been measured after the last
// of them ended (View.Since, View.Moved), nothing moves, and nothing without figures. It keeps nothing and may be
// copied.
//
// A shard without a home goes to the region with the least load among those of the newest version; shards that were not
// measured count as the mean of those that were. Without figures it is the region with the fewest shards.
//
// A region on a node that is strained (NodeLoad.Strained), while half of them or fewer are, is given nothing: the
// others share the rest, and it gives what it has above its part. What waits in mailboxes has no weight by itself,
// since it is read at one moment: give it one where your queues are long for minutes.
type LoadAware struct {
	Weights   Weights // none means one each, and none for Queued
	Tolerance int     // percent; 0 means DefaultTolerance
	Limit     int     // moves of one round at most; 0 means View.Room
}

// scale is how finely the figures are divided: each figure of all shards together is that much times its weight.
const scale = 1_000_000_000

// weighing makes one number of the figures of a load.
type weighing struct {
	weights [4]uint64
	totals  [4]uint64
}

func (l Load) figures() [4]uint64 {
	return [4]uint64{uint64(l.Entities), uint64(l.Rate), uint64(l.HandlerTime), uint64(l.Queued)}
}

func (a LoadAware) weighing() (w weighing) {
	given := a.Weights
	if given == (Weights{}) {
		given = Weights{1, 1, 1, 0}
	}
	for i, n := range []int{given.Entities, given.Rate, given.HandlerTime, given.Queued} {
		w.weights[i] = uint64(min(max(n, 0), MaxWeight))
	}
	return w
}

func (w *weighing) add(l Load) {
	for i, n := range l.figures() {
		w.totals[i] += n
	}
}

// of returns the load as parts of scale. A figure of which there is none anywhere counts nothing.
func (w *weighing) of(l Load) (sum uint64) {
	for i, n := range l.figures() {
		if w.totals[i] > 0 {
			sum += n * scale / w.totals[i] * w.weights[i]
		}
	}
	return sum
}

// strainedOf returns what says 1 of a region on a node that is strained, else 0: always 0 while most of them are.
func strainedOf(regions []*Region) func(*Region) int {
	n := 0
	for _, r := range regions {
		if r.Node.Strained() {
			n++
		}
	}
	return func(r *Region) int {
		if 2*n <= len(regions) && r.Node.Strained() {
			return 1
		}
		return 0
	}
}

// ReadsLoads has loads measured.
func (LoadAware) ReadsLoads() bool { return true }

// Allocate returns the region with the least load.
func (a LoadAware) Allocate(v *View, s route.ShardID) (peer.ID, error) {
	w, measured := a.weighing(), 0
	for i := range v.Regions {
		w.add(v.Regions[i].Load)
		measured += v.Regions[i].Measured
	}
	if measured == 0 {
		return LeastShards{}.Allocate(v, s)
	}
	sum := uint64(0)
	for i := range v.Regions {
		sum += w.of(v.Regions[i].Load)
	}
	mean := sum / uint64(measured)
	expected := func(r *Region) uint64 { return w.of(r.Load) + mean*uint64(max(0, r.total()-r.Measured)) }
	var c versions
	var best *Region
	strained := strainedOf(eligible(v))
	for i := range v.Regions {
		r := &v.Regions[i]
		if !r.Eligible() {
			continue
		}
		if best == nil || cmp.Or(c.compare(best.AppVersion, r.AppVersion),
			cmp.Compare(strained(r), strained(best)), cmp.Compare(expected(r), expected(best)),
			c.suits(r, best)) < 0 {
			best = r
		}
	}
	if best == nil {
		return peer.ID{}, ErrNoRegion
	}
	return best.ID, nil
}

// Rebalance returns moves from regions with too much to those with too little.
func (a LoadAware) Rebalance(v *View) ([]Move, error) {
	if len(v.Moving) > 0 || v.Holds() != 0 || v.Loads == nil || v.Since < v.Moved {
		return nil, nil
	}
	room := v.Room()
	if a.Limit > 0 {
		room = min(room, a.Limit)
	}
	return a.plan(v).round(room), nil
}

func (a LoadAware) plan(v *View) *plan {
	w, regions := a.weighing(), eligible(v)
	for _, r := range regions {
		for _, s := range r.Shards {
			w.add(v.Loads[s])
		}
	}
	p, strained := &plan{}, strainedOf(regions)
	for _, r := range regions {
		st := &site{id: r.ID, strained: strained(r) > 0}
		for _, s := range r.Shards {
			one := weight{s, w.of(v.Loads[s])}
			st.load += one.load
			if one.load > 0 {
				st.shards = append(st.shards, one)
			}
		}
		slices.SortFunc(st.shards, weight.compare)
		p.sites = append(p.sites, st)
	}
	p.aim()
	p.tolerance = p.mean * uint64(min(max(1, cmp.Or(a.Tolerance, DefaultTolerance)), 100)) / 100
	return p
}
