// Tests of answers that are on their way while the node that gave them ends.

package world

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// What was asked of a member that went in order is waited for until that is forgotten: its answer may be on its way.
// What was asked of one that was downed fails with its removal (SHD-12, MEM-8).
func TestAnswersOfWhoLeftAreWaitedFor(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		typ := &EntityType{Type: entity.Type{Name: "any", Shards: 1, Mode: entity.Inline,
			New: func(string, route.Fence) entity.Handler {
				return handlerFunc(func(*entity.Context, []byte) error { return nil })
			}}}
		w := formed(t, 3, setup.Config{Resolver: ResolverOff}, typ)
		p, gone := w.Hosts[0].Process, w.Hosts[2].Process
		var err error
		a := p.asks.begin(p.wheelTick()+plane.WheelTicks(time.Hour), 1)
		a.r, a.to, a.over = p.Region(route.TypeOf("any")), gone.ID, p.clock()+time.Hour
		a.done = func(_ []byte, e error) { err = errors.Join(e, errors.New("it has ended")) }
		if leaves {
			gone.Do(node.LeaveCommand{})
		} else {
			gone.Die(true)
			require.NoError(t, p.Command(membership.DownCommand{ID: gone.ID}))
		}
		require.True(t, w.Until(time.Minute, func() bool {
			_, member := p.View.Member(gone.ID)
			return !member
		}))
		w.Advance(plane.ForgetAfter / 2)
		require.Equal(t, leaves, err == nil, err)
		w.Advance(plane.ForgetAfter)
		require.ErrorIs(t, err, route.ErrPeerLost)
	}
}
