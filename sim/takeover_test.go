// The takeover time at default settings in clusters that are larger than five (MEM-10).

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// outcome is what has become of a cut: what the checkers found, and how long after it the last of those that were cut
// off still handled messages.
type outcome struct {
	broken []string
	last   time.Duration
}

// cutOffAndDowned forms a cluster of n nodes, makes every shard live somewhere, and cuts off the last few. An operator
// downs them at once at the side that is left, which is the earliest moment from which their shards can be waited for.
// Nobody tells them. With unrest the cut-off side loses one of its own and finds it again, again and again, so that its
// picture never stands still and it stops at the latest possible moment.
func cutOffAndDowned(t *testing.T, n, few int, unrest bool, fixed time.Duration) (o outcome) {
	c := New(&fakeTB{}, n, uint64(n), With(func(cfg *setup.Config) {
		cfg.Text = false
		cfg.Shard = shard.Config{TakeoverTime: fixed}
	}))
	typ := echo()
	typ.Shards = uint32(2 * n)
	c.Register(typ)
	c.AwaitUp()
	touch := func() {
		for i := range 8 * n {
			_ = c.Tell(0, "echo", fmt.Sprint("e", i), nil)
		}
	}
	touch()
	c.Advance(2 * time.Second)
	var all []int
	for i := range n {
		all = append(all, i)
	}
	here, there := all[:n-few], all[n-few:]
	c.Partition(here, there)
	cut := c.Now()
	for _, i := range there {
		require.NoError(t, c.Down(0, i))
	}
	for tick := range 800 {
		if step := tick / 60; unrest && step > 0 && tick%60 == 0 { // six seconds each: longer than the longest silence
			c.Heal()
			if c.Partition(here, there); step%2 == 1 {
				c.Heal()
				c.Partition(here, there[:few-1], there[few-1:])
			}
		}
		if tick%10 == 0 {
			touch()
		}
		c.Advance(100 * time.Millisecond)
		for _, i := range there {
			if p := c.proc(i); p.Alive && !p.Held() {
				o.last = c.Now() - cut
			}
		}
	}
	for _, v := range checks(c.w).Violations {
		o.broken = append(o.broken, v.String())
	}
	for _, i := range there {
		require.NotNil(t, c.Ended(i), "node %d has stopped for good", i)
		require.Less(t, c.Owner("echo", fmt.Sprint("e", i)), n-few)
	}
	c.w.End()
	return o
}

// TestCutOffOwnersStopInTime: at default settings cut-off owners have stopped before their shards live elsewhere,
// whatever the size, also when their picture never stands still. 20 s, which is enough for five nodes, is not enough
// for more.
func TestCutOffOwnersStopInTime(t *testing.T) {
	for _, c := range []struct {
		nodes, few int
		unrest     bool
		after      time.Duration // when the last of them stops, at least
		short      bool          // 20 s is too short for it
	}{
		{5, 2, false, 10 * time.Second, false},
		{12, 4, false, 16 * time.Second, false}, {12, 4, true, 25 * time.Second, true},
		{24, 8, false, 21 * time.Second, true}, {24, 8, true, 32 * time.Second, true},
	} {
		t.Run(fmt.Sprintf("%d nodes, unrest %t", c.nodes, c.unrest), func(t *testing.T) {
			takeover := node.Config{}.Takeover(c.nodes)
			o := cutOffAndDowned(t, c.nodes, c.few, c.unrest, 0)
			require.Empty(t, o.broken)
			require.GreaterOrEqual(t, o.last, c.after)
			require.Less(t, o.last, takeover)
			o = cutOffAndDowned(t, c.nodes, c.few, c.unrest, 20*time.Second)
			if !c.short {
				require.Empty(t, o.broken)
				return
			}
			require.NotEmpty(t, o.broken)
			for _, v := range o.broken {
				require.Contains(t, v, "suspended-before")
			}
		})
	}
}
