// Tests of sleeps that the monotonic clock does not show (MEM-10).

package driver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/runtime/exec"
)

// shifted are a clock that counts sleeps and a wall clock, each set off from the real one.
type shifted struct{ boot, wall atomic.Int64 }

func (s *shifted) bootTime() (time.Duration, bool) {
	return time.Since(began) + time.Duration(s.boot.Load()), true
}

func (s *shifted) wallTime() (wall, monotonic time.Time) {
	now := time.Now()
	return now.Round(0).Add(time.Duration(s.wall.Load())), now
}

var began = time.Now()

func TestSleepWatch(t *testing.T) {
	var c shifted
	var clock exec.Clock
	w := sleepWatch{clocks: clocks{boot: c.bootTime, wall: c.wallTime}}
	w.init(time.Now(), &clock)
	const limit = 10 * time.Second
	require.False(t, w.look(limit))
	require.Zero(t, clock.Slept())

	// The machine slept for a minute: both clocks show it, and it is counted once, as time that has passed.
	c.boot.Add(int64(time.Minute))
	c.wall.Add(int64(time.Minute))
	require.False(t, w.look(limit))
	require.InDelta(t, time.Minute, clock.Slept(), float64(time.Second))
	require.False(t, w.look(limit))
	require.InDelta(t, time.Minute, clock.Slept(), float64(time.Second))

	// A virtual machine stood still: only the wall clock shows it, when it has been set right.
	c.wall.Add(int64(time.Minute))
	require.True(t, w.look(limit))
	require.InDelta(t, time.Minute, time.Duration(w.steps.Swap(0)), float64(time.Second))
	require.False(t, w.look(limit), "told once")

	// It is set back, or on by little: nothing.
	for _, d := range []time.Duration{-time.Hour, 9 * time.Second, 9 * time.Second} {
		c.wall.Add(int64(d))
		require.False(t, w.look(limit))
	}
	require.Zero(t, w.steps.Load())

	// No clock that counts sleeps: the wall clock alone.
	var still exec.Clock
	w = sleepWatch{clocks: clocks{boot: func() (time.Duration, bool) { return 0, false }, wall: c.wallTime}}
	w.init(time.Now(), &still)
	c.wall.Add(int64(time.Minute))
	require.True(t, w.look(limit))
	require.Zero(t, still.Slept())
}

// MEM-10, SHD-9: a node stops handling messages when its machine has slept, until another node has confirmed it,
// whichever clock showed the sleep; one that did not sleep, but had its wall clock set, is confirmed and goes on.
func TestSleepThatTheClockDoesNotShow(t *testing.T) {
	for name, sleep := range map[string]func(c *shifted){
		"of the machine": func(c *shifted) {
			c.boot.Add(int64(time.Minute))
			c.wall.Add(int64(time.Minute))
		},
		"of a virtual machine": func(c *shifted) { c.wall.Add(int64(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			var c shifted
			p := newPair(t, func(cfg *Config) {
				cfg.Sharding.TakeoverTime, cfg.Resolver.Strategy = 20*time.Second, node.ResolverOff
				if len(cfg.Roles) > 0 {
					cfg.clocks = clocks{c.bootTime, c.wallTime}
				}
			})
			suspended := func() (at time.Duration, now bool) {
				onControl(p.b, func() { at, now = p.b.control.suspendedAt, p.b.control.node.Suspended() })
				return at, now
			}
			before, _ := suspended()
			sleep(&c)
			eventually(t, func() bool { at, now := suspended(); return at > before && !now })
		})
	}
}

// ACC-4: a timer, or an ask, that is set when the machine has just woken, and nobody has noticed the sleep, counts from
// the time that it is: what is noticed later makes it no earlier.
func TestSleepThatNobodyNoticedYet(t *testing.T) {
	var c shifted
	d := &Driver{start: time.Now(), inbox: newInbox()}
	d.exec.Clock.Init(d.start)
	d.exec.Gate.Init(time.Hour)
	d.sleeps.clocks = clocks{c.bootTime, c.wallTime}
	d.sleeps.init(d.start, &d.exec.Clock)
	require.Less(t, exactly(d), time.Minute)
	c.boot.Add(int64(time.Minute))
	c.wall.Add(int64(time.Minute))
	set := exactly(d)
	require.GreaterOrEqual(t, set, time.Minute-time.Second)
	d.lookForSleep()
	require.Less(t, d.now()-set, 30*time.Second, "that was the sleep")
}
