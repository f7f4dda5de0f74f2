// Loads: differences of readings, and pages that change as a whole (SHD-6).

package loads

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// read makes the reading of a shard.
func read(s route.ShardID, f route.Fence, entities uint32, handled uint64, cpu time.Duration) strategy.Reading {
	return strategy.Reading{Shard: s, Fence: f, Entities: entities, Handled: handled, HandlerTime: cpu}
}

func TestMeter(t *testing.T) {
	one, two := route.MakeFence(1, 1, 1), route.MakeFence(1, 1, 2)
	var m Meter
	list, window := m.Measure(10*time.Second, []strategy.Reading{read(1, one, 5, 1000, time.Second), read(0, one, 1, 7, 0),
		read(4, one, 0, 0, 0)})
	require.Empty(t, list)
	require.Zero(t, window)
	list, window = m.Measure(14*time.Second, []strategy.Reading{read(4, two, 9, 4, 0),
		read(1, one, 6, 1400, 3*time.Second), read(0, one, 1, 7, 0), read(9, one, 1, 1, 1)})
	require.Equal(t, 4*time.Second, window)
	require.Equal(t, []Shard{{0, strategy.Load{Entities: 1}},
		{1, strategy.Load{Entities: 6, Rate: 100, HandlerTime: 500_000}}},
		list, "what came, or came back, within the window is not measured")
	list, _ = m.Measure(15*time.Second, []strategy.Reading{read(9, one, 1, math.MaxUint64, 1),
		read(1, one, 6, 1399, 3*time.Second)})
	require.Equal(t, []Shard{{9, strategy.Load{Entities: 1, Rate: math.MaxUint32}}}, list, "no figure falls")
}

func TestPage(t *testing.T) {
	var p Page
	p.Take([]Shard{{1, strategy.Load{Rate: 5}}}, false, true, time.Second)
	require.Zero(t, p.Since, "without its first part")
	huge := strategy.Load{Entities: math.MaxUint32, Rate: 3, HandlerTime: 2}
	p.Take([]Shard{{1, huge}}, true, false, time.Second)
	require.Zero(t, p.Count, "a part alone does not count")
	p.Take([]Shard{{2, huge}}, false, true, time.Second)
	require.Equal(t, strategy.Load{Entities: math.MaxUint32, Rate: 6, HandlerTime: 4}, p.Sum)
	require.Equal(t, 2, p.Count)
	require.Equal(t, time.Second, p.Since)
	p.Take(nil, true, true, 0)
	require.Zero(t, p.Count)
	require.Positive(t, p.Since, "it has nothing, and that is known")
}
