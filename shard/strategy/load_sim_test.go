// Simulation of LoadAware: from random skews of load to even, in few moves, and no oscillation (SHD-6).

package strategy

import (
	"cmp"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// skew draws a view of shards with loads and homes that are far from even, in one of four ways each. No shard has more
// than a part of the mean: with heavier ones nobody could make the load even.
func skew(rng *rand.Rand, heaviest float64) *View {
	regions := 2 + rng.IntN(15)
	shards := regions * (20 + rng.IntN(80))
	weights := make([]float64, shards)
	kind := rng.IntN(4)
	for i := range weights {
		switch kind {
		case 0: // alike
			weights[i] = 0.5 + rng.Float64()
		case 1: // a few with much
			weights[i] = math.Pow(rng.Float64()+1e-3, -0.9)
		case 2:
			weights[i] = math.Exp(1.5 * rng.NormFloat64())
		case 3: // by rank
			weights[i] = 1 / math.Pow(float64(i+1), 0.8)
		}
	}
	for range 30 {
		sum := 0.0
		for _, w := range weights {
			sum += w
		}
		for i := range weights {
			weights[i] = min(weights[i], heaviest*sum/float64(regions))
		}
	}
	v := sized(make([]int, regions)...)
	v.Shards, v.Loads = uint32(shards), make([]Load, shards)
	place := rng.IntN(4)
	for _, s := range rng.Perm(shards) {
		at := rng.IntN(regions)
		switch place {
		case 1: // a region has just come
			at = rng.IntN(regions-1) + 1
		case 2: // the first ones have more
			at = min(rng.IntN(regions), rng.IntN(regions))
		case 3: // one has half of all
			if rng.IntN(2) == 0 {
				at = 0
			}
		}
		v.Give(route.ShardID(s), node(at))
		w := weights[s] * 1e5
		v.Loads[s] = Load{Entities: uint32(w), Rate: uint32(w * (0.8 + 0.4*rng.Float64())), HandlerTime: uint32(w)}
	}
	return v
}

// parts returns the loads of shards by region, and of regions, as parts of the mean of all regions.
func parts(v *View) (shards [][]float64, loads []float64) {
	w, mean := LoadAware{}.weighing(), 0.0
	for _, l := range v.Loads {
		w.add(l)
	}
	for _, l := range v.Loads {
		mean += float64(w.of(l)) / float64(len(v.Regions))
	}
	for i := range v.Regions {
		var list []float64
		sum := 0.0
		for _, s := range v.Regions[i].Shards {
			list = append(list, float64(w.of(v.Loads[s]))/mean)
			sum += list[len(list)-1]
		}
		slices.SortFunc(list, func(a, b float64) int { return cmp.Compare(b, a) })
		shards, loads = append(shards, list), append(loads, sum)
	}
	return shards, loads
}

// uneven returns how far the worst region is off the mean, as a part of it.
func uneven(v *View) (off float64) {
	_, loads := parts(v)
	for _, l := range loads {
		off = max(off, math.Abs(l-1))
	}
	return off
}

// atLeast returns a number of moves that any plan needs to make the load even to within a part of the mean.
func atLeast(v *View, tolerance float64) int {
	shards, loads := parts(v)
	return needed(shards, loads, tolerance)
}

// needed is that number for shards by region, the heaviest first, and loads of regions: of each region with too much as
// many as it takes of its heaviest shards, and for each with too little as many as it takes of the heaviest elsewhere.
func needed(shards [][]float64, loads []float64, tolerance float64) int {
	out, in := 0, 0
	next := make([]int, len(shards))
	for i := range loads {
		for k, over := 0, loads[i]-1-tolerance; over > 1e-9 && k < len(shards[i]); k++ {
			if shards[i][k] > 0 {
				over -= shards[i][k]
				out++
			}
		}
		clear(next)
		for lack := 1 - tolerance - loads[i]; lack > 1e-9; in++ {
			hot, at := 0.0, -1
			for j, list := range shards {
				for j != i && next[j] < len(list) && list[next[j]] == 0 {
					next[j]++
				}
				if j != i && next[j] < len(list) && list[next[j]] > hot {
					hot, at = list[next[j]], j
				}
			}
			if at < 0 {
				break
			}
			lack -= hot
			next[at]++
		}
	}
	return max(out, in)
}

// possible reports whether so many moves can make the load even to within a part of the mean, by trying all that may.
// A shard that has moved is zero in the lists: no plan is the shorter for moving it twice.
func possible(all [][]float64, loads []float64, tolerance float64, moves int) bool {
	least := needed(all, loads, tolerance)
	if least == 0 || least > moves {
		return least == 0
	}
	worst := 0
	for i := range loads {
		if math.Abs(loads[i]-1) > math.Abs(loads[worst]-1) {
			worst = i
		}
	}
	for from := range loads { // one of the moves has to do with the region that is off most
		for to := range loads {
			if from == to || from != worst && to != worst {
				continue
			}
			for k, w := range all[from] {
				all[from][k], loads[from], loads[to] = 0, loads[from]-w, loads[to]+w
				ok := w > 0 && possible(all, loads, tolerance, moves-1)
				if all[from][k], loads[from], loads[to] = w, loads[from]+w, loads[to]-w; ok {
					return true
				}
			}
		}
	}
	return false
}

// optimum returns the fewest moves of any plan, or most when there is none of fewer.
func optimum(v *View, tolerance float64, least, most int) int {
	all, loads := parts(v)
	for least < most && !possible(all, loads, tolerance, least) {
		least++
	}
	return least
}

var skews = flag.Int("skews", 100, "random skews of load of each of ten streams that are made even")

// cases returns how many skews are simulated: a tenth where checks are slow.
func cases(n int) int {
	if invariant.Enabled {
		return n / 10
	}
	return n
}

// draw is the number of a random skew, and the stream that it comes from.
type draw struct{ seed, stream uint64 }

// draws returns random skews of ten streams, and those in which a plan is hardest to find: without other first moves,
// or where few moves a round are allowed.
func draws() (list []draw) {
	for stream := range uint64(10) {
		for seed := range uint64(cases(*skews)) {
			list = append(list, draw{seed, stream + 1})
		}
	}
	return append(list, draw{913, 3}, draw{414, 8}, draw{88, 9}, draw{817, 41}, draw{857, 48})
}

// Random skews of ten streams end within 10 % of even, in at most twice the moves of an offline optimum, and stay as
// they are (SHD-6). The optimum is taken from below: where that does not suffice, all plans of fewer moves are tried.
func TestLoadAwareEndsEven(t *testing.T) {
	var offs, ratios []float64
	moved, optimal, again := 0, 0, 0
	all := draws()
	for _, d := range all {
		rng := rand.New(rand.NewPCG(d.seed, d.stream))
		v := skew(rng, 0.3)
		v.Limit = 3 + rng.IntN(60)
		before := v.Clone()
		moves := settle(t, Check(LoadAware{}), v)
		off, best := uneven(v), atLeast(before, 0.1)
		if len(moves) > 2*best {
			best = optimum(before, 0.1, best, (len(moves)+1)/2)
		}
		require.LessOrEqual(t, off, 0.1, "%+v", d)
		require.LessOrEqual(t, len(moves), 2*best, "%+v", d)
		offs, moved, optimal = append(offs, off), moved+len(moves), optimal+best
		if best > 0 {
			ratios = append(ratios, float64(len(moves))/float64(best))
		}
		seen := map[route.ShardID]bool{}
		for _, m := range moves {
			if seen[m.Shard] {
				again++
			}
			seen[m.Shard] = true
		}
	}
	slices.Sort(offs)
	slices.Sort(ratios)
	t.Logf("%d cases: off the mean median %.3f, max %.3f; moves %d, at least %d; ratio of a case median %.2f, "+
		"99th %.2f, max %.2f; shards moved twice %d", len(all), offs[len(offs)/2], offs[len(offs)-1], moved, optimal,
		ratios[len(ratios)/2], ratios[len(ratios)*99/100], ratios[len(ratios)-1], again)
	require.LessOrEqual(t, again*1000, moved, "hardly any shard moves twice")
}

// noisy returns the view as it is measured: each figure is off by up to a part, and those of one region together by up
// to another part.
func noisy(rng *rand.Rand, v *View, shard, region float64) *View {
	c := v.Clone()
	for i := range c.Regions {
		all := 1 + region*(2*rng.Float64()-1)
		for _, s := range c.Regions[i].Shards {
			measured := func(n uint32) uint32 { return uint32(float64(n) * all * (1 + shard*(2*rng.Float64()-1))) }
			l := v.Loads[s]
			c.Loads[s] = Load{measured(l.Entities), measured(l.Rate), measured(l.HandlerTime), l.Queued}
		}
	}
	return c
}

// LoadAware does not oscillate: measured with noise, round after round, it ends as soon as without, and nothing goes
// back and forth (SHD-6).
func TestLoadAwareDoesNotOscillate(t *testing.T) {
	const rounds = 20
	var offs []float64
	moved, late, optimal, back := 0, 0, 0, 0
	for seed := range uint64(cases(1000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		v := skew(rng, 0.3)
		v.Limit = 1000
		optimal += atLeast(v, 0.1)
		was := map[route.ShardID][]peer.ID{}
		for round := range rounds {
			moves, err := LoadAware{}.Rebalance(noisy(rng, v, 0.1, 0.02))
			require.NoError(t, err)
			for _, m := range moves {
				if slices.Contains(was[m.Shard], m.To) {
					back++
				}
				was[m.Shard] = append(was[m.Shard], m.From)
				require.True(t, v.Apply(m))
			}
			if moved += len(moves); round >= rounds/2 {
				late += len(moves)
			}
		}
		offs = append(offs, uneven(v))
	}
	slices.Sort(offs)
	t.Logf("%d cases of %d rounds: off the mean median %.3f, 99th %.3f, max %.3f; moves %d, at least %d; in the second "+
		"half %d; back to where it was %d", len(offs), rounds, offs[len(offs)/2], offs[len(offs)*99/100], offs[len(offs)-1],
		moved, optimal, late, back)
	require.LessOrEqual(t, offs[len(offs)-1], 0.1+0.02, "the noise of a region is beyond the tolerance")
	require.LessOrEqual(t, late*100, moved)
	require.LessOrEqual(t, back*100, moved)
}

// A region on a strained node is given nothing, and the others share the rest evenly; while most nodes are strained it
// is as if none were (PRT-5).
func TestLoadAwareSparesTheStrained(t *testing.T) {
	gave, spared := 0, 0
	for seed := range uint64(cases(500)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		v := skew(rng, 0.3)
		v.Limit = 1000
		for i := range v.Regions {
			if n := uint16(rng.IntN(StrainedProcessor)); rng.IntN(4) > 0 {
				v.Regions[i].Node = NodeLoad{Processor: n, Collector: n / 4, Memory: n}
				continue
			}
			v.Regions[i].Node = []NodeLoad{{Processor: StrainedProcessor}, {Collector: StrainedCollector},
				{Memory: StrainedMemory}}[rng.IntN(3)]
		}
		strained, plain := peer.Set{}, v.Clone()
		for i := range plain.Regions {
			if plain.Regions[i].Node.Strained() {
				strained.Add(plain.Regions[i].ID)
			}
			plain.Regions[i].Node = NodeLoad{}
		}
		moves, err := Check(LoadAware{}).Rebalance(v)
		require.NoError(t, err)
		if 2*len(strained) > len(v.Regions) {
			others, err := LoadAware{}.Rebalance(plain)
			require.NoError(t, err)
			require.Equal(t, others, moves, "seed %d", seed)
			continue
		}
		for _, m := range moves {
			require.False(t, strained.Has(m.To), "seed %d: %v", seed, m)
			if strained.Has(m.From) {
				gave++
			}
			require.True(t, v.Apply(m))
		}
		rest := v.Clone()
		rest.Regions = slices.DeleteFunc(rest.Regions, func(r Region) bool { return strained.Has(r.ID) })
		if len(rest.Regions) > 0 && len(strained) > 0 {
			spared++
			more, err := LoadAware{Tolerance: 12}.Rebalance(rest)
			require.NoError(t, err)
			require.LessOrEqual(t, len(more), 1, "seed %d: the others are even", seed)
		}
	}
	require.Positive(t, gave)
	require.Positive(t, spared)
}
