// Inbound: what a loop does with one envelope, with what comes while the gate is closed, and with messages of its own
// node; and asks of its own node whose callers call the handler themselves.

package exec

import (
	"errors"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
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
	p.sit()
	defer p.rise()
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

// cancelled takes the word of an asker that it has given up.
func (p *pass) cancelled(from peer.ID, f []byte) {
	corr, err := wire.ParseCancel(wire.Body(f))
	if err != nil {
		p.x.needs.InvalidFrames(from, wire.KindCancel, err)
		return
	}
	Cancel(from, corr, p.x)
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
// senders run out of it, and so is that of what comes behind them. Answers to what was asked before are taken.
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
			if kind == wire.KindCancel {
				p.cancelled(c.From(), f)
			} else {
				p.x.needs.Reply(c.From(), f)
			}
		case plane.Unknown:
			p.x.needs.InvalidFrames(c.From(), kind, errNotExpected)
		case plane.Kept:
			copy(p.backlog.room(c, from, n), f)
			p.behind.Keep(c)
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
	if consumed = p.behind.Consumed(c, consumed); consumed > 0 {
		c.Consumed(consumed)
	}
}

// catchUp works off what was kept, in the order in which it came. Then the credit of what came behind it is given back,
// unless the gate has closed again and some of it is kept anew.
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
	p.behind.Release(plane.Gate(p.x.Gate.bits.Load()), p.backlog.size, (*transport.InConn).Consumed)
	for _, t := range b.orders {
		p.order(now, t)
	}
}

// Idle reports whether the caller of an ask may call the handler itself, by Call, while it holds the lock: the shard is
// Inline, its loop does nothing and has nothing to do. Then all that this goroutine has sent there was handled, and
// what others send from now on comes behind this ask. It is false in a handler of such a shard, whose loop is not idle,
// so handlers are not called out of one another, and none that is running is called again.
func Idle(h *Host) (now time.Duration, ok bool) {
	q := h.queue
	if h.t.typ.Mode != entity.Inline || q.awake || !q.in.empty() || !q.seat.TryLock() {
		return 0, false
	}
	now = h.x.Clock.Now()
	if mayCall(h, passOf(h), now) {
		return now, true
	}
	q.seat.Unlock()
	return 0, false
}

// mayCall is what Idle asks with the seat of the loop. Another loop may have an Inline shard that several of them step,
// and may have left something to its holder, which comes first.
func mayCall(h *Host, p *pass, now time.Duration) bool {
	x := h.x
	if x.Gate.Held(now) || x.stopping.Load() || h.closed.Load() || !p.backlog.empty() {
		return false
	}
	if h.alone {
		return true
	}
	if !h.mu.TryLock() {
		return false
	}
	if h.leftover.some.Load() {
		h.mu.Unlock()
		return false
	}
	return true
}

// Call follows Idle, with its now: it gives up the lock, calls the handler of the entity id for env, on this goroutine,
// and returns when that has. hash is that of the id, zero when it is not known. A reason why it is not taken goes to
// Needs.Refused, as of any that a loop handles. Neither a ring nor another goroutine is needed for the answer: that is
// most of what an ask to an Inline entity here costs.
func Call(h *Host, now time.Duration, env *wire.Envelope, hash uint64, id string) {
	h.queue.mu.Unlock()
	p, returned := passOf(h), false
	defer func() {
		if !returned {
			p.callEnded(h, recover())
		}
		p.callOver(h)
	}()
	p.count.enter(h.x)
	n := len(env.Payload)
	p.called = append(append(p.called[:0], env.Payload...), env.Headers...) // which handlers may write to
	env.ID, env.Payload, env.Headers = bytesOf(id), p.called[:n:n], p.called[n:]
	if timed(h.x) && p.timed.Pick(h.x.cfg.LatencyEvery) {
		began := time.Now()
		stands := p.timed.Begin(began, h.x.cfg.LatencyEvery)
		h.take(now, nil, env, hash, tellSender, nil)
		h.t.took(uint32(h.shard), time.Since(began), stands)
	} else {
		h.take(now, nil, env, hash, tellSender, nil)
	}
	returned = true
}

// passOf returns the pass of the loop that has the messages of this node to an Inline host.
func passOf(h *Host) *pass { return h.x.passes[int(h.shard)%len(h.x.passes)] }

// keepCalled is most bytes that a loop keeps for the payload of the next ask whose caller calls the handler itself.
const keepCalled = 64 << 10

// callOver has the loop go on, and others that have left something to the holder of the shard's lock.
func (p *pass) callOver(h *Host) {
	p.count.handled.Add(1)
	p.count.leave()
	if cap(p.called) > keepCalled {
		p.called = nil
	}
	p.rise()
	if h.alone {
		return
	}
	h.mu.Unlock()
	if h.leftover.some.Load() {
		h.queue.order(h, orderLook) // the loop does: whoever asks works for nobody else
	}
}

// callEnded follows a call that did not return: v is what recover returned, which is our own panic, for those of
// handlers are caught where they are called, and ends the process as it does on a loop. Nil: the handler has ended the
// goroutine.
func (p *pass) callEnded(h *Host, v any) {
	if v != nil {
		go func() { panic(v) }() // not where an embedder recovers
		select {}
	}
	entity.Exited(h.sh)
	h.note()
}
