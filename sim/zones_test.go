// Zones on the ring of failure detection: a zone that dies at once is found as fast as one node (FD-2).

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/sim/setup"
)

// zoneDies runs sixteen nodes, eight of them in one zone, four in each of two others, which they name or not, and takes
// the power of the large one. It returns how long the others took to know all of it, and whether each of its nodes was
// accused then.
func zoneDies(t *testing.T, seed uint64, named bool) (took time.Duration, accused bool) {
	c := New(t, 16, seed, pace(1, time.Hour), With(func(cfg *setup.Config) {
		cfg.Membership.GossipInterval = 200 * time.Millisecond
		for i := range 16 {
			if cfg.Roles = append(cfg.Roles, nil); named {
				cfg.Roles[i] = []string{cluster.ZonePrefix + "abbc"[i/4:i/4+1]}
			}
		}
	}))
	c.AwaitUp()
	c.Advance(20 * time.Second)
	if accused = true; named {
		require.Equal(t, "b", must(c.View(0).Member(c.View(5).Self)).Zone())
	}
	for n := 4; n < 12; n++ {
		c.PowerOff(n)
	}
	began := c.Now()
	require.True(t, c.Until(time.Minute, func() bool {
		for _, n := range []int{0, 1, 2, 3, 12, 13, 14, 15} {
			if len(c.View(n).Unreachable) != 8 {
				return false
			}
		}
		return true
	}), "seed %d", seed)
	for n := 4; n < 12; n++ {
		by := 0
		for pair := range c.accused(0) {
			if pair[1] == n {
				by++
			}
		}
		accused = accused && by > 0
	}
	return c.Now() - began, accused
}

func must(m cluster.Member, ok bool) cluster.Member {
	if !ok {
		panic("no such member")
	}
	return m
}

// With one watcher each, a zone that dies takes many watchers of its own with it, and the ring finds those only when it
// has found the watchers. Nodes that name their zones are watched from another one, too: the zone is found at the first
// deadline. No node that lives is accused for it.
func TestZoneThatDiesIsFoundAtOnce(t *testing.T) {
	slow := 0
	for seed := range uint64(4) {
		took, all := zoneDies(t, seed, true)
		require.Less(t, took, 7*time.Second, "seed %d", seed)
		require.True(t, all)
		if took, _ := zoneDies(t, seed, false); took > 9*time.Second {
			slow++
		}
	}
	require.Positive(t, slow, "without zones some are found a deadline later: else this test shows nothing")
}
