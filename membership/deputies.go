// Deputies: the extra targets of a gossip round, options of the early specification (GOS-9).

package membership

import (
	"slices"

	"github.com/kith-io/kith/gossip"
)

// extraTargets sends what a round sends to an unreachable member and to a deputy as well, each by chance. reached is
// the position of the round's own target, -1 when there was none.
func (x *exchange) extraTargets(reached int) {
	if x.cfg.Deputies <= 0 && !x.cfg.GossipToUnreachable {
		return
	}
	self := x.st.Index(x.self)
	unreachable := len(x.st.Unreachable)
	if x.st.Unreachable.Has(x.self) {
		unreachable--
	}
	live := len(x.st.Members) - 1 - unreachable
	if x.cfg.GossipToUnreachable && gossip.Chance(x.rng, gossip.ToUnreachable(unreachable, live)) {
		k := gossip.Choose(x.rng, len(x.st.Unreachable), 0, func(k int) bool { return x.st.Unreachable[k] != x.self }, nil)
		if k >= 0 {
			x.sendStatus(x.st.Unreachable[k])
		}
	}
	x.scratch = x.st.Deputies(x.st.Leader(x.self), x.cfg.Deputies, x.scratch[:0])
	p := gossip.ToDeputy(len(x.scratch), live, unreachable, slices.Contains(x.scratch, reached))
	x.scratch = slices.DeleteFunc(x.scratch, func(i int) bool { return i == self || i == reached })
	if len(x.scratch) > 0 && gossip.Chance(x.rng, p) {
		x.sendStatus(x.st.Members[x.scratch[x.rng.IntN(len(x.scratch))]].ID)
	}
}
