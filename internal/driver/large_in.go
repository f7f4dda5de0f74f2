// Large messages that other nodes send: judged when they begin, taken when the envelope comes that stands for them.

package driver

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// share names whose share of the transport's rooms a peer uses: its own as a member, one for all who are none.
func (d *Driver) share(from peer.ID) peer.ID {
	if _, known := d.View().Member(from); known {
		return from
	}
	return peer.ID{}
}

// BulkBegin judges a large message before its payload comes: the shard lives here under that fence, or somebody waits
// for that reply. An upcall of the transport.
func (d *Driver) BulkBegin(from peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	if d.stopping.Load() {
		return flow.BulkEnd{Reason: route.Stopped}
	}
	if b.Reply {
		return d.judgeReply(from, b)
	}
	env := wire.Envelope{Type: b.Type, Shard: b.Shard, Term: b.Term, Epoch: b.Epoch}
	h, reason := d.hostOf(&regionCache{}, &env)
	if reason == route.OK {
		reason = plane.AcceptLarge(b, h.term, h.epoch, h.ending.Load())
	}
	return flow.BulkEnd{Reason: reason}
}

// judgeReply judges a large reply. One that is too large for this node is its own to tell the asker.
func (d *Driver) judgeReply(from peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	most := d.cfg.MaxMessage
	switch {
	case d.asks.awaiting(b.Corr, from) == nil:
		return flow.BulkEnd{Reason: route.NoReply}
	case int(b.Size) > most:
		d.asks.settleWhy(b.Corr, route.TooLarge, fmt.Errorf("the reply: %w", d.tooLarge(nil, int(b.Size))))
		return flow.BulkEnd{Reason: route.TooLarge, Limit: most}
	}
	return flow.BulkEnd{}
}

// BulkReply answers an ask. An upcall of the transport.
func (d *Driver) BulkReply(from peer.ID, corr uint64, payload []byte) {
	d.asks.settleWith(corr, from, payload)
}

// deliverLarge gives a large message to the shard, when its envelope has come: one of this node by its key, one of
// another by reference. Whoever orders the host's messages calls it. What is not accepted is the caller's to refuse.
func (h *host) deliverLarge(now time.Duration, from *remote, env *wire.Envelope) route.Reason {
	m := entity.Message{Corr: env.Corr, ID: env.ID}
	if from == nil {
		return h.deliverOwn(now, &m, env)
	}
	d := h.r.d
	if env.Flags&wire.FlagAsk != 0 {
		m.From = from
	}
	ref, err := wire.ParseBulkRef(env.Payload)
	if err != nil {
		d.nonsense(from.id, wire.KindEnvelope, err)
		return route.BadPayload
	}
	payload, free, ok := d.wires.BulkTake(from.id, ref)
	if !ok {
		return route.PeerLost // its connection broke, or its sender gave it up: there is nobody to be told
	}
	reason := h.deliverLoan(now, &m, payload, free)
	if reason == route.OK {
		d.wires.BulkEnd(from.id, ref, flow.BulkEnd{})
	} else {
		free()
	}
	return reason
}

// deliverOwn gives a large message of this node to the shard.
func (h *host) deliverOwn(now time.Duration, m *entity.Message, env *wire.Envelope) route.Reason {
	d := h.r.d
	if env.Flags&wire.FlagAsk != 0 {
		m.From = &d.origin
	}
	l := d.large.get(env)
	if l == nil {
		return route.PeerLost // it was given up
	}
	payload, reason := d.takeOwn(l)
	if reason != route.OK {
		return reason
	}
	n := len(payload)
	reason = h.deliverLoan(now, m, payload, func() {
		d.large.bytes.Give(n)
		d.room.ringAll()
	})
	if reason != route.OK {
		d.untakeOwn(l, n)
		return reason
	}
	if cancel, ok := d.close(l); ok {
		cancel()
		d.toldLarge(l, route.OK, nil, d.asks.settleWhy)
	}
	return route.OK
}

// deliverLoan gives a payload to the shard that need not be copied. When it is accepted, free is called once nobody
// needs it any more; else it is the caller's again.
func (h *host) deliverLoan(now time.Duration, m *entity.Message, payload []byte, free func()) route.Reason {
	m.Payload = payload
	if h.r.typ.Mode == entity.Blocking {
		m.Loan = &entity.Loan{Release: free}
	}
	reason := h.sh.Deliver(now, m)
	if reason == route.OK && m.Loan == nil {
		free()
	}
	return reason
}

// refuseLarge tells the sender of a large message that it was not taken. r is nil when the type is not registered here.
func (d *Driver) refuseLarge(r *Region, from *remote, env *wire.Envelope, reason route.Reason) {
	if from == nil {
		if l := d.large.get(env); l != nil {
			var err error
			if boundUnit(reason) != "" {
				err = l.r.errOf(reason)
			}
			d.endLarge(l, reason, err, d.asks.settleWhy)
		}
		return
	}
	if ref, err := wire.ParseBulkRef(env.Payload); err == nil {
		d.wires.BulkEnd(from.id, ref, flow.BulkEnd{Reason: reason, Limit: d.limitOf(r, reason)})
	}
}
