// Inbound: what the transport's loops read is parsed in place and goes to its host, to its worker, or back as refused.

package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// errNotExpected is the fault of a frame that no peer sends to this node.
var errNotExpected = errors.New("driver: a frame of this kind is not expected")

// hostOf returns the host that owns the envelope's shard under its fence, or the reason why it is refused.
func (d *Driver) hostOf(c *regionCache, env *wire.Envelope) (*host, route.Reason) {
	r := c.region(d, env)
	if r == nil {
		return nil, route.NotRegistered
	}
	if env.Shard >= r.shards {
		return nil, route.NotOwner
	}
	h := r.hosts[env.Shard].Load()
	if h == nil {
		return nil, route.NotOwner
	}
	if why := plane.Accept(env, h.term, h.epoch, d.cfg.MaxPayload); why != route.OK {
		return nil, why
	}
	if h.abandoned.Load() {
		return nil, d.abandonedWhy()
	}
	return h, route.OK
}

// abandonedWhy is why an abandoned host takes nothing: the node ends, or others own its shard.
func (d *Driver) abandonedWhy() route.Reason {
	return plane.Abandoned(d.stopping.Load())
}

// refuse tells the sender of an envelope that it was not taken: an ask is answered, a tell is counted and reported.
// r is nil when the type is not registered here.
func (d *Driver) refuse(r *Region, from *remote, env *wire.Envelope, reason route.Reason) {
	if r != nil {
		r.count.refused(reason)
	} else {
		d.count.unregistered.Add(1)
	}
	switch {
	case env.Flags&wire.FlagBulk != 0:
		d.refuseLarge(r, from, env, reason)
	case env.Flags&wire.FlagAsk != 0 && from == nil:
		d.asks.settleQuietly(env.Corr, reason)
	case env.Flags&wire.FlagAsk != 0:
		var text [64]byte
		if err := from.answer(env.Corr, reason, d.appendLimit(text[:0], r, reason)); err != nil {
			d.log.Debug("refusal not answered", "peer", from.id, "reason", reason, "error", err)
		}
	case from == nil:
		d.failed.add(r, route.ShardID(env.Shard), cause{d.self, reason, d.limitOf(r, reason)}, 1, env.ID)
	default:
		from.refuse(plane.KeyOf(env, reason), env.ID)
	}
}

// envelope takes one envelope and reports whether somebody else will give its credit back. hash is zero when that of
// the id is not known.
func (p *pass) envelope(now time.Duration, c *transport.InConn, from *remote, f []byte, env *wire.Envelope,
	hash uint64) bool {
	r := p.ahead.cache.region(p.d, env)
	if r != nil && r.typ.Mode == entity.Worker && env.Shard < r.shards {
		s := &p.staged[int(env.Shard)%len(p.staged)]
		s.buf = append(s.buf, f...)
		return true
	}
	h, reason := p.d.hostOf(&p.ahead.cache, env)
	if reason == route.OK {
		if r.typ.Mode == entity.Inline {
			return h.inline(now, c, from, f, env, hash)
		}
		h.mu.Lock()
		reason = h.deliver(now, from, env, 0)
		p.jobs = p.d.pool.collect(h, p.jobs)
		h.note()
		h.mu.Unlock()
	}
	if reason != route.OK {
		p.d.refuse(r, from, env, reason)
	}
	return false
}

func (p *pass) reply(c *transport.InConn, f []byte) {
	status, corr, payload, err := wire.ParseReply(f)
	if err == nil && !route.Reason(status).Known() {
		err = fmt.Errorf("%w: status %d", wire.ErrBadValue, status)
	}
	if err != nil {
		p.d.nonsense(c.From(), wire.KindReply, err)
		return
	}
	p.d.asks.answered(corr, c.From(), route.Reason(status), payload)
}

// Run works off what came while the gate was closed, and what this node sent to Inline entities. It is a task of the
// loop.
func (p *pass) Run(*transport.Loop) {
	now := p.d.now()
	if p.d.held(now) && !p.d.stopping.Load() {
		p.waits.Store(true)
		return
	}
	p.count.enter(p.d)
	defer p.count.leave()
	p.catchUp(now)
	for b := p.local.take(); b != nil; b = p.local.take() {
		now := p.d.now()
		n := 0
		b.frames(func(_ *remote, f []byte) {
			n++
			if p.d.cfg.Latency != nil {
				p.timeHere(now, f)
				return
			}
			p.here(now, f)
		})
		for _, t := range b.orders {
			p.order(now, t)
		}
		p.count.handled.Add(uint64(n))
	}
}

// here gives a frame of this node to its Inline host.
func (p *pass) here(now time.Duration, f []byte) {
	var env wire.Envelope
	if wire.ParseEnvelope(f, &env) != nil {
		return
	}
	if (p.d.gate.bits.Load() != 0 || p.backlog.size > 0) && !p.d.stopping.Load() {
		copy(p.backlog.room(nil, nil, len(f)), f)
		p.waits.Store(true)
		return
	}
	h, reason := p.d.hostOf(&p.ahead.cache, &env)
	if reason != route.OK {
		p.d.refuse(p.ahead.cache.region(p.d, &env), nil, &env, reason)
		return
	}
	h.inline(now, nil, nil, f, &env, 0)
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
func (p *pass) keep(c *transport.InConn, from *remote, frames []byte) {
	consumed := 0
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		f := frames[:n:n]
		frames = frames[n:]
		var env wire.Envelope
		switch kind := wire.KindOf(f); plane.AtGate(kind, n, p.backlog.size, plane.KeepMost) {
		case plane.GoesOn:
			p.reply(c, f)
		case plane.Unknown:
			p.d.nonsense(c.From(), kind, errNotExpected)
		case plane.Kept:
			copy(p.backlog.room(c, from, n), f)
			p.waits.Store(true)
			continue
		case plane.NoPlace:
			if wire.ParseEnvelope(f, &env) != nil {
				break
			}
			p.d.refuse(p.ahead.cache.region(p.d, &env), from, &env, route.Suspended)
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
		for at := 0; at < len(ch.buf); {
			n := wire.SizeOf(ch.buf[at:])
			p.here(now, ch.buf[at:at+n:at+n])
			at += n
		}
	}
	p.flush()
	p.conn, p.from = nil, nil
	for _, t := range b.orders {
		p.order(now, t)
	}
}

// Control takes one control frame. It is an upcall of the transport, on the control loop.
func (d *Driver) Control(from peer.ID, kind wire.Kind, body []byte, arrived time.Duration) {
	who := from
	if _, known := d.View().Member(from); !known {
		who = peer.ID{}
	}
	d.inbox.frame(who, from, kind, arrived, body)
}

// Undelivered fails what a link held and will never send: asks are answered, tells are reported. An upcall of the
// transport, from a goroutine that may take its time.
func (d *Driver) Undelivered(id peer.ID, frames []byte, err error) {
	reason := plane.WhyUnsent(errors.Is(err, route.ErrStopped))
	regions := d.regions.Load()
	var env wire.Envelope
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		f := frames[:n:n]
		frames = frames[n:]
		what := plane.GiveUp(f, &env)
		if what == plane.UnsentReply {
			d.count.repliesLost.Add(1)
		}
		if what < plane.UnsentLarge {
			continue
		}
		r := regions.byID[route.TypeID(env.Type)]
		if r == nil {
			continue // cannot be: a region has sent it
		}
		r.count.unsent.Add(1)
		switch what {
		case plane.UnsentLarge:
			d.unsentLarge(&env, reason, err)
		case plane.UnsentAsk:
			d.asks.settleQuietly(env.Corr, reason)
		default:
			d.failed.add(r, route.ShardID(env.Shard), cause{peer: id, reason: reason}, 1, env.ID)
		}
	}
	d.log.Debug("link dropped what it held", "peer", id, "error", err)
}

// LinkRoom goes on with drains and callers that met a full link.
func (d *Driver) LinkRoom(l *transport.Link) {
	d.room.ring(l)
	if d.drains.Load() { // a link that is never idle for long tells of room thousands of times a second
		d.inbox.post(func() { d.control.agenda.Roomy() })
	}
}
