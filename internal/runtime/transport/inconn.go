// InConn: one accepted connection as its loop sees it.

package transport

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// maxAckOutbound is how much may wait for a peer that probes and does not read the answers, in bytes.
const maxAckOutbound = 64 << 10

// takeAtOnce is how many bytes of a read are split into frames and then delivered: little enough to be still at hand in
// the core's first cache.
const takeAtOnce = 8 << 10

// InConn is an accepted connection of a peer. The runtime sees those of the data lane. Its exported methods are safe
// for concurrent use and stay valid after the connection is gone.
type InConn struct {
	t          *Transport
	from       *remote
	lane       wire.Lane
	number     uint16
	generation uint32
	clusterID  uint64
	birth      uint64
	window     int
	version    uint16 // of the protocol
	loop       *loop.Loop
	visitor    netip.Addr // where it comes from

	mu sync.Mutex
	backTalk
	received uint64 // bytes delivered
	tells    uint64 // among them, in envelopes of their own
	stands   bool   // it is not over: its socket may be asked
	silence  silence
	mute     atomic.Bool // that is: credit goes another way

	owed bool // stands in the control uplink's list; under that uplink's lock

	// Owned by the loop.
	outlet  // its c is nil once the connection is closed
	in      splitter
	answers []byte // that gather
	sending []byte // that a blocked writer may be at; else kept for the next ones

	wasOpened atomic.Bool
	gone      chan struct{} // closed when the connection is over
	goneOnce  sync.Once
}

// From returns the peer at the other end.
func (c *InConn) From() peer.ID { return c.from.id }

// Link returns the data link to the peer for answers to what this connection brings: one that lives on the same loop,
// if there is any. It is one of Transport.Links.
func (c *InConn) Link() *Link {
	if l := c.from.answers(c.number); l != nil {
		return l
	}
	links := c.t.Links(c.from.id)
	if l := c.from.answers(c.number); l != nil {
		return l
	}
	return links[0] // of a peer forgotten meanwhile
}

// Number tells the peer's connections of this lane apart.
func (c *InConn) Number() int { return int(c.number) }

// Loop returns the loop that reads the connection; the peer's link of the same number lives on it too.
func (c *InConn) Loop() *loop.Loop { return c.loop }

// Version returns the wire version that the hello chose.
func (c *InConn) Version() uint16 { return c.version }

// Generation numbers the peer's connections of this lane, growing.
func (c *InConn) Generation() uint32 { return c.generation }

// Cluster returns the cluster id and birth that the peer's hello named; zeros from a joiner.
func (c *InConn) Cluster() (id, birth uint64) { return c.clusterID, c.birth }

func (c *InConn) isGone() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Run closes the connection, on its loop: its successor has come, or the peer is forgotten.
func (c *InConn) Run(*loop.Loop) {
	if c.c != nil {
		c.hangUp()
	}
}

func (c *InConn) opened(conn gnet.Conn) gnet.Action {
	c.of, c.reserve, c.c = c, &c.t.reserve, conn
	c.mu.Lock()
	c.stands = true
	c.mu.Unlock()
	c.wasOpened.Store(true)
	c.t.count.in[c.lane].Add(1)
	if c.lane == wire.LaneControl {
		c.t.nudge(c.from.id)
	}
	return gnet.None
}

func (c *InConn) closed(err error) {
	if c.c == nil {
		return
	}
	c.endPollerWait()
	c.mu.Lock()
	c.stands = false
	c.mu.Unlock()
	c.c, c.answers, c.sending = nil, nil, nil
	c.in.drop()
	if c.broken != nil {
		err = c.broken
	}
	c.t.count.in[c.lane].Add(-1)
	c.t.cfg.Logger.Debug("peer's connection closed", "peer", c.from.id, "lane", c.lane, "error", err)
	c.over()
}

// over takes the connection out of the tables and lets a successor begin.
func (c *InConn) over() {
	c.goneOnce.Do(func() {
		c.tellTaken()
		c.t.removeIn(c)
		close(c.gone)
	})
}

func (c *InConn) traffic(conn gnet.Conn) gnet.Action {
	b, _ := conn.Next(-1)
	if len(b) == 0 {
		return gnet.None
	}
	c.loop.Read(len(b))
	var err error
	if c.secure == nil {
		err = c.take(b)
	} else {
		err = c.secure.Unseal(c.loop.Plain(), b, (*inSocket)(c))
	}
	if err == nil {
		err = c.answer()
	}
	if err == trust.ErrEnded {
		return gnet.Close
	}
	if err != nil {
		c.t.broken(c, err)
		return gnet.Close
	}
	return gnet.None
}

// inSocket is an InConn as its loop and its TLS see it, which is of no concern to the runtime.
type inSocket InConn

// Opened runs when the loop has taken the connection.
func (c *inSocket) Opened(conn gnet.Conn) gnet.Action { return (*InConn)(c).opened(conn) }

// Traffic runs when something was read.
func (c *inSocket) Traffic(conn gnet.Conn) gnet.Action { return (*InConn)(c).traffic(conn) }

// Closed runs once when the connection is gone.
func (c *inSocket) Closed(err error) { (*InConn)(c).closed(err) }

// Take takes plaintext.
func (c *inSocket) Take(b []byte) error { return (*InConn)(c).take(b) }

// take takes what came in, of any number of frames; the last may be cut.
func (c *InConn) take(b []byte) error {
	frame, rest, err := c.in.straddle(b)
	if frame != nil {
		tells := 0
		if wire.IsTell(frame) {
			tells = 1
		}
		err = c.deliver(frame, 1, tells)
	}
	for err == nil && len(rest) > 0 {
		n, frames, tells, bad := c.in.whole(rest[:min(len(rest), takeAtOnce)])
		if n == 0 && bad == nil && len(rest) > takeAtOnce { // a frame longer than that
			n, frames, tells, bad = c.in.whole(rest)
		}
		if n > 0 {
			err = c.deliver(rest[:n:n], frames, tells)
		}
		if err == nil {
			err = bad
		}
		rest = rest[n:]
		if n == 0 || len(rest) == 0 {
			break
		}
		c.loop.Between()
	}
	if err == nil {
		err = c.in.keep(rest)
	}
	return err
}

// deliver hands whole frames up, tells of which are tells.
func (c *InConn) deliver(frames []byte, n, tells int) error {
	c.loop.Delivered(n)
	if c.lane == wire.LaneData {
		if err := c.withinWindow(len(frames), tells); err != nil {
			return err
		}
		c.loop.Passes(len(frames))
		c.t.up.Data(c, frames)
		return nil
	}
	arrived := c.t.cfg.Now()
	for len(frames) > 0 {
		size := int(wire.ParseHeader(frames).Size)
		if err := c.mail(frames[:size:size], arrived); err != nil {
			return err
		}
		frames = frames[size:]
	}
	return nil
}

// mail takes one control frame.
func (c *InConn) mail(frame []byte, arrived time.Duration) error {
	kind, body := wire.KindOf(frame), wire.Body(frame)
	if c.t.cfg.since(kind) > c.version {
		return fmt.Errorf("%w: %s on a connection of wire version %d", ErrProtocol, kind, c.version)
	}
	switch kind {
	case wire.KindHeartbeat:
		return c.heartbeat(body, arrived)
	case wire.KindCredit:
		credit, err := wire.ParseCredit(body)
		if err != nil {
			return err
		}
		if link := c.from.link(int(credit.Lane)); link != nil {
			return link.granted(credit)
		}
		return fmt.Errorf("%w: credit for data connection %d, which does not exist", ErrProtocol, credit.Lane)
	case wire.KindHello, wire.KindHelloAck, wire.KindHelloRefuse, wire.KindHeartbeatAck, wire.KindFull, wire.KindRoom:
		return fmt.Errorf("%w: %s on an accepted connection", ErrProtocol, kind)
	}
	c.t.up.Control(c.from.id, kind, body, arrived)
	return nil
}

// heartbeat answers a probe, at the end of the pass, and passes it up.
func (c *InConn) heartbeat(body []byte, arrived time.Duration) error {
	out, at := wire.BeginFrame(c.answers, wire.KindHeartbeatAck, 0, 0)
	out, err := wire.AnswerHeartbeat(out, body, uint64(max(c.t.cfg.StepAge(), 0)))
	if err != nil {
		return err
	}
	wire.EndFrame(out, at)
	c.answers = out
	c.t.up.Control(c.from.id, wire.KindHeartbeat, body, arrived)
	return nil
}

// answer writes the answers of one pass, and what TLS has to say. While a blocked writer is at those before, they wait;
// an error says that they wait for a peer that reads none. The connection may be closed when it returns nil.
func (c *InConn) answer() error {
	if c.c == nil {
		return nil
	}
	if c.writer != nil {
		waiting := len(c.sending) + len(c.answers)
		if c.secure != nil {
			waiting += c.secure.Unsaid()
		}
		if waiting > maxAckOutbound {
			return fmt.Errorf("%w: probes without reading the answers", ErrProtocol)
		}
		return nil
	}
	if len(c.answers) > 0 {
		c.answers, c.sending = c.sending[:0], c.answers
		if !c.write(c.loop, c.sending) {
			return nil
		}
		c.sent()
	}
	c.speak(c.loop)
	return nil
}

// sent forgets answers that the socket has taken.
func (c *InConn) sent() {
	if c.sending = c.sending[:0]; cap(c.sending) > keepCarry {
		c.sending = nil
	}
}

// goOn writes what has gathered while a blocked writer was at the answers before.
func (c *InConn) goOn(*loop.Loop) {
	c.sent()
	if c.presses() {
		c.answers = c.appendBack(c.answers)
	}
	_ = c.answer() // which refuses nothing while no writer is blocked
}

// blocked is of interest for what this node sends of its own accord.
func (c *InConn) blocked(bool) {}
