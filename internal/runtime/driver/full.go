// Full: the typed errors of bounds; each names what is full and how much it holds, and is made once, so that refusing
// costs no allocation.

package driver

import (
	"fmt"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// The typed errors of bounds and nodes, by the names that this package knows them by.
type (
	// RefusedError is package route's.
	RefusedError = route.RefusedError
	// PeerError is package route's.
	PeerError = route.PeerError
	// AsksFullError is package route's.
	AsksFullError = route.AsksFullError
)

// boundUnit returns what the limit of a reason counts, empty for one that comes from no bound.
func boundUnit(r route.Reason) string { return r.Unit() }

// bounds says how large this node's own bounds are, and makes their errors. It is immutable.
type bounds struct {
	self peer.ID
	cfg  *Config
}

// tooLarge is the error of a payload or a reply over this node's MaxMessage. r is nil for a reply.
func (b *bounds) tooLarge(r *Region, size int) error {
	e := &RefusedError{Peer: b.self, Reason: route.TooLarge, Limit: b.cfg.MaxMessage}
	if r != nil {
		e.Type = r.typ.Name
	}
	return fmt.Errorf("%w, got %d", e, size)
}

// limitOf returns the bound of this node that a refusal is due to, zero when there is none. r is nil for a type that is
// not known here.
func (b *bounds) limitOf(r *Region, reason route.Reason) int {
	all := plane.Bounds{Budget: b.cfg.MailboxBudget, Entities: entity.MaxEntities, Queue: b.cfg.localBuffer(),
		Large: b.cfg.BulkBudget, Payload: b.cfg.MaxPayload, Kept: b.cfg.backlog}
	if r != nil {
		all.Mailbox = r.typ.MailboxBytes
	}
	return all.Limit(reason)
}

// fullHere returns the errors of this node's own bounds for the entities of a type, made once.
func (b *bounds) fullHere(r *Region) (all [route.Reasons]error) {
	for i := range all {
		if reason := route.Reason(i); boundUnit(reason) != "" {
			all[i] = &RefusedError{Peer: b.self, Type: r.typ.Name, Reason: reason,
				Limit: b.limitOf(r, reason)}
		}
	}
	return all
}

// errOf returns the error of a refusal by this node.
func (r *Region) errOf(reason route.Reason) error {
	if reason.Known() && r.full[reason] != nil {
		return r.full[reason]
	}
	return reason.Err()
}

// appendLimit appends the text of an answer that refuses an ask. r is nil for a type that is not known here.
func (b *bounds) appendLimit(text []byte, r *Region, reason route.Reason) []byte {
	return plane.AppendLimit(text, b.limitOf(r, reason), reason)
}

// failure returns the error of an answer other than success: it names the node, and the bound if one caused it.
func (w *askWaiter) failure(reason route.Reason, text []byte) error {
	e := w.dest.Load()
	if reason == route.TimedOut {
		reason = plane.Unanswered(e != nil)
	}
	return plane.Ran(reason, e != nil, text, w.blame(e, reason, text))
}

func (w *askWaiter) blame(e *routeEntry, reason route.Reason, text []byte) error {
	blame, limit := plane.BlameFor(reason, e != nil && e.remote != nil, text)
	switch blame {
	case plane.BlameHere:
		return w.region.errOf(reason)
	case plane.BlameThat:
		return &RefusedError{Peer: e.remote.id, Type: w.region.typ.Name, Reason: reason, Limit: limit}
	case plane.BlamePeer:
		return &PeerError{Peer: e.remote.id, Type: w.region.typ.Name, Reason: reason}
	}
	return route.ReplyError(reason, text)
}
