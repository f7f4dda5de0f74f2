// Large messages: what both ends of a bulk connection have in common, and the bound on what a node holds for others.

package flow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Defaults and bounds of bulk connections.
const (
	DefaultBulkWindow = 1 << 20   // payload bytes of one message sent and not taken yet
	DefaultBulkChunk  = 16 << 10  // payload bytes of one frame
	DefaultBulkRoom   = 256 << 20 // bytes of a node's BulkRoom
	DefaultBulkStall  = 30 * time.Second

	MaxBulkActive = 8    // messages of one connection that have begun and are not over
	MaxBulkQueued = 1024 // messages that wait for one peer and have not begun
	maxBulkAnswer = 64 << 10
)

// ErrBulkProtocol is returned for what no honest peer says on a bulk connection. The connection is to be closed.
var ErrBulkProtocol = errors.New("flow: broken bulk protocol")

// BulkFullError says that too many large messages wait, by number or by bytes. errors.Is matches route.ErrLinkFull.
type BulkFullError struct {
	Bound string // "large messages" or "bytes of large messages"
	Limit int
	Peer  peer.ID // to whom they are to be sent; zero for a bound on those to all peers together
}

// Error names the bound and the peer.
func (e *BulkFullError) Error() string {
	to := ""
	if e.Peer != (peer.ID{}) {
		to = fmt.Sprintf(" to %v", e.Peer)
	}
	return fmt.Sprintf("%v: %d %s wait to be sent%s", route.ErrLinkFull, e.Limit, e.Bound, to)
}

// Unwrap returns route.ErrLinkFull.
func (e *BulkFullError) Unwrap() error { return route.ErrLinkFull }

// BulkEnd says how a large message ended: route.OK when it was taken, else why not.
type BulkEnd struct {
	Reason route.Reason
	Limit  int // of the receiver's bound that the reason names; zero without one
}

// BulkKey names a large message at its receiver: the connection as the rider numbers them, and the number on it.
type BulkKey struct {
	Conn   uint64
	Number uint32
}

// BulkHolder is what receivers claim room from, all of a node from one. A rider with threads makes it safe for
// concurrent use; BulkRoom is the plain one.
type BulkHolder interface {
	// Take claims n bytes for a message and reports whether it has them now. If not, it waits for its turn.
	Take(k BulkKey, n int) bool
	// Drop takes a message out of those that wait.
	Drop(k BulkKey)
	// Give returns n bytes.
	Give(n int)
}

// BulkRoom bounds the bytes of large messages that a node gathers, and of those that lie with their entities until
// they are handled. Whoever finds no room waits, first come, first served, so that small ones do not starve a large
// one. There are at most MaxBulkActive of them for each connection. Limit is at least the largest message that any
// receiver takes.
type BulkRoom struct {
	Limit int
	used  int
	queue []bulkWait
}

type bulkWait struct {
	key BulkKey
	n   int
}

// Take claims n bytes at once if nobody waits and they fit; else k waits, and Turn names it in its turn.
func (r *BulkRoom) Take(k BulkKey, n int) bool {
	if len(r.queue) == 0 && n <= r.Limit-r.used {
		r.used += n
		return true
	}
	r.queue = append(r.queue, bulkWait{k, n})
	return false
}

// Drop forgets that k waits.
func (r *BulkRoom) Drop(k BulkKey) {
	r.queue = slices.DeleteFunc(r.queue, func(w bulkWait) bool { return w.key == k })
}

// Give returns n bytes. Turn may have something to tell afterwards, as after Drop.
func (r *BulkRoom) Give(n int) { r.used -= n }

// Turn returns the message whose turn has come, with n bytes claimed for it. Call it until there is none.
func (r *BulkRoom) Turn() (k BulkKey, n int, ok bool) {
	if len(r.queue) == 0 || r.queue[0].n > r.Limit-r.used {
		return BulkKey{}, 0, false
	}
	w := r.queue[0]
	r.queue = slices.Delete(r.queue, 0, 1)
	r.used += w.n
	return w.key, w.n, true
}

// Used returns how many bytes are claimed, Waiting how many messages wait.
func (r *BulkRoom) Used() int { return r.used }

// Waiting returns how many messages wait for room.
func (r *BulkRoom) Waiting() int { return len(r.queue) }
