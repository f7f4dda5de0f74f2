// Outages: members that do not answer, and when what lived there may be served again, as one node knows it.

package node

import (
	"slices"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard"
)

// Outage is a member that does not answer, or is lost. Times are of the node's clock.
type Outage struct {
	Member  peer.ID
	Since   time.Duration // when this node first heard of it
	Decided bool          // it is Down, or removed; before, it may still turn out to live
	Until   time.Duration // when its shards may live elsewhere at the earliest; zero: nobody decides, or proves its end
	Shards  int           // that lived there, as far as this node knew when it heard of it
}

// Outages holds them, sorted by member. The zero value is empty. There are no more of them than members, and losses
// that sharding remembers.
type Outages struct{ list []Outage }

// Follow takes the view of a node, and what its sharding remembers of lost members. count says how many shards live at
// a member as far as this node knows; it is called once for each.
func (o *Outages) Follow(now time.Duration, n *Node, cfg Config, v *cluster.View, count func(peer.ID) int) {
	undecided := time.Duration(0)
	if cfg.Resolver.Strategy != ResolverOff {
		undecided = cfg.Resolver.StableFor(v.CountUp()) + n.Takeover()
	}
	losses := n.shards.Losses(nil)
	if cfg.Session.On() { // its last renewal came before the accusation
		undecided = cfg.Session.TTL + cfg.Session.Retry()
	}
	if cfg.Tenure.On() { // likewise
		undecided = cfg.Tenure.Promise() + cfg.Tenure.Retry()
	}
	if cfg.Session.On() || cfg.Tenure.On() {
		for i := range losses {
			losses[i].Until = losses[i].Since + undecided
		}
	}
	if lost, _ := membership.SeatsLost(n.members, nil); lost { // then nobody's end is proven, but said or assumed
		undecided = 0
		_, at, assumed := Refounding(n)
		for i := range losses {
			if losses[i].Until = 0; assumed {
				losses[i].Until = at
			}
		}
	}
	o.follow(now, v, losses, undecided, count)
}

// follow is Follow; undecided is how long from its first accusation until the shards of a member live elsewhere, when
// nothing changes meanwhile; zero where no resolver decides.
func (o *Outages) follow(now time.Duration, v *cluster.View, losses []shard.Loss, undecided time.Duration,
	count func(peer.ID) int) {
	var next []Outage
	add := func(x Outage) {
		at, known := o.find(x.Member)
		if known {
			x.Since, x.Shards = o.list[at].Since, o.list[at].Shards
		} else {
			x.Shards = count(x.Member)
		}
		if !x.Decided && undecided > 0 {
			x.Until = x.Since + undecided
		}
		next = append(next, x)
	}
	for _, l := range losses {
		if !l.Proven && (l.Until > now || l.Until == 0) {
			add(Outage{Member: l.ID, Since: l.Since, Decided: true, Until: l.Until})
		}
	}
	for _, id := range v.Unreachable {
		m, in := v.Member(id)
		if in && m.Status != cluster.Down && !slices.ContainsFunc(next, func(x Outage) bool { return x.Member == id }) {
			add(Outage{Member: id, Since: now})
		}
	}
	slices.SortFunc(next, func(a, b Outage) int { return a.Member.Compare(b.Member) })
	o.list = next
}

func (o *Outages) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(o.list, id, func(x Outage, id peer.ID) int { return x.Member.Compare(id) })
}

// NoOutage reports whether none is known, not even one that is over.
func NoOutage(o *Outages) bool { return len(o.list) == 0 }

// At returns those that are not over at now; the slice is the caller's.
func (o *Outages) At(now time.Duration) []Outage {
	return slices.DeleteFunc(slices.Clone(o.list), func(x Outage) bool {
		return x.Decided && x.Until != 0 && x.Until <= now
	})
}
