// Inline: the shard's try-lock decides which loop runs its handlers; a loser leaves a copy, the holder looks again.

package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// leftover is what losers of the try-lock left for its holder, bounded.
type leftover struct {
	limit int
	some  atomic.Bool
	lmu   sync.Mutex
	left  batch
	spare batch // being worked off by the holder
}

// inline gives one frame to an Inline host, now or by the loop that is running it. It reports whether that loop gives
// the credit back. With one data loop there is nobody to try against. hash is zero when that of the id is not known.
func (h *Host) inline(now time.Duration, c *transport.InConn, from *Source, f []byte, env *wire.Envelope,
	hash uint64) bool {
	if h.singleThreaded {
		h.take(now, from, env, hash, tellSender, nil)
		return false
	}
	if !h.mu.TryLock() {
		if !h.leave(c, from, f, env.Flags&wire.FlagWait != 0) {
			h.x.refuse(h.t, from, env, route.QueueFull)
			return false
		}
		h.pickUp(now)
		return true
	}
	h.workLeft(now) // what was left before comes first
	h.take(now, from, env, hash, tellSender, nil)
	h.mu.Unlock()
	h.pickUp(now)
	return false
}

// inlineOrder carries out an order, now or by the loop that is running the host.
func (h *Host) inlineOrder(now time.Duration, o order) {
	if h.singleThreaded {
		h.obey(now, o)
		return
	}
	l := &h.leftover
	l.lmu.Lock()
	l.left.orders = append(l.left.orders, hostTask{h, o})
	l.some.Store(true)
	l.lmu.Unlock()
	h.pickUp(now)
}

// leave copies a frame for the holder and reports whether there was room. There always is if the sender waits: as much
// as its credit lets it send, which is given back when it has been handled.
func (h *Host) leave(c *transport.InConn, from *Source, f []byte, waits bool) bool {
	l := &h.leftover
	l.lmu.Lock()
	defer l.lmu.Unlock()
	if l.left.size+len(f) > l.limit && !waits {
		return false
	}
	copy(l.left.room(c, from, len(f)), f)
	l.some.Store(true)
	return true
}

// pickUp works off what was left while the lock was held, unless somebody else has the lock and so will.
func (h *Host) pickUp(now time.Duration) {
	for h.leftover.some.Load() && h.mu.TryLock() {
		h.workLeft(now)
		h.mu.Unlock()
	}
}

// workLeft works off what was left. The lock is held.
func (h *Host) workLeft(now time.Duration) {
	l := &h.leftover
	for l.some.Load() {
		l.lmu.Lock()
		l.left, l.spare = l.spare, l.left
		l.some.Store(false)
		l.lmu.Unlock()
		l.spare.frames(func(from *Source, f []byte) {
			var env wire.Envelope
			if wire.ParseEnvelope(f, &env) == nil {
				h.take(now, from, &env, 0, tellSender, nil)
			}
		})
		for _, t := range l.spare.orders {
			h.obey(now, t.o)
		}
		l.spare.reset()
	}
}
