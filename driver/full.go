// Full: the typed errors of bounds; each names what is full and how much it holds, and is made once, so that refusing
// costs no allocation.

package driver

import (
	"fmt"

	"github.com/kith-io/kith/flow"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/transport"
)

// LinkFullError says that what waits for a peer has reached its bound. It matches route.ErrLinkFull.
type LinkFullError = transport.FullError

// LinkBudgetError says that the buffers of all links together have reached theirs. It matches route.ErrLinkFull.
type LinkBudgetError = transport.BudgetError

// ParkFullError says that what waits for a shard's home has reached its bound. It matches route.ErrParkFull.
type ParkFullError = flow.ParkFullError

// MailboxFullError says that an entity on this node has reached the bound of its mailbox, or all of them the node's. It
// matches route.ErrMailboxFull.
type MailboxFullError struct {
	Type   string
	Entity int // bytes that may wait for one entity of the type
	Node   int // bytes that may wait for all entities of this node
}

// Error names the type and both bounds.
func (e *MailboxFullError) Error() string {
	return fmt.Sprintf("%v: %d bytes wait for the entity of type %q, or %d for all of this node", route.ErrMailboxFull,
		e.Entity, e.Type, e.Node)
}

// Unwrap returns route.ErrMailboxFull.
func (e *MailboxFullError) Unwrap() error { return route.ErrMailboxFull }

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
