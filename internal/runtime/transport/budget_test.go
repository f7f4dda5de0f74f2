// Tests of the memory of links: idle ones hold none, all together keep to one budget, and one that holds much does not
// starve one that needs little.

package transport

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/ringbuf"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// crowd is a listener that is any node that is meant: every connection is taken and read, or only taken.
func crowd(t *testing.T, read bool) peer.Addr {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := peer.MustAddr(ln.Addr().String())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conns []net.Conn
		defer func() {
			for _, nc := range conns {
				nc.Close()
			}
		}()
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			conns = append(conns, nc)
			_, body, err := readFrame(nc, hello.MaxFrame)
			if err != nil {
				continue
			}
			h, err := hello.Parse(body, wire.Spoken())
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = nc.Write(wire.AppendFrame(nil, wire.KindHelloAck, 0, 0,
				hello.AppendAck(nil, &hello.Ack{Version: wire.Version, From: peer.ID{Addr: addr, Inc: h.ToInc}}, h.Versions)))
			if read {
				_, _, _ = readFrame(nc, 1<<20) // one frame: more is not sent
			}
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	return addr
}

// A thousand links that have sent something and are idle hold no buffer, and neither does the node, a moment later
// (CARD-3).
func TestIdleLinksHoldNoBuffers(t *testing.T) {
	const links = 1000
	addr := crowd(t, true)
	ta := start(t, newRider(), func(c *Config) { c.CreditEvery = 10 * time.Millisecond })
	require.Zero(t, ta.Stats().BufferBytes)
	for i := range uint64(links) {
		require.NoError(t, send(t, ta.Link(peer.ID{Addr: addr, Inc: 1 + i}), 0, 0, 100, nil))
	}
	require.NotZero(t, ta.Stats().BufferBytes)
	until(t, func() bool { s := ta.Stats(); return s.Data.Out == links && s.Queued == 0 })
	until(t, func() bool { return ta.Stats().BufferBytes == 0 })
	until(t, func() bool {
		ta.buffers.mu.Lock()
		defer ta.buffers.mu.Unlock()
		return ta.buffers.classes.Kept() == 0
	})
	for i := range uint64(links) {
		l := ta.Link(peer.ID{Addr: addr, Inc: 1 + i})
		l.Lock()
		require.Zero(t, l.queue.Held())
		l.Unlock()
	}
}

// Peers that take nothing use up what the budget gives to large buffers, and no more. Each of them then gets an error
// that names the budget and the peer, the refusals are counted, and a peer that is well goes on. When they are gone,
// their memory is back (CARD-3).
func TestBudgetOfAllLinks(t *testing.T) {
	const budget, slow = 8 << 20, 40
	addr := crowd(t, false)
	a, b := newRider(), newRider()
	got := make(chan int, 1<<16)
	b.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func(f []byte) { got <- len(f) })
		c.Consumed(len(fs))
	}
	narrow := func(c *Config) { c.LinkBuffer, c.LinkBudget, c.MaxFrame, c.Window = 512<<10, budget, 64<<10, 64<<10 }
	ta, tb := start(t, a, narrow), start(t, b, narrow)
	var poor *BudgetError
	var ids []peer.ID
	for i := range uint64(slow) {
		id := peer.ID{Addr: addr, Inc: 1 + i}
		ids = append(ids, id)
		var err error
		l := ta.Link(id)
		until(t, func() bool {
			l.Lock()
			stuck := l.queue.Connected() && l.queue.Credit() <= 0 // what is refused now stays so
			l.Unlock()
			for err = send(t, l, 0, 0, 1000, nil); err == nil; {
				err = send(t, l, 0, 0, 1000, nil)
			}
			return stuck
		})
		require.ErrorIs(t, err, route.ErrLinkFull)
		require.LessOrEqual(t, ta.Stats().BufferBytes, uint64(budget))
		require.ErrorContains(t, err, id.String())
	}
	err := send(t, ta.Link(ids[slow-1]), 0, 0, 1000, nil)
	require.ErrorAs(t, err, &poor)
	require.Equal(t, ids[slow-1], poor.Peer)
	require.Equal(t, budget, poor.Limit)
	require.ErrorContains(t, err, "budget of 8388608 bytes")
	require.NotZero(t, ta.Stats().BuffersFull)
	well := ta.Link(tb.Self())
	for i := range uint32(5000) {
		require.NoError(t, send(t, well, 0, i, 1000, make(chan struct{})))
	}
	for range 5000 {
		want(t, got)
	}
	for len(a.rooms) > 0 {
		<-a.rooms
	}
	require.ErrorAs(t, send(t, ta.Link(ids[slow-1]), 0, 0, 1000, nil), &poor)
	for _, id := range ids[:slow-1] {
		ta.Forget(id)
	}
	for want(t, a.rooms) != ta.Link(ids[slow-1]) { // the link that was refused for the budget gets room
	}
	require.NoError(t, send(t, ta.Link(ids[slow-1]), 0, 0, 1000, nil))
	ta.Forget(ids[slow-1])
	until(t, func() bool { return ta.Stats().BufferBytes == 0 })
}

// A link in a hurry with batches that come and go keeps its buffers only while there is enough for all.
func TestTightBudgetTakesBackAtOnce(t *testing.T) {
	a, b := newRider(), newRider()
	ta := start(t, a, func(c *Config) { c.CreditEvery = patience })
	tb := start(t, b, nil)
	l := ta.Link(tb.Self())
	held := func() int {
		l.Lock()
		defer l.Unlock()
		if l.scheduled {
			return -1
		}
		return l.queue.Held()
	}
	require.NoError(t, send(t, l, 0, 0, 100, nil))
	until(t, func() bool { return held() >= ringbuf.DoubleClass })
	var hoard [][]byte
	for !ta.buffers.tight.Load() {
		hoard = append(hoard, ta.buffers.Get(ta.cfg.bounds(nil).Most()))
	}
	require.NoError(t, send(t, l, 0, 0, 100, nil))
	until(t, func() bool { return held() == 0 })
	for _, buf := range hoard {
		ta.buffers.Put(buf)
	}
}
