// Tests of what a fault does to each directed way.

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLinksUnderFaults(t *testing.T) {
	under := func(f Fault, who ...int) links { return linksUnder([]struck{{f, who}}, 4) }
	ways := func(l links, fits func(link) bool) (ways [][2]int) {
		for from := range l {
			for to := range l[from] {
				if fits(l[from][to]) {
					ways = append(ways, [2]int{from, to})
				}
			}
		}
		return ways
	}
	cut := func(s lanesOf) func(link) bool { return func(k link) bool { return k.Cut == s } }
	across := [][2]int{{0, 3}, {1, 3}, {2, 3}, {3, 0}, {3, 1}, {3, 2}}
	require.Equal(t, across, ways(under(Fault{Kind: Cut}, 3), cut(allLanes)))
	require.Equal(t, across, ways(under(Fault{Kind: Flap}, 3), cut(allLanes)))
	require.Equal(t, across[3:], ways(under(Fault{Kind: CutOneWay}, 3), cut(allLanes)))
	require.Equal(t, [][2]int{{1, 3}, {3, 1}}, ways(under(Fault{Kind: CutPartial}, 3, 1), cut(allLanes)))
	require.Equal(t, across, ways(under(Fault{Kind: DataCut}, 3), cut(1<<dataLane|1<<bulkLane)))
	require.Equal(t, across, ways(under(Fault{Kind: ControlCut}, 3), cut(1<<controlLane)))
	require.Equal(t, across, ways(under(Fault{Kind: Kill, Rest: time.Minute}, 3), cut(allLanes)), "a lost machine")
	require.Equal(t, across, ways(under(Fault{Kind: Restart}, 3), cut(allLanes)), "between two processes")
	require.Len(t, ways(under(Fault{Kind: Reset, PerMille: 3}), func(k link) bool { return k.Reset == 3 }), 12)
	require.Len(t, ways(under(Fault{Kind: Loss, PerMille: 9}), func(k link) bool { return k.Loss == 9 }), 12)
	require.Len(t, ways(under(Fault{Kind: Delay, Extra: time.Second}), func(k link) bool { return k.Delay > 0 }), 12)
	require.Len(t, ways(under(Fault{Kind: SlowLink, MBit: 20}), func(k link) bool { return k.MBit == 20 }), 12)
	data, control := cut(1<<dataLane|1<<bulkLane), cut(1<<controlLane)
	require.Equal(t, [][2]int{{3, 1}}, ways(under(Fault{Kind: holdData}, 3, 1), data), "one way")
	require.Equal(t, [][2]int{{3, 1}}, ways(under(Fault{Kind: holdControl}, 3, 1), control))
	require.Equal(t, across, ways(under(Fault{Kind: Reset, Victims: 1, PerMille: 3}, 3), func(k link) bool {
		return k.Reset == 3
	}))
	for _, k := range []Kind{Kill, KillAll, Pause, Starve, Leave, Rolling} {
		require.Equal(t, newLinks(4), under(Fault{Kind: k}, 3), k)
	}
	both := linksUnder([]struck{{Fault{Kind: DataCut}, []int{3}}, {Fault{Kind: ControlCut}, []int{3}}}, 4)
	require.Equal(t, across, ways(both, cut(allLanes)), "faults add up")
}
