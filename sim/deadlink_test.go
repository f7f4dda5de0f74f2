// Newcomers behind a link that is known to be dead: they are not let in and downed again and again (MEM-1, JOIN-1).

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

// supervised lets time pass, and starts each process anew two seconds after it has ended. It returns how many ended.
func (c *Cluster) supervised(d time.Duration) (ends int) {
	ended := map[int]time.Duration{}
	for stop := c.Now() + d; c.Now() < stop; c.Advance(100 * time.Millisecond) {
		for n := range c.w.Hosts {
			switch at, down := ended[n]; {
			case !c.Running(n) && !down:
				ends++
				ended[n] = c.Now()
			case down && c.Now()-at >= 2*time.Second:
				delete(ended, n)
				c.Restart(n)
			}
		}
	}
	return ends
}

// Two of three do not hear each other, the third hears both: both are downed, one comes back, and the other is put off
// for ever longer. When the link is well again it is let in at once.
func TestJoinersBehindADeadLinkAreDamped(t *testing.T) {
	for seed := range uint64(5) {
		c := New(t, 3, seed)
		c.AwaitUp()
		c.Advance(20 * time.Second)
		c.CutOneWay(1, 2)
		ends := c.supervised(5 * time.Minute)
		require.LessOrEqual(t, ends, 10, "seed %d: 40 without it", seed)
		up := 0
		for n := range 3 {
			if v := c.View(n); v != nil && c.Running(n) && v.CountUp() == 2 {
				up++
			}
		}
		require.Equal(t, 2, up, "seed %d: two of three serve", seed)
		told := 0
		for n := range 3 {
			for _, e := range c.Events(n) {
				if e.Kind == membership.JoinPutOff {
					told++
				}
			}
		}
		require.Positive(t, told)
		require.LessOrEqual(t, told, 8, "once for each downing")
		c.Heal()
		require.True(t, c.Until(15*time.Second, func() bool {
			for n := range 3 {
				if v := c.View(n); !c.Running(n) || v == nil || v.CountUp() != 3 {
					return false
				}
			}
			return true
		}), "seed %d: let in when the link is well", seed)
	}
}

// A node that dies and comes back again and again is no dead link: it is let in each time.
func TestRestartsAreNotDamped(t *testing.T) {
	c := New(t, 3, 1)
	c.AwaitUp()
	for range 6 {
		c.Advance(5 * time.Second)
		c.PowerOff(2)
		c.Advance(20 * time.Second)
		c.Restart(2)
		require.True(t, c.Until(15*time.Second, func() bool { return c.View(0).CountUp() == 3 }))
	}
}
