// Credit that comes back on the data connection itself: what is written, what is taken, and the other way.

package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/wire"
)

// acceptData opens a data connection to the world's node; the hello is changed before.
func acceptData(t *testing.T, change func(*hello.Hello)) (*player, *memConn, *InConn) {
	p := &player{world: newWorld(t, nil)}
	h := hello.Hello{Versions: wire.Spoken(), Lane: wire.LaneData, Number: 3, Generation: 7,
		Window: worldWindow, Name: "test",
		From: memPeer(0), To: worldSelf.Addr, ToInc: worldSelf.Inc, ClusterID: 5, Birth: 6}
	change(&h)
	p.accept(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)), true)
	in := accepted(p.current.socket)
	require.NotNil(t, in, "accepted")
	p.current.listen()
	return p, p.current, in
}

// credits returns what the peer has heard since it was asked last.
func credits(t *testing.T, c *memConn) (heard []wire.Credit) {
	for rest := c.hear(); len(rest) > 0; {
		frame, n, err := wire.Split(rest, wire.LaneControl, hello.MaxAnswer)
		require.NoError(t, err)
		require.NotZero(t, n)
		require.Equal(t, wire.KindCredit, wire.ParseHeader(frame).Kind)
		credit, err := wire.ParseCredit(wire.Body(frame))
		require.NoError(t, err)
		heard, rest = append(heard, credit), rest[n:]
	}
	return heard
}

var hundred = wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x"), Payload: make([]byte, 100-wire.EnvelopeSize-1)})

// Credit of a quarter of the window is sent at the end of the pass in which it was consumed, what is less with the next
// sweep, and nothing twice (CARD-3).
func TestCreditComesBackOnTheConnection(t *testing.T) {
	p, c, in := acceptData(t, func(*hello.Hello) {})
	defer p.end()
	for range 12 {
		c.feed(hundred)
	}
	p.consume(10)
	p.settle()
	require.Empty(t, credits(t, c), "1,000 of 4,096 bytes")
	p.consume(1)
	p.settle()
	require.Equal(t, []wire.Credit{{Lane: 3, Generation: 7, Consumed: 1100}}, credits(t, c))
	p.consume(1)
	p.settle()
	require.Empty(t, credits(t, c))
	p.tr.sweep(&p.found, false)
	p.settle()
	require.Equal(t, []wire.Credit{{Lane: 3, Generation: 7, Consumed: 1200}}, credits(t, c))
	p.tr.sweep(&p.found, false)
	p.settle()
	require.Empty(t, credits(t, c))
	require.False(t, in.owed, "control has nothing to do with it")
}

// A peer that does not read what comes back gets it on the control connection, and holds nothing here.
func TestCreditOfAPeerThatReadsNothing(t *testing.T) {
	p, c, in := acceptData(t, func(*hello.Hello) {})
	defer p.end()
	c.stick()
	for range 3 {
		for range 12 {
			c.feed(hundred)
		}
		p.consume(12)
		p.settle()
	}
	require.True(t, in.owed)
	require.Len(t, in.sending, creditFrame, "written before it was known")
	var late []wire.Credit
	until(t, func() bool {
		late = append(late, credits(t, c)...)
		p.settle()
		return in.writer == nil
	})
	require.Len(t, append(late, credits(t, c)...), 1)
	c.feed(hundred)
	for range 11 {
		c.feed(hundred)
	}
	p.consume(12)
	p.settle()
	require.EqualValues(t, 4800, credits(t, c)[0].Consumed, "a running total: none is missing")
}

// Credit for what is only stored goes on the control connection.
func TestCreditForWhatIsStored(t *testing.T) {
	p, c, in := acceptData(t, func(*hello.Hello) {})
	defer p.end()
	for range 12 {
		c.feed(hundred)
	}
	in.Stored(1200)
	p.settle()
	require.Empty(t, credits(t, c))
	require.True(t, in.owed)
	require.Equal(t, wire.Credit{Lane: 3, Generation: 7, Consumed: 1200}, wire.Credit{Lane: in.number,
		Generation: in.generation, Consumed: in.told()})
}

// A peer of version 1 looks for its credit on the control connection alone.
func TestCreditForVersionOne(t *testing.T) {
	p, c, in := acceptData(t, func(h *hello.Hello) { h.Versions = hello.VersionOne })
	defer p.end()
	for range 12 {
		c.feed(hundred)
	}
	p.consume(12)
	p.settle()
	require.Empty(t, credits(t, c))
	require.True(t, in.owed)
}

// The sender takes credit in pieces of any size.
func TestCreditInPieces(t *testing.T) {
	for piece := 1; piece < 60; piece++ {
		p := &player{world: newWorld(t, nil)}
		p.program = program{[]byte{0, 1, 0, 0}}
		p.dial()
		link := p.tr.Link(memPeer(0))
		for range 3 {
			p.program = program{[]byte{0, 101}}
			p.send()
			p.settle()
		}
		sent := uint64(link.queue.Outstanding())
		require.NotZero(t, sent)
		var back []byte
		for _, consumed := range []uint64{sent / 3, sent} {
			back = wire.AppendFrame(back, wire.KindCredit, 0, 0,
				wire.AppendCredit(nil, wire.Credit{Generation: link.generation, Consumed: consumed}))
		}
		p.current.piece = piece
		p.current.feed(back)
		p.settle()
		require.Zero(t, link.queue.Outstanding(), "pieces of %d", piece)
		require.False(t, p.current.closed)
		p.end()
	}
}

// What is no credit of this connection closes it, counted, and changes nothing.
func TestWhatIsNoCredit(t *testing.T) {
	credit := func(c wire.Credit) []byte {
		return wire.AppendFrame(nil, wire.KindCredit, 0, 0, wire.AppendCredit(nil, c))
	}
	for name, bad := range map[string][]byte{
		"another kind":        wire.AppendFrame(nil, wire.KindHeartbeatAck, 0, 0, make([]byte, 24)),
		"an envelope":         hundred,
		"another connection":  credit(wire.Credit{Lane: 1, Generation: 1}),
		"a later generation":  credit(wire.Credit{Generation: 9}),
		"more than was sent":  credit(wire.Credit{Generation: 1, Consumed: 1 << 20}),
		"a body too short":    wire.AppendFrame(nil, wire.KindCredit, 0, 0, make([]byte, 3)),
		"a size out of range": {0xff, 0xff, 0xff, 0xff, byte(wire.KindCredit), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &player{world: newWorld(t, nil)}
			defer p.end()
			p.program = program{[]byte{0, 1, 0, 0}}
			p.dial()
			p.program = program{[]byte{0, 101}}
			p.send()
			p.settle()
			link := p.tr.Link(memPeer(0))
			require.EqualValues(t, 1, link.generation)
			before := link.queue.Outstanding()
			c := p.current
			c.feed(bad)
			require.True(t, c.broken, "closed and counted")
			require.EqualValues(t, before, link.queue.Stats().Lost)
		})
	}
	t.Run("to version 1 anything", func(t *testing.T) {
		p := &player{world: newWorld(t, nil)}
		defer p.end()
		p.program = program{[]byte{0, 1, 8, 0}} // an answer of version 1
		p.dial()
		p.current.feed(credit(wire.Credit{Generation: 1}))
		require.True(t, p.current.broken)
	})
}

// A reconnect forgets half a credit of the connection before.
func TestHalfACreditOfTheConnectionBefore(t *testing.T) {
	p := &player{world: newWorld(t, nil)}
	defer p.end()
	half := wire.AppendFrame(nil, wire.KindCredit, 0, 0, wire.AppendCredit(nil, wire.Credit{Generation: 1}))[:9]
	for generation := uint32(1); generation < 4; generation++ {
		p.program = program{[]byte{0, 1, 0, 0}}
		p.now.Add(int64(time.Minute))
		p.dial()
		require.Equal(t, generation, p.tr.Link(memPeer(0)).generation)
		p.current.feed(wire.AppendFrame(nil, wire.KindCredit, 0, 0,
			wire.AppendCredit(nil, wire.Credit{Generation: generation})))
		p.current.feed(half)
		require.False(t, p.current.closed)
		p.current.hangUp()
		p.settle()
	}
}
