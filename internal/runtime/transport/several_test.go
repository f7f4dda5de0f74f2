// Tests of several data connections per peer: order on each, credit and failure of each for itself, and their loops.

package transport

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Two nodes that differ in loops and in connections: each dials its own number, frames of one link keep their order
// over many windows, and both directions of a number share a loop (SHD-9).
func TestSeveralDataConnections(t *testing.T) {
	const conns, each = 4, 3000
	a, b := newRider(), newRider()
	var got [conns]atomic.Uint32
	b.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func(f []byte) {
			var e wire.Envelope
			if wire.ParseEnvelope(f, &e) != nil || int(e.Type) != c.Number() || e.Shard != got[e.Type].Load() {
				t.Errorf("frame %d of link %d on connection %d", e.Shard, e.Type, c.Number())
			}
			got[e.Type].Add(1)
		})
		back := c.Link()
		if back.Loop() != c.Loop() {
			t.Errorf("answers to connection %d leave on another loop", c.Number())
		}
		c.Consumed(len(fs))
	}
	ta := start(t, a, func(c *Config) { c.DataConnections, c.DataLoops, c.Window = conns, 2, 32<<10 })
	tb := start(t, b, func(c *Config) { c.DataConnections, c.DataLoops = 3, 3 })
	links := ta.Links(tb.Self())
	require.Len(t, links, conns)
	require.Same(t, links[0], ta.Link(tb.Self()))
	require.Len(t, tb.Links(ta.Self()), 3)
	for i, l := range links {
		require.Equal(t, i, l.Number())
		require.Same(t, ta.Loops()[i%2], l.Loop(), "as many connections as loops: each loop has its own")
	}
	for i := range uint32(each) {
		for n, l := range links {
			require.NoError(t, send(t, l, uint32(n), i, 64, make(chan struct{})))
		}
	}
	for n := range got {
		until(t, func() bool { return got[n].Load() == each })
	}
	require.EqualValues(t, conns, tb.Stats().Data.In)
	require.EqualValues(t, conns, ta.Stats().Data.Out)
	numbers := map[int]bool{}
	for range conns {
		numbers[want(t, a.ups).number] = true
	}
	require.Len(t, numbers, conns)
}

// A link to a receiver that consumes nothing is full for itself: the others of the same peer go on. One connection that
// breaks is reported with its number, and the others stand.
func TestConnectionsFailForThemselves(t *testing.T) {
	a, b := newRider(), newRider()
	held := make(chan *InConn, 1)
	var owed, through atomic.Int64
	b.onData = func(c *InConn, fs []byte) {
		if c.Number() == 1 {
			owed.Add(int64(len(fs)))
			select {
			case held <- c:
			default:
			}
			return
		}
		eachFrame(fs, func([]byte) { through.Add(1) })
		c.Consumed(len(fs))
	}
	many := func(c *Config) { c.DataConnections, c.Window, c.LinkBuffer, c.MaxFrame = 3, 64<<10, 64<<10, 8<<10 }
	ta, tb := start(t, a, many), start(t, b, many)
	links := ta.Links(tb.Self())
	until(t, func() bool {
		full := owed.Load() >= 64<<10 // the window is used up, so what is full now stays so
		err := send(t, links[1], 0, 0, 1000, nil)
		if err != nil {
			require.ErrorIs(t, err, route.ErrLinkFull)
		}
		return err != nil && full
	})
	for i := range uint32(500) {
		require.NoError(t, send(t, links[0], 0, i, 1000, make(chan struct{})))
		require.NoError(t, send(t, links[2], 0, i, 1000, make(chan struct{})))
	}
	until(t, func() bool { return through.Load() == 1000 })
	require.Error(t, send(t, links[1], 0, 0, 1000, nil))
	c := want(t, held)
	c.loop.Post(c)
	d := want(t, a.downs)
	require.Equal(t, 1, d.number)
	require.Equal(t, wire.LaneData, d.lane)
	require.GreaterOrEqual(t, d.lost, uint64(64<<10))
	require.NoError(t, send(t, links[0], 0, 0, 1000, nil))
	until(t, func() bool { return through.Load() == 1001 && ta.Stats().Data.Out == 3 })
	require.Empty(t, a.downs)
	ta.Forget(tb.Self())
	for range 3 {
		want(t, a.downs)
	}
	for _, l := range links {
		require.ErrorIs(t, send(t, l, 0, 0, 1000, nil), ErrForgotten)
		require.ErrorIs(t, l.Err(), ErrForgotten)
	}
	for _, l := range ta.Links(tb.Self()) {
		require.ErrorIs(t, l.Err(), ErrForgotten, "and so are new ones")
	}
}

// The acceptor bounds how many connections a peer may have.
func TestTooManyDataConnections(t *testing.T) {
	tb := start(t, newRider(), nil)
	answer := func(number uint16) (wire.Kind, []byte) {
		nc, err := net.Dial("tcp", tb.Addr().String())
		require.NoError(t, err)
		defer nc.Close()
		h := helloFrom(tb, peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 5}, wire.LaneData, 1)
		h.Number = number
		_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
		require.NoError(t, err)
		kind, body, err := readFrame(nc, hello.MaxAnswer)
		require.NoError(t, err)
		return kind, body
	}
	kind, _ := answer(MaxDataConnections - 1)
	require.Equal(t, wire.KindHelloAck, kind)
	kind, body := answer(MaxDataConnections)
	require.Equal(t, wire.KindHelloRefuse, kind)
	e, err := hello.ParseRefusal(body)
	require.NoError(t, err)
	require.Equal(t, "16", e.Ours)
	require.Equal(t, "below 16", e.Theirs)
	_, err = New(Config{Incarnation: 1, Name: "test", DataConnections: MaxDataConnections + 1}, newRider())
	require.ErrorContains(t, err, "DataConnections is 17, must be 1 to 16")
}

// Peers with fewer connections than this node has loops are spread over them.
func TestPeersAreSpreadOverLoops(t *testing.T) {
	ta := start(t, newRider(), func(c *Config) { c.DataLoops = 4; c.DataConnections = 2 })
	load := map[*loop.Loop]int{}
	for port := range uint16(6) {
		for _, l := range ta.Links(peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 5 + uint64(port)}) {
			load[l.Loop()]++
		}
	}
	for _, l := range ta.Loops() {
		require.Equal(t, 3, load[l])
	}
}
