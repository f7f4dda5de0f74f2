// Connections: per directed pair of processes one for control and some for data, dialled by the sender, each with a
// generation; first in, first out while it lives; redialled when it broke.

package world

import (
	"cmp"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	firstRedial = 50 * time.Millisecond
	lastRedial  = 2 * time.Second
	// maxControlQueue bounds, in frames, what waits for a control connection and what waits for a stalled control loop.
	maxControlQueue = 4096
)

type connState uint8

const (
	connIdle connState = iota
	connDialing
	connUp
	connRefused // for good: this incarnation will never answer again
)

// conn is one connection as its dialler has it. Only its dialler writes on it; what goes back are answers to
// heartbeats, and credit for a data connection.
type conn struct {
	w         *World
	from      *Process
	to        peer.ID   // Inc zero: any that answers at the address
	link      *link     // on the data lane
	bulk      *bulkLink // on the bulk lane
	peer      *Process  // the process that accepted
	number    int       // tells the data connections of a pair apart
	state     connState
	gen       uint32
	forgotten bool // the peer was removed: nothing goes there any more
	fore      *pipe
	back      *pipe
	lost      bool     // the other end broke it: it is dialled again at once to see which process answers
	waiting   []packet // control mail that waits for the connection
	redial    time.Duration
}

// mail hands one control frame to the network. The body is kept.
func (p *Process) mail(to peer.ID, kind wire.Kind, body []byte) {
	w := p.World
	if kind.Owner() == wire.OwnerMembership {
		w.Net.Largest = max(w.Net.Largest, len(body))
	}
	if idx, ok := w.IndexOf(to.Addr); ok && w.Net.Swallows != nil && w.Net.Swallows(p.Index, idx, kind) {
		w.Net.lost++
		return
	}
	if p.greets(to, kind) {
		return
	}
	machine := kind == wire.KindHeartbeat
	switch kind.Owner() {
	case wire.OwnerMembership, wire.OwnerWatch, wire.OwnerShard, wire.OwnerCourier, wire.OwnerReplica:
		machine = true
	}
	if machine && w.Net.Raw.On() {
		w.raw(p, to, kind, body)
		return
	}
	c := p.conns.get(to, 0, func() *conn { return &conn{w: w, from: p, to: to} })
	switch {
	case c.state == connUp:
		c.fore.send(kind, body)
	case c.state == connRefused:
		w.Net.dropped++
	case len(c.waiting) >= maxControlQueue:
		w.Net.dropped++
	default:
		c.waiting = append(c.waiting, packet{kind: kind, body: body})
		c.dial()
	}
}

// dial starts a connection attempt: the hello goes there, its answer comes back.
func (c *conn) dial() {
	if c.state != connIdle || !c.from.Alive {
		return
	}
	c.state = connDialing
	w := c.w
	idx, ok := w.IndexOf(c.to.Addr)
	if !ok {
		// A packet to nowhere: silence. Tried again, for ever, as a real dialler would.
		w.queue.push(w.Now+lastRedial, c.again)
		return
	}
	there := w.Now + w.Net.delay(c.from.Index, idx)
	w.queue.push(there, func() { c.hello(idx) })
}

// again returns to idle after a failed attempt and dials when something waits.
func (c *conn) again() {
	if !c.from.Alive || c.state != connDialing {
		return
	}
	c.state = connIdle
	if c.wanted() {
		c.dial()
	}
}

// wanted reports whether something waits for the connection.
func (c *conn) wanted() bool {
	return len(c.waiting) > 0 || c.link != nil && c.link.pending() || c.bulk != nil && !c.bulk.s.Idle()
}

// control reports whether it is a control connection.
func (c *conn) control() bool { return c.link == nil && c.bulk == nil }

// refused is the host's answer to an attempt where no process listens. Behind a connection that the other end broke it
// is evidence that the process is gone.
func (c *conn) refused(idx int, replaced bool) {
	if !c.lost && !replaced || !c.control() || c.to.Inc == 0 {
		return
	}
	c.lost = false
	w := c.w
	w.queue.push(w.Now+w.Net.delay(idx, c.from.Index), func() {
		c.from.Live(func() {
			c.from.Do(membership.LinkLostCommand{ID: c.to, Replaced: replaced})
			if w.Config.ProcessDeathIsProof {
				c.from.giveUp(c.to)
			}
		})
	})
}

// otherCluster tells the dialler of the other cluster that the refusal named.
func (c *conn) otherCluster(idx int, told membership.OtherClusterCommand) {
	c.w.queue.push(c.w.Now+c.w.Net.delay(idx, c.from.Index), func() {
		c.from.Live(func() { c.from.Do(told) })
	})
}

func (c *conn) fail() {
	if c.redial == 0 {
		c.redial = firstRedial
	} else {
		c.redial = min(2*c.redial, lastRedial)
	}
	c.w.queue.push(c.w.Now+c.redial, c.again)
}

// hello is the attempt's arrival at the other host.
func (c *conn) hello(idx int) {
	w := c.w
	if !c.from.Alive || c.state != connDialing {
		return
	}
	dst := w.Hosts[idx].Process
	switch {
	case w.Net.Cuts[c.from.Index][idx] || w.Net.Cuts[idx][c.from.Index]:
		c.fail()
		return
	case dst == nil || !dst.Alive || dst.Paused() || dst == c.from:
		if dst != nil && !dst.Alive && dst.resets() {
			c.refused(idx, false)
		}
		c.lost = false
		c.fail()
		return
	}
	if why := c.greet(dst); why != nil {
		c.visited(dst, why)
		c.turnedAway(idx, why)
		return
	}
	w.queue.push(w.Now+w.Net.delay(idx, c.from.Index), func() { c.up(dst) })
}

// up is the arrival of the hello's answer: what waited goes first.
func (c *conn) up(dst *Process) {
	if !c.from.Alive || c.state != connDialing {
		return
	}
	if c.from.Paused() {
		c.from.deferUntilResume(func() { c.up(dst) })
		return
	}
	if !dst.Alive {
		c.fail()
		return
	}
	c.state, c.peer, c.redial, c.lost = connUp, dst, 0, false
	c.gen++
	c.fore, c.back = newPipe(c, c.from, dst), newPipe(c, dst, c.from)
	dst.accepted = append(dst.accepted, c)
	if c.link != nil {
		c.link.connected()
		return
	}
	if c.bulk != nil {
		c.bulk.connected()
		return
	}
	c.from.repeatCredit(c)
	waiting := c.waiting
	c.waiting = nil
	for _, k := range waiting {
		c.fore.send(k.kind, k.body)
	}
}

// broke ends the connection at both sides; what was in flight is gone.
func (c *conn) broke(why string) {
	if c.state != connUp {
		return
	}
	w := c.w
	w.Net.broken++
	if w.trace.text {
		w.trace.line(w.Now, c.from.Index, "connection to %s broke: %s", w.Name(c.to), why)
	}
	peer := c.peer
	c.close()
	c.lost = c.control() && !peer.Alive && peer.resets()
	if c.from.Alive && (c.lost || c.wanted()) {
		c.dial()
	}
}

// close drops both pipes. What was in flight on a data connection is written off in the books.
func (c *conn) close() {
	if c.state != connUp {
		return
	}
	c.state = connIdle
	for _, p := range [2]*pipe{c.fore, c.back} {
		p.closed = true
		for _, k := range p.flight[p.head:] {
			c.w.Net.dropped++
			if c.link != nil && p == c.fore {
				c.w.lostInFlight(k.body)
			}
		}
		p.flight = nil
	}
	if c.link != nil {
		c.link.loseUnread()
		c.link.over()
		c.from.loseLarge(c)
	}
	if c.bulk != nil {
		c.bulk.disconnected()
	}
}

// arrived is a packet at the other end.
func (c *conn) arrived(p *pipe, k packet) {
	src, dst := p.src, p.dst
	gen := c.gen
	if dst.Paused() {
		// The kernel takes it; the process sees it when it goes on.
		data := c.link != nil && p == c.fore
		if data {
			c.w.placeAll(k.body, dst)
		}
		dst.deferUntilResume(func() {
			if c.gen == gen && !p.closed {
				c.read(p, src, dst, k)
			} else if data {
				c.w.lostInFlight(k.body)
			}
		})
		return
	}
	c.read(p, src, dst, k)
}

func (c *conn) read(p *pipe, src, dst *Process, k packet) {
	switch {
	case c.bulk != nil && p == c.back:
		c.bulk.answer(k)
	case c.bulk != nil:
		dst.bulkFrame(c, k)
	case k.kind.Lane() == wire.LaneData:
		dst.data(c, k.body)
	case k.kind == wire.KindHeartbeat:
		dst.probed(k.body, func(ack []byte) {
			if !c.back.closed {
				c.back.send(wire.KindHeartbeatAck, ack)
			}
		})
		dst.control(src.ID, k.kind, k.body)
	case k.kind == wire.KindFull || k.kind == wire.KindRoom:
		dst.heedsFull(c, k)
	case k.kind == wire.KindCredit:
		dst.credit(src.ID, k.body)
	case k.kind == wire.KindRefused || k.kind == wire.KindRefusals:
		dst.refusedThere(src.ID, k.kind, k.body)
	case k.kind == wire.KindTaken:
		dst.took(src.ID, k.body)
	default:
		dst.control(src.ID, k.kind, k.body)
	}
}

// connTable holds a process's connections of one lane, sorted by peer.
type connTable struct{ list []*conn }

func (t *connTable) get(to peer.ID, number int, make func() *conn) *conn {
	lo, hi := 0, len(t.list)
	for lo < hi {
		mid := (lo + hi) / 2
		if cmp.Or(t.list[mid].to.Compare(to), t.list[mid].number-number) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(t.list) && t.list[lo].to == to && t.list[lo].number == number {
		return t.list[lo]
	}
	c := make()
	t.list = append(t.list, nil)
	copy(t.list[lo+1:], t.list[lo:])
	t.list[lo] = c
	return c
}
