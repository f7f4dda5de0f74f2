// Suspension of a process's data plane: what would reach a handler waits, in order, until the node goes on.

package world

import (
	"slices"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// gate is whether a process handles user messages, and what waits until it does.
type gate struct {
	suspended bool
	waiting   []held
	kept      int                      // bytes of others' envelopes in waiting
	behind    plane.Behind[connection] // of these
}

// held is what waits at a gate.
type held struct {
	run func()

	// Of an envelope of another process: it, and the generation of the connection on which it came.
	frame []byte
	in    *inbound
	gen   uint32
}

// connection is one generation of a data connection, as its reader has it.
type connection struct {
	in  *inbound
	gen uint32
}

// Held reports whether user messages are not handled now: by the node's order, or because the control loop has not
// stepped for so long, or the session lease has run out, that it is about to give one. A driver's data plane compares
// the same three.
func (p *Process) Held() bool {
	age := p.sinceStep(p.World.Now, p.View)
	return plane.Judged(p.gate.suspended, p.unseen > p.gapLimit).Held(age, p.gapLimit) || p.gate.unleased(p)
}

// hold keeps what would reach a handler for when the process goes on.
func (p *Process) hold(run func()) { p.gate.waiting = append(p.gate.waiting, held{run: run}) }

// pass runs now, or when the process goes on, behind what waits already.
func (p *Process) pass(run func()) {
	if p.Held() || len(p.gate.waiting) > 0 {
		p.hold(run)
		return
	}
	run()
}

// Suspend carries out the node's order.
func (p *Process) Suspend(o *node.Suspend) {
	if o == nil || !o.On && !p.gate.suspended {
		return
	}
	p.gate.suspended = o.On
	if o.On {
		p.World.Watcher.Stops(p, o.Why)
		eachHosted(p, func(h *hosted) { h.life.Suspend() })
		p.World.tell(p, "suspended: %s", o.Why)
	} else {
		p.World.tell(p, "goes on: %s", o.Why)
	}
	p.World.trace.note(p.World.Now, p.Index, opNote, "suspend: "+o.Why)
}

// judgeHealth: a node says that it is suspended exactly while it handles nothing.
func judgeHealth(p *Process) {
	if s := p.Node.State(); p.Alive && (s == membership.StateSuspended) != p.gate.suspended {
		p.World.Watcher.Violate(p, "health", "the node is %s, its gate closed: %t", s, p.gate.suspended)
	}
}

// oversleeps: a process that was asleep for too long, unseen by its clock, handles nothing before its control loop
// knows.
func (g *gate) oversleeps(p *Process) {
	if p.unseen > p.gapLimit {
		p.World.Watcher.Violate(p, "suspended-before", "it handles messages, and its loop knows nothing of %v of sleep",
			p.unseen)
	}
}

// goOn does what has waited, once nothing holds it any more.
func (p *Process) goOn() {
	judgeHealth(p)
	for len(p.gate.waiting) > 0 && p.Alive && !p.Held() {
		next := p.gate.waiting[0]
		p.gate.waiting = p.gate.waiting[1:]
		next.run()
	}
	if p.Alive {
		p.gate.behind.Release(0, p.gate.kept, func(c connection, n int) { p.consume(c.in, c.gen, n) })
	}
}

// arrives takes a frame of a data connection and reports whether its credit is to be given back now. An envelope is
// consumed when it is handled, so that a suspended node's peers run out of credit and their senders learn it. Nor does
// what comes behind one give credit before.
func (p *Process) arrives(in *inbound, from peer.ID, frame []byte) (consumed bool) {
	if !p.Held() && len(p.gate.waiting) == 0 {
		return p.frame(in, in.gen, from, frame)
	}
	n, of := len(frame), connection{in, in.gen}
	switch plane.Gate(0).AtGate(wire.ParseHeader(frame).Kind, n, p.gate.kept, p.World.Config.Data.Keep) {
	case plane.GateQueue:
		frame, gen := slices.Clone(frame), in.gen
		p.World.Plane.Kept++
		p.keeps(frame)
		p.gate.kept += n
		p.gate.behind.Keep(of)
		p.gate.bounds(p)
		p.gate.waiting = append(p.gate.waiting, held{frame: frame, in: in, gen: gen, run: func() {
			p.gate.kept -= n
			if p.frame(in, gen, from, frame) {
				p.consume(in, gen, n)
			}
		}})
		return false
	case plane.GateReject:
		var e wire.Envelope
		p.World.Plane.NoPlace++
		if wire.ParseEnvelope(frame, &e) == nil {
			p.refuse(from, &e, route.Suspended)
		}
		return p.gate.behind.Consumed(of, n) > 0
	}
	return p.frame(in, in.gen, from, frame) && p.gate.behind.Consumed(of, n) > 0
}

// consume gives the credit of a frame back, unless its connection is no more: its credit went with it.
func (p *Process) consume(in *inbound, gen uint32, n int) {
	if in.gen != gen {
		return
	}
	if total, due := in.meter.Consume(n); due {
		p.grant(in, total)
	}
	p.flushCredit(in)
}

// keeps notes that this process has a message now: if it dies, the message dies with it.
func (p *Process) keeps(frame []byte) {
	var e wire.Envelope
	if wire.ParseEnvelope(frame, &e) == nil {
		p.World.place(e.Payload, p)
	}
}
