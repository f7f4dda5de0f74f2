// Tests of a socket that takes no more: order across the blocked writer, resuming, closing and losing the connection
// with full buffers, and what beside it must not feel it. "Order per sender across the slow path, resume after a stall,
// close during a flush, connection loss with a full buffer, credit lost with a control connection each have tests, in
// the simulator and on sockets": here are those on sockets, in sim/links_test.go the others.

package transport

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// stalled is a sender to a raw socket of the test: that takes what the kernel takes, and reads on demand.
type stalled struct {
	tr   *Transport
	r    *rider
	ln   net.Listener
	self peer.ID // of the peer
	link *Link
	nc   net.Conn
}

// stall starts one. Credit is never what the sender waits for.
func stall(t *testing.T, buffer int) *stalled {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	s := &stalled{r: newRider(), ln: ln, self: peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 9}}
	s.tr = start(t, s.r, func(c *Config) { c.Window, c.LinkBuffer, c.MaxFrame = 1<<30, buffer, 64<<10 })
	s.link = s.tr.Link(s.self)
	require.NoError(t, send(t, s.link, 0, 0, 1000, nil))
	s.accept(t)
	return s
}

// accept takes the sender's next data connection.
func (s *stalled) accept(t *testing.T) {
	s.nc = acceptRaw(t, s.ln, s.self)
	require.NoError(t, s.nc.SetDeadline(time.Now().Add(patience)))
}

// fill sends frames numbered from seq until the socket is full, a writer is blocked, and the link refuses more. It
// returns the number after the last one taken.
func (s *stalled) fill(t *testing.T, seq uint32) uint32 {
	until(t, func() bool {
		for send(t, s.link, 0, seq, 1000, nil) == nil {
			seq++
		}
		if !isParked(t, &s.link.uplink) {
			return false
		}
		err := send(t, s.link, 0, seq, 1000, nil)
		if err == nil {
			seq++
			return false
		}
		require.ErrorIs(t, err, route.ErrLinkFull)
		require.ErrorContains(t, err, s.self.String())
		return true
	})
	return seq
}

// read reads the next frame and returns its number.
func (s *stalled) read(t *testing.T) uint32 {
	_, body, err := readFrame(s.nc, 64<<10)
	require.NoError(t, err)
	var e wire.Envelope
	require.NoError(t, wire.ParseEnvelope(wire.AppendFrame(nil, wire.KindEnvelope, 0, 1, body), &e))
	return e.Shard
}

// A full socket parks one writer and bounds what is held; when the peer reads again everything comes, in order, and the
// link goes on, again and again. Idle, no writer is left (SHD-9).
func TestResumeAfterAStall(t *testing.T) {
	const buffer = 256 << 10
	s := stall(t, buffer)
	next, got := uint32(1), uint32(0)
	for round := range 3 {
		next = s.fill(t, next)
		require.LessOrEqual(t, s.tr.Stats().Queued, uint64(buffer))
		for ; got < next; got++ {
			require.Equal(t, got, s.read(t))
		}
		until(t, func() bool { return !isParked(t, &s.link.uplink) })
		require.GreaterOrEqual(t, s.tr.Stats().Data.Stalls, uint64(round+1))
	}
	require.NoError(t, send(t, s.link, 0, next, 1000, nil))
	require.Equal(t, next, s.read(t))
}

// Many senders against a peer that reads in fits and starts: the blocked writer and the loop take turns, and each
// sender's frames come in order, all of them (SHD-9).
func TestOrderAcrossTheBlockedWriter(t *testing.T) {
	const senders, each = 8, 4000
	s := stall(t, 128<<10)
	require.Zero(t, s.read(t))
	var wg sync.WaitGroup
	for from := range uint32(senders) {
		wg.Go(func() {
			for i := range uint32(each) {
				if err := send(t, s.link, from, i, 1000, s.tr.ctx.Done()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var next [senders]uint32
	for i := range senders * each {
		if i%2000 == 0 { // a pause long enough for the socket to fill
			until(t, func() bool { return isParked(t, &s.link.uplink) || next[0] > each/2 })
		}
		_, body, err := readFrame(s.nc, 64<<10)
		require.NoError(t, err)
		var e wire.Envelope
		require.NoError(t, wire.ParseEnvelope(wire.AppendFrame(nil, wire.KindEnvelope, 0, 1, body), &e))
		require.Equal(t, next[e.Type], e.Shard)
		next[e.Type]++
	}
	wg.Wait()
	require.NotZero(t, s.tr.Stats().Data.Stalls)
}

// The connection breaks while a writer is blocked and the link is full: what was sent is reported lost, what waited
// goes first on the next connection, whole and in order (SHD-9).
func TestConnectionLostWithAFullBuffer(t *testing.T) {
	s := stall(t, 256<<10)
	next := s.fill(t, 1)
	s.nc.Close()
	d := want(t, s.r.downs)
	require.Equal(t, s.self, d.id)
	size := uint64(wire.SizeEnvelope(1, 1000))
	require.NotZero(t, d.lost)
	require.Zero(t, d.lost%size, "whole frames")
	s.accept(t)
	for got := uint32(d.lost / size); got < next; got++ {
		require.Equal(t, got, s.read(t))
	}
	require.NoError(t, send(t, s.link, 0, next, 1000, nil))
	require.Equal(t, next, s.read(t))
}

// Forgetting a peer with a full socket ends the writer; what was never sent is reported whole and in order, what was
// sent is counted: nothing is left out.
func TestForgetWhileParked(t *testing.T) {
	s := stall(t, 256<<10)
	next := s.fill(t, 1)
	s.tr.Forget(s.self)
	u, d := want(t, s.r.unsent), want(t, s.r.downs)
	require.ErrorIs(t, u.err, ErrForgotten)
	size := uint64(wire.SizeEnvelope(1, 1000))
	seq := uint32(d.lost / size)
	eachFrame(u.frames, func(f []byte) {
		var e wire.Envelope
		require.NoError(t, wire.ParseEnvelope(f, &e))
		require.Equal(t, seq, e.Shard)
		seq++
	})
	require.Equal(t, next, seq)
	require.ErrorIs(t, send(t, s.link, 0, 0, 1000, nil), ErrForgotten)
	n, err := io.Copy(io.Discard, s.nc) // to the end of the connection
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, uint64(n), d.lost, "the writer has let go of its batch")
}

// Credit that comes while a writer is blocked waits for it: nothing overtakes the rest of the batch.
func TestCreditWhileParked(t *testing.T) {
	const window, frame = 8 << 20, 33 + 1000
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	s := &stalled{r: newRider(), ln: ln, self: peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: 9}}
	s.tr = start(t, s.r, func(c *Config) { c.Window, c.LinkBuffer = window, 2*window })
	s.link = s.tr.Link(s.self)
	seq := uint32(0)
	for ; seq < window*3/2/frame; seq++ { // before there is a connection, so that one batch is the whole window
		require.NoError(t, send(t, s.link, 0, seq, 1000, nil))
	}
	s.accept(t)
	until(t, func() bool { return isParked(t, &s.link.uplink) })
	s.link.Lock()
	generation, credit := s.link.queue.Generation(), s.link.queue.Credit()
	s.link.Unlock()
	require.LessOrEqual(t, credit, 0)
	ctl := dialRaw(t, s.tr, s.self, wire.LaneControl, 1)
	_, err = ctl.Write(wire.AppendFrame(nil, wire.KindCredit, 0, 0,
		wire.AppendCredit(nil, wire.Credit{Generation: generation, Consumed: window})))
	require.NoError(t, err)
	until(t, func() bool {
		s.link.Lock()
		defer s.link.Unlock()
		return s.link.queue.Credit() > 0
	})
	require.True(t, isParked(t, &s.link.uplink)) // asked on the loop, behind the flush that the credit has asked for
	require.EqualValues(t, 1, s.tr.Stats().Data.Stalls, "nothing was written beside the blocked writer")
	for got := range seq {
		require.Equal(t, got, s.read(t))
	}
}

// Close in the middle of a flush: a peer that does not read costs no more than CloseTimeout and what was held is
// reported; a peer that reads gets everything.
func TestCloseDuringAFlush(t *testing.T) {
	t.Run("the peer does not read", func(t *testing.T) {
		s := stall(t, 256<<10)
		next := s.fill(t, 1)
		s.tr.Close()
		u, d := want(t, s.r.unsent), want(t, s.r.downs)
		require.ErrorIs(t, u.err, ErrClosed)
		size := uint64(wire.SizeEnvelope(1, 1000))
		require.EqualValues(t, next, d.lost/size+uint64(len(u.frames))/size)
	})
	t.Run("the peer reads", func(t *testing.T) {
		s := stall(t, 256<<10)
		s.tr.cfg.CloseTimeout = patience // read by nobody before Close
		next := s.fill(t, 1)
		closed := make(chan struct{})
		go func() {
			s.tr.Close()
			close(closed)
		}()
		for got := uint32(0); got < next; got++ {
			require.Equal(t, got, s.read(t))
		}
		s.nc.Close()
		want(t, closed)
		require.Empty(t, s.r.unsent)
	})
}

// A receiver with a data loop that hangs in a handler: the sender's socket fills, and yet every heartbeat and all mail
// come through, and another peer does not feel it at all (FD-1).
func TestHeartbeatsBesideAStalledReceiver(t *testing.T) {
	const beats = 200
	a, b, c := newRider(), newRider(), newRider()
	hang := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hang) }) }
	b.onData = func(in *InConn, fs []byte) {
		<-hang
		in.Consumed(len(fs))
	}
	var arrived atomic.Int64
	c.onData = func(in *InConn, fs []byte) {
		eachFrame(fs, func([]byte) { arrived.Add(1) })
		in.Consumed(len(fs))
	}
	wide := func(c *Config) { c.Window, c.LinkBuffer, c.MaxFrame = 1<<30, 256<<10, 64<<10 }
	ta, tb, tc := start(t, a, wide), start(t, b, wide), start(t, c, wide)
	t.Cleanup(release)
	slow, quick := ta.Link(tb.Self()), ta.Link(tc.Self())
	until(t, func() bool {
		for send(t, slow, 0, 0, 1000, nil) == nil {
		}
		return isParked(t, &slow.uplink) && send(t, slow, 0, 0, 1000, nil) != nil
	})
	for seq := range uint64(beats) {
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindHeartbeat,
			Body: wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: seq})}))
		require.NoError(t, ta.Send(peer.Mail{To: tb.Self(), Kind: wire.KindGossip, Body: make([]byte, 2000)}))
		ack, err := wire.ParseHeartbeatAck([]byte(wantMail(t, a, wire.KindHeartbeatAck).body))
		require.NoError(t, err)
		require.Equal(t, seq, ack.Seq)
		wantMail(t, b, wire.KindGossip)
		require.NoError(t, send(t, quick, 0, uint32(seq), 1000, nil), "another peer's link has room")
	}
	until(t, func() bool { return arrived.Load() == beats })
	require.True(t, isParked(t, &slow.uplink))
	release()
	until(t, func() bool { return !isParked(t, &slow.uplink) })
}

// Control connections that break again and again while data flows lose nothing of the credit: between nodes of version
// 1, what is in flight on them is repeated; since then it does not travel there. The sender never runs dry for good.
func TestCreditOverBrokenControlConnections(t *testing.T) {
	t.Run("version 1", func(t *testing.T) { creditWhileControlBreaks(t, hello.VersionOne) })
	t.Run("now", func(t *testing.T) { creditWhileControlBreaks(t, wire.Spoken()) })
}

func creditWhileControlBreaks(t *testing.T, versions wire.Versions) {
	const frames, kills = 20_000, 20
	a, b := newRider(), newRider()
	var got atomic.Int64
	b.onData = func(c *InConn, fs []byte) {
		eachFrame(fs, func([]byte) { got.Add(1) })
		c.Consumed(len(fs))
	}
	small := func(c *Config) { c.Window, c.LinkBuffer, c.MaxFrame, c.versions = 16<<10, 64<<10, 8<<10, versions }
	ta, tb := start(t, a, small), start(t, b, small)
	link := ta.Link(tb.Self())
	killed := 0
	for i := range uint32(frames) {
		require.NoError(t, send(t, link, 0, i, 100, make(chan struct{})))
		if i%(frames/kills) != 0 {
			continue
		}
		require.NoError(t, tb.Send(peer.Mail{To: ta.Self(), Kind: wire.KindStatus}))
		for _, c := range ta.inFrom(nil, tb.Self(), wire.LaneControl) {
			c.loop.Post(c) // closes the control connection
			killed++
		}
	}
	until(t, func() bool { return got.Load() == frames })
	require.NotZero(t, killed)
}
