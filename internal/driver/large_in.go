// Large messages that other nodes send: judged when they begin, taken when the envelope comes that stands for them.

package driver

import (
	"fmt"

	"github.com/kith-io/kith/internal/exec"
	"github.com/kith-io/kith/internal/flow"
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
	return flow.BulkEnd{Reason: d.exec.Judge(&env, b)}
}

// judgeReply judges a large reply. One that is too large for this node is its own to tell the asker.
func (d *Driver) judgeReply(from peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	most := d.cfg.MaxMessage
	switch {
	case d.asks.awaiting(b.Corr, from) == nil:
		return flow.BulkEnd{Reason: route.NoReply}
	case int(b.Size) > most:
		d.asks.settleWhy(b.Corr, route.TooLarge, fmt.Errorf("the reply: %w", d.bounds.tooLarge(nil, int(b.Size))))
		return flow.BulkEnd{Reason: route.TooLarge, Limit: most}
	}
	return flow.BulkEnd{}
}

// BulkReply answers an ask. An upcall of the transport.
func (d *Driver) BulkReply(from peer.ID, corr uint64, payload []byte) {
	d.asks.settleWith(corr, from, payload)
}

// takeLarge returns the large message for which an envelope stands that has come to its host: one of this node by its
// key, one of another by reference.
func (d *Driver) takeLarge(source *exec.Source, env *wire.Envelope) (exec.Large, route.Reason) {
	if source == nil {
		return d.takeOwnLarge(env)
	}
	from := source.ID
	ref, err := wire.ParseBulkRef(env.Payload)
	if err != nil {
		d.nonsense.note(from, wire.KindEnvelope, err)
		return exec.Large{}, route.BadPayload
	}
	payload, free, ok := d.wires.BulkTake(from, ref)
	if !ok { // its connection broke, or its sender gave it up: there is nobody to be told
		return exec.Large{}, route.PeerLost
	}
	return exec.Large{Payload: payload, Release: free, Done: func(reason route.Reason) {
		if reason == route.OK {
			d.wires.BulkEnd(from, ref, flow.BulkEnd{})
		} else {
			free()
		}
	}}, route.OK
}

// takeOwnLarge returns a large message of this node.
func (d *Driver) takeOwnLarge(env *wire.Envelope) (exec.Large, route.Reason) {
	l := d.large.get(env)
	if l == nil {
		return exec.Large{}, route.PeerLost // it was given up
	}
	payload, reason := d.takeOwn(l)
	if reason != route.OK {
		return exec.Large{}, reason
	}
	n := len(payload)
	release := func() {
		d.large.bytes.Give(n)
		d.room.ringAll()
	}
	return exec.Large{Payload: payload, Release: release, Done: func(reason route.Reason) {
		if reason != route.OK {
			d.untakeOwn(l, n)
		} else if cancel, ok := d.close(l); ok {
			cancel()
			d.toldLarge(l, route.OK, nil, d.asks.settleWhy)
		}
	}}, route.OK
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
		d.wires.BulkEnd(from.id, ref, flow.BulkEnd{Reason: reason, Limit: d.bounds.limitOf(r, reason)})
	}
}
