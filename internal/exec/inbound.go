// Inbound: what a loop does with one envelope, with what comes while the gate is closed, and with messages of its own
// node.

package exec

import (
	"errors"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/loop"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// errNotExpected is the fault of a frame that no peer sends to this node.
var errNotExpected = errors.New("exec: a frame of this kind is not expected")

// envelope takes one envelope and reports whether somebody else will give its credit back.
func (p *pass) envelope(now time.Duration, c *transport.InConn, from *Source, x *foreseen) bool {
	t := p.ahead.cache.typeOf(p.x, &x.env)
	if t != nil && t.typ.Mode == entity.Worker && x.env.Shard < t.shards {
		s := &p.staged[int(x.env.Shard)%len(p.staged)]
		s.buf = append(s.buf, x.frame...)
		return true
	}
	return p.x.arrive(now, &p.ahead.cache, c, from, x, p)
}

// Run works off what came while the gate was closed, and what this node sent to Inline entities. It is a task of the
// loop.
func (p *pass) Run(*loop.Loop) {
	now := p.x.Clock.Now()
	if p.x.Gate.Held(now) && !p.x.stopping.Load() {
		p.waits.Store(true)
		return
	}
	p.count.enter(p.x)
	defer p.count.leave()
	p.catchUp(now)
	for b := p.local.take(); b != nil; b = p.local.take() {
		now := p.x.Clock.Now()
		n := 0
		for i := range b.chunks {
			n += p.own(now, b, i)
		}
		for _, t := range b.orders {
			p.order(now, t)
		}
		p.count.handled.Add(uint64(n))
	}
}

// own gives the frames of this node in one chunk of a batch to their Inline hosts, and returns how many they are.
func (p *pass) own(now time.Duration, b *batch, nth int) (n int) {
	a, buf, times := &p.ahead, b.chunks[nth].buf, timed(p.x)
	for rest := buf; len(rest) > 0; {
		a.at = 0
		rest = a.look(rest)
		b.at = place{nth, len(buf) - len(rest)}
		n += a.n
		for at := 0; at < a.n; at++ {
			end := a.n
			if times {
				end = min(end, at+p.timed.room())
			}
			if at < end && p.backlog.size == 0 {
				to := a.run(now, nil, at, end)
				p.timed.pass(to - at)
				if at = to; at == a.n {
					break
				}
			}
			a.at = at + 1
			if times {
				p.timeHere(now, &a.next[at])
			} else {
				p.here(now, &a.next[at])
			}
		}
	}
	return n
}

// here gives a frame of this node that is not as foreseen to its Inline host.
func (p *pass) here(now time.Duration, x *foreseen) {
	if x.kind != wire.KindEnvelope || x.bad != nil {
		return // cannot be: this node has made it
	}
	if (p.x.Gate.Closed() || p.backlog.size > 0) && !p.x.stopping.Load() {
		copy(p.backlog.room(nil, nil, len(x.frame)), x.frame)
		p.waits.Store(true)
		return
	}
	p.x.arrive(now, &p.ahead.cache, nil, nil, x, p)
}

// order carries out an order for an Inline host, behind what is kept.
func (p *pass) order(now time.Duration, t hostTask) {
	if !p.backlog.empty() {
		p.backlog.orders = append(p.backlog.orders, t)
		return
	}
	t.h.inlineOrder(now, t.o)
}

// keep copies envelopes that came while the gate is closed; their credit is given back when they have been handled, so
// senders run out of it. Answers to what was asked before are taken.
func (p *pass) keep(c *transport.InConn, from *Source, frames []byte) {
	consumed, gate := 0, plane.Gate(p.x.Gate.bits.Load())
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		f := frames[:n:n]
		frames = frames[n:]
		var env wire.Envelope
		switch kind := wire.KindOf(f); gate.AtGate(kind, n, p.backlog.size, p.x.cfg.Backlog) {
		case plane.Left:
			p.x.leave(&p.ahead.cache, c, from, f)
			continue
		case plane.GoesOn:
			p.x.needs.Reply(c.From(), f)
		case plane.Unknown:
			p.x.needs.InvalidFrames(c.From(), kind, errNotExpected)
		case plane.Kept:
			copy(p.backlog.room(c, from, n), f)
			p.waits.Store(true)
			continue
		case plane.NoPlace:
			if wire.ParseEnvelope(f, &env) != nil {
				break
			}
			p.x.refuse(p.ahead.cache.typeOf(p.x, &env), from, &env, route.Suspended)
		}
		consumed += n
	}
	if consumed > 0 {
		c.Consumed(consumed)
	}
}

// catchUp works off what was kept, in the order in which it came.
func (p *pass) catchUp(now time.Duration) {
	if p.backlog.empty() {
		return
	}
	b := p.backlog
	p.backlog = batch{}
	for i := range b.chunks {
		ch := &b.chunks[i]
		if ch.conn != nil {
			p.flush()
			p.conn, p.from = ch.conn, ch.from
			p.read(now, ch.conn, ch.from, ch.buf)
			continue
		}
		p.own(now, &b, i)
	}
	p.flush()
	p.conn, p.from = nil, nil
	for _, t := range b.orders {
		p.order(now, t)
	}
}
