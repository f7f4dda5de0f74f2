// Large messages: what both ends of a bulk connection have in common.

package flow

import (
	"errors"
	"time"

	"github.com/kith-io/kith/route"
)

// Defaults and bounds of bulk connections.
const (
	DefaultBulkWindow = 1 << 20   // payload bytes of one message sent and not taken yet
	DefaultBulkChunk  = 16 << 10  // payload bytes of one frame
	DefaultBulkRoom   = 256 << 20 // bytes of a node's BulkRoom
	DefaultBulkStall  = 30 * time.Second

	// BulkLeastRate is what a message must gain each second, in bytes, from the stall time on: holding room costs.
	BulkLeastRate = 16 << 10
	bulkUnclaimed = 2 // stall times that a whole message waits for the envelope that stands for it

	MaxBulkActive = 8    // messages of one connection that have begun and are not over
	MaxBulkQueued = 1024 // messages that wait for one peer and have not begun
	maxBulkAnswer = 64 << 10
)

// ErrBulkProtocol is returned for what no honest peer says on a bulk connection. The connection is to be closed.
var ErrBulkProtocol = errors.New("flow: broken bulk protocol")

// BulkEnd says how a large message ended: route.OK when it was taken, else why not.
type BulkEnd struct {
	Reason route.Reason
	Limit  int // of the receiver's bound that the reason names; zero without one
}

// BulkKey names a large message at its receiver: the connection as the runtime numbers them, and the number on it.
type BulkKey struct {
	Conn   uint64
	Number uint32
}
