// Tests of the statistics of peers: what a link says of itself while it is full, stalled, broken and dropped.

package transport

import (
	"io"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// linkTo returns what tr says of its data connection to a peer.
func linkTo(t *testing.T, tr *Transport, id peer.ID) stats.Link {
	t.Helper()
	for _, p := range tr.Stats().Links {
		if p.Peer == id {
			require.NotEmpty(t, p.Data)
			return p.Data[0]
		}
	}
	require.FailNow(t, "no such peer")
	return stats.Link{}
}

// A link to a peer that consumes nothing says how much waits, how much is in flight, and that it is full and stalled;
// when the peer goes on, that is over and the times stand (CARD-3).
func TestLinkStats(t *testing.T) {
	const window, buffer, frame = 64 << 10, 64 << 10, 1024
	sizes := func(c *Config) {
		c.Window, c.LinkBuffer, c.MaxFrame, c.CreditEvery = window, buffer, 4096, time.Millisecond
	}
	var held atomic.Bool
	held.Store(true)
	type piece struct {
		c *InConn
		n int
	}
	pieces := make(chan piece, 4096)
	b := newRider()
	b.onData = func(c *InConn, fs []byte) {
		if held.Load() {
			pieces <- piece{c, len(fs)}
			return
		}
		c.Consumed(len(fs))
	}
	tb, ta := start(t, b, sizes), start(t, newRider(), sizes)
	l := ta.Link(tb.Self())
	sent := 0
	full := func() bool {
		for send(t, l, 1, 1, frame, nil) == nil {
			sent++
		}
		s := linkTo(t, ta, tb.Self())
		return s.Stalled.Now && s.Queued > buffer-2*frame && s.Full.Now
	}
	until(t, full)
	s := linkTo(t, ta, tb.Self())
	require.True(t, s.Up)
	require.EqualValues(t, 1, s.Connects)
	require.EqualValues(t, sent*wire.SizeEnvelope(1, frame), s.Queued+int(s.InFlight),
		"what was taken waits or is in flight")
	require.GreaterOrEqual(t, s.InFlight, int64(window))
	require.LessOrEqual(t, s.InFlight, int64(window+2*frame))
	require.LessOrEqual(t, s.Held, 2*(buffer+64<<10))
	require.EqualValues(t, s.InFlight, s.Sent)
	require.EqualValues(t, 1, s.Stalled.Times)
	require.Positive(t, s.Stalled.Total)
	require.Positive(t, s.Refused)
	var counted uint64
	for _, n := range s.BatchSizes {
		counted += n
	}
	require.Equal(t, s.Batches, counted)
	require.Positive(t, s.Writes)
	until(t, func() bool { // all that is in flight has been read, and is not consumed
		in := tb.Stats().Links[0].In
		return len(in) == 1 && in[0].Open == uint64(s.InFlight) && in[0].Received == in[0].Open
	})

	held.Store(false)
	for len(pieces) > 0 {
		p := <-pieces
		p.c.Consumed(p.n)
	}
	until(t, func() bool {
		s = linkTo(t, ta, tb.Self())
		return s.Queued == 0 && s.InFlight == 0 && !s.Full.Now && !s.Stalled.Now
	})
	require.EqualValues(t, sent*wire.SizeEnvelope(1, frame), s.Sent)
	require.Positive(t, s.Full.Times)
	require.Positive(t, s.Full.Total)
	require.Zero(t, s.Lost+s.NeverSent)
	until(t, func() bool { return tb.Stats().Links[0].In[0].Open == 0 })
}

// Reconnects, what was lost with a connection, and what was never sent, by reason.
func TestLinkStatsOfBrokenLinks(t *testing.T) {
	a, b := newRider(), newRider()
	b.onData = func(*InConn, []byte) {} // consumes nothing
	tb, ta := start(t, b, nil), start(t, a, nil)
	l := ta.Link(tb.Self())
	require.NoError(t, send(t, l, 1, 1, 100, nil))
	size := uint64(wire.SizeEnvelope(1, 100))
	until(t, func() bool { return linkTo(t, ta, tb.Self()).InFlight == int64(size) })
	l.loop.Post(hangUp{&l.uplink})
	want(t, a.downs)
	require.NoError(t, send(t, l, 1, 2, 100, nil))
	until(t, func() bool { return linkTo(t, ta, tb.Self()).Connects == 2 })
	until(t, func() bool { return linkTo(t, ta, tb.Self()).Sent == 2*size })
	require.Equal(t, size, linkTo(t, ta, tb.Self()).Lost)
	until(t, func() bool { // the flush is over; what is queued from now on stays
		l.Lock()
		defer l.Unlock()
		over := !l.scheduled
		l.scheduled = true
		return over
	})
	require.NoError(t, send(t, l, 1, 3, 100, nil))
	ta.Forget(tb.Self())
	require.Len(t, want(t, a.unsent).frames, int(size))
	s := ta.Stats()
	require.Equal(t, map[string]uint64{"removed": size}, s.Dropped)
	require.Equal(t, size, s.DroppedBytes)
	require.Empty(t, s.Links, "a forgotten peer is gone")
	until(t, func() bool { return ta.Stats().LostBytes == 2*size }) // with either connection
}

// The round trip of heartbeat probes is measured by their own stamps.
func TestRoundTrip(t *testing.T) {
	a := newRider()
	ta := start(t, a, nil)
	tb := start(t, newRider(), nil)
	const probes = 3
	for i := range uint64(probes) {
		h := wire.Heartbeat{Seq: i + 1, Sent: uint64(ta.cfg.Now())}
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindHeartbeat, Body: wire.AppendHeartbeat(nil, h)}))
		wantMail(t, a, wire.KindHeartbeatAck)
	}
	s := ta.Stats().Links
	require.Len(t, s, 1)
	require.EqualValues(t, wire.Version, s[0].Version)
	r := s[0].Control.RoundTrip
	require.EqualValues(t, probes, r.Count)
	require.Positive(t, r.Min)
	require.LessOrEqual(t, r.Min, r.Mean)
	require.LessOrEqual(t, r.Mean, r.Max)
	require.LessOrEqual(t, r.Last, r.Max)
	require.True(t, s[0].Control.Up)
	require.EqualValues(t, 1, s[0].Control.Connects)
	require.Positive(t, s[0].Control.Writes)
}

// A stamp comes back from the peer: one that cannot be is not counted.
func TestRoundTripIsNotBelievedBlindly(t *testing.T) {
	const now = 2 * time.Hour
	for _, c := range []struct {
		sent  uint64
		count uint64
	}{
		{uint64(now), 1}, {uint64(now) + 1, 0}, {math.MaxUint64, 0}, {1 << 63, 0}, {0, 0}, {uint64(time.Hour), 1},
		{uint64(time.Hour) - 1, 0},
	} {
		var r trips
		r.add(c.sent, now)
		require.Equal(t, c.count, r.read().Count, "%d", c.sent)
	}
	require.Zero(t, (&trips{}).read().Mean)
}

// A socket that takes no more is distinguished from a peer that returns no credit.
func TestLinkStatsOfAFullSocket(t *testing.T) {
	s := stall(t, 64<<10)
	s.fill(t, 1)
	l := linkTo(t, s.tr, s.self)
	require.Equal(t, []any{true, uint64(1), true, uint64(0)},
		[]any{l.Parked.Now, l.Parked.Times, l.Full.Now, l.Stalled.Times})
	go func() { _, _ = io.Copy(io.Discard, s.nc) }()
	until(t, func() bool { l = linkTo(t, s.tr, s.self); return !l.Parked.Now && !l.Full.Now && l.Queued == 0 })
	require.Positive(t, l.Parked.Total)
	require.Greater(t, l.Writes, l.Parked.Times)
}
