// Greeting: what a process says when its connection comes to a host, and what it is answered. Package hello decides
// both, as it does on sockets.

package world

import (
	"errors"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/wire"
)

// clusterName is that of every simulated cluster.
const clusterName = "sim"

// acceptor is what a process judges hellos by now, and the source of its own.
func (p *Process) acceptor() hello.Acceptor {
	a := hello.Acceptor{Self: p.ID, Name: clusterName, Speaks: wire.Spoken(), Window: p.World.window(),
		Terms: p.World.Net.terms}
	if p.View != nil {
		a.ClusterID, a.Birth = p.View.ClusterID, p.View.Birth
	}
	if p.setUp != nil {
		p.setUp(&a)
	}
	return a
}

// words is the hello of a connection.
func (c *conn) words() hello.Hello {
	a := c.from.acceptor()
	h := hello.Hello{Versions: a.Speaks, Lane: wire.LaneControl, Number: uint16(c.number), Generation: c.gen + 1,
		ClusterID: a.ClusterID, Birth: a.Birth, Name: a.Name, From: a.Self, To: c.to.Addr, ToInc: c.to.Inc,
		Settings: hello.Said(a.Terms, a.Speaks)}
	switch {
	case c.link != nil:
		h.Lane, h.Window = wire.LaneData, uint32(a.Window)
	case c.bulk != nil:
		h.Lane = wire.LaneBulk
	}
	return h
}

// answers takes the first frame of a connection and returns the frame that answers it.
func (p *Process) answers(body []byte) (wire.Kind, []byte) {
	a := p.acceptor()
	h, refused := hello.Hear(wire.KindHello, body, a.Speaks)
	if refused == nil {
		refused = a.Judge(&h)
	}
	if refused != nil {
		return wire.KindHelloRefuse, hello.AppendRefusal(nil, refused.Told(h.Versions, false, hello.Standing{}))
	}
	ack := a.Answer(&h)
	return wire.KindHelloAck, hello.AppendAck(nil, &ack, h.Versions)
}

// greet says hello to a process, and returns its refusal; nil: the connection is let in.
func (c *conn) greet(dst *Process) *hello.RefusedError {
	h := c.words()
	kind, answer := dst.answers(hello.Append(nil, &h))
	_, err := h.Answer(kind, answer)
	var refused *hello.RefusedError
	if err != nil && !errors.As(err, &refused) {
		c.w.Watcher.Violate(c.from, "frame", "answer of %s to the hello: %v", c.w.Name(dst.ID), err)
	}
	return refused
}

// visited notifies a process that a node of another cluster has said hello to it.
func (c *conn) visited(dst *Process, why *hello.RefusedError) {
	h, a := c.words(), dst.acceptor()
	if !c.control() || !a.Elsewhere(&h, why) {
		return
	}
	c.w.queue.push(c.w.Now, func() {
		dst.Live(func() {
			dst.Do(membership.AskedCommand{Addr: h.From.Addr, ClusterID: h.ClusterID, Birth: h.Birth})
		})
	})
}

// turnedAway is the arrival of a refusal. What waits for a connection that is refused for good is void.
func (c *conn) turnedAway(idx int, why *hello.RefusedError) {
	if c.to.Inc == 0 && c.control() && why.Differs() {
		c.w.queue.push(c.w.Now, func() {
			c.from.Live(func() {
				c.from.Do(membership.UnreachedCommand{Addr: c.to.Addr, Kind: membership.WaitSettings, Why: why.Error(),
					Setting: why.Key, Ours: why.Ours, Theirs: why.Theirs})
			})
		})
	}
	if !why.Reason.ForGood() {
		c.fail()
		return
	}
	c.state = connRefused
	c.w.Net.dropped += uint64(len(c.waiting))
	c.waiting = nil
	if why.Reason == hello.RefusedIncarnation {
		c.refused(idx, true)
	}
	if id, birth, ok := why.Cluster(); ok {
		c.otherCluster(idx, membership.OtherClusterCommand{Addr: c.to.Addr, ClusterID: id, Birth: birth})
	}
	switch {
	case c.to.Inc == 0: // any that is there next may take it
		c.state = connDialing
		c.fail()
	case c.link != nil:
		c.link.pump()
	case c.bulk != nil:
		c.bulk.pump()
	}
}
