// Permits: whether the entity that a shard keeps alive may live, since the lease that it needs is held.

package exec

import (
	"time"

	"github.com/kith-io/kith/entity"
)

// Permit lets the entity that is kept alive begin: its lease is held. On a shard that is being stopped it does nothing.
func Permit(h *Host) { h.give(orderPermit) }

// Withhold ends the entity that is kept alive, without a call of Stop, until the next Permit: its lease is not held.
// No handler of it is called any more when it returns; the one that is being called is told by its context.
func Withhold(h *Host) {
	h.withheld.Store(true)
	h.life.Withhold()
	h.give(orderHoldOff)
}

// barNow carries out a Withhold whose order stands behind what is handled now. Whoever orders the host's messages calls
// it.
func barNow(h *Host, now time.Duration) {
	if h.withheld.Load() && !h.end.lost.Load() {
		entity.Withhold(h.sh, now, h.t.keep)
	}
}

// permitted looks again whether the entity may live. Whoever orders the host's messages calls it.
func permitted(h *Host) {
	if h.withheld.Load() && !entity.Withheld(h.sh) {
		h.withheld.Store(false)
	}
}
