// Take: the one way of a message into a shard. It is delivered, what follows is settled, and one that is not taken is
// refused, however it came.

package exec

import (
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// refusalTarget says where it is reported that a message was not taken.
type refusalTarget uint8

const (
	tellSender refusalTarget = 0 // to its sender: it came in a frame
	tellCaller refusalTarget = 1 // to the caller, by the reason that is returned; it is counted
	tellDrain  refusalTarget = 2 // the same; the caller goes on with what waited for a route, and counts it
)

// hostOf returns the host that owns the envelope's shard under its fence, or the reason why it is refused.
func (x *Exec) hostOf(c *typeCache, env *wire.Envelope) (*Host, route.Reason) {
	t := c.typeOf(x, env)
	if t == nil {
		return nil, route.NotRegistered
	}
	if env.Shard >= t.shards {
		return nil, route.NotOwner
	}
	h := t.hosts.Find(route.ShardID(env.Shard)).Load()
	if h == nil {
		return nil, route.NotOwner
	}
	if why := plane.Accept(env, h.term, h.epoch, x.cfg.MaxPayload); why != route.OK {
		return nil, why
	}
	if h.closed.Load() && h.end.lost.Load() {
		return nil, x.abandonedWhy()
	}
	return h, route.OK
}

// abandonedWhy is why an abandoned host takes nothing: the node ends, or others own its shard.
func (x *Exec) abandonedWhy() route.Reason { return plane.Abandoned(x.ended.Load()) }

// Judge says whether the large message b would be taken, for which env stands without a payload: route.OK, or why not.
func (x *Exec) Judge(env *wire.Envelope, b *wire.BulkBegin) route.Reason {
	h, reason := x.hostOf(&typeCache{}, env)
	if reason == route.OK {
		reason = plane.AcceptLarge(b, h.term, h.epoch, h.end.began.Load())
	}
	if reason == route.Abandoned { // it has not come yet, so nothing is: and a node of an earlier version knows no other
		reason = route.Stopped
	}
	return reason
}

// arrive gives an envelope to its host, or refuses it. It reports whether somebody else gives its credit back. p
// is the loop that reads it, if one does.
func (x *Exec) arrive(now time.Duration, cache *typeCache, c *transport.InConn, from *Source, f *prefetched,
	p *pass) (elsewhere bool) {
	h, reason := x.hostOf(cache, &f.env)
	if reason != route.OK {
		x.refuse(cache.typeOf(x, &f.env), from, &f.env, reason)
		return false
	}
	switch h.t.typ.Mode {
	case entity.Inline:
		return h.inline(now, c, from, f.frame, &f.env, f.hash)
	case entity.Blocking:
		h.mu.Lock()
	}
	h.take(now, from, &f.env, f.hash, tellSender, p)
	return false
}

// take gives one message to its shard and returns what came of it. Called where the host's messages are ordered; the
// lock of a Blocking host is held, and is given up. from is nil for this node, hash zero when that of the id is not
// known. What became ready is left to p, if it is not nil, until its pass ends.
func (h *Host) take(now time.Duration, from *Source, env *wire.Envelope, hash uint64, to refusalTarget,
	p *pass) route.Reason {
	reason, sender := route.OK, entity.Sender(nil)
	if env.Flags&wire.FlagWait != 0 && h.t.typ.Mode == entity.Blocking {
		switch {
		case to == tellCaller:
			sender = (*here)(h.x)
		case p != nil && from != nil:
			sender, reason = h.x.senderOf(env, p.conn.Waiting())
		}
	}
	if h.queue != nil && !h.endReported {
		cutIfDue(h, now)
		revokeLease(h, now)
	}
	if reason == route.OK {
		reason = h.deliver(now, from, env, hash, sender)
	}
	if h.t.typ.Mode == entity.Blocking {
		if p != nil {
			h.x.pool.collect(h, &p.ready)
		} else {
			h.x.pool.run(h)
		}
		h.x.pool.note(h)
		h.mu.Unlock()
	} else {
		h.note()
	}
	if reason != route.OK {
		switch to {
		case tellSender:
			h.x.refuse(h.t, from, env, reason)
		case tellCaller:
			h.t.countRefused(reason)
		}
	}
	return reason
}

// refuse counts an envelope that is not taken, and tells its sender. t is nil when the type is not registered here.
// After Settle it does nothing: what stood behind a handler that returns late is reported already.
func (x *Exec) refuse(t *Type, from *Source, env *wire.Envelope, reason route.Reason) {
	if !x.settled.Load() {
		x.refuseNow(t, from, env, reason)
	}
}

func (x *Exec) refuseNow(t *Type, from *Source, env *wire.Envelope, reason route.Reason) {
	switch {
	case from == nil && reason == route.Abandoned: // it had been accepted: that is another count
	case t != nil:
		t.countRefused(reason)
	default:
		x.unregistered.Add(1)
	}
	kept := *env // so that nobody's envelope has to be on the heap because of those that are refused
	x.needs.Refused(t, from, &kept, reason)
}

// leave leaves a frame of another node as it is. Its sender knows it as lost with the connection, or with this node; if
// the connection is over already, and the frame was taken then, it is refused.
func (x *Exec) leave(cache *typeCache, c *transport.InConn, from *Source, frame []byte) {
	if !wire.IsTell(frame) || c.Leave(1) {
		return
	}
	var env wire.Envelope
	if wire.ParseEnvelope(frame, &env) == nil {
		x.refuseNow(cache.typeOf(x, &env), from, &env, route.Abandoned)
	}
}

// deliver gives one message to the shard. sender, if not nil, waits for room.
func (h *Host) deliver(now time.Duration, from *Source, env *wire.Envelope, hash uint64,
	sender entity.Sender) route.Reason {
	now = h.x.Clock.Fresh(now)
	if env.Flags&wire.FlagBulk != 0 {
		return h.deliverLarge(now, from, env)
	}
	var m entity.Message // field by field: a literal is built elsewhere and copied, and the copy waits for its stores
	m.Hash, m.Corr, m.Parked = hash, env.Corr, env.Flags&wire.FlagParked != 0
	m.ID, m.Payload, m.Sender = env.ID, env.Payload, sender
	if sender != nil {
		m.Here = from == nil
	}
	if env.Flags&wire.FlagAsk != 0 {
		m.From = h.x.originOf(from)
	}
	if env.Flags&(wire.FlagLimit|wire.FlagHeaders) != 0 {
		now = h.x.more(now, env, &m)
	}
	return h.sh.Deliver(now, &m)
}

// more gives m what only some envelopes have, and returns the time: that of the batch may have passed long ago.
func (x *Exec) more(now time.Duration, env *wire.Envelope, m *entity.Message) time.Duration {
	if env.Flags&wire.FlagLimit != 0 {
		now = max(now, x.Clock.Ticked())
		m.Limit = plane.LimitAt(env.Limit, now)
	}
	if env.Flags&wire.FlagHeaders != 0 {
		m.Headers = env.Headers
	}
	return now
}

// deliverLarge gives the message to the shard for which an envelope stands. A Blocking entity need not copy it.
func (h *Host) deliverLarge(now time.Duration, from *Source, env *wire.Envelope) route.Reason {
	kept := *env
	large, reason := h.x.needs.Large(from, &kept)
	if reason != route.OK {
		return reason
	}
	m := entity.Message{Corr: env.Corr, ID: env.ID, Payload: large.Payload}
	if env.Flags&wire.FlagAsk != 0 {
		m.From = h.x.originOf(from)
	}
	now = h.x.more(now, env, &m)
	if h.t.typ.Mode == entity.Blocking {
		m.Loan = &entity.Loan{Release: large.Release}
	}
	reason = h.sh.Deliver(now, &m)
	if reason == route.OK && m.Loan == nil {
		large.Release()
	}
	large.Done(reason)
	return reason
}
