// Tests of connections that are reset, in every state that they have, under load, plain and with TLS: a reset ends one
// connection, whatever the node is about to write on it, and nothing else.

package transport

import (
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// resets is a node under load with connections that a test resets. Its loops can be held in the middle of a pass, until
// the connection at hand is gone.
type resets struct {
	*testing.T
	*rider
	tr      *Transport
	creds   *tls.Config // nil: plain
	healthy peer.ID
	strange peer.ID // the peer that was played last
	holds   atomic.Bool
	held    chan struct{}
	goOn    chan struct{}
	bulk    *bulkRider
}

func (w *resets) Control(from peer.ID, kind wire.Kind, body []byte, at time.Duration) {
	w.rider.Control(from, kind, body, at)
	w.wait(from)
}

func (w *resets) take(c *InConn, frames []byte) {
	w.wait(c.From())
	c.Consumed(len(frames))
}

// wait holds the loop if the test wants it held for that peer.
func (w *resets) wait(from peer.ID) {
	if from != w.healthy && w.holds.Load() {
		w.held <- struct{}{}
		<-w.goOn
	}
}

// line is a connection that the test holds one end of.
type line struct {
	net.Conn
	sock *net.TCPConn
}

// reset ends it by a reset, at once, whatever is under way.
func (l line) reset(t *testing.T) {
	require.NoError(t, l.sock.SetLinger(0))
	require.NoError(t, l.sock.Close())
}

// connect opens a connection as a peer that nobody has seen yet; with TLS the handshake is through.
func (w *resets) connect() line {
	nextInc++
	w.strange = peer.ID{Addr: peer.MustAddr("127.0.0.9:9"), Inc: nextInc}
	nc, err := net.Dial("tcp", w.tr.Addr().String())
	require.NoError(w, err)
	w.Cleanup(func() { nc.Close() })
	return w.over(nc, tls.Client)
}

func (w *resets) over(nc net.Conn, side func(net.Conn, *tls.Config) *tls.Conn) line {
	l := line{nc, nc.(*net.TCPConn)}
	require.NoError(w, nc.SetDeadline(time.Now().Add(patience)))
	if w.creds != nil {
		s := side(nc, w.creds)
		require.NoError(w, s.Handshake())
		l.Conn = s
	}
	return l
}

func (w *resets) hello(lane wire.Lane) []byte {
	h := helloFrom(w.tr, w.strange, lane, 1)
	return wire.AppendFrame(nil, wire.KindHello, 0, 0, hello.Append(nil, &h))
}

// stands opens a connection and gets its hello through.
func (w *resets) stands(lane wire.Lane) line {
	l := w.connect()
	w.say(l, w.hello(lane))
	kind, _, err := readFrame(l, hello.MaxAnswer)
	require.NoError(w, err)
	require.Equal(w, wire.KindHelloAck, kind)
	return l
}

func (w *resets) say(l line, b []byte) {
	_, err := l.Write(b)
	require.NoError(w, err)
}

// holding says b and resets the connection while the loop is in the middle of taking it, before it answers.
func (w *resets) holding(l line, b []byte) {
	w.holds.Store(true)
	w.say(l, b)
	want(w, w.held)
	w.holds.Store(false)
	l.reset(w.T)
	w.goOn <- struct{}{}
}

// parked opens a connection with answers that a blocked writer has.
func (w *resets) parked() line {
	l := w.stands(wire.LaneControl)
	require.NoError(w, l.sock.SetReadBuffer(4096))
	asks := func(what func(c *InConn) bool) bool {
		answer := make(chan bool, 1)
		require.NoError(w, w.tr.ctl.Execute(taskFunc(func() {
			conns := w.tr.inFrom(nil, w.strange, wire.LaneControl)
			answer <- len(conns) > 0 && conns[0].c != nil && what(conns[0])
		})))
		return want(w, answer)
	}
	until(w, func() bool { return asks(func(c *InConn) bool { return c.c.SetWriteBuffer(4096) == nil }) })
	until(w, func() bool {
		w.say(l, probes(100))
		return asks(func(c *InConn) bool { return c.writer != nil })
	})
	return l
}

func probes(n int) (b []byte) {
	for range n {
		b = wire.AppendFrame(b, wire.KindHeartbeat, 0, 0, make([]byte, 16))
	}
	return b
}

// accepts takes a connection that the node dials because something is to be sent, and answers its hello.
func (w *resets) accepts(lane wire.Lane) line {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w, err)
	nextInc++
	w.strange = peer.ID{Addr: peer.MustAddr(ln.Addr().String()), Inc: nextInc}
	if lane == wire.LaneData {
		require.NoError(w, send(w, w.tr.Link(w.strange), 1, 1, 100, nil))
	} else {
		require.NoError(w, w.tr.Send(peer.Mail{To: w.strange, Kind: wire.KindGossip, Body: make([]byte, 100)}))
	}
	nc, err := ln.Accept()
	require.NoError(w, err)
	require.NoError(w, ln.Close())
	l := w.over(nc, tls.Server)
	_, body, err := readFrame(l, hello.MaxFrame)
	require.NoError(w, err)
	w.say(l, ackTo(w.T, body, w.strange))
	_, _, err = readFrame(l, wire.MaxFrameLimit)
	require.NoError(w, err)
	return l
}

var bigFrame = wire.AppendEnvelope(nil, &wire.Envelope{ID: []byte("x"), Payload: make([]byte, 2000)})

// moments are the states in which a connection is reset.
var moments = []struct {
	name string
	run  func(w *resets)
}{
	{"nothing was said", func(w *resets) {
		nc, err := net.Dial("tcp", w.tr.Addr().String())
		require.NoError(w, err)
		line{nc, nc.(*net.TCPConn)}.reset(w.T)
	}},
	{"in the hello", func(w *resets) {
		l := w.connect()
		w.say(l, w.hello(wire.LaneData)[:20])
		l.reset(w.T)
	}},
	{"behind the hello", func(w *resets) {
		l := w.connect()
		w.say(l, append(w.hello(wire.LaneData), bigFrame...))
		l.reset(w.T)
	}},
	{"behind the answer, control", func(w *resets) { w.stands(wire.LaneControl).reset(w.T) }},
	{"behind the answer, data", func(w *resets) { w.stands(wire.LaneData).reset(w.T) }},
	{"behind the answer, bulk", func(w *resets) { w.stands(wire.LaneBulk).reset(w.T) }},
	{"half a frame", func(w *resets) {
		l := w.stands(wire.LaneData)
		w.say(l, append(bigFrame[:len(bigFrame):len(bigFrame)], bigFrame[:1000]...))
		l.reset(w.T)
	}},
	{"credit is due", func(w *resets) { w.holding(w.stands(wire.LaneData), bigFrame) }},
	{"an answer is due", func(w *resets) { w.holding(w.stands(wire.LaneControl), probes(1)) }},
	{"many answers are due", func(w *resets) { w.holding(w.stands(wire.LaneControl), probes(300)) }},
	{"answers are parked", func(w *resets) { w.parked().reset(w.T) }},
	{"answers are parked and more are due", func(w *resets) { w.holding(w.parked(), probes(1)) }},
	{"half a large message", func(w *resets) {
		l := w.stands(wire.LaneBulk)
		begin := wire.AppendBulkBegin(nil, &wire.BulkBegin{Number: 1, Size: 100_000})
		w.say(l, wire.AppendFrame(nil, wire.KindBulkBegin, 0, 0, begin))
		want(w, w.bulk.begun)
		_, _, err := readFrame(l, hello.MaxAnswer)
		require.NoError(w, err)
		chunk := wire.AppendBulkChunk(nil, 1, make([]byte, 4000))
		w.say(l, chunk[:2000])
		l.reset(w.T)
	}},
	{"dialled, control", func(w *resets) { w.accepts(wire.LaneControl).reset(w.T) }},
	{"dialled, data", func(w *resets) { w.accepts(wire.LaneData).reset(w.T) }},
	{"dialled, in the middle of a batch", func(w *resets) {
		l := w.accepts(wire.LaneData)
		for send(w, w.tr.Link(w.strange), 1, 1, 3000, nil) == nil {
		}
		l.reset(w.T)
	}},
	{"dialled, written to without pause", func(w *resets) {
		l := w.accepts(wire.LaneControl)
		m := peer.Mail{To: w.strange, Kind: wire.KindGossip, Body: make([]byte, 100)}
		for n := range 2000 {
			_ = w.tr.Send(m)
			if n == 1000 {
				l.reset(w.T)
			}
		}
	}},
}

// A connection that is reset, whatever state it is in and whatever this node is about to write on it, ends alone: the
// traffic of another peer goes on whole and in order, and a reset is no breach of the protocol (CARD-3).
func TestResetInEveryState(t *testing.T) {
	ca := authority(t)
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "tls"}[secure], func(t *testing.T) {
			w := &resets{T: t, rider: newRider(), held: make(chan struct{}), goOn: make(chan struct{}), bulk: newBulkRider()}
			change := func(c *Config) { c.Window = 64 << 10 }
			if secure {
				both := member(t, ca)
				change = func(c *Config) { c.Window = 64 << 10; both(c) }
				w.creds = &tls.Config{Certificates: []tls.Certificate{leaf(t, ca, nil)}, InsecureSkipVerify: true,
					ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
			}
			load := start(t, newRider(), change)
			w.healthy = load.Self()
			var next atomic.Uint32
			w.onData = func(c *InConn, frames []byte) {
				if c.From() == w.healthy {
					eachFrame(frames, func(f []byte) {
						var e wire.Envelope
						if wire.ParseEnvelope(f, &e) != nil || e.Shard != next.Load() {
							t.Errorf("frame %d instead of %d", e.Shard, next.Load())
						}
						next.Add(1)
					})
				}
				w.take(c, frames)
			}
			w.tr = startWith(t, w, func(c *Config) { change(c); c.Bulk, c.MaxVisits = w.bulk, 10_000 })
			sent, stop := make(chan uint32), make(chan struct{})
			go func() {
				l := load.Link(w.tr.Self())
				for seq := uint32(0); ; seq++ {
					select {
					case <-stop:
						sent <- seq
						return
					default:
					}
					if send(t, l, 0, seq, int(seq%500), load.ctx.Done()) != nil {
						sent <- seq
						return
					}
				}
			}()
			for _, m := range moments {
				for range 3 {
					m.run(w)
					until(t, func() bool {
						s := w.tr.Stats()
						return s.Pending == 0 && s.Control.In == 0 && s.Data.In <= 1 && s.Bulk.In == 0 && s.Control.Out == 0
					})
					w.tr.Forget(w.strange)
				}
				before := next.Load()
				until(t, func() bool { return next.Load() > before })
			}
			close(stop)
			last := want(t, sent)
			arrives(t, func() (int, bool) { return int(next.Load()), next.Load() == last })
			require.Zero(t, w.tr.Stats().FaultsFrames)
			require.EqualValues(t, 1, load.Stats().Links[0].Data[0].Connects)
		})
	}
}
