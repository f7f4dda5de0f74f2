// Errors: what Send, Link and Reserve return, and the typed refusal of a hello.

package transport

import (
	"errors"
	"fmt"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Errors that callers branch on; match with errors.Is.
var (
	ErrClosed      = fmt.Errorf("transport closed: %w", route.ErrStopped)
	ErrForgotten   = fmt.Errorf("peer was removed: %w", route.ErrPeerLost)
	ErrControlFull = errors.New("transport: control queue full")
	ErrSelf        = errors.New("transport: the peer is this node itself")
	ErrFrameSize   = fmt.Errorf("transport: frame over the limit: %w", route.ErrTooLarge)
	ErrLoopFull    = errors.New("transport: too many tasks queued to an event loop")
	ErrProtocol    = errors.New("transport: peer broke the protocol")
	// ErrNoIncarnation refuses a data link to an address whose incarnation is not known.
	ErrNoIncarnation = fmt.Errorf("transport: data needs a peer's incarnation: %w", route.ErrPeerLost)
	ErrBusy          = errors.New("transport: too many peers")
)

// FullError is returned by Reserve when a link is over its bound: the *route.LinkFullError that it unwraps to, with the
// link. One value per link is made in advance, so that being full does not allocate.
type FullError struct {
	route.LinkFullError
	link *Link
}

// Link returns the link that is full; Upcalls.LinkRoom tells when it has room again. It is nil in a value that no link
// has made.
func (e *FullError) Link() *Link { return e.link }

// Unwrap returns the error that callers of the node know.
func (e *FullError) Unwrap() error { return &e.LinkFullError }

// VersionError is returned for mail of a kind that its peer does not know: the peer speaks an older wire version.
type VersionError struct {
	Peer          peer.ID
	Kind          wire.Kind
	Needs, Speaks uint16 // the version in which the kind came, and that of the connection
}

// Error names the peer, the kind and both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("transport: %s came with wire version %d, %s speaks %d", e.Kind, e.Needs, e.Peer, e.Speaks)
}

// BudgetError is returned by Reserve when a link would need a larger buffer and the budget of all links is used up: the
// *route.LinkBudgetError that it unwraps to, with the link. One value per link is made in advance.
type BudgetError struct {
	route.LinkBudgetError
	link *Link
}

// Link returns the link that got no buffer; Upcalls.LinkRoom tells when to try again. It is nil in a value that no link
// has made.
func (e *BudgetError) Link() *Link { return e.link }

// Unwrap returns the error that callers of the node know.
func (e *BudgetError) Unwrap() error { return &e.LinkBudgetError }

// Refusal is why an acceptor refused a hello. Numbers stand on the wire and are never reused.
type Refusal uint8

// The reasons to refuse a hello.
const (
	RefusedNone        Refusal = 0
	RefusedMagic       Refusal = 1  // not this protocol, or a first frame that is no hello
	RefusedVersion     Refusal = 2  // no wire version in common
	RefusedName        Refusal = 3  // another cluster name
	RefusedCluster     Refusal = 4  // another cluster id, both known
	RefusedSetting     Refusal = 5  // a setting that must agree differs
	RefusedIncarnation Refusal = 6  // another incarnation was meant
	RefusedSelf        Refusal = 7  // the dialler is the acceptor itself
	RefusedGoingDown   Refusal = 8  // the acceptor is closing
	RefusedRemoved     Refusal = 9  // the acceptor has removed this incarnation
	RefusedStale       Refusal = 10 // a connection of the same or a later generation exists
	RefusedBusy        Refusal = 11 // too many peers or connections
	RefusedMalformed   Refusal = 12 // a hello that does not decode
	RefusedTLS         Refusal = 13 // one end speaks TLS and the other does not
	RefusedTaken       Refusal = 14 // another node has this name: by its certificate, or by connections that stand
	RefusedHost        Refusal = 15 // the certificate does not name the host that the dialler says it is at
	refusalCount               = 16
)

var refusalNames = [refusalCount]string{
	"none", "magic", "wire-version", "cluster-name", "cluster-id", "setting", "incarnation", "self", "going-down",
	"removed", "stale", "busy", "malformed", "tls", "taken", "host",
}

// String names the reason as logs and counters do.
func (r Refusal) String() string {
	if r < refusalCount {
		return refusalNames[r]
	}
	return fmt.Sprintf("refusal-%d", uint8(r))
}

// spoken returns r as a dialler of those versions knows it.
func (r Refusal) spoken(v wire.Versions) Refusal {
	switch {
	case v.Newest >= tailSince:
	case r == RefusedTaken:
		return RefusedBusy
	case r == RefusedHost:
		return RefusedSetting
	}
	return r
}

// ForGood reports whether trying again cannot help until one of the two nodes is configured or started anew.
func (r Refusal) ForGood() bool {
	switch r {
	case RefusedGoingDown, RefusedStale, RefusedBusy, RefusedTaken:
		return false
	}
	return true
}

// RefusedError is a refused hello. Key names what differs (for a setting, its key), Theirs is the acceptor's value and
// Ours the dialler's, both as text.
type RefusedError struct {
	Peer   peer.ID // who was dialled
	Reason Refusal
	Key    string
	Ours   string // the dialler's value
	Theirs string // the acceptor's value
}

// Unwrap returns route.ErrPeerLost: a message to a peer that refuses us does not arrive.
func (e *RefusedError) Unwrap() error { return route.ErrPeerLost }

// Error names the reason and both values.
func (e *RefusedError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("transport: %s refused the connection: %s", e.Peer, e.Reason)
	}
	return fmt.Sprintf("transport: %s refused the connection: %s differs: ours %q, theirs %q",
		e.Peer, wire.Printable(e.Key), e.Ours, e.Theirs)
}
