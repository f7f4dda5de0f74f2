// Control messages between nodes: in segments between nodes that know them, bare to and from one that does not (FD-4).

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// homes has both nodes of a pair use a type, and waits until each knows a home of every shard.
func homes(w *wires) bool {
	known := [2]map[route.ShardID]bool{{}, {}}
	for i, e := range w.nodes {
		e.onRoute = func(r shard.RouteChange) { known[i][r.Shard] = r.State != shard.RouteUnknown }
		require.NoError(w.t, e.n.Do(w.now, shard.RegisterCommand{Settings: books}))
		require.NoError(w.t, e.n.Do(w.now, shard.WantCommand{Type: books.ID(), Shards: []route.ShardID{0, 1, 2, 3}}))
		w.drain(e)
	}
	all := func(m map[route.ShardID]bool) bool { return m[0] && m[1] && m[2] && m[3] }
	w.run(10*time.Second, func() bool { return all(known[0]) && all(known[1]) })
	return all(known[0]) && all(known[1])
}

// Whatever sharding says to another node is in segments; nothing of it goes bare.
func TestShardingSpeaksInSegments(t *testing.T) {
	a, b, w := pair(t)
	w.tap = func(m peer.Mail) bool {
		require.False(t, courier.Carries(m.Kind), "%s went bare", m.Kind)
		return true
	}
	require.True(t, homes(w))
	w.run(3*time.Second, func() bool { return a.Courier().Outstanding+b.Courier().Outstanding == 0 })
	require.Positive(t, a.Courier().Posted)
	require.Equal(t, a.Courier().Posted, b.Courier().Delivered)
	require.Equal(t, b.Courier().Posted, a.Courier().Delivered)
	// Converged, and with all homes found, nothing of it is sent any more.
	w.tap = func(m peer.Mail) bool {
		require.NotEqual(t, wire.OwnerCourier, m.Kind.Owner())
		return true
	}
	w.run(5*time.Second, func() bool { return false })
}

// A node of wire version 1 knows no segments: its transport's word is enough for the other one to speak bare, and what
// it says itself is taken (CARD-3).
func TestPeerOfVersionOne(t *testing.T) {
	_, b, w := pair(t)
	bare := 0
	w.tap = func(m peer.Mail) bool {
		if m.Kind.Owner() != wire.OwnerCourier {
			if courier.Carries(m.Kind) {
				bare++
			}
			return true
		}
		return false // no connection takes it
	}
	w.refused = func(e *end, to peer.ID) { require.NoError(t, e.n.Do(w.now, PlainCommand{ID: to})) }
	require.True(t, homes(w))
	require.Positive(t, bare)
	require.Zero(t, b.Courier().Delivered)
}

// A peer that has sent a segment and then speaks bare breaks the protocol.
func TestBareMessageBesideSegments(t *testing.T) {
	a, b, w := pair(t)
	require.True(t, homes(w))
	require.Positive(t, a.Courier().Delivered)
	require.ErrorIs(t, a.Handle(w.now, w.now, w.nodes[1].id, wire.KindDrainDone, nil), courier.ErrNonsense)
	require.False(t, b.Suspended())
}

// A message in a segment that is nonsense is refused by its machine, and does not come again.
func TestInvalidMessageInASegment(t *testing.T) {
	a, _, w := pair(t)
	require.True(t, homes(w))
	w.run(time.Second, func() bool { return false })
	to := w.nodes[0].id
	before := a.Courier().Delivered
	p := courier.Segment{From: w.nodes[1].id.Inc, To: to.Inc, Seq: before + 1, Kind: wire.KindDrainDone, Body: []byte{1}}
	body := courier.AppendSegment(nil, &p)
	var wrong *wire.Error
	require.ErrorAs(t, a.Handle(w.now, w.now, w.nodes[1].id, wire.KindSegment, body), &wrong)
	require.Equal(t, wire.KindDrainDone, wrong.Kind)
	require.NoError(t, a.Handle(w.now, w.now, w.nodes[1].id, wire.KindSegment, body))
	require.Equal(t, before+1, a.Courier().Delivered)
}

// The time after which a peer is given up is longer than the takeover time, whatever the size.
func TestGiveUpAfterTheTakeoverTime(t *testing.T) {
	for _, c := range []Config{{}, {Shard: shard.Config{TakeoverTime: 5 * time.Second}},
		{Resolver: Resolver{Strategy: ResolverOff}}} {
		for _, n := range []int{1, 5, 50, 10_000} {
			require.Equal(t, max(30*time.Second, c.Takeover(n)*3/2), c.GiveUpAfter(n))
		}
	}
}

// What the courier knows of members: which count, which are only waited for, which are lost, and which this node gave
// up.
func TestStandings(t *testing.T) {
	n := New(Config{Self: id("10.0.0.1"), Seed: 1})
	member := func(host string, s membership.Status, up uint32) membership.Member {
		return membership.Member{ID: id(host), Status: s, UpNumber: up}
	}
	v := &membership.View{Self: id("10.0.0.1"), Members: []membership.Member{
		member("10.0.0.1", membership.Up, 1), member("10.0.0.2", membership.Up, 2), member("10.0.0.3", membership.Joining, 0),
		member("10.0.0.4", membership.Down, 4), member("10.0.0.5", membership.Up, 5),
		member("10.0.0.6", membership.Leaving, 6),
		member("10.0.0.7", membership.Up, 7)},
		Unreachable: peer.SetOf(id("10.0.0.5"), id("10.0.0.6"), id("10.0.0.7")),
		Accusations: []membership.Accusation{{Observer: id("10.0.0.1"), Subject: id("10.0.0.5"), Quarantined: true},
			{Observer: id("10.0.0.1"), Subject: id("10.0.0.6")},
			{Observer: id("10.0.0.2"), Subject: id("10.0.0.7"), Quarantined: true}}}
	of := n.roster(v).Of
	for host, want := range map[string]courier.Standing{"10.0.0.2": courier.Present, "10.0.0.3": courier.Doubted,
		"10.0.0.4": courier.Lost, "10.0.0.5": courier.Condemned, "10.0.0.6": courier.Doubted, "10.0.0.7": courier.Doubted,
		"10.0.0.8": courier.Absent} {
		require.Equal(t, want, of.Of(id(host)), host)
	}
}
