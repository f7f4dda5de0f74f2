// Stop orders behind what waits for a worker or a loop.

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// life notes what befalls an entity, under each fence.
type life struct {
	fence route.Fence
	log   map[route.Fence][]int
}

const itsStop = -1

func (l life) Receive(_ *entity.Context, b []byte) error {
	l.log[l.fence] = append(l.log[l.fence], int(b[0]))
	return nil
}

func (l life) Stop(*entity.Context) { l.log[l.fence] = append(l.log[l.fence], itsStop) }

// TestStopStandsBehindWhatWaits: messages that wait for the worker or the loop of a shard that moves are handled before
// the stop that was ordered behind them. Storms seldom get there: few of their messages wait for a worker
// when the last marker comes (SHD-9).
func TestStopStandsBehindWhatWaits(t *testing.T) {
	for mode, sender := range map[entity.Mode]int{entity.Worker: 1, entity.Inline: 0} {
		log := map[route.Fence][]int{}
		typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, Mode: mode,
			New: func(_ string, f route.Fence) entity.Handler { return life{f, log} }}}
		w := formed(t, 2, setup.Config{Data: setup.DataConfig{WorkDelay: time.Second}}, typ)
		owner := w.Hosts[0].Process
		from := w.Hosts[sender].Process.Region(route.TypeOf("t"))
		_, err := from.Send("x", []byte{0}, 0)
		require.NoError(t, err)
		w.Advance(5 * time.Second)
		first := owner.Region(route.TypeOf("t")).Slot(0).Fence()
		require.Equal(t, []int{0}, log[first], "the coordinator's node owns the shard")

		for i := byte(1); i <= 9; i++ {
			_, err = from.Send("x", []byte{i}, 0)
			require.NoError(t, err)
		}
		w.Leave(owner)
		require.True(t, w.Until(20*time.Second, func() bool { return !owner.Alive }))
		require.Positive(t, w.Plane.StopsBehind)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, itsStop}, log[first])
		require.Empty(t, broken(w))
	}
}
