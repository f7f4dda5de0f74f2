// Tests of loads that are measured: what a gauge makes of totals, and instances that come and go with them.

package partition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// TestGauge: the load is that of all nodes, also where a few have not answered; where too few are known, or the last
// look is long ago, there is none (PRT-5).
func TestGauge(t *testing.T) {
	ids := make([]kith.ID, 4)
	for i := range ids {
		ids[i] = kith.ID{Addr: peer.MustAddr("127.0.0.1:1"), Inc: uint64(i + 1)}
	}
	totals := func(each ...uint64) map[kith.ID]uint64 {
		m := map[kith.ID]uint64{}
		for i, n := range each {
			if n > 0 {
				m[ids[i]] = n
			}
		}
		return m
	}
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		name string
		last map[kith.ID]uint64
		is   map[kith.ID]uint64
		over time.Duration
		load int
		ok   bool
	}{
		{"the first look", nil, totals(100, 100), gaugeEvery, 0, false},
		{"all", totals(100, 200, 300, 400), totals(110, 220, 330, 440), time.Second / 4, 400, true},
		{"half", totals(100, 200, 300, 400), totals(110, 220), time.Second / 4, 240, true},
		{"a quarter", totals(100, 200, 300, 400), totals(110), time.Second / 4, 0, false},
		{"one that began anew", totals(100, 200, 300, 400), totals(110, 210, 310, 4), time.Second / 4, 160, true},
		{"idle", totals(100, 200, 300, 400), totals(100, 200, 300, 400), time.Second / 4, 0, true},
		{"long ago", totals(100, 200, 300, 400), totals(110, 220, 330, 440), 4 * gaugeEvery, 0, false},
		{"a load beyond every bound", totals(1, 1, 1, 1), totals(1<<60, 1<<60, 1<<60, 1<<60), time.Millisecond,
			cluster.MaxPartitionLoad, true},
	} {
		g := gauge{at: at, last: c.last}
		load, ok := g.take(at.Add(c.over), c.is, 4)
		require.Equal(t, c.ok, ok, c.name)
		require.Equal(t, c.load, load, c.name)
		require.Equal(t, c.is, g.last, c.name)
	}
}

// TestGaugeFollows: the number of instances follows a load that stays, and not one near the border of two numbers; the
// hint carries that number (PRT-2).
func TestGaugeFollows(t *testing.T) {
	g, c := gauge{}, Scaled(1, 8, 100)
	hint := 0
	look := func(load int) (instances int) {
		if next, ok := g.follow(c, hint, load); ok {
			hint = next
		}
		return c.Of(0, hint)
	}
	for _, want := range []int{1, 3, 3, 3} { // two looks agree
		require.Equal(t, want, look(250))
	}
	require.Equal(t, 3, look(301))
	require.Equal(t, 3, look(290)) // once is not enough
	require.Equal(t, 3, look(301))
	require.Equal(t, 4, look(301))
	for range 5 { // the rest would have no room left
		require.Equal(t, 4, look(290))
	}
	require.Equal(t, 4, look(240))
	require.Equal(t, 3, look(240))
	for range 5 {
		require.Equal(t, 3, look(270))
	}
	look(1 << 30)
	require.Equal(t, 8, look(1<<30))
	look(0)
	require.Equal(t, 1, look(0))
	look(cluster.MaxPartitionLoad)
	require.Equal(t, 8, look(cluster.MaxPartitionLoad))
	require.LessOrEqual(t, hint, cluster.MaxPartitionLoad)
}

// TestInstancesFollowTheLoad: instances come with the messages, and go with them, of both kinds of hand-off; no node
// reports another definition (PRT-2, PRT-5).
func TestInstancesFollowTheLoad(t *testing.T) {
	for _, h := range []Handoff{Stateless, Ordered} {
		t.Run(h.String(), func(t *testing.T) {
			t.Parallel()
			o := opens(t, 3, Config{Path: "feeds", Instances: Scaled(1, 3, 20), Handoff: h})
			has := func(n int) func() bool {
				return func() bool {
					s, ok := o.parts[1].Table()
					return ok && s.Has() == n && len(s.Changes) == 0
				}
			}
			require.Eventually(t, has(1), time.Minute, 10*time.Millisecond)
			n := uint32(0)
			require.Eventually(t, func() bool {
				for range 20 {
					n++
					require.NoError(t, o.parts[int(n)%3].TellAll(numbered(byte(n%3), n)))
				}
				return has(3)()
			}, time.Minute, 20*time.Millisecond)
			require.Eventually(t, has(1), time.Minute, 10*time.Millisecond)
			s, _ := o.parts[2].Table()
			require.Equal(t, 1, s.Wanted)
			for _, p := range o.parts {
				require.NoError(t, p.Err())
			}
			require.Zero(t, o.parts[0].hub.stray.Load())
		})
	}
}
