// Restarts: a successor at the port of another process, a process that is killed mid-stream, a connection that follows
// another.

package transport

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// A peer with a process that was replaced by another incarnation at the same port is another peer; the old link ends
// with a refusal, the new one works (MEM-1).
func TestRestartAtTheSamePort(t *testing.T) {
	a := newRider()
	ta := start(t, a, nil)
	var seen atomic.Int64
	got := make(chan struct{}, 100)
	count := func(c *InConn, fs []byte) { seen.Add(1); c.Consumed(len(fs)); got <- struct{}{} }
	b1 := newRider()
	b1.onData = count
	listen := port.Keep(t)
	tb := start(t, b1, func(c *Config) { c.Listen = listen })
	old := ta.Link(tb.Self())
	require.NoError(t, send(t, old, 0, 0, 8, nil))
	want(t, got)
	want(t, a.ups)
	tb.Close()
	d := want(t, a.downs)
	require.Equal(t, tb.Self(), d.id)

	b2 := newRider()
	b2.onData = count
	tb2 := start(t, b2, func(c *Config) { c.Listen = listen })
	require.Equal(t, tb.Addr(), tb2.Addr())
	require.NotEqual(t, tb.Self(), tb2.Self())
	require.NoError(t, send(t, old, 0, 1, 8, nil)) // queued, then dropped with the refusal
	refused := want(t, a.refused)
	require.Equal(t, hello.RefusedIncarnation, refused.Reason)
	require.Equal(t, strconv.FormatUint(tb.Self().Inc, 16), refused.Ours)
	require.Equal(t, "another", refused.Theirs, "a stranger learns no incarnation (SEC-3)")
	require.ErrorIs(t, send(t, old, 0, 2, 8, nil), refused)
	require.NoError(t, send(t, ta.Link(tb2.Self()), 0, 0, 8, nil))
	want(t, got)
	require.EqualValues(t, 2, seen.Load())
	ta.Forget(tb.Self())
	require.ErrorIs(t, send(t, old, 0, 3, 8, nil), ErrForgotten)
}

// Connections are killed again and again in mid-stream: what arrives is in order, what was lost is reported, and later
// frames arrive on the next connection.
func TestKilledMidStream(t *testing.T) {
	const frames, kills = 40_000, 6
	a, b := newRider(), newRider()
	size := uint64(wire.SizeEnvelope(1, 64))
	var received, next atomic.Uint64
	last := make(chan struct{})
	var in atomic.Pointer[InConn] // the newest one: all that was accepted may have come before the next kill
	b.onData = func(c *InConn, fs []byte) {
		in.Store(c)
		eachFrame(fs, func(f []byte) {
			var e wire.Envelope
			if wire.ParseEnvelope(f, &e) != nil || uint64(e.Shard) < next.Load() {
				t.Errorf("frame %d after %d", e.Shard, next.Load())
			}
			next.Store(uint64(e.Shard) + 1)
			received.Add(1)
			if e.Shard == frames-1 {
				close(last)
			}
		})
		c.Consumed(len(fs))
	}
	ta := start(t, a, func(c *Config) { c.Window = 64 << 10 })
	tb := start(t, b, func(c *Config) { c.Window = 64 << 10 })
	link := ta.Link(tb.Self())
	killed := 0
	for i := range uint32(frames) {
		if i%(frames/kills) == frames/kills/2 {
			until(t, func() bool { return in.Load() != nil && !in.Load().isGone() })
			c := in.Load()
			c.loop.Post(c) // closes the accepted side, with whatever is unread
			<-c.gone
			killed++
		}
		require.NoError(t, send(t, link, 0, i, 64, make(chan struct{})))
	}
	want(t, last)
	lost := uint64(0)
	for range killed {
		d := want(t, a.downs)
		require.Equal(t, tb.Self(), d.id)
		require.Equal(t, wire.LaneData, d.lane)
		lost += d.lost
	}
	require.Equal(t, kills, killed)
	missing := frames - received.Load()
	require.LessOrEqual(t, missing*size, lost, "every missing frame was reported lost")
	require.Equal(t, lost, ta.Stats().LostBytes)
}

// A successor is not read before its predecessor is gone, so that new bytes never overtake old ones.
func TestGenerationsDoNotOvertake(t *testing.T) {
	b := newRider()
	type seen struct {
		generation uint32
		frames     int
	}
	events := make(chan seen, 100)
	b.onData = func(c *InConn, fs []byte) {
		n := 0
		eachFrame(fs, func([]byte) { n++ })
		events <- seen{c.Generation(), n}
		c.Consumed(len(fs))
	}
	tb := start(t, b, nil)
	from := peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 77}
	dial := func(generation uint32) net.Conn {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		h := helloFrom(tb, from, wire.LaneData, generation)
		_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
		require.NoError(t, err)
		return nc
	}
	answer := func(nc net.Conn) wire.Kind {
		_ = nc.SetReadDeadline(time.Now().Add(patience))
		kind, _, err := readFrame(nc, hello.MaxAnswer)
		require.NoError(t, err)
		return kind
	}
	current := func() *InConn { // the newest
		conns := tb.inFrom(nil, from, wire.LaneData)
		require.Len(t, conns, 1)
		return conns[0]
	}
	frame := wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x")})
	one := dial(1)
	require.Equal(t, wire.KindHelloAck, answer(one))
	_, _ = one.Write(frame)
	require.Equal(t, seen{1, 1}, want(t, events))
	first := current()
	two := dial(2) // the first still stands: it gets its time to finish, and is read meanwhile
	_, _ = two.Write(append(frame, frame...))
	_, _ = one.Write(frame)
	require.Equal(t, seen{1, 1}, want(t, events))
	one.Close()
	require.Equal(t, wire.KindHelloAck, answer(two))
	require.True(t, first.isGone(), "the answer lets the second write: nothing of the first may come any more")
	require.Equal(t, 2, func() (n int) {
		for n < 2 {
			s := want(t, events)
			require.EqualValues(t, 2, s.generation)
			n += s.frames
		}
		return n
	}())
	require.Equal(t, wire.KindHelloRefuse, answer(dial(2)), "not the same generation twice")
	second := current()
	require.Equal(t, wire.KindHelloAck, answer(dial(3)), "the old one is closed when it does not finish")
	require.True(t, second.isGone(), "before the answer")
	until(t, func() bool { return tb.Stats().Data.In == 1 })
	require.EqualValues(t, 1, tb.Stats().Refused["stale"])
}
