// Permits: whether the entity that a shard keeps alive may live, since the lease that it needs is held.

package exec

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
)

// permit says whether the entity may live. It is what counts; orders only have the host look at it.
type permit struct {
	withheld atomic.Uint32 // the Withhold since which it may not; zero: it may
	count    atomic.Uint32 // of Withhold
	allowed  atomic.Uint32 // the Withhold that the last Permit ends
}

// Withhold ends the entity that is kept alive, without a call of Stop, until the next Permit: its lease is not held. No
// handler of it is called any more when it returns; the one that is being called sees it by its context. LookAtLease
// follows. Withhold and Permit of one host are called one after the other.
func Withhold(h *Host) {
	h.permit.withheld.Store(h.permit.count.Add(1))
	h.life.Withhold()
}

// Permit lets the entity that is kept alive begin anew: its lease is held. LookAtLease follows. On a shard that is
// being stopped it does nothing.
func Permit(h *Host) { h.permit.allowed.Store(h.permit.withheld.Load()) }

// LookAtLease makes the host carry out what Withhold and Permit have said.
func LookAtLease(h *Host) { h.give(orderLease) }

// lookAtLease does. Called where the host's messages are ordered.
func lookAtLease(h *Host, now time.Duration) {
	revokeLease(h, now) // what has lived without its lease for a moment is not what lives on
	if w := h.permit.withheld.Load(); w != 0 && w == h.permit.allowed.Load() && !h.end.lost.Load() {
		entity.Permit(h.sh, now)
		permitted(h)
	}
}

// revokeLease ends the entity if it may not live. Called where the host's messages are ordered.
func revokeLease(h *Host, now time.Duration) {
	if h.t.leaseLost == nil {
		return
	}
	if h.queue != nil { // else its lock is held, and a run looks before each call
		h.t.leaseLost()
	}
	if h.permit.withheld.Load() != 0 && !h.end.lost.Load() && !entity.Withheld(h.sh) {
		entity.Withhold(h.sh, now, h.t.keep)
	}
}

// withheldNow reports whether the entity may not live, by the clock as it is now: nothing else needs to have noticed
// that the lease is over, nor that the process slept. The lock of a Blocking host is not held.
func withheldNow(h *Host) bool {
	h.t.leaseLost()
	return h.permit.withheld.Load() != 0
}

// permitted notes that the entity may live, if that was carried out and nobody has said otherwise since. Called where
// the host's messages are ordered.
func permitted(h *Host) {
	if allowed := h.permit.allowed.Load(); allowed != 0 && !entity.Withheld(h.sh) {
		h.permit.withheld.CompareAndSwap(allowed, 0)
	}
}
