// The world of the fuzz targets: one node without sockets, event loops or goroutines. Its connections are in memory;
// all else, from the hello to both ends of a connection, is the code that runs on sockets.

package transport

import (
	"context"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of the worlds, small so that a short program reaches them.
const (
	worldWindow = 4096
	worldFrame  = wire.MinFrameLimit
	memRead     = 4096 // most bytes of one read
)

// sink takes what is written by system calls.
var sink = func() int {
	fd, err := syscall.Open(os.DevNull, syscall.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	return fd
}()

// world is a transport with loops that a test plays.
type world struct {
	t               testing.TB
	tr              *Transport
	now             atomic.Int64 // the clock, in ns
	conns           []*memConn
	owed            []owing  // delivered and not consumed yet
	at              *memConn // its bytes are being taken
	fed             int      // bytes that were given to connections
	found           sweeping
	unsent, refused int
}

type owing struct {
	c *InConn
	n int
}

var worldSelf = peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: 9}

func newWorld(t testing.TB, change func(*Config)) *world {
	w := &world{t: t}
	cfg := Config{Incarnation: worldSelf.Inc, Name: "test", Window: worldWindow, MaxFrame: worldFrame, DataLoops: 1,
		ClusterID: 5, Birth: 6, MaxPeers: 8, LinkBuffer: 16 << 10, LinkBudget: 1 << 20, ControlBuffer: 16 << 10,
		Now: func() time.Duration { return time.Duration(w.now.Load()) }}
	if change != nil {
		change(&cfg)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	tr := &Transport{cfg: cfg, up: w, self: worldSelf, admission: newAdmission(cfg.MaxPending, cfg.MaxPendingEach),
		kick: make(chan struct{}, 1), remotes: map[peer.ID]*remote{}, gone: departed{ids: map[peer.ID]struct{}{}},
		faults: faults{log: cfg.Logger}}
	tr.bulk.room.Limit, tr.visits.rate, tr.partials.limit = cfg.BulkRoom, cfg.MaxVisits, cfg.PartialBudget
	tr.buffers = newBuffers(cfg.LinkBudget, cfg.bounds(nil).Most())
	tr.ctx, tr.cancel = context.WithCancel(context.Background())
	tr.cluster.Store(&clusterName{cfg.ClusterID, cfg.Birth})
	play := func(lane wire.Lane) (l *loop.Loop) { // one that has not started: nobody sleeps
		l = loop.New(loop.Config{Lane: lane, PassDone: w.PassDone, Logger: cfg.Logger,
			Enrol: func(nc net.Conn, s loop.Socket) error {
				c := nc.(*memConn)
				c.engine, c.socket = l.Handler(), s
				if _, action := c.engine.OnOpen(c); action == gnet.Close {
					c.hangUp()
				}
				return nil
			}})
		return l
	}
	tr.ctl, tr.loops = play(wire.LaneControl), []*loop.Loop{play(wire.LaneData)}
	tr.life.ended = true // no goroutine: nothing is dialled but by the program
	w.tr = tr
	return w
}

func (w *world) allLoops(tr *Transport) []*loop.Loop {
	return append([]*loop.Loop{tr.ctl}, tr.loops...)
}

// settle runs what is queued to the loops.
func (w *world) settle() {
	for _, l := range w.allLoops(w.tr) {
		l.Handler().OnTraffic(idleConn{})
	}
}

// idleConn is a connection that has brought nothing.
type idleConn struct{ gnet.Conn }

// Context is its socket.
func (idleConn) Context() any { return idleSocket{} }

// idleSocket does nothing.
type idleSocket struct{}

func (idleSocket) Opened(gnet.Conn) gnet.Action  { return gnet.None }
func (idleSocket) Traffic(gnet.Conn) gnet.Action { return gnet.None }
func (idleSocket) Closed(error)                  {}

// accepted returns the accepted connection behind a socket, nil when it is another.
func accepted(s loop.Socket) *InConn {
	in, _ := s.(*inSocket)
	return (*InConn)(in)
}

// end closes what is left and holds that nothing is held any more.
func (w *world) end() {
	for _, c := range w.conns {
		c.hangUp()
	}
	w.settle()
	w.tr.cancel()
	for _, r := range w.tr.remotes {
		if len(r.in) > 0 || r.bulkIn != nil {
			w.t.Fatal("a closed connection stays in the table of its peer")
		}
	}
	if held, _, _ := w.tr.partials.figures(); held != 0 {
		w.t.Fatalf("%d bytes are held of frames of closed connections", held)
	}
	if n := len(w.tr.admission.pending) + len(w.tr.admission.there); n > 0 {
		w.t.Fatal("a hello is under way for ever")
	}
	for _, l := range []wire.Lane{wire.LaneControl, wire.LaneData} {
		if in, out := w.tr.count.in[l].Load(), w.tr.count.out[l].Load(); in != 0 || out != 0 {
			w.t.Fatalf("%d accepted and %d dialled connections are counted on a lane that has none", in, out)
		}
	}
}

// reasons is how many connections were refused, closed for what they said, or ended before.
func (w *world) reasons() uint64 {
	n := w.tr.count.faultsHello.Load() + w.tr.count.saidNothing.Load() + w.tr.count.withdrawn.Load() +
		w.tr.count.faultsProtocol.Load()
	for i := range w.tr.count.refused {
		n += w.tr.count.refused[i].Load()
	}
	return n
}

// delivers holds that what comes up comes from a connection that stands.
func (w *world) delivers() {
	if w.at == nil || w.at.closed {
		w.t.Fatal("delivered after the connection was closed")
	}
}

func (w *world) Control(from peer.ID, kind wire.Kind, body []byte, _ time.Duration) {
	w.delivers()
	if !kind.Known() || kind.Lane() != wire.LaneControl || len(body) > kind.MaxBody() || from.Inc == 0 {
		w.t.Fatalf("mail of kind %d with %d bytes from %v", kind, len(body), from)
	}
}

func (w *world) Data(c *InConn, frames []byte) {
	w.delivers()
	for rest := frames; len(rest) > 0; {
		_, n, err := wire.Split(rest, wire.LaneData, worldFrame)
		if err != nil || n == 0 {
			w.t.Fatalf("not whole frames: %d, %v", n, err)
		}
		rest = rest[n:]
	}
	w.owed = append(w.owed, owing{c, len(frames)})
	c.mu.Lock()
	open := c.received - c.meter.Total()
	c.mu.Unlock()
	if open > worldWindow+worldFrame {
		w.t.Fatalf("%d bytes are delivered and not consumed", open)
	}
}

func (w *world) PassDone(*loop.Loop)                               {}
func (w *world) LinkUp(peer.ID, wire.Lane, int)                    {}
func (w *world) LinkDown(peer.ID, wire.Lane, int, uint64, error)   {}
func (w *world) LinkLost(peer.ID)                                  {}
func (w *world) LinkSilent(peer.ID, wire.Lane, int, time.Duration) {}
func (w *world) Undelivered(_ peer.ID, frames []byte, _ error)     { w.unsent += len(frames) }
func (w *world) MailboxRoom(*Link, wire.Full)                      {}
func (w *world) LinkRoom(*Link)                                    {}
func (w *world) Unreached(peer.Addr, error)                        {}
func (w *world) OtherVisited(peer.Addr, uint64, uint64)            {}
func (w *world) PeerRefused(*hello.RefusedError)                   { w.refused++ }

// consume gives credit back for the oldest n deliveries.
func (w *world) consume(n int) {
	n = min(n, len(w.owed))
	for _, o := range w.owed[:n] {
		o.c.Consumed(o.n)
	}
	w.owed = w.owed[n:]
}

// memConn is a connection in memory: during the hello a net.Conn, then what gnet makes of it.
type memConn struct {
	gnet.Conn // nil: what stands here is all that is used
	w         *world
	input     []byte // from the other end, not read yet
	piece     int    // most bytes of one read
	late      bool   // then the time of the hello is over; else the other end has closed
	severed   bool   // the other end has reset the connection, of which only a write hears
	line      []int  // what is written goes in at the first end of this pair of sockets
	filling   int    // bytes in it that nobody wrote
	closed    bool
	engine    gnet.EventHandler // of its loop, once it is on one
	socket    loop.Socket
	scratch   [memRead]byte
	reading   []byte // what one pass reads
	taken     int    // bytes given to the loop
	broken    bool   // closed for what came in
}

func (w *world) conn(input []byte) *memConn {
	c := &memConn{w: w, input: input, piece: memRead}
	w.conns = append(w.conns, c)
	w.fed += len(input)
	return c
}

func (c *memConn) Read(p []byte) (int, error) {
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case len(c.input) > 0:
		n := copy(p[:min(len(p), c.piece)], c.input)
		c.input = c.input[n:]
		return n, nil
	case c.late:
		return 0, os.ErrDeadlineExceeded
	}
	return 0, io.EOF
}

// Write is that of the hello.
func (c *memConn) Write(p []byte) (int, error) {
	if c.closed {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

// listen has the other end keep what is written from now on.
func (c *memConn) listen() {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		c.w.t.Fatal(err)
	}
	_, _ = syscall.SetNonblock(pair[0], true), syscall.SetNonblock(pair[1], true)
	_ = syscall.SetsockoptInt(pair[0], syscall.SOL_SOCKET, syscall.SO_SNDBUF, 1)
	c.line = pair[:]
}

// stick has the other end read no more: the socket takes nothing.
func (c *memConn) stick() {
	if c.line == nil {
		c.listen()
	}
	for size := len(filler); size > 0; {
		n, err := syscall.Write(c.line[0], filler[:size])
		if c.filling += max(n, 0); err != nil {
			size /= 2
		}
	}
}

// hear returns what the other end reads now.
func (c *memConn) hear() (heard []byte) {
	for {
		n, err := syscall.Read(c.line[1], c.scratch[:])
		if err != nil {
			return heard
		}
		skip := min(n, c.filling)
		c.filling -= skip
		heard = append(heard, c.scratch[skip:n]...)
	}
}

// filler is what fills a socket; gone is a socket with its other end gone.
var (
	filler = make([]byte, 4096)
	gone   = func() int {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			panic(err)
		}
		_ = syscall.Close(pair[1])
		return pair[0]
	}()
)

func (c *memConn) Next(int) ([]byte, error) {
	b := c.reading
	c.reading = nil
	return b, nil
}

// Close is that of the hello.
func (c *memConn) Close() error {
	c.closed = true
	return nil
}

func (c *memConn) Context() any                     { return c.socket }
func (c *memConn) EventLoop() gnet.EventLoop        { return memLoop{} }
func (c *memConn) SetDeadline(time.Time) error      { return nil }
func (c *memConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }
func (c *memConn) LocalAddr() net.Addr              { return nil }
func (c *memConn) RemoteAddr() net.Addr             { return nil }

// Fd returns where writes go.
func (c *memConn) Fd() int {
	switch {
	case c.severed:
		return gone
	case c.line != nil:
		return c.line[0]
	}
	return sink
}

// hangUp closes a connection on its loop, as gnet does: closed has run when it returns.
func (c *memConn) hangUp() {
	if c.closed {
		return
	}
	c.closed = true
	if c.engine != nil {
		c.engine.OnClose(c, nil)
	}
	for _, fd := range c.line {
		_ = syscall.Close(fd)
	}
	c.line = nil
}

// memLoop closes connections.
type memLoop struct{ gnet.EventLoop }

// Close closes one.
func (memLoop) Close(c gnet.Conn) error {
	c.(*memConn).hangUp()
	return nil
}

// feed gives bytes to a connection, in pieces; on the loop they are taken at once.
func (c *memConn) feed(b []byte) {
	c.w.fed += len(b)
	c.input = append(c.input, b...)
	for c.engine != nil && len(c.input) > 0 && !c.closed {
		n := copy(c.scratch[:min(c.piece, len(c.scratch))], c.input)
		c.input = c.input[n:]
		c.reading, c.taken = c.scratch[:n], c.taken+n
		before := c.w.tr.count.faultsProtocol.Load()
		c.w.at = c
		action := c.engine.OnTraffic(c)
		c.w.at = nil
		counted := c.w.tr.count.faultsProtocol.Load() - before
		if c.broken = action == gnet.Close; c.broken != (counted == 1) {
			c.w.t.Fatalf("closed: %v, faults counted: %d", c.broken, counted)
		}
		clear(c.scratch[:n]) // a kept view of a read is found out
		if c.broken {
			c.hangUp()
		} else {
			c.check()
		}
	}
}

// check holds what a connection on a loop may keep.
func (c *memConn) check() {
	in := accepted(c.socket)
	if in == nil {
		return
	}
	if cap(in.in.carry) > 4*c.taken+64 || len(in.in.carry) > in.in.limit {
		c.w.t.Fatalf("%d bytes are kept of %d that came", cap(in.in.carry), c.taken)
	}
	if in.lane == wire.LaneData && int(in.received)+len(in.in.carry) != c.taken && !c.closed {
		c.w.t.Fatalf("%d bytes came, %d were delivered and %d are kept", c.taken, in.received, len(in.in.carry))
	}
	if waiting := len(in.sending) + len(in.answers); waiting > maxAckOutbound || in.writer == nil && waiting > 0 {
		c.w.t.Fatalf("%d bytes of answers wait", waiting)
	}
}
