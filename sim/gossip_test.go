// Gossip options in whole clusters: what they are for, and that nothing else changes (GOS-9, GOS-10).

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/sim/setup"
)

// GOS-9: with deputies and rounds to unreachable members a partition heals, no member is lost, and no member is accused
// that was not cut off.
func TestDeputiesHealAPartition(t *testing.T) {
	for seed := range uint64(5) {
		c := New(t, 6, seed, With(func(cfg *setup.Config) {
			cfg.Membership.Deputies, cfg.Membership.GossipToUnreachable, cfg.Membership.Overview = 2, true, true
		}))
		c.AwaitUp()
		c.Partition([]int{0, 1}, []int{2, 3, 4, 5})
		require.True(t, c.Until(20*time.Second, func() bool {
			return len(c.View(0).Unreachable) == 4 && len(c.View(5).Unreachable) == 2
		}), "seed %d", seed)
		c.Heal()
		require.True(t, c.Until(15*time.Second, func() bool {
			for n := range 6 {
				if v := c.View(n); len(v.Unreachable) > 0 || !v.Converged || len(v.Members) != 6 {
					return false
				}
			}
			return true
		}), "seed %d", seed)
	}
}

// GOS-2: with a clock that is pruned at once, through a partition, a crash and a leave, the members agree in the end.
func TestPrunedClocksAgree(t *testing.T) {
	for seed := range uint64(5) {
		c := New(t, 7, seed, With(func(cfg *setup.Config) {
			cfg.Membership.ClockEntries, cfg.Membership.ClockEntryAge = 1, time.Second
		}))
		c.AwaitUp()
		c.Advance(5 * time.Second)
		c.Partition([]int{0, 1, 2}, []int{3, 4, 5, 6})
		c.Advance(7 * time.Second)
		c.Heal()
		c.Advance(15 * time.Second)
		c.Leave(6)
		c.Advance(5 * time.Second)
		c.PowerOff(5)
		c.Advance(8 * time.Second)
		require.NoError(t, c.Down(0, 5), "seed %d", seed)
		require.True(t, c.Until(15*time.Second, func() bool {
			for n := range 5 {
				v := c.View(n)
				if v == nil || !v.Converged || len(v.Members) != 5 || v.Hash != c.View(0).Hash {
					return false
				}
			}
			return true
		}), "seed %d", seed)
	}
}
