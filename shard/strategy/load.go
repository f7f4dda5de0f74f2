// LoadAware: as much load everywhere, by what regions have measured of their shards (SHD-6).

package strategy

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Weights say how much the figures of a load count against each other. Each figure is first made a part of the sum over
// all shards, so that the weights have no unit. Up to MaxWeight each.
type Weights struct{ Entities, Rate, HandlerTime int }

// MaxWeight is the largest weight.
const MaxWeight = 100

// DefaultTolerance is how many percent a region may be off the mean by LoadAware where nothing is given.
const DefaultTolerance = 10

// LoadAware makes the load of all regions even by few moves of heavy shards. It begins when a region is more than
// Tolerance percent above or below the mean, and brings that one to within three quarters of it: noise of less than
// the last quarter moves nothing then. A shard that alone has more than the mean is left a region of its own, and the
// others share the rest evenly. While moves are under way, and until every figure has been measured after the last of
// them ended (View.Since, View.Moved), nothing moves, and nothing without figures. It keeps nothing and may be copied.
//
// A shard without a home goes to the region with the least load among those of the newest version; shards that were not
// measured count as the mean of those that were. Without figures it is the region with the fewest shards.
type LoadAware struct {
	Weights   Weights // none means one each
	Tolerance int     // percent; 0 means DefaultTolerance
	Limit     int     // moves of one round at most; 0 means View.Room
}

// scale is how finely the figures are divided: each figure of all shards together is that much times its weight.
const scale = 1_000_000_000

// weighing makes one number of the figures of a load.
type weighing struct {
	weights [3]uint64
	totals  [3]uint64
}

func (l Load) figures() [3]uint64 {
	return [3]uint64{uint64(l.Entities), uint64(l.Rate), uint64(l.HandlerTime)}
}

func (a LoadAware) weighing() (w weighing) {
	given := a.Weights
	if given == (Weights{}) {
		given = Weights{1, 1, 1}
	}
	for i, n := range []int{given.Entities, given.Rate, given.HandlerTime} {
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
	for i := range v.Regions {
		r := &v.Regions[i]
		if !r.Eligible() {
			continue
		}
		if best == nil || cmp.Or(c.compare(best.AppVersion, r.AppVersion), cmp.Compare(expected(r), expected(best)),
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
	p := a.plan(v)
	room := v.Room()
	if a.Limit > 0 {
		room = min(room, a.Limit)
	}
	p.spread(room)
	for len(p.moves) < room && p.step(room-len(p.moves)) {
	}
	return p.moves, nil
}

// site is a region in a plan.
type site struct {
	id     peer.ID
	load   uint64
	target uint64
	shards []weight // those that may move, the lightest first
	active bool     // was beyond the tolerance, and is not well within it yet
}

// weight is a shard in a plan.
type weight struct {
	shard route.ShardID
	load  uint64
}

func (w weight) compare(o weight) int {
	return cmp.Or(cmp.Compare(w.load, o.load), cmp.Compare(w.shard, o.shard))
}

// plan is one round of LoadAware.
type plan struct {
	sites     []*site
	mean      uint64 // of the regions that have no hot shard
	tolerance uint64 // how far off its target a region may be
	within    uint64 // when a region that was further off is left alone again
	past      int64  // how far a move may bring a region past its target
	moves     []Move
}

func (a LoadAware) plan(v *View) *plan {
	w, regions := a.weighing(), eligible(v)
	for _, r := range regions {
		for _, s := range r.Shards {
			w.add(v.Loads[s])
		}
	}
	p := &plan{}
	for _, r := range regions {
		st := &site{id: r.ID}
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
	p.within, p.past = p.tolerance/4*3, int64(p.tolerance/8*7)
	for _, st := range p.sites {
		st.active = st.over(p.tolerance) || st.under(p.tolerance)
	}
	return p
}

// aim sets the targets: the mean, and for a region with a shard that has more than the mean that shard alone, which
// takes both out of the mean.
func (p *plan) aim() {
	total, left := uint64(0), uint64(len(p.sites))
	for _, st := range p.sites {
		total += st.load
	}
	for taken := make([]int, len(p.sites)); left > 1; left-- {
		hot, at := uint64(0), 0 // the heaviest shard that is not taken out yet
		for i, st := range p.sites {
			if n := len(st.shards) - taken[i]; n > 0 && st.shards[n-1].load > hot {
				hot, at = st.shards[n-1].load, i
			}
		}
		if hot*left <= total {
			break
		}
		total -= hot
		taken[at]++
	}
	if left > 0 {
		p.mean = total / left
	}
	for _, st := range p.sites {
		st.target = p.mean
		if n := len(st.shards); n > 0 {
			st.target = max(p.mean, st.shards[n-1].load)
		}
	}
}

func (st *site) over(by uint64) bool  { return st.load > st.target+by }
func (st *site) under(by uint64) bool { return st.load+by < st.target }

// excess is how much a region has above its target; negative when it lacks something.
func (st *site) excess() int64 { return int64(st.load) - int64(st.target) }

// spread gives each shard that has more than the mean a region of its own.
func (p *plan) spread(room int) {
	for _, from := range p.sites {
		for from.active && len(p.moves) < room {
			n := len(from.shards)
			if n < 2 || from.shards[n-2].load <= p.mean {
				break
			}
			var to *site
			for _, st := range p.sites {
				if st.target == p.mean && st != from && (to == nil || st.load < to.load) {
					to = st
				}
			}
			if to == nil {
				break
			}
			to.target = from.shards[n-2].load
			p.move(from, to, n-2)
			to.active = to.over(p.tolerance)
		}
	}
}

// move puts the i-th shard of a region elsewhere. There it does not move again in this round.
func (p *plan) move(from, to *site, i int) {
	w := from.shards[i]
	from.shards = slices.Delete(from.shards, i, i+1)
	from.load -= w.load
	to.load += w.load
	p.moves = append(p.moves, Move{w.shard, from.id, to.id})
	for _, st := range []*site{from, to} {
		st.active = st.active && (st.over(p.within) || st.under(p.within))
	}
}

// step plans one more move and reports whether there was one. A region that was beyond the tolerance, and is not well
// within it yet, gives to the one that lacks most, or takes from the one that has most above its target; where no shard
// suits both, from or to the next.
func (p *plan) step(room int) bool {
	slices.SortStableFunc(p.sites, func(a, b *site) int { return cmp.Compare(b.excess(), a.excess()) })
	for i, from := range p.sites {
		for _, to := range slices.Backward(p.sites[i+1:]) {
			if !from.active && !to.active || from.excess() <= 0 || to.excess() >= 0 {
				continue
			}
			if at := p.fitting(from, to); at >= 0 {
				p.move(from, to, at)
				return true
			}
			if room > 1 && (from.over(p.tolerance) || to.under(p.tolerance)) && p.swap(from, to) {
				return true
			}
		}
	}
	return false
}

// fitting returns the heaviest shard of a region that brings neither it nor another far past its target, or -1.
func (p *plan) fitting(from, to *site) int {
	most := min(from.excess(), -to.excess()) + p.past
	n, _ := slices.BinarySearchFunc(from.shards, most, func(w weight, most int64) int {
		return cmp.Or(cmp.Compare(int64(w.load), most), -1) // equal ones fit
	})
	return n - 1
}

// swap exchanges two shards whose difference is what no single shard is: the heaviest that there is such a lighter one
// for. It reports whether there are any.
func (p *plan) swap(from, to *site) bool {
	need := min(from.excess(), -to.excess())
	for i := len(from.shards) - 1; i >= 0; i-- {
		least := int64(from.shards[i].load) - need - p.past
		j, _ := slices.BinarySearchFunc(to.shards, least, func(w weight, least int64) int {
			return cmp.Compare(int64(w.load), least)
		})
		if j < len(to.shards) && int64(from.shards[i].load)-int64(to.shards[j].load) >= need/2 {
			p.move(to, from, j)
			p.move(from, to, i)
			return true
		}
	}
	return false
}
