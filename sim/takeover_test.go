// The takeover time at default settings in clusters that are larger than five (MEM-10).

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// outcome is what has become of a cut: what the checkers found, and how long after it the last of those that were cut
// off still handled messages.
type outcome struct {
	broken []string
	last   time.Duration
}

// cutOffAndDowned forms a cluster of n nodes, has every shard live somewhere, and cuts off the last few. The side that
// is left is told at once by an operator that they are gone, which is the earliest moment from which their shards can
// be waited for. Nobody tells them. With unrest the cut-off side loses one of its own and finds it again, again and
// again, so that its picture never stands still and it stops at the latest possible moment.
func cutOffAndDowned(t *testing.T, n, few int, unrest bool, fixed time.Duration) (o outcome) {
	c := New(&fakeTB{}, n, uint64(n), With(func(cfg *Config) {
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
			if p := c.proc(i); p.alive && !p.held() {
				o.last = c.Now() - cut
			}
		}
	}
	for _, v := range checks(c.w).violations {
		o.broken = append(o.broken, v.String())
	}
	for _, i := range there {
		require.NotNil(t, c.Ended(i), "node %d has stopped for good", i)
		require.Less(t, c.Owner("echo", fmt.Sprint("e", i)), n-few)
	}
	for _, p := range c.w.running() {
		p.die(true)
	}
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
		{5, 2, false, 11 * time.Second, false},
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

// TestOwnersOfAnEarlierCluster: a cluster that is formed anew has lost nobody, so no takeover time counts for it, and
// it may take over from an owner of the cluster before that has stopped. Such an owner handles nothing when it goes on
// (SHD-9, JOIN-1).
func TestOwnersOfAnEarlierCluster(t *testing.T) {
	key := shardKey{route.TypeOf("t"), 0}
	for held, want := range map[bool][]string{
		true: {"delivery-fence"}, false: {"two-owners", "takeover", "delivery-fence"},
	} {
		w := formed(t, 2, Config{Records: true})
		a, b := w.hosts[0].proc, w.hosts[1].proc
		checks(w).hosts(a, key, route.MakeFence(9, 9, 1))
		if held {
			a.suspend(&node.Suspend{On: true, Why: "it has stopped"})
		}
		checks(w).hosts(b, key, route.MakeFence(10, 9, 1))
		a.suspend(&node.Suspend{Why: "it goes on"})
		checks(w).delivers(a, key, &wire.Envelope{Term: 9, Epoch: 1})
		var rules []string
		for _, v := range checks(w).violations {
			rules = append(rules, v.Rule)
		}
		require.Equal(t, want, rules, "%v", checks(w).violations)
	}
}

// TestLossIsDatedByItsOwnSide: the takeover time of a shard runs from when the side that takes it over saw its owner
// Down, also where that side is lost for the owner's, which noticed the end later (SHD-9). Found by storm seed 5070.
func TestLossIsDatedByItsOwnSide(t *testing.T) {
	key := shardKey{route.TypeOf("t"), 0}
	for _, early := range []bool{false, true} {
		w := formed(t, 2, Config{})
		a, b := w.hosts[0].proc, w.hosts[1].proc
		checks(w).hosts(a, key, route.MakeFence(9, 1, 1))
		a.die(true)
		least := w.node().Takeover(1)
		checks(w).pairs.loses(b, a.id, w.now)
		w.now += least
		if early {
			w.now -= time.Second
		}
		checks(w).gone[a.id] = w.now - time.Second // by the word of somebody else
		checks(w).hosts(b, key, route.MakeFence(9, 1, 2))
		rules := map[string]bool{}
		for _, v := range checks(w).violations {
			rules[v.Rule] = true
		}
		require.Equal(t, early, rules["takeover"])
	}
}

// TestSendToTheRemoved: that the peer is lost is a good reason to reject a message where a member was removed, and
// nowhere else.
func TestSendToTheRemoved(t *testing.T) {
	for _, removed := range []bool{true, false} {
		w := formed(t, 2, Config{})
		a, b := w.hosts[0].proc, w.hosts[1].proc
		a.link(b.id, 0).conn.forgotten = removed
		_, nth := w.book.write(a, route.TypeOf("t"), "e", ledgerSize)
		(&storm{w: w, check: checks(w)}).rejected(a, nth, fmt.Errorf("to b: %w", route.ErrPeerLost))
		require.Equal(t, removed, len(checks(w).violations) == 0)
	}
}
