// How large messages of this node come to their end: what their receivers say, what breaks, what nobody waits for.

package driver

import (
	"fmt"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// BulkMoved tells the sender's watch. An upcall of the transport.
func (t *largeTable) BulkMoved(x *flow.BulkTransfer, sent int) {
	if l, ok := x.Owner.(*large); ok && l.watch != nil {
		l.watch.move(sent)
	}
}

// BulkWhole lets the envelope go. An upcall of the transport.
func (t *largeTable) BulkWhole(x *flow.BulkTransfer, ref wire.BulkRef) {
	l, ok := x.Owner.(*large)
	if !ok {
		return
	}
	l.mu.Lock()
	ok = l.x == x && l.life.Arrived()
	if ok {
		l.ref = ref
	}
	l.mu.Unlock()
	if ok {
		t.BulkMoved(x, len(x.Payload))
		t.routes.drainSlot(slotRef{l.r, l.shard})
	}
}

// BulkOver ends a large message or a large reply. An upcall of the transport.
func (t *largeTable) BulkOver(x *flow.BulkTransfer, end flow.BulkEnd, err error) {
	reason := end.Reason
	l, ok := x.Owner.(*large)
	if !ok {
		t.replyOver(x, reason)
		return
	}
	if reason == route.PeerLost && t.stopping.Load() {
		reason = route.Stopped
	}
	ref := slotRef{l.r, l.shard}
	s := ref.slot()
	s.mu.Lock()
	l.mu.Lock()
	if l.x != x {
		l.mu.Unlock()
		s.mu.Unlock()
		return // it was recalled, or is over
	}
	at, term, epoch := l.life.Home()
	sent := l.life.State() == flow.LargeSent
	again := l.life.Ended(reason, plane.Leads(&s.slot, at, term, epoch))
	l.x = nil
	l.mu.Unlock()
	s.mu.Unlock()
	if plane.WrongHome(reason) {
		t.inbox.post(func() { t.routes.nextHome(ref, at, term, epoch) })
	}
	if !again {
		t.end(l, reason, t.failure(l, at, flow.BulkEnd{Reason: reason, Limit: end.Limit}, err),
			t.asks.failWith)
	}
	if !sent {
		t.routes.drainSlot(ref)
	}
}

// failure returns the error of a large message that a node did not take: it names the node, and the bound if one
// caused it.
func (t *largeTable) failure(l *large, to peer.ID, end flow.BulkEnd, err error) error {
	switch {
	case end.Reason == route.OK:
		return nil
	case end.Reason == route.TooLarge && err != nil: // the node's wire version has none: a frame is the most
		return fmt.Errorf("%w (%v)", &RefusedError{Peer: to, Type: l.r.typ.Name, Reason: end.Reason,
			Limit: t.cfg.MaxPayload}, err)
	case boundUnit(end.Reason) != "":
		return &RefusedError{Peer: to, Type: l.r.typ.Name, Reason: end.Reason, Limit: end.Limit}
	case err != nil:
		return fmt.Errorf("%w (%w)", &PeerError{Peer: to, Type: l.r.typ.Name, Reason: end.Reason}, err)
	}
	return &PeerError{Peer: to, Type: l.r.typ.Name, Reason: end.Reason}
}

// lose fails the large messages when their envelope went to a node over a connection that broke.
func (t *largeTable) lose(to *peerConn, err error) {
	if to == nil {
		return
	}
	for _, l := range t.list() {
		l.mu.Lock()
		gone := l.life.LostWith(to.id) && to.of(l.shard) == to
		l.mu.Unlock()
		if gone {
			t.end(l, route.PeerLost, err, t.asks.failWith)
		}
	}
}

// unsent fails the large message of an envelope that the link to a node held and will never send. References are of
// that node's connection: on others the same may stand for other messages.
func (t *largeTable) unsent(to peer.ID, env *wire.Envelope, reason route.Reason, err error) {
	ref, bad := wire.ParseBulkRef(env.Payload)
	if bad != nil {
		return
	}
	for _, l := range t.list() {
		l.mu.Lock()
		found := l.life.LostWith(to) && l.ref == ref && l.id == string(env.ID) && uint32(l.r.id) == env.Type
		l.mu.Unlock()
		if found {
			t.end(l, reason, err, t.asks.failWith)
		}
	}
}

// sweep gives up large asks when nobody waits for the answer any more. Control goroutine.
func (t *largeTable) sweep() {
	for _, l := range t.list() {
		if l.corr != 0 && !t.asks.waits(l.corr) {
			if t.end(l, route.TimedOut, nil, t.asks.failWith) {
				t.routes.drainSlot(slotRef{l.r, l.shard})
			}
		}
	}
}

// fail fails all that is left, at the node's end.
func (t *largeTable) fail() {
	for _, l := range t.list() {
		t.end(l, route.Stopped, transport.ErrClosed, t.asks.failWith)
	}
}
