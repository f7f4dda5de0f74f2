// Tests of refusals between nodes: who is believed, and what becomes of them.

package driver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A node that leaves refuses what still comes to it, and is removed before that is told: it is believed all the same,
// for a moment, while a stranger, to whom nothing was ever sent, is not (SHD-5).
func TestLeaversLastRefusalsAreBelieved(t *testing.T) {
	p := newPair(t)
	r, left := p.at[entity.Blocking], p.b.Self()
	go func() { _ = p.b.Leave(t.Context()) }()
	eventually(t, func() (removed bool) {
		onControl(p.a, func() {
			if removed = p.a.control.removed.Has(left); removed {
				p.a.control.removed.Add(time.Duration(math.MaxInt64)-plane.ForgetAfter, left) // however long the test takes
			}
		})
		return removed
	})
	told := func(from peer.ID) (nonsense uint64) {
		before := p.a.nonsense.count.Load()
		key := plane.RefusalKey{Type: r.id, Reason: route.NotOwner}
		list := []*plane.Refusal{{RefusalKey: key, Count: 7, Samples: []string{"x"}}}
		onControl(p.a, func() {
			p.a.handle(&frame{from: from, kind: wire.KindRefusals, body: plane.AppendRefusals(nil, list, true)})
		})
		return p.a.nonsense.count.Load() - before
	}
	_, member := p.a.View().Member(left)
	require.False(t, member)
	require.EqualValues(t, 1, told(peer.ID{Addr: left.Addr, Inc: left.Inc + 1}))
	require.Zero(t, told(left))
	require.EqualValues(t, 7, r.count.refusedThere.Load())
}
