// Tests of refusals between nodes: which sender is believed, and what becomes of them.

package driver

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// A node that leaves refuses what still comes to it, and is removed before that is reported: it is believed all the
// same, for a moment, while a stranger that was never sent anything is not (SHD-5).
func TestLeaversLastRefusalsAreBelieved(t *testing.T) {
	p := newPair(t)
	r, left := p.at[entity.Blocking], p.b.Self()
	go func() { _ = p.b.Leave(t.Context()) }()
	eventually(t, func() (removed bool) {
		onControl(p.a, func() {
			if removed = p.a.control.removed.Has(left); removed {
				late := time.Duration(math.MaxInt64) - plane.ForgetAfter // however long the test takes
				p.a.control.removed.Add(late, left, false)
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

// Connections are cut again and again while refusals are on their way: each refused message is reported to its sender,
// once (SHD-4).
func TestRefusalsSurviveCutConnections(t *testing.T) {
	t.Parallel()
	var cutters []*cutter
	p := newPair(t, func(cfg *Config) {
		cfg.Listen = port.Keep(t)
		cutters = append(cutters, newCutter(t, cfg.Listen))
		cfg.Advertise = cutters[len(cutters)-1].ln.Addr().String()
	})
	r := p.at[entity.Worker]
	_, err := r.AskWithin(patience, "a", []byte("x"), nil)
	require.NoError(t, err)
	from := p.b.peerNode(p.a.Self())
	const rounds, shards = 30, plane.MaxRefusals + 100
	for range rounds {
		for i := range shards {
			from.refuse(plane.RefusalKey{Type: r.id, Shard: route.ShardID(i), Reason: route.MailboxFull}, []byte("a"))
		}
		posted := p.b.Stats().Courier.Posted
		eventually(t, func() bool { return p.b.Stats().Courier.Posted > posted })
		for _, c := range cutters {
			c.cut()
		}
	}
	told := func() (n uint64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, u := range p.failed {
			n += u.Count
		}
		return n
	}
	eventually(t, func() bool { return told() >= rounds*shards })
	eventually(t, func() bool { return p.b.Stats().Courier.Outstanding == 0 })
	require.EqualValues(t, rounds*shards, told(), "each once")
	require.Zero(t, p.b.Stats().UnreportedRefusals)
}

// What cannot be reported because its sender is no member any more is counted where it was refused (SHD-4).
func TestUntoldRefusalsAreCounted(t *testing.T) {
	p := newPair(t)
	gone := p.b.peerNode(peer.ID{Addr: p.a.Self().Addr, Inc: p.a.Self().Inc + 1})
	gone.notices.Store(true)
	onControl(p.b, func() {
		p.b.peerTable.drop(gone.id)
		for i := range 2 * plane.MaxRefusals {
			gone.refuse(plane.RefusalKey{Shard: route.ShardID(i), Reason: route.MailboxFull}, []byte("a"))
		}
	})
	eventually(t, func() bool { return p.b.Stats().UnreportedRefusals == 2*plane.MaxRefusals })
}
