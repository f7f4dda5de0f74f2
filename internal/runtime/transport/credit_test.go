// Tests of credit and of peers that keep to the frames but not to the rules; and a storm over the whole API.

package transport

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/port"
	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// dialRaw opens an accepted connection of tr as the peer from.
func dialRaw(t *testing.T, tr *Transport, from peer.ID, lane wire.Lane, generation uint32) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", tr.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	h := helloFrom(tr, from, lane, generation)
	_, err = nc.Write(wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h)))
	require.NoError(t, err)
	kind, _, err := readFrame(nc, hello.MaxAnswer)
	require.NoError(t, err)
	require.Equal(t, wire.KindHelloAck, kind)
	return nc
}

// acceptRaw takes one connection of a transport that dials ln, as the peer self.
func acceptRaw(t *testing.T, ln net.Listener, self peer.ID) net.Conn {
	t.Helper()
	require.NoError(t, ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	nc, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	_, body, err := readFrame(nc, hello.MaxFrame)
	require.NoError(t, err)
	_, err = nc.Write(ackTo(t, body, self))
	require.NoError(t, err)
	return nc
}

// ackTo is the frame with which self takes a connection by a hello with that body.
func ackTo(t *testing.T, body []byte, self peer.ID) []byte {
	t.Helper()
	h, err := hello.Parse(body, wire.Spoken())
	require.NoError(t, err)
	a := hello.Ack{Version: min(h.Versions.Newest, wire.Version), From: self}
	return wire.AppendFrame(nil, wire.KindHelloAck, 0, 0, hello.AppendAck(nil, &a, h.Versions))
}

func readCredit(t *testing.T, nc net.Conn) wire.Credit {
	t.Helper()
	require.NoError(t, nc.SetReadDeadline(time.Now().Add(patience)))
	kind, body, err := readFrame(nc, wire.MaxControlFrame)
	require.NoError(t, err)
	require.Equal(t, wire.KindCredit, kind)
	c, err := wire.ParseCredit(body)
	require.NoError(t, err)
	return c
}

// Between nodes of version 1, credit that is owed outlives dials that fail, is sent even when it is less than a quarter
// window, and is repeated on a new control connection.
func TestOldCreditIsNeverLost(t *testing.T) {
	self := peer.ID{Addr: peer.MustAddr(port.Keep(t)), Inc: 9} // nobody listens at first
	b := newRider()
	tb := start(t, b, func(c *Config) { c.CreditEvery, c.versions = time.Millisecond, hello.VersionOne })
	data := dialRaw(t, tb, self, wire.LaneData, 7)
	frame := wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x"), Payload: make([]byte, 100)})
	_, _ = data.Write(frame) // far below a quarter of the window
	until(t, func() bool { return tb.Stats().DialsFailed >= 3 })

	ln, err := net.Listen("tcp", self.Addr.String())
	require.NoError(t, err)
	defer ln.Close()
	ctl := acceptRaw(t, ln, self)
	require.Equal(t, wire.Credit{Generation: 7, Consumed: uint64(len(frame))}, readCredit(t, ctl))
	for range 20 {
		_, _ = data.Write(frame)
	}
	for total := uint64(0); total != uint64(21*len(frame)); {
		total = readCredit(t, ctl).Consumed
	}
	ctl.Close()
	d := want(t, b.downs)
	require.Equal(t, wire.LaneControl, d.lane)
	require.NoError(t, tb.Send(peer.Mail{To: self, Kind: wire.KindStatus}))
	ctl = acceptRaw(t, ln, self)
	kind, _, err := readFrame(ctl, wire.MaxControlFrame)
	require.NoError(t, err)
	if kind == wire.KindStatus {
		require.EqualValues(t, 21*len(frame), readCredit(t, ctl).Consumed)
	} else {
		require.Equal(t, wire.KindCredit, kind)
	}
}

// A sender that ignores its credit is cut off, so that what is held for it stays bounded.
func TestWindowIsEnforced(t *testing.T) {
	b := newRider()
	var held atomic.Int64
	b.onData = func(_ *InConn, fs []byte) { held.Add(int64(len(fs))) }
	tb := start(t, b, func(c *Config) { c.MaxFrame = 4096 })
	nc := dialRaw(t, tb, peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 5}, wire.LaneData, 1) // window 4096
	frame := wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x"), Payload: make([]byte, 1000)})
	for err := error(nil); err == nil; {
		_, err = nc.Write(frame)
	}
	require.LessOrEqual(t, held.Load(), int64(4096+4096))
	require.EqualValues(t, 1, tb.Stats().FaultsFrames)
}

// Consuming more than was delivered is a fault of the rider and found at once.
func TestOverConsuming(t *testing.T) {
	b := newRider()
	conns := make(chan *InConn, 1)
	b.onData = func(c *InConn, fs []byte) { conns <- c }
	ta, tb := start(t, newRider(), nil), start(t, b, nil)
	require.NoError(t, send(t, ta.Link(tb.Self()), 0, 0, 10, nil))
	c := want(t, conns)
	require.Equal(t, ta.Self(), c.From())
	c.Consumed(43)
	require.Panics(t, func() { c.Consumed(1) })
	require.Same(t, tb.Link(ta.Self()), c.Link())
	id, birth := c.Cluster()
	require.Zero(t, id+birth)
}

// A peer that probes and never reads the answers is cut off instead of filling memory.
func TestUnreadAnswers(t *testing.T) {
	tb := start(t, newRider(), nil)
	nc := dialRaw(t, tb, peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: 5}, wire.LaneControl, 1)
	var probes []byte
	for range 1000 {
		probes = wire.AppendFrame(probes, wire.KindHeartbeat, 0, 0, make([]byte, 16))
	}
	for err := error(nil); err == nil; {
		_, err = nc.Write(probes)
	}
	until(t, func() bool { return tb.Stats().Control.In == 0 })
	require.EqualValues(t, 1, tb.Stats().FaultsFrames)
}

// A peer that does not read its control connection costs bounded memory, and mail goes on when it reads again.
func TestControlReaderStalls(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	self := peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 9}
	a := newRider()
	ta := start(t, a, func(c *Config) { c.ControlBuffer = 64 << 10 })
	m := peer.Mail{To: self, Kind: wire.KindGossip, Body: make([]byte, 16<<10)}
	require.NoError(t, ta.Send(m))
	nc := acceptRaw(t, ln, self)
	want(t, a.ups)
	sent := 1
	r, err := ta.remote(self)
	require.NoError(t, err)
	c := r.control()
	until(t, func() bool { // the socket takes no more, a writer is blocked with a batch, and the queue is full
		for ta.Send(m) == nil {
			sent++
		}
		if !isParked(t, &c.uplink) {
			return false
		}
		full := ta.Send(m) != nil
		if !full {
			sent++
		}
		return full
	})
	require.LessOrEqual(t, ta.Stats().Queued, uint64(64<<10))
	for range sent {
		_, body, err := readFrame(nc, wire.MaxControlFrame)
		require.NoError(t, err)
		require.Len(t, body, 16<<10)
	}
	require.NoError(t, ta.Send(m))
	_, _, err = readFrame(nc, wire.MaxControlFrame)
	require.NoError(t, err)
}

// Connections to contact points end when nobody has used them for long; others stay.
func TestIdleContactIsDropped(t *testing.T) {
	a, b := newRider(), newRider()
	ta, tb := start(t, a, nil), start(t, b, nil)
	contact := peer.ID{Addr: tb.Addr()}
	for _, to := range []peer.ID{contact, tb.Self()} {
		require.NoError(t, ta.Send(peer.Mail{To: to, Kind: wire.KindStatus}))
		want(t, b.mails)
		r, err := ta.remote(to)
		require.NoError(t, err)
		ta.dropIdle(r, r.control())
		require.Equal(t, 1, ta.Stats().Peers, "used a moment ago")
		until(t, func() bool { // its last write may still be under way
			r.control().mu.Lock()
			defer r.control().mu.Unlock()
			r.control().lastSend = time.Now().Add(-time.Hour)
			return !r.control().scheduled
		})
		ta.dropIdle(r, r.control())
	}
	until(t, func() bool { return tb.Stats().Control.In == 1 })
	require.Equal(t, 1, ta.Stats().Peers)
	require.Empty(t, a.downs)
	require.NoError(t, ta.Send(peer.Mail{To: contact, Kind: wire.KindStatus, Body: []byte("again")}))
	require.Equal(t, "again", want(t, b.mails).body)
}

// Everything at once: senders, cut connections, forgotten peers, changes of the cluster, statistics, and a close in the
// middle. Frames keep their order per connection; nothing hangs, nothing leaks (the package checks for goroutines).
func TestStorm(t *testing.T) {
	const nodes = 3
	var trs [nodes]*Transport
	var runtimes [nodes]*rider
	var frames atomic.Int64
	for i := range nodes {
		r := newRider()
		r.onData = func(c *InConn, fs []byte) {
			eachFrame(fs, func(f []byte) { frames.Add(1) })
			if binary.LittleEndian.Uint32(fs[12:])%97 == 0 {
				c.loop.Post(c)
			}
			c.Consumed(len(fs))
		}
		runtimes[i] = r
		trs[i] = start(t, r, func(c *Config) { c.Window, c.DataLoops, c.CreditEvery = 32<<10, 2, time.Millisecond })
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range nodes {
		for range 3 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				for seq := uint32(0); ; seq++ {
					select {
					case <-stop:
						return
					default:
					}
					to := trs[rng.IntN(nodes)]
					switch rng.IntN(50) {
					case 0:
						_ = trs[i].Send(peer.Mail{To: to.Self(), Kind: wire.KindStatus, Body: []byte("s")})
					case 1:
						_ = trs[i].Send(peer.Mail{To: peer.ID{Addr: to.Addr()}, Kind: wire.KindJoinProbe})
					case 2:
						trs[i].SetCluster(1, 1)
					case 3:
						_ = trs[i].Stats()
					default:
						_ = send(t, trs[i].Link(to.Self()), 0, seq, rng.IntN(300), nil)
					}
				}
			})
		}
	}
	until(t, func() bool { return frames.Load() > 5_000 })
	trs[0].Forget(trs[1].Self())
	trs[1].Close()
	at := frames.Load()
	until(t, func() bool { return frames.Load() > at+2_000 })
	trs[2].Close()
	close(stop)
	wg.Wait()
	require.NotZero(t, trs[0].Stats().Data.Batches)
}
