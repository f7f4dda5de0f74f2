// Suspension of a process's data plane: what would reach a handler waits, in order, until the node goes on.

package sim

import (
	"time"

	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// gate is whether a process handles user messages, and what waits until it does.
type gate struct {
	suspended bool
	waiting   []func()
	limit     time.Duration // age of the control loop's last step above which the data plane handles nothing
}

// held reports whether user messages are not handled now: by the node's order, or because the control loop has not
// stepped for so long that it is about to give one. A driver's data plane compares the same two.
func (p *proc) held() bool {
	if p.gate.suspended || p.unseen > p.gate.limit {
		return true
	}
	return p.view != nil && len(p.view.Members) > 1 && p.clock()-p.stepped > p.gate.limit
}

// hold keeps what would reach a handler for when the process goes on.
func (p *proc) hold(run func()) { p.gate.waiting = append(p.gate.waiting, run) }

// pass runs now, or when the process goes on.
func (p *proc) pass(run func()) {
	if p.held() {
		p.hold(run)
		return
	}
	run()
}

// suspend carries out the node's order.
func (p *proc) suspend(o *node.Suspend) {
	if o == nil || !o.On && !p.gate.suspended {
		return
	}
	p.gate.suspended = o.On
	if o.On {
		p.w.check.stops(p, o.Why)
		p.w.tell(p, "suspended: %s", o.Why)
	} else {
		p.w.tell(p, "goes on: %s", o.Why)
	}
	p.w.trace.note(p.w.now, p.idx, opNote, "suspend: "+o.Why)
}

// goOn does what has waited, once nothing holds it any more.
func (p *proc) goOn() {
	for len(p.gate.waiting) > 0 && p.alive && !p.held() {
		run := p.gate.waiting[0]
		p.gate.waiting = p.gate.waiting[1:]
		run()
	}
}

// envelope takes one envelope of a data connection; it is consumed when it is handled, so that a suspended node's peers
// run out of credit and their senders learn it.
func (p *proc) envelope(in *inbound, from peer.ID, frame []byte) {
	gen := in.gen
	p.keeps(frame)
	p.hold(func() {
		p.frame(from, frame)
		if in.gen != gen {
			return // of a connection that is no more: its credit went with it
		}
		if total, due := in.meter.Consume(len(frame)); due {
			p.grant(in, total)
		}
		p.flushCredit(in)
	})
}

// keeps notes that this process has a message now: if it dies, the message dies with it.
func (p *proc) keeps(frame []byte) {
	var e wire.Envelope
	if wire.ParseEnvelope(frame, &e) == nil {
		p.w.place(e.Payload, p)
	}
}

func isEnvelope(frame []byte) bool { return wire.ParseHeader(frame).Kind == wire.KindEnvelope }
