// Large messages that other nodes send: judged when they begin, taken when the envelope comes that stands for them.

package driver

import (
	"fmt"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// BulkBegin judges a large message before its payload comes: the shard lives here under that fence, or somebody waits
// for that reply. An upcall of the transport.
func (t *largeTable) BulkBegin(from peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	if t.stopping.Load() {
		return flow.BulkEnd{Reason: route.Stopped}
	}
	if b.Reply {
		return t.judgeReply(from, b)
	}
	env := wire.Envelope{Type: b.Type, Shard: b.Shard, Term: b.Term, Epoch: b.Epoch}
	return flow.BulkEnd{Reason: t.exec.Judge(&env, b)}
}

// judgeReply judges a large reply. One that is too large for this node is its own to tell the asker.
func (t *largeTable) judgeReply(from peer.ID, b *wire.BulkBegin) flow.BulkEnd {
	most := t.cfg.MaxMessage
	switch {
	case t.asks.awaiting(b.Corr, from) == nil:
		return flow.BulkEnd{Reason: route.NoReply}
	case int(b.Size) > most:
		over := fmt.Errorf("the reply: %w", t.bounds.tooLarge(nil, int(b.Size)))
		t.asks.failWith(b.Corr, route.TooLarge, route.Ran(over))
		return flow.BulkEnd{Reason: route.TooLarge, Limit: most}
	}
	return flow.BulkEnd{}
}

// BulkReply answers an ask. An upcall of the transport.
func (t *largeTable) BulkReply(from peer.ID, corr uint64, payload []byte) {
	t.asks.concludeWith(corr, from, payload)
}

// take returns the large message for which an envelope stands that has come to its host: one of this node by its
// key, one of another by reference.
func (t *largeTable) take(source *exec.Source, env *wire.Envelope) (exec.Large, route.Reason) {
	if source == nil {
		return t.takeHere(env)
	}
	from := source.ID
	ref, err := wire.ParseBulkRef(env.Payload)
	if err != nil {
		t.nonsense.note(from, wire.KindEnvelope, err)
		return exec.Large{}, route.BadPayload
	}
	payload, free, ok := t.wires.BulkTake(from, ref)
	if !ok { // its connection broke, or its sender gave it up: nobody waits for a reason
		return exec.Large{}, route.PeerLost
	}
	return exec.Large{Payload: payload, Release: free, Done: func(reason route.Reason) {
		if reason == route.OK {
			t.wires.BulkEnd(from, ref, flow.BulkEnd{})
		} else {
			free()
		}
	}}, route.OK
}

// takeHere returns a large message of this node.
func (t *largeTable) takeHere(env *wire.Envelope) (exec.Large, route.Reason) {
	l := t.get(env)
	if l == nil {
		return exec.Large{}, route.PeerLost // it was given up
	}
	payload, reason := t.takeOwn(l)
	if reason != route.OK {
		return exec.Large{}, reason
	}
	n := len(payload)
	release := func() {
		t.bytes.Give(n)
		t.room.ringAll()
	}
	return exec.Large{Payload: payload, Release: release, Done: func(reason route.Reason) {
		if reason != route.OK {
			t.untakeOwn(l, n)
		} else if cancel, ok := t.close(l); ok {
			cancel()
			t.told(l, route.OK, nil, t.asks.failWith)
		}
	}}, route.OK
}

// refuse tells the sender of a large message that it was not taken. r is nil when the type is not registered here.
func (t *largeTable) refuse(r *Region, from *peerConn, env *wire.Envelope, reason route.Reason) {
	if from == nil {
		if l := t.get(env); l != nil {
			var err error
			if boundUnit(reason) != "" {
				err = l.r.errOf(reason)
			}
			t.end(l, reason, err, t.asks.failWith)
		}
		return
	}
	if ref, err := wire.ParseBulkRef(env.Payload); err == nil {
		t.wires.BulkEnd(from.id, ref, flow.BulkEnd{Reason: reason, Limit: t.bounds.limitOf(r, reason)})
	}
}
