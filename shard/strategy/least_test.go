// The least-shard strategy by the reference's exact scenarios and by law (SHD-6).

package strategy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// node returns the i-th region's identity, counted from 0.
func node(i int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.%d.%d:1", i/250, i%250+1)), Inc: 1}
}

// sized returns a view of regions that are Up and have so many shards, numbered from 0 in the order of allocation.
func sized(sizes ...int) *View {
	v := &View{Now: time.Hour, Limit: 1 << 20}
	for i, n := range sizes {
		r := Region{ID: node(i), Status: cluster.Up, AppVersion: "1.0.0", Count: n}
		for range n {
			r.Shards = append(r.Shards, route.ShardID(v.Shards))
			v.Shards++
		}
		v.Regions = append(v.Regions, r)
	}
	v.Shards = max(v.Shards, 1)
	return v
}

func counts(v *View) (sizes []int) {
	for i := range v.Regions {
		sizes = append(sizes, len(v.Regions[i].Shards))
	}
	return sizes
}

// names returns the shards of moves as the reference numbers them, from 1.
func names(moves []Move) (list []int) {
	for _, m := range moves {
		list = append(list, int(m.Shard)+1)
	}
	return list
}

func apply(t require.TestingT, v *View, moves []Move) {
	for _, m := range moves {
		require.True(t, v.Apply(m), "%v", m)
	}
	require.NoError(t, v.Validate())
}

// settle repeats rounds until nothing moves any more and returns the moves.
func settle(t *testing.T, s Strategy, v *View) (moves []Move) {
	for round := 0; ; round++ {
		require.Less(t, round, 5000, "it does not end")
		next, err := s.Rebalance(v)
		require.NoError(t, err)
		if len(next) == 0 {
			return moves
		}
		apply(t, v, next)
		moves = append(moves, next...)
	}
}

// F-A1 and F-A2 of the reference: limits 1,000 and 1.0, regions A, B, C on addresses that rise (SHD-6).
func TestLeastShardsScenarios(t *testing.T) {
	free := LeastShards{Absolute: 1000, Percent: 100}
	for _, c := range []struct {
		sizes, moved, after []int
	}{
		{[]int{1, 1, 0}, nil, []int{1, 1, 0}},
		{[]int{1, 2, 0}, []int{2}, []int{1, 1, 1}},
		{[]int{2, 0, 0}, []int{1}, []int{1, 1, 0}},
		{[]int{3, 0, 0}, []int{1, 2}, []int{1, 1, 1}},
		{[]int{4, 4, 0}, []int{1, 5}, []int{3, 3, 2}},
		{[]int{4, 4, 2}, []int{1}, []int{3, 4, 3}},
		{[]int{5, 5, 0}, []int{1, 6}, []int{4, 4, 2}},
	} {
		v := sized(c.sizes...)
		moves, err := free.Rebalance(v)
		require.NoError(t, err)
		require.Equal(t, c.moved, names(moves), "%v", c.sizes)
		apply(t, v, moves)
		require.Equal(t, c.after, counts(v), "%v", c.sizes)
	}
	v := sized(5, 5, 0)
	for _, want := range [][]int{{1, 6}, {2}, nil} {
		moves, err := free.Rebalance(v)
		require.NoError(t, err)
		require.Equal(t, want, names(moves))
		apply(t, v, moves)
	}
	require.Equal(t, []int{3, 4, 3}, counts(v))
	to, err := free.Allocate(sized(1, 1, 0), 2)
	require.NoError(t, err)
	require.Equal(t, node(2), to)
}

// The table of the limits, by default 20 shards and a tenth of them (SHD-6).
func TestLeastShardsLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int
		least LeastShards
		room  int
		want  int
	}{
		{"the relative limit", []int{10, 10, 0}, LeastShards{}, 1000, 2},
		{"the absolute limit", []int{1000, 0}, LeastShards{Percent: 100}, 1000, 20},
		{"another absolute limit", []int{1000, 0}, LeastShards{Absolute: 7}, 1000, 7},
		{"at least one", []int{4, 0}, LeastShards{}, 1000, 1},
		{"no more than there is room for", []int{1000, 0}, LeastShards{}, 3, 3},
		{"no room", []int{1000, 0}, LeastShards{}, 0, 0},
		{"no room in the second phase", []int{4, 4, 2}, LeastShards{}, 0, 0},
		{"one apart", []int{3, 2}, LeastShards{}, 1000, 0},
		{"nothing", []int{0, 0}, LeastShards{}, 1000, 0},
		{"nobody", nil, LeastShards{}, 1000, 0},
	} {
		v := sized(c.sizes...)
		v.Limit = c.room
		moves, err := c.least.Rebalance(v)
		require.NoError(t, err)
		require.Len(t, moves, c.want, c.name)
	}
}

// Seed 001: "The difference between number of shards in the region with most shards and the region with least shards
// must be greater than the rebalance-threshold for the rebalance to occur." And: "A rebalance-threshold of 1 gives the
// best distribution." (SHD-6)
func TestLeastShardsThreshold(t *testing.T) {
	for _, c := range []struct {
		name      string
		threshold int
		sizes     []int
		moved     int // in the first round, which no limit cuts
		after     []int
	}{
		{"none given is one: equal to it", 0, []int{3, 2}, 0, []int{3, 2}},
		{"none given is one: above it", 0, []int{4, 2}, 1, []int{3, 3}},
		{"one", 1, []int{4, 2}, 1, []int{3, 3}},
		{"three: below it", 3, []int{4, 2}, 0, []int{4, 2}},
		{"three: equal to it", 3, []int{5, 2}, 0, []int{5, 2}},
		{"three: above it, then as even as can be", 3, []int{6, 2}, 2, []int{4, 4}},
		{"a new node that is too little behind", 10, []int{10, 10, 0}, 0, []int{10, 10, 0}},
		{"the same with one shard more", 10, []int{11, 10, 0}, 7, []int{7, 7, 7}},
		{"most and fewest count, not the mean", 3, []int{5, 5, 5, 1}, 3, []int{4, 4, 4, 4}},
		{"more than there are shards: never", 100, []int{50, 0}, 0, []int{50, 0}},
		{"a negative one that was not refused is one", -5, []int{4, 2, 3}, 1, []int{3, 3, 3}},
	} {
		l := LeastShards{Absolute: 1000, Percent: 100, Threshold: c.threshold}
		v := sized(c.sizes...)
		moves, err := l.Rebalance(v)
		require.NoError(t, err)
		require.Len(t, moves, c.moved, c.name)
		require.Equal(t, c.moved == 0, l.Even(slices.Max(c.sizes), slices.Min(c.sizes)), c.name)
		apply(t, v, moves)
		require.Equal(t, c.after, counts(v), c.name)
	}
}

// One rebalance at a time: while one shard moves, no other begins to.
func TestLeastShardsWaitsForItsMoves(t *testing.T) {
	v := sized(3, 0, 0)
	v.Moving = []Move{{0, node(0), node(1)}}
	moves, err := LeastShards{}.Rebalance(v)
	require.NoError(t, err)
	require.Empty(t, moves)
}

// F-A5 of the reference: the newest version first, then the fewest shards, those that leave last (SHD-6).
func TestSuitability(t *testing.T) {
	v := sized(0, 1, 2, 0, 0)
	for i := range 3 {
		v.Regions[i].AppVersion = "1.0.1"
	}
	v.Regions[4].Status = cluster.Leaving
	var order []*Region
	for _, i := range []int{4, 2, 0, 3, 1} {
		order = append(order, &v.Regions[i])
	}
	var c versions
	slices.SortFunc(order, c.suits)
	for i, r := range order {
		require.Equal(t, node(i), r.ID)
	}
	require.Zero(t, c.suits(order[0], order[0]))
	to, err := LeastShards{}.Allocate(v, 0)
	require.NoError(t, err)
	require.Equal(t, node(0), to)
	v.Regions[0].Count, v.Regions[1].Count, v.Regions[2].Count = 100, 100, 100
	to, err = LeastShards{}.Allocate(v, 0)
	require.NoError(t, err)
	require.Equal(t, node(0), to, "an old region gets nothing while there is a newer one, however few shards it has")
}

// F-A6 of the reference, and what is stricter here: nothing moves while versions differ, a member is unreachable, joins
// or goes, the cluster stops, or an operator has paused it (SHD-6).
func TestNothingMovesWhileHeld(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *View)
		want   Hold
	}{
		"versions":       {func(v *View) { v.Regions[1].AppVersion = "1.0.1" }, Updating},
		"an older one":   {func(v *View) { v.Regions[2].AppVersion = "0.9" }, Updating},
		"unreachable":    {func(v *View) { v.Regions[1].Unreachable = true }, Unstable},
		"joining":        {func(v *View) { v.Regions[2].Status = cluster.Joining }, Unstable},
		"weakly up":      {func(v *View) { v.Regions[2].Status = cluster.WeaklyUp }, Unstable},
		"leaving":        {func(v *View) { v.Regions[2].Status = cluster.Leaving }, Unstable},
		"exiting":        {func(v *View) { v.Regions[2].Status = cluster.Exiting }, Unstable},
		"down":           {func(v *View) { v.Regions[2].Status = cluster.Down }, Unstable},
		"shutdown":       {func(v *View) { v.Regions[2].Status = cluster.PreparingForShutdown }, Shutdown},
		"paused":         {func(v *View) { v.Hold = Paused }, Paused},
		"who hosts none": {func(v *View) { v.Hold = HoldOf([]cluster.Member{{Status: cluster.Joining}}, nil) }, Unstable},
	} {
		v := sized(5, 5, 0)
		require.Zero(t, v.Holds())
		c.change(v)
		require.Equal(t, c.want, v.Holds(), name)
		moves, err := LeastShards{}.Rebalance(v)
		require.NoError(t, err)
		require.Empty(t, moves, name)
	}
	require.Equal(t, "paused, updating", (Paused | Updating).String())
	require.Zero(t, HoldOf([]cluster.Member{{Status: cluster.Up}}, nil))
	require.Equal(t, Unstable, HoldOf(nil, peer.SetOf(node(1))))
	require.Equal(t, Shutdown|Unstable, HoldOf([]cluster.Member{{Status: cluster.ReadyForShutdown},
		{Status: cluster.Exiting}}, nil))
	v := sized(5, 5, 0)
	v.Regions[1].AppVersion = "1.0"
	require.Zero(t, v.Holds(), "the same version in other words")
}

// Eligibility stands in one place: which regions may be chosen (SHD-6).
func TestEligible(t *testing.T) {
	for want, change := range map[string]func(r *Region){
		"":            func(r *Region) { r.Status = cluster.ReadyForShutdown },
		"joining":     func(r *Region) { r.Status = cluster.Joining },
		"weakly-up":   func(r *Region) { r.Status = cluster.WeaklyUp },
		"leaving":     func(r *Region) { r.Status = cluster.Leaving },
		"exiting":     func(r *Region) { r.Status = cluster.Exiting },
		"down":        func(r *Region) { r.Status = cluster.Down },
		"unreachable": func(r *Region) { r.Unreachable = true },
		"not ready":   func(r *Region) { r.NotReady = true },
		"draining":    func(r *Region) { r.Draining = true },
	} {
		v := sized(0, 7)
		change(&v.Regions[0])
		require.Equal(t, want, v.Regions[0].Why())
		to, err := LeastShards{}.Allocate(v, 0)
		require.NoError(t, err)
		if want == "" {
			require.Equal(t, node(0), to)
			continue
		}
		require.Equal(t, node(1), to, want)
		change(&v.Regions[1])
		_, err = LeastShards{}.Allocate(v, 0)
		require.ErrorIs(t, err, ErrNoRegion)
	}
}

// Comparisons of versions are remembered by both sides.
func TestVersionsAreRemembered(t *testing.T) {
	var c versions
	for range 2 {
		require.Negative(t, c.compare("1.0", "1.1"))
		require.Positive(t, c.compare("1.0", "0.9"))
		require.Positive(t, c.compare("1.1", "0.9"))
		require.Zero(t, c.compare("1.0", "1.0.0"))
	}
}

// What moves to a region counts there when a home is looked for.
func TestShardsThatAreComingCount(t *testing.T) {
	v := sized(3, 1, 2)
	v.Regions[1].Coming = 2
	to, err := LeastShards{}.Allocate(v, 0)
	require.NoError(t, err)
	require.Equal(t, node(2), to)
	for i := range v.Regions {
		r := &v.Regions[i]
		r.Measured, r.Load = r.Count, Load{Rate: 10 * uint32(r.Count)}
	}
	to, err = LoadAware{}.Allocate(v, 0)
	require.NoError(t, err)
	require.Equal(t, node(2), to)
}

// A region that is not ready, or drains, neither gives nor gets for balance, and does not count in the mean.
func TestLeastShardsLeavesOthersAlone(t *testing.T) {
	v := sized(9, 0, 4, 0)
	v.Regions[0].NotReady, v.Regions[1].Draining = true, true
	moves, err := LeastShards{Percent: 100}.Rebalance(v)
	require.NoError(t, err)
	require.Equal(t, []Move{{9, node(2), node(3)}, {10, node(2), node(3)}}, moves)
}

// Rounds end with regions at most the threshold apart, after as many moves as must be, and no shard comes back (SHD-6).
func TestLeastShardsConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := LeastShards{Threshold: rapid.IntRange(0, 5).Draw(t, "threshold")}
		v := sized(rapid.SliceOfN(rapid.IntRange(0, 40), 1, 8).Draw(t, "sizes")...)
		total := 0
		for _, n := range counts(v) {
			total += n
		}
		needed := 0
		for _, n := range counts(v) {
			needed += max(0, n-(total+len(v.Regions)-1)/len(v.Regions))
		}
		moved, homes := 0, map[route.ShardID][]peer.ID{}
		for round := 0; ; round++ {
			require.Less(t, round, 400)
			moves, err := least.Rebalance(v)
			require.NoError(t, err)
			if len(moves) == 0 {
				break
			}
			for _, m := range moves {
				require.NotContains(t, homes[m.Shard], m.To, "shard %d comes back", m.Shard)
				homes[m.Shard] = append(homes[m.Shard], m.From)
			}
			moved += len(moves)
			apply(t, v, moves)
		}
		require.LessOrEqual(t, slices.Max(counts(v))-slices.Min(counts(v)), max(1, least.Threshold))
		require.LessOrEqual(t, moved, needed+len(v.Regions))
	})
}
