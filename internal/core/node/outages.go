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
	// Proof: sessions or tenures prove its end, and no time does, so that it lasts beyond Until.
	Proof bool
	// NoQuorum: with tenures, so few seats are held by members that answer that they prove nobody's end.
	NoQuorum bool
}

// Late reports whether its shards wait for longer than Until.
func (o *Outage) Late(now time.Duration) bool {
	return o.Until != 0 && now >= o.Until && (o.Proof || !o.Decided)
}

// Outages holds them, sorted by member. The zero value is empty. There are no more of them than members, and losses
// that sharding remembers.
type Outages struct{ list []Outage }

// outlook is what ends the outages of a node.
type outlook struct {
	undecided time.Duration // from the first accusation, when nothing changes meanwhile; zero: nothing does
	proof     bool          // of lost members likewise
	noQuorum  bool
}

// Follow takes the view of a node, and what its sharding remembers of lost members. count says how many shards live at
// a member as far as this node knows; it is called once for each.
func (o *Outages) Follow(now time.Duration, n *Node, cfg Config, v *cluster.View, count func(peer.ID) int) {
	l := outlook{proof: cfg.Session.On() || cfg.Tenure.On()}
	if cfg.Resolver.Strategy != ResolverOff {
		l.undecided = cfg.Resolver.StableFor(v.CountUp()) + n.Takeover()
	}
	losses := n.shards.Losses(nil)
	if cfg.Session.On() { // its last renewal came before the accusation
		l.undecided = cfg.Session.TTL + cfg.Session.Retry()
	}
	if cfg.Tenure.On() { // likewise
		l.undecided = cfg.Tenure.Promise() + cfg.Tenure.Retry()
		if l.noQuorum = !quorumAnswers(v, n, cfg.Tenure.Voters); l.noQuorum {
			l.undecided = 0
		}
	}
	for i := range losses {
		if l.proof {
			losses[i].Until = 0
		}
		if l.proof && l.undecided > 0 {
			losses[i].Until = losses[i].Since + l.undecided
		}
	}
	if lost, _ := membership.SeatsLost(n.members, nil); lost { // then nobody's end is proven, but said or assumed
		if _, at, assumed := Refounding(n); assumed {
			for i := range losses {
				losses[i].Until = at
			}
		}
	}
	o.follow(now, v, losses, l, count)
}

// quorumAnswers reports whether members that answer hold more than half of the seats.
func quorumAnswers(v *cluster.View, n *Node, voters int) bool {
	seats, _, _ := n.members.Seats(nil, nil)
	held := 0
	for _, h := range seats.Holders {
		if m, in := v.Member(h); in && m.Status != cluster.Down && v.Reachable(h) {
			held++
		}
	}
	return 2*held > voters
}

// follow is Follow.
func (o *Outages) follow(now time.Duration, v *cluster.View, losses []shard.Loss, l outlook, count func(peer.ID) int) {
	var next []Outage
	add := func(x Outage) {
		at, known := o.find(x.Member)
		if known {
			x.Since, x.Shards = o.list[at].Since, o.list[at].Shards
		} else {
			x.Shards = count(x.Member)
		}
		if !x.Decided && l.undecided > 0 {
			x.Until = x.Since + l.undecided
		}
		x.Proof, x.NoQuorum = l.proof, l.noQuorum
		next = append(next, x)
	}
	for _, l := range losses {
		if x := (Outage{Member: l.ID, Since: l.Since, Decided: true, Until: l.Until}); !l.Proven {
			add(x)
		}
	}
	for _, id := range v.Unreachable {
		m, in := v.Member(id)
		if in && m.Status != cluster.Down && !slices.ContainsFunc(next, func(x Outage) bool { return x.Member == id }) {
			add(Outage{Member: id, Since: now})
		}
	}
	slices.SortFunc(next, func(a, b Outage) int { return a.Member.Compare(b.Member) })
	o.list = slices.DeleteFunc(next, func(x Outage) bool { return x.over(now) })
}

// over reports whether its shards may live elsewhere.
func (o *Outage) over(now time.Duration) bool {
	return o.Decided && !o.Proof && o.Until != 0 && o.Until <= now
}

func (o *Outages) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(o.list, id, func(x Outage, id peer.ID) int { return x.Member.Compare(id) })
}

// NoOutage reports whether none is known, not even one that is over.
func NoOutage(o *Outages) bool { return len(o.list) == 0 }

// At returns those that are not over at now; the slice is the caller's.
func (o *Outages) At(now time.Duration) []Outage {
	return slices.DeleteFunc(slices.Clone(o.list), func(x Outage) bool { return x.over(now) })
}
