// What a seed draws of the data plane beyond the fast path: large messages, and homes that are disclosed too late.

package storm

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// drawLarge has part of the load not fit a frame, with room for a few such messages at each node.
func (s *storm) drawLarge(d *setup.DataConfig, rng *rand.Rand) {
	s.large = true
	d.MaxPayload, d.BulkChunk = 60<<rng.IntN(5), 64<<rng.IntN(5)
	d.BulkRoom, d.BulkStall = 6<<10<<rng.IntN(4), between(rng, 3*time.Second, 20*time.Second)
}

// lateHomes tells processes again of homes that their nodes know no more, because the shard has moved or the member was
// removed: a node that has forgotten such a home takes that for news. Messages go there, where they are refused, or to
// no place once the member is forgotten, and the next home has to be found.
func (s *storm) lateHomes(rng *rand.Rand) {
	s.w.OnUnknown = func(r *world.Region, n route.ShardID) {
		home := r.Slot(n)
		c := shard.RouteChange{Type: r.ID, Shard: n, State: shard.RouteRemote, Home: home.Home(), Fence: home.Fence()}
		if c.Home != (peer.ID{}) {
			r.Process.Later(between(rng, 0, 2*plane.ForgetAfter), func() { s.lateHome(r.Process, c) })
		}
	}
}

// lateHome sends a process a home, unless its node knows a better one.
func (s *storm) lateHome(p *world.Process, c shard.RouteChange) {
	if r := p.Region(c.Type); !s.quiet() && r != nil && r.Slot(c.Shard).State() < flow.Local {
		p.World.Fault(p.Index, "late home "+p.World.ShardName(c.Type, c.Shard)+" at "+p.World.Name(c.Home))
		p.Routed(c)
	}
}
