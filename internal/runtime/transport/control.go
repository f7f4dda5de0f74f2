// Control: the sending side of a peer's control connection: a bounded queue of mail, and the credit owed to the peer.

package transport

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Bounds of a control uplink.
const (
	controlReserve = 64 << 10 // bytes beyond the bound for heartbeats, and as much again for credit
	keepControl    = 64 << 10 // memory that an idle control queue keeps, bytes
	controlUnsent  = 64 << 10 // bytes that the system takes beyond what it has sent: heartbeats wait behind them
	creditFrame    = wire.HeaderSize + 14
	controlSurveys = 64 << 10 // bytes that wait, behind which nothing of a survey is queued
)

// control sends mail to one peer. Mail is lost when it cannot be dialled or when the connection breaks.
type control struct {
	uplink
	queue mailQueue
	limit int
	owed  []*InConn // data connections of the peer with credit to be sent
	in    splitter  // answers to heartbeats
	quiet bool      // no mail since the last sweep
	trips trips     // of the probes that were answered
	point contactPoint

	lastSend time.Time
}

func newControl(t *Transport, to peer.ID, number uint16) *control {
	c := &control{limit: t.cfg.ControlBuffer}
	c.queue.limit(c.limit + 2*controlReserve)
	c.in = splitter{lane: wire.LaneControl, limit: hello.MaxAnswer}
	c.lastSend = time.Now()
	c.init(t, to, wire.LaneControl, number, t.ctl, c)
	return c
}

// send queues one frame.
func (c *control) send(kind wire.Kind, body []byte) error {
	n := wire.HeaderSize + len(body)
	c.mu.Lock()
	if err := c.blocked(); err != nil {
		c.mu.Unlock()
		return err
	}
	if since := c.t.cfg.since(kind); c.version != 0 && since > c.version {
		err := &VersionError{Peer: c.to, Kind: kind, Needs: since, Speaks: c.version}
		c.mu.Unlock()
		c.t.count.tooNew.Add(1)
		return err
	}
	bound := c.limit
	switch kind {
	case wire.KindHeartbeat:
		bound += controlReserve
	case wire.KindSurvey, wire.KindSurveyAnswer: // what readers can cause stays behind what the cluster lives on
		bound = min(bound, controlSurveys)
	}
	if c.queue.size()+n > bound {
		c.mu.Unlock()
		c.t.count.controlFull.Add(1)
		return fmt.Errorf("%w: %d bytes wait for %s", ErrControlFull, bound, c.to)
	}
	b, err := c.queue.reserve(kind, n)
	if err != nil {
		c.mu.Unlock()
		return fmt.Errorf("control queue of %s: %w", c.to, err)
	}
	wire.PutHeader(b, wire.Header{Size: uint32(n), Kind: kind})
	copy(b[wire.HeaderSize:], body)
	c.quiet, c.lastSend = false, time.Now()
	c.wakeAndUnlock()
	return nil
}

// owe notes that the credit of a data connection is to be sent, with its total at the time of writing.
func (c *control) owe(in *InConn) {
	c.mu.Lock()
	if in.owed || c.dead != nil {
		c.mu.Unlock()
		return
	}
	in.owed = true
	c.owed = append(c.owed, in)
	c.wakeAndUnlock()
}

func (c *control) wakeAndUnlock() {
	wake := !c.scheduled
	c.scheduled = true
	c.mu.Unlock()
	if wake {
		c.loop.Post(c)
	}
}

// Run writes out what is queued, on the control loop.
func (c *control) Run(on *loop.Loop) {
	for {
		c.mu.Lock()
		if c.conn == nil {
			if c.scheduled = c.waiting(); c.scheduled {
				c.ensure()
				c.scheduled = c.dialing
			}
			c.mu.Unlock()
			return
		}
		if c.conn.writer != nil {
			c.mu.Unlock()
			return // the writer has it run again
		}
		if conn := c.conn; c.renewing {
			c.mu.Unlock()
			conn.leaveNotice()
			return // the peer closes, and the next connection carries what waits
		}
		c.appendCredit()
		b, conn := c.queue.next(), c.conn
		if len(b) == 0 {
			c.scheduled = false
			c.mu.Unlock()
			return
		}
		c.unheard = true
		c.mu.Unlock()
		if !conn.write(on, b) {
			return
		}
	}
}

// appendCredit queues a credit frame for each data connection that is owed one, as far as the reserve goes.
func (c *control) appendCredit() {
	done := 0
	for _, in := range c.owed {
		if c.queue.front.Room() < creditFrame {
			break
		}
		b, err := c.queue.front.Reserve(creditFrame)
		if err != nil {
			break
		}
		appendCredit(b[:0], in, in.toldElsewhere())
		in.owed = false
		done++
	}
	left := copy(c.owed, c.owed[done:])
	clear(c.owed[left:])
	c.owed = c.owed[:left]
}

// restart repeats the credit of every data connection of the peer: what was sent on the last connection may be lost.
func (c *control) restart(uint32) {
	c.in.carry = nil
	if c.version < c.t.cfg.versions.Newest {
		c.dropTooNew()
	}
	if c.to.Inc == 0 {
		c.met()
		return // credit goes by the connection to the full identity
	}
	for _, in := range c.t.dataFrom(nil, c.real) {
		if !in.owed && in.consumedAny() {
			in.owed = true
			c.owed = append(c.owed, in)
		}
	}
}

// dropTooNew drops queued mail that the peer's version does not know. The lock is held.
func (c *control) dropTooNew() {
	n := c.queue.keep(func(k wire.Kind) bool { return c.t.cfg.since(k) <= c.version })
	c.t.count.tooNew.Add(uint64(n))
}

func (c *control) broke() uint64    { return 0 }
func (c *control) waiting() bool    { return c.queue.size() > 0 || len(c.owed) > 0 }
func (c *control) keepsQueue() bool { return false }
func (c *control) unanswered() bool { return c.unheard }
func (c *control) release()         {}

// drop loses the mail. Credit that is owed stays while the connection that it is for does: the peer may be waiting for
// it, and nobody else repeats it.
func (c *control) drop() []byte {
	c.t.count.mailLost.Add(uint64(c.queue.size()))
	c.queue.drop()
	c.owed = slices.DeleteFunc(c.owed, (*InConn).isGone)
	return nil
}

// frames takes what came back on the connection: answers to heartbeats, nothing else.
func (c *control) frames(b []byte) error {
	arrived := c.t.cfg.Now()
	return c.in.each(b, func(frame []byte) error { return c.answer(frame, arrived) })
}

func (c *control) answer(frame []byte, arrived time.Duration) error {
	if kind := wire.ParseHeader(frame).Kind; kind != wire.KindHeartbeatAck {
		return fmt.Errorf("%w: %s came back on a control connection", ErrProtocol, kind)
	}
	if a, err := wire.ParseHeartbeatAck(wire.Body(frame)); err == nil { // what is broken is judged above us
		c.mu.Lock()
		c.trips.add(a.Sent, arrived)
		c.mu.Unlock()
	}
	c.t.up.Control(c.real, wire.KindHeartbeatAck, wire.Body(frame), arrived)
	return nil
}

// A connection to a contact point at which a node of another address answers is dialled anew as long as it is used,
// after twice the time of the one before: behind an address of several nodes, such as a service of Kubernetes or a
// name with several addresses, it would stay with one that may know no cluster.
const (
	elsewhereAfter = 2 * time.Second
	elsewhereMost  = 8 * time.Second
)

// errElsewhere closes a connection to a contact point, to meet another node there.
var errElsewhere = errors.New("transport: contact point dialled anew: another node may answer there")

// contactPoint is what an uplink to a contact point knows of the nodes that answer there.
type contactPoint struct {
	last    peer.ID
	after   time.Duration // for how long the next connection stands at least; zero: elsewhereAfter
	several bool          // that has been logged
}

// met notes the node that answers at a contact point. The lock is held.
func (c *control) met() {
	p, now := &c.point, c.real
	if p.last.Inc != 0 && p.last.Addr != now.Addr && !p.several {
		p.several = true
		c.t.cfg.Logger.Info("several nodes answer at a contact point: it is dialled anew", "peer", c.to.Addr, "first",
			p.last, "then", now)
	}
	p.last = now
}

// lookElsewhere closes the connection to a contact point at which a node of another address has answered for long.
func (c *control) lookElsewhere(now time.Time) {
	c.mu.Lock()
	p, conn := &c.point, c.conn
	p.after = max(p.after, elsewhereAfter)
	if conn == nil || c.real.Addr == c.to.Addr || c.scheduled || now.Sub(c.upSince) < p.after {
		c.mu.Unlock()
		return
	}
	p.after = min(2*p.after, elsewhereMost)
	c.mu.Unlock()
	c.t.names.Pass(c.to.Addr.String())
	c.loop.Post(&expulsion{conn, errElsewhere})
}

// sweep gives back the memory of an idle queue.
func (c *control) sweep() {
	c.mu.Lock()
	if c.quiet && !c.scheduled && c.queue.held() > keepControl {
		c.queue.trim()
	}
	c.quiet = true
	c.owed = slices.DeleteFunc(c.owed, (*InConn).isGone)
	if len(c.owed) > 0 && !c.scheduled && c.blocked() == nil {
		c.wakeAndUnlock()
		return
	}
	c.mu.Unlock()
}
