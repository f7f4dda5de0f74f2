// Full: the typed errors of bounds; each names what is full and how much it holds, and is made once, so that refusing
// costs no allocation.

package driver

import (
	"fmt"
	"strconv"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// LinkFullError says that what waits for a peer has reached its bound. It matches route.ErrLinkFull.
type LinkFullError = transport.FullError

// LinkBudgetError says that the buffers of all links together have reached theirs. It matches route.ErrLinkFull.
type LinkBudgetError = transport.BudgetError

// ParkFullError says that what waits for a shard's home has reached its bound. It matches route.ErrParkFull.
type ParkFullError = flow.ParkFullError

// RefusedError says that a node, this one or another, did not take a message because a bound of it is reached. It
// matches the error of its reason: route.ErrMailboxFull and the three that refine it, route.ErrTooLarge,
// route.ErrSuspended, route.ErrLinkFull.
type RefusedError struct {
	Peer   peer.ID      // whose bound it is
	Type   string       // of the entity; empty where the bound is not that of a type
	Reason route.Reason // which bound
	Limit  int          // its value there; zero when the peer did not tell: wire version 1
}

// boundUnits says what the limit of a reason counts; a reason that is not here comes from no bound.
var boundUnits = [route.Reasons]string{
	route.MailboxFull: "bytes wait for the entity",
	route.BudgetFull:  "bytes wait for all entities of the node",
	route.TableFull:   "entities live in the shard",
	route.QueueFull:   "bytes wait for an event loop or worker",
	route.LinkFull:    "bytes of large messages wait",
	route.TooLarge:    "bytes are the most",
	route.Suspended:   "bytes wait for its word",
}

// boundUnit returns what the limit of a reason counts, empty for one that comes from no bound.
func boundUnit(r route.Reason) string {
	if !r.Known() {
		return ""
	}
	return boundUnits[r]
}

// Error names the peer, the type and the bound.
func (e *RefusedError) Error() string {
	about := ""
	if e.Type != "" {
		about = fmt.Sprintf(" of type %q", e.Type)
	}
	if e.Limit == 0 {
		return fmt.Sprintf("%v:%s at %v", e.Reason.Err(), about, e.Peer)
	}
	return fmt.Sprintf("%v: %d %s%s at %v", e.Reason.Err(), e.Limit, boundUnit(e.Reason), about, e.Peer)
}

// Unwrap returns the error of the reason.
func (e *RefusedError) Unwrap() error { return e.Reason.Err() }

// PeerError says at which node a message or an ask failed for a reason that comes from no bound: it was lost, or did
// not answer in time. It matches the error of its reason.
type PeerError struct {
	Peer   peer.ID
	Type   string // of the entity
	Reason route.Reason
}

// Error names the reason, the type and the peer.
func (e *PeerError) Error() string {
	return fmt.Sprintf("%v: type %q at %v", e.Reason.Err(), e.Type, e.Peer)
}

// Unwrap returns the error of the reason.
func (e *PeerError) Unwrap() error { return e.Reason.Err() }

// BulkFullError says that the large messages that wait have reached a bound. It matches route.ErrLinkFull.
type BulkFullError = flow.BulkFullError

// tooLarge is the error of a payload or a reply over this node's MaxMessage. r is nil for a reply.
func (d *Driver) tooLarge(r *Region, size int) error {
	e := &RefusedError{Peer: d.self, Reason: route.TooLarge, Limit: d.cfg.MaxMessage}
	if r != nil {
		e.Type = r.typ.Name
	}
	return fmt.Errorf("%w, got %d", e, size)
}

// limitOf returns the bound of this node that a refusal is due to, zero when there is none. r is nil for a type that is
// not known here.
func (d *Driver) limitOf(r *Region, reason route.Reason) int {
	switch reason {
	case route.MailboxFull:
		if r != nil {
			return r.typ.MailboxBytes
		}
	case route.BudgetFull:
		return d.cfg.MailboxBudget
	case route.TableFull:
		return entity.MaxEntities
	case route.QueueFull:
		return d.cfg.localBuffer()
	case route.LinkFull:
		return d.cfg.BulkBudget
	case route.TooLarge:
		return d.cfg.MaxPayload
	case route.Suspended:
		return keepMost
	}
	return 0
}

// fullHere returns the errors of this node's own bounds for the entities of a type, made once.
func (d *Driver) fullHere(r *Region) (all [route.Reasons]error) {
	for i := range all {
		if reason := route.Reason(i); boundUnit(reason) != "" {
			all[i] = &RefusedError{d.self, r.typ.Name, reason, d.limitOf(r, reason)}
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

// appendLimit appends the text of an answer that refuses an ask: the limit and what it counts. Nothing without one.
func (d *Driver) appendLimit(b []byte, r *Region, reason route.Reason) []byte {
	limit := d.limitOf(r, reason)
	if limit == 0 {
		return b
	}
	b = strconv.AppendUint(b, uint64(limit), 10)
	return append(append(b, ' '), boundUnit(reason)...)
}

// parseLimit reads the limit that such a text begins with, zero when it has none.
func parseLimit(text []byte) int {
	digits := 0
	for digits < len(text) && digits < 19 && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits == len(text) || text[digits] != ' ' {
		return 0
	}
	limit := 0
	for _, c := range text[:digits] {
		limit = limit*10 + int(c-'0')
	}
	return limit
}

// failure returns the error of an answer other than success: it names the node, and the bound if one caused it.
func (w *askWaiter) failure(reason route.Reason, text []byte) error {
	e := w.dest.Load()
	there, bound := e != nil && e.remote != nil, boundUnit(reason) != ""
	limit := 0
	if bound {
		limit = parseLimit(text)
	}
	switch {
	case !there && bound:
		return w.region.errOf(reason)
	case !there, limit == 0 && len(text) > 0: // a handler's error, or a bound that is not this peer's
		return route.ReplyError(reason, text)
	case bound:
		return &RefusedError{e.remote.id, w.region.typ.Name, reason, limit}
	}
	return &PeerError{e.remote.id, w.region.typ.Name, reason}
}

// AsksFullError says that as many asks are under way on this node as may be. It matches route.ErrAsksFull.
type AsksFullError struct {
	Limit int // Config.MaxAsks
}

// Error names the bound.
func (e *AsksFullError) Error() string {
	return fmt.Sprintf("%v: %d on this node", route.ErrAsksFull, e.Limit)
}

// Unwrap returns route.ErrAsksFull.
func (e *AsksFullError) Unwrap() error { return route.ErrAsksFull }
