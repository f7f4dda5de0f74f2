// Inbound: what a loop does with one envelope, with what comes while the gate is closed, with messages of its own node
// and what it keeps while a shard moves (plane.ReadsOn); and asks of its own node that call the handler in the caller's
// goroutine.

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

// A loop works off what it has kept for so long before it looks at its sockets: shortly while the marker of a move may
// come, which waits for that; else so long that what it has kept is soon less than what it reads, and it keeps no more.
const (
	workShortly = time.Millisecond
	workLong    = 50 * time.Millisecond
)

// envelope takes one envelope and reports whether somebody else will give its credit back.
func (p *pass) envelope(now time.Duration, c *transport.InConn, from *Source, x *prefetched) bool {
	t := p.ahead.cache.typeOf(p.x, &x.env)
	switch {
	case t == nil || x.env.Shard >= t.shards: // it is refused
	case t.typ.Mode == entity.Worker:
		s := &p.staged[int(x.env.Shard)%len(p.staged)]
		s.buf = append(s.buf, x.frame...)
		return true
	case t.typ.Mode == entity.Inline && p.readsOn:
		p.keeps(x)
		return true
	}
	return p.x.arrive(now, &p.ahead.cache, c, from, x, p)
}

// Run works off what came while the gate was closed, and what waits in the queue of the loop: what this node sent to
// Inline entities, and what loops kept of others. It is a task of the loop.
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
	if !p.workOff(true) && !p.heldUp() {
		loop.Again(p, p.loop)
	}
}

// mayKeep makes a loop work off its queue before it reads on, when all loops have kept as much as one may. The senders'
// credit is the bound; only connections that came and went, each with credit of its own, reach this one.
func (p *pass) mayKeep() {
	if p.x.readsOn.kept.Load() > int64(p.x.cfg.Backlog) {
		p.workOff(false)
	}
}

// workOff works off the queue of the loop and reports whether nothing is left: it stops when the gate closes, and, if
// it may, when it is time to look at the sockets.
func (p *pass) workOff(mayStop bool) (all bool) {
	until, b := stopper{p: p, began: p.x.Clock.Now(), may: mayStop}, &p.local.out
	for all = true; all && (!b.done() || p.local.take() != nil); {
		all = p.batch(p.x.Clock.Now(), b, &until)
	}
	if p.goesOn == all { // what is read until it goes on comes behind what is left
		p.goesOn = !all
		if all {
			p.x.readsOn.kept.Add(-1)
		} else {
			p.x.readsOn.kept.Add(1)
		}
	}
	return all
}

// stopper says when a loop that works off its queue looks at its sockets.
type stopper struct {
	p     *pass
	began time.Duration
	may   bool // look at them
	step  int  // messages between two looks at the clock
}

// atMost returns how many of n messages are handled before now is asked again: the first one alone, since its handler
// may take long, and then more each time.
func (s *stopper) atMost(n int) int {
	if !s.may || s.p.x.readsOn.moving.Load() == 0 {
		return n
	}
	s.step = min(max(2*s.step, 1), aheadFrames)
	return min(n, s.step)
}

// now reports whether it is time.
func (s *stopper) now() bool {
	x := s.p.x
	if !s.may || !x.readsOn.now() || x.stopping.Load() {
		return false
	}
	most := workLong
	if x.readsOn.moving.Load() > 0 {
		most = workShortly
	}
	return x.Clock.Now()-s.began >= most
}

// batch works off a batch from its place on, and reports whether it has ended.
func (p *pass) batch(now time.Duration, b *batch, until *stopper) bool {
	for b.at.chunk < len(b.chunks) {
		for b.at.end < len(b.chunks[b.at.chunk].buf) {
			if p.local.hurry.Load() && !p.heldUp() {
				p.skim(now, b)
			}
			if !p.handful(now, b, until) {
				return false
			}
		}
		b.at.chunk, b.at.end = b.at.chunk+1, 0
	}
	for b.at.orders < len(b.orders) {
		if p.heldUp() {
			return false
		}
		b.at.orders++
		p.order(now, b.orders[b.at.orders-1])
	}
	return true
}

// handful works off frames of the chunk in hand that are looked at together, and reports whether it goes on: not when
// the gate has closed or it is time to look at the sockets. The place of the batch is before the first that was left.
func (p *pass) handful(now time.Duration, b *batch, until *stopper) (goesOn bool) {
	a, c, times := &p.ahead, &b.chunks[b.at.chunk], timed(p.x)
	began, at, elsewhere := b.at.end, 0, 0
	a.at = 0
	rest := a.look(c.buf[began:])
	p.x.Gate.look()
	b.at.end = len(c.buf) - len(rest)
	for at < a.n {
		if p.heldUp() || until.now() {
			break
		}
		end := at + until.atMost(a.n-at)
		if times {
			end = min(end, at+p.timed.room())
		}
		first := at
		at = a.run(now, c.from, at, end)
		p.timed.pass(at - first)
		if at == end && at > first {
			continue
		}
		if p.heldUp() {
			break // it has closed just now
		}
		a.at = at + 1
		if p.timeHere(now, c, &a.next[at], times) {
			elsewhere += len(a.next[at].frame)
		}
		at++
	}
	goesOn = at == a.n
	p.count.handled.Add(uint64(at))
	for ; at < a.n; at++ {
		b.at.end -= len(a.next[at].frame)
	}
	if !goesOn {
		a.n, a.at = 0, 0
	}
	p.worked(c, b.at.end-began, elsewhere)
	return goesOn
}

// worked gives back the credit of so many bytes of a chunk, of some of which somebody else does.
func (p *pass) worked(c *chunk, bytes, elsewhere int) {
	if c.from == nil {
		return // this node's own
	}
	if c.conn != nil && bytes > elsewhere {
		c.conn.Consumed(bytes - elsewhere)
	}
	p.x.readsOn.kept.Add(-int64(bytes))
}

// here gives a frame that waited in the queue of the loop, and is no prefetch hit, to its Inline host. It reports
// whether somebody else gives its credit back.
func (p *pass) here(now time.Duration, c *chunk, x *prefetched) (elsewhere bool) {
	if x.kind != wire.KindEnvelope || x.bad != nil {
		return false // it was skimmed; nothing else can be: this node has made it, or looked at it
	}
	return p.x.arrive(now, &p.ahead.cache, c.conn, c.from, x, p)
}

// skim gives the hosts at their deadline what waits for them here, and their orders.
func (p *pass) skim(now time.Duration, b *batch) {
	p.local.skim(p.x, &p.ahead.cache, b,
		func(from *Source, x *prefetched) { p.x.arrive(now, &p.ahead.cache, nil, from, x, p) },
		func(t hostTask) { t.h.inlineOrder(now, t.o) })
}

// heldUp reports whether what waits in the queue of the loop has to wait on: the gate has closed, or keeps what came
// before it. Then Resume brings the loop back.
func (p *pass) heldUp() bool {
	held := (p.x.Gate.Closed() || p.backlog.size > 0) && !p.x.stopping.Load()
	if held {
		p.waits.Store(true)
	}
	return held
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
	consumed, gate := 0, p.x.Gate.state()
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		f := frames[:n:n]
		frames = frames[n:]
		var env wire.Envelope
		switch kind := wire.KindOf(f); gate.AtGate(kind, n, p.backlog.size, p.x.cfg.Backlog) {
		case plane.GateLeave:
			p.x.leave(&p.ahead.cache, c, from, f)
			continue
		case plane.GatePass:
			switch kind {
			case wire.KindCancel:
				p.cancelled(c.From(), f)
			case wire.KindParcel:
				p.x.needs.Parcel(c, wire.Body(f))
			default:
				p.x.needs.Reply(from, f)
			}
		case plane.Unknown:
			p.x.needs.InvalidFrames(c.From(), kind, errNotExpected)
		case plane.GateQueue:
			copy(p.backlog.room(c, from, n), f)
			p.behind.Keep(c)
			p.waits.Store(true)
			continue
		case plane.GateReject:
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
		p.flush()
		p.conn, p.from = ch.conn, ch.from
		p.read(now, ch.conn, ch.from, ch.buf)
	}
	p.flush()
	p.conn, p.from = nil, nil
	p.behind.Release(p.x.Gate.state(), p.backlog.size, (*transport.InConn).Consumed)
	for _, t := range b.orders {
		p.order(now, t)
	}
}

// Idle reports whether the caller of an ask may call the handler itself, by Call, while it holds the lock: the shard is
// Inline, its loop does nothing and has nothing to do. Then all that this goroutine has sent there was handled, and
// what others send from now on comes behind this ask. It is false in a handler of such a shard, whose loop is not idle,
// so handlers are not called out of one another, and none that runs is called again.
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
	if h.singleThreaded {
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

// keepCalled is most bytes that a loop keeps for the payload of the next ask by Call.
const keepCalled = 64 << 10

// callOver lets the loop go on, and others that have left something to the holder of the shard's lock.
func (p *pass) callOver(h *Host) {
	p.count.handled.Add(1)
	p.count.leave()
	if cap(p.called) > keepCalled {
		p.called = nil
	}
	p.rise()
	if h.singleThreaded {
		return
	}
	h.mu.Unlock()
	if h.leftover.some.Load() {
		h.queue.order(h, orderLook) // the loop does: the caller of an ask works for no other
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
