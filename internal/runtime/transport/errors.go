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
	ErrProtocol    = errors.New("transport: peer broke the protocol")
	// ErrGone refuses what goes to a peer that was given up (Transport.GiveUp), for a few seconds.
	ErrGone = fmt.Errorf("the peer's process is gone: %w", route.ErrPeerLost)
	// ErrNoIncarnation refuses a data link to an address with an unknown incarnation.
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
