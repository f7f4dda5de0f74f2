// Tenures in the simulator: how soon a lost owner's entities live again, which side of a cut goes on, and that nothing
// ever has two owners while members are lost, cut off or stand still.

package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/long"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/sbr"
)

// seats has all nodes of a cluster hold tenures, on the word of that many seats.
func seats(n int) Option {
	return With(func(c *Config) { c.TenureVoters, c.TenureGrant = n, 2500*time.Millisecond })
}

// TestTenuresShortenOutages: the page's table of outages with tenures, to a tenth of a second (SHD-4, AVL-5).
func TestTenuresShortenOutages(t *testing.T) {
	text, err := os.ReadFile("../docs/contributing/tenure.md")
	require.NoError(t, err)
	kill := func(c *Cluster, owner int) { c.Crash(owner) }
	for _, o := range []outage{
		{name: "the owner is killed (kill -9)", n: 5, fail: kill},
		{name: "its machine dies, or is cut off", n: 5, fail: func(c *Cluster, owner int) { c.PowerOff(owner) }},
		{name: "the coordinator is killed, which owns the entity too", n: 5, coordinator: true, fail: kill},
		{name: "the owner is killed in a cluster of ten", n: 10, fail: kill},
		{name: "the owner stands still for 30 s", n: 5, fail: func(c *Cluster, owner int) { c.Pause(owner, 30*time.Second) }},
	} {
		most := time.Duration(0)
		for seed := range uint64(4) {
			most = max(most, o.cost(t, seed+1, seats(3)))
		}
		require.Less(t, most, 6500*time.Millisecond, o.name)
		require.Contains(t, string(text), fmt.Sprintf("| %s | %.1f s |", o.name, most.Seconds()))
	}
}

// TestDeafOwner: an owner that hears nobody, and is heard, keeps its shards until the resolver downs it, or until its
// connections break where there is none: no longer (AVL-5).
func TestDeafOwner(t *testing.T) {
	deaf := func(c *Cluster, owner int) {
		for i := range c.w.Hosts {
			if i != owner {
				c.CutOneWay(i, owner)
			}
		}
	}
	for _, strategy := range []sbr.Strategy{node.ResolverKeepMajority, node.ResolverOff} {
		o := outage{name: "the owner hears nobody", n: 5, fail: deaf}
		most := o.cost(t, 1, seats(3), With(func(c *Config) { c.Resolver.Strategy = strategy }))
		require.Less(t, most, 14*time.Second)
	}
}

func newTenures(t *testing.T, n int, seed uint64, options ...Option) *Cluster {
	c := New(t, n, seed, append([]Option{seats(3)}, options...)...)
	c.Register(echo())
	c.AwaitUp()
	c.Advance(10 * time.Second)
	require.True(t, answers(c, 0))
	return c
}

// TestTenureOfAQuorum: a node that is cut off handles nothing as soon as its tenure has run out, long before its
// resolver has decided anything, and comes back when the cut was short (MEM-10).
func TestTenureOfAQuorum(t *testing.T) {
	c := newTenures(t, 5, 1)
	c.Advance(10 * time.Second)
	require.Zero(t, c.w.Leases.Tenures.RanOut)
	c.Partition([]int{4}, []int{0, 1, 2, 3})
	c.Advance(2700 * time.Millisecond)
	require.True(t, c.w.Hosts[4].Process.Held())
	require.False(t, c.w.Hosts[0].Process.Held())
	c.Heal()
	c.Advance(5 * time.Second)
	require.False(t, c.w.Hosts[4].Process.Held())
	require.True(t, answers(c, 4))
	require.Zero(t, c.w.Leases.Tenures.Proven, "nobody was taken for Down")
}

// TestTenureStorms: members are killed, started again, cut off and stand still, under the checkers: nothing has two
// owners, no process handles anything when its tenure is proven over, and all answers in the end, where a quorum of the
// seats lives (MEM-10).
func TestTenureStorms(t *testing.T) { tenureStorms(t, 24) }

// TestLongTenureStorms runs more of them (MEM-10).
func TestLongTenureStorms(t *testing.T) {
	long.Test(t)
	tenureStorms(t, 100)
}

func tenureStorms(t *testing.T, seeds int) {
	proven, lasted := 0, 0
	for seed := range seeds {
		c := tenureStorm(t, uint64(seed), func(*Config) {})
		proven += c.w.Leases.Tenures.Proven
		if electorateLives(c) {
			lasted++
			require.True(t, answers(c, 0), "seed %d", seed)
		}
	}
	t.Logf("%d ends proven, the electorate lived in %d of %d", proven, lasted, seeds)
	require.Greater(t, proven, seeds, "ends were proven")
	require.Greater(t, lasted, seeds/2, "and the electorate lived")
}

// TestTenureAlone: with a resolver that lets both sides of every cut live, and downs the other, tenure alone has no two
// owners: no time frees a shard, and nobody assumes that the lost have ended (MEM-10, AVL-5).
func TestTenureAlone(t *testing.T) { tenureAlone(t, 10_000, 8) }

// TestLongTenureAlone runs more of them: TENURE_SEEDS=2000 TENURE_FIRST=10000 so many, from that one on.
func TestLongTenureAlone(t *testing.T) {
	long.Test(t)
	number := func(name string, or int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return or
	}
	tenureAlone(t, number("TENURE_FIRST", 10_000), number("TENURE_SEEDS", 100))
}

func tenureAlone(t *testing.T, first, seeds int) {
	proven := 0
	for seed := first; seed < first+seeds; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { // so that one is put away before the next
			c := tenureStorm(t, uint64(seed), func(c *Config) {
				c.Resolver.Strategy = node.ResolverUnsafeAutoDown
				c.Text = seeds <= 100 // one seed alone has its trace
			})
			proven += c.w.Leases.Tenures.Proven
		})
	}
	t.Logf("%d ends proven in %d storms", proven, seeds)
	require.Positive(t, proven)
}

// tenureStorm draws what happens to a cluster, and a quiet time behind.
func tenureStorm(t *testing.T, seed uint64, change func(*Config)) *Cluster {
	rng := rand.New(rand.NewPCG(seed, 3))
	n := 4 + rng.IntN(4)
	c := newTenures(t, n, seed+1, With(func(c *Config) {
		c.Drift = 1000 // millionths
		c.TenureVoters = 3 + 2*rng.IntN(2)
		change(c)
	}))
	for range 3 + rng.IntN(4) {
		victim := rng.IntN(n)
		switch rng.IntN(6) {
		case 0:
			c.Restart(victim)
		case 1:
			c.Pause(victim, time.Duration(rng.Int64N(int64(20*time.Second))))
		case 2:
			c.Partition([]int{victim}, others(n, 1<<victim))
		case 3:
			side := rng.IntN(1 << n)
			c.Partition(others(n, side), others(n, ^side))
		case 4:
			c.CutOneWay(victim, (victim+1)%n)
		case 5:
			c.Leave(victim)
		}
		if c.Advance(time.Duration(rng.Int64N(int64(15 * time.Second)))); rng.IntN(2) == 0 {
			c.Heal()
		}
		c.Advance(time.Duration(rng.Int64N(int64(40 * time.Second))))
		for i := range n {
			if !c.Running(i) {
				c.Restart(i)
			}
		}
	}
	c.Heal()
	c.Advance(time.Minute)
	for i := range n {
		if !c.Running(i) {
			c.Restart(i)
		}
	}
	c.Advance(time.Minute)
	return c
}

// electorateLives reports whether all nodes are one cluster, with a quorum of the seats.
func electorateLives(c *Cluster) bool {
	live := 0
	v := c.View(0)
	for _, h := range node.Electorate(c.w.Hosts[0].Process.Node.Node).Holders {
		if p := c.w.ProcessOf(h); p != nil && p.Alive {
			if _, in := v.Member(h); in {
				live++
			}
		}
	}
	return 2*live > c.w.Config.TenureVoters && v.CountUp() == len(c.w.Hosts)
}

// others returns the nodes that are not in a set of bits.
func others(n, but int) (list []int) {
	for i := range n {
		if but&(1<<i) == 0 {
			list = append(list, i)
		}
	}
	return list
}
