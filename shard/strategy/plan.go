// Plans: which shards change their homes so that all regions have about the same load, in few moves.

package strategy

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// site is a region in a plan.
type site struct {
	id     peer.ID
	load   uint64
	target uint64
	shards []weight // those that may move, the lightest first
	active bool     // was beyond the tolerance, and is not well within it yet
	// strained says that it is given nothing, full that it has less than its part for that.
	strained, full bool
	shared         bool // the list is another plan's, too
}

// weight is a shard in a plan.
type weight struct {
	shard route.ShardID
	load  uint64
}

func (w weight) compare(o weight) int {
	return cmp.Or(cmp.Compare(w.load, o.load), cmp.Compare(w.shard, o.shard))
}

// plan is one round of LoadAware, or one way to go about it.
type plan struct {
	sites     []*site
	mean      uint64 // of the regions that have no hot shard
	tolerance uint64 // how far off its target a region may be
	within    uint64 // when a region that was further off is left alone again
	past      int64  // how far a move may bring a region past its target
	moves     []Move
}

// goals are how far off its target a region may be when it is left alone again, in eighths of the tolerance, the best
// first: what is left of the tolerance is there for noise.
var goals = [...]uint64{6, 7, 8}

// Bounds of the search for a plan of fewer moves.
const (
	ahead   = 128 // moves that are planned at least, where fewer are necessary, before they are counted
	small   = 32  // up to so many moves of a plan other first moves are tried
	firsts  = 4   // shards of a region that are tried
	choices = 16  // regions from which, and to which, they are

	effort = 1 << 19 // regions times moves that all of these tries may come to
)

// round returns the moves of a round, room at most: those towards the best goal that takes at most twice as many moves
// as any plan needs, half as many again where they are more than one round has; or else those of the plan with the
// fewest.
func (p *plan) round(room int) []Move {
	least := p.least()
	most := 2 * least
	if most > max(room, ahead) {
		return p.towards(goals[0], room)
	}
	var best []Move
	for i, goal := range goals {
		c := p.clone()
		if moves := c.towards(goal, max(room, most+1)); i == 0 || len(moves) < len(best) && c.even() {
			best = moves
		}
		if len(best) <= most && (len(best) <= room || 2*len(best) <= 3*least) {
			break
		}
	}
	if len(best) > most && len(best) <= small {
		best = p.otherwise(best)
	}
	return best[:min(len(best), room)]
}

// clone returns a plan that begins where this one stands. This one must not go on.
func (p *plan) clone() *plan {
	c := *p
	c.sites = nil
	for _, st := range p.sites {
		s := *st
		s.shared = true
		c.sites = append(c.sites, &s)
	}
	return &c
}

// least returns how many moves any plan needs at least to have all regions within the tolerance: from each with too
// much as many as it takes of its heaviest shards, and to each with too little as many as it takes of the heaviest
// elsewhere.
func (p *plan) least() int {
	out, in, lacking := 0, 0, false
	lacks, taken := make([]int64, len(p.sites)), make([]int, len(p.sites))
	for i, st := range p.sites {
		over := st.excess() - int64(p.tolerance)
		for k := len(st.shards); over > 0 && k > 0; k-- {
			over -= int64(st.shards[k-1].load)
			out++
		}
		lacks[i] = -st.excess() - int64(p.tolerance)
		lacking = lacking || lacks[i] > 0
	}
	for lacking {
		hot, at := p.heaviest(taken)
		if hot == 0 {
			break
		}
		taken[at]++
		lacking = false
		for i := range lacks {
			if i != at && lacks[i] > 0 {
				lacks[i] -= int64(hot)
				in++
			}
			lacking = lacking || lacks[i] > 0
		}
	}
	return max(out, in)
}

// heaviest returns the load of the heaviest shard and its site, when so many of each have been taken out; zero when
// there is none.
func (p *plan) heaviest(taken []int) (hot uint64, at int) {
	for i, st := range p.sites {
		if n := len(st.shards) - taken[i]; n > 0 && st.shards[n-1].load > hot {
			hot, at = st.shards[n-1].load, i
		}
	}
	return hot, at
}

// towards plans so many moves at most, until all regions that were beyond the tolerance are within the goal.
func (p *plan) towards(goal uint64, most int) []Move {
	p.within, p.past = p.tolerance/8*goal, int64(p.tolerance/16*(8+goal))
	for _, st := range p.sites {
		st.active = st.over(p.tolerance) || st.under(p.tolerance)
	}
	p.spread(most)
	for len(p.moves) < most && p.step(most-len(p.moves)) {
	}
	return p.moves
}

// even reports whether all regions are within the tolerance.
func (p *plan) even() bool {
	return !slices.ContainsFunc(p.sites, func(st *site) bool { return st.over(p.tolerance) || st.under(p.tolerance) })
}

// otherwise returns a plan of fewer moves than the given one, or that one: it begins with one of the heaviest shards of
// a region with too much, which goes where it brings too much, and goes on from there as always.
func (p *plan) otherwise(best []Move) []Move {
	slices.SortStableFunc(p.sites, func(a, b *site) int { return cmp.Compare(b.excess(), a.excess()) })
	last, tries := goals[len(goals)-1], effort/(len(p.sites)*len(best))
	for i, from := range p.sites[:min(choices, len(p.sites))] {
		if !from.over(p.tolerance) {
			break
		}
		hot, _ := slices.BinarySearchFunc(from.shards, p.mean+1, func(w weight, most uint64) int {
			return cmp.Compare(w.load, most)
		})
		for k := hot - 1; k >= max(0, hot-firsts); k-- {
			for to := len(p.sites) - 1; to > i && to >= len(p.sites)-choices && tries > 0; to-- {
				tries--
				if p.sites[to].strained {
					continue
				}
				c := p.clone()
				c.move(c.sites[i], c.sites[to], k)
				if moves := c.towards(last, len(best)); len(moves) < len(best) && c.even() {
					best = moves
				}
			}
		}
	}
	return best
}

// aim sets the targets: the mean, and for a region with a shard that has more than the mean that shard alone, which
// takes both out of the mean. A strained region with less than the mean stays as it is, and is left out too.
func (p *plan) aim() {
	total, left := uint64(0), uint64(len(p.sites))
	for _, st := range p.sites {
		total += st.load
	}
	for again := true; again; {
		again = false
		for _, st := range p.sites {
			if st.strained && !st.full && left > 1 && st.load*left < total {
				st.full, again = true, true
				total, left = total-st.load, left-1
			}
		}
	}
	for taken := make([]int, len(p.sites)); left > 1; left-- {
		hot, at := p.heaviest(taken)
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
		if st.full {
			st.target = st.load
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
				if st.target == p.mean && st != from && !st.strained && (to == nil || st.load < to.load) {
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
	if from.shared {
		from.shards, from.shared = slices.Clone(from.shards), false
	}
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
			if !from.active && !to.active || from.excess() <= 0 || to.excess() >= 0 || to.strained {
				continue
			}
			if at := p.fitting(from, to); at >= 0 {
				p.move(from, to, at)
				return true
			}
			if room > 1 && !from.strained && (from.over(p.tolerance) || to.under(p.tolerance)) && p.swap(from, to) {
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

// swap exchanges two shards with a difference that no single shard has: the heaviest one that has such a lighter
// partner. It reports whether there are any.
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
