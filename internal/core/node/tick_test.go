// Ticking: sharding's deadlines are handled under the members that the same step made.

package node

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// stored is a type that only members of one role may host.
var stored = shard.Settings{Name: "stored", Shards: 4, Role: "store"}

// joins has the nodes ask e to let them in, and returns their requests, which e has not seen.
func (w *wires) joins(e *end, nodes ...*end) (requests []peer.Mail) {
	w.nodes = append(w.nodes, nodes...)
	for _, o := range nodes {
		require.NoError(w.t, o.n.Do(w.now, membership.JoinCommand{Seeds: []peer.Addr{e.id.Addr}, WallMillis: 1}))
		w.drain(o)
	}
	w.run(10*time.Second, func() bool {
		for _, o := range nodes {
			of := func(m peer.Mail) bool { return m.Kind == wire.KindJoin && m.To == o.id }
			if i := slices.IndexFunc(e.queue, of); i >= 0 {
				requests = append(requests, e.queue[i])
				o.asleep = true
			}
			e.queue = slices.DeleteFunc(e.queue, of)
		}
		return len(requests) == len(nodes)
	})
	require.Len(w.t, requests, len(nodes))
	return requests
}

// TestWhoIsAdmittedInTheStepIsAskedFirst: if the takeover time of a coordinator ends in the very step that admits a
// member of its role, it waits for the report of that member too (MEM-10).
func TestWhoIsAdmittedInTheStepIsAskedFirst(t *testing.T) {
	const takeover = 20 * time.Second
	w := &wires{t: t, now: time.Second}
	in := func(host string, seed uint64, roles ...string) *end {
		cfg := Config{Self: id(host), Seed: seed, Membership: membership.Config{Roles: roles},
			Shard: shard.Config{TakeoverTime: takeover}}
		return &end{id: cfg.Self, n: New(cfg)}
	}
	a, b := in("10.0.0.1", 1, "store"), in("10.0.0.2", 2, "store")
	w.nodes = []*end{a, b}
	for _, e := range w.nodes {
		require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
		w.drain(e)
	}
	w.run(20*time.Second, func() bool { return up(a.view, 2) && up(b.view, 2) })
	for _, e := range w.nodes {
		require.NoError(t, e.n.Do(w.now, shard.RegisterCommand{Settings: stored}))
		w.drain(e)
	}
	w.run(2*time.Second, func() bool { return false })

	a.asleep = true
	lost := w.now
	require.NoError(t, b.n.Do(w.now, membership.DownCommand{ID: a.id}))
	w.drain(b)
	w.run(takeover-2*time.Second, func() bool { return false })
	require.True(t, up(b.view, 1), "the lost one is removed")
	requests := w.joins(b, in("10.0.0.3", 3), in("10.0.0.4", 4, "store"))
	require.Less(t, w.now, lost+takeover)

	// The first one is admitted at once; the second waits for the next moment of admission, which is slept through.
	for _, r := range requests {
		require.NoError(t, b.n.Handle(w.now, w.now, r.To, r.Kind, r.Body))
		w.drain(b)
	}
	require.Len(t, b.view.Members, 2)
	w.now = lost + takeover + time.Second
	b.n.Tick(w.now)
	var out Effects
	b.n.Drain(&out)
	require.NotNil(t, out.View)
	require.Len(t, out.View.Members, 3, "the second is admitted in this step")
	for _, e := range out.ShardEvents {
		require.NotEqual(t, shard.CoordinatorReady, e.Kind, "without its report")
	}
	s, ok := b.n.shards.Stats(stored.ID())
	require.True(t, ok)
	require.NotNil(t, s.Leading)
	require.False(t, s.Leading.Ready)
	require.Equal(t, peer.SetOf(id("10.0.0.3"), id("10.0.0.4")), s.Leading.Missing,
		"the takeover time is over, only the reports are missing")
}
