// Acceptance: whether the host of a shard may be given an envelope at all.

package plane

import (
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Accept judges an envelope for a shard that lives here under term and epoch, where a payload has most bytes at most.
// What the host itself says of it (a stop, a full mailbox) comes after. It is small enough to be compiled in.
func Accept(e *wire.Envelope, term, epoch uint32, most int) route.Reason {
	if term != e.Term || epoch != e.Epoch {
		return route.NotOwner
	}
	if len(e.Payload) > most {
		return route.TooLarge
	}
	return route.OK
}
