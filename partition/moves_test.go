// Tests of hand-offs on real nodes, under traffic.

package partition

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
)

// moves moves the instance of slot 0 round the nodes under traffic of two senders, and returns what was accepted.
func (o *opened) moves(t *testing.T, times int) int {
	t.Helper()
	end := o.send([]int{0, 1}, func(p *Partition, b []byte) error { return p.TellAt(0, b) })
	for range times {
		at := o.host(o.parts[2], 0)
		require.NoError(t, o.parts[2].Move(within(t), 0, o.nodes[(at+1)%len(o.nodes)].ID()))
	}
	return end()
}

// Every accepted combination of options keeps its promise in planned moves (PRT-4).
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name     string
		handoff  Handoff
		order    bool // kept
		apart    bool // one instance at a time
		nothing  bool // is refused
		stateful bool
	}{
		{"2a 3a 4a", Stateless, false, false, true, false},
		{"2b 3a 4a", Handoff{Old: cluster.OldForwards}, false, false, true, false},
		{"2c 3a 4a", Handoff{Old: cluster.OldDrops}, false, false, false, false},
		{"2a 3a 4b", Handoff{Late: cluster.LateDrops}, false, false, false, false},
		{"2c 3a 4b", Lossy, false, false, false, false},
		{"2b 3b 4a", Ordered, true, true, true, true},
		{"2a 3b 4a", Handoff{New: cluster.NewBuffers}, true, true, true, true},
		{"2c 3b 4a", Handoff{Old: cluster.OldDrops, New: cluster.NewBuffers}, true, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := opensWith(t, nil, 3, Config{Path: "a/b", Instances: Exactly(1), Handoff: c.handoff})
			sent := o.moves(t, 6)
			o.b.same(t, sent)
			o.b.mu.Lock()
			defer o.b.mu.Unlock()
			t.Logf("sent %d, came back %d, out of order %d, instances at a time %d", sent, len(o.b.back), o.b.order, o.b.most)
			require.Greater(t, len(o.b.got), 0)
			if c.order {
				require.Zero(t, o.b.order)
			}
			if c.apart {
				require.Equal(t, 1, o.b.most)
			}
			require.LessOrEqual(t, o.b.most, 2)
			if c.nothing {
				require.Empty(t, o.b.back)
			}
			for _, err := range o.b.back {
				require.True(t, next(err), err)
			}
			if c.stateful {
				require.GreaterOrEqual(t, len(o.b.states), 6)
				require.IsNonDecreasing(t, o.b.states)
			}
			for i := range len(o.b.fences) - 1 {
				require.Negative(t, o.b.fences[i].Compare(o.b.fences[i+1]))
			}
		})
	}
}
