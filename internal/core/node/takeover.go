// Takeover: how long the shards of a lost owner wait, from what makes that owner stop (MEM-10).
//
// A cut-off owner notices the cut within the longest silence that its detector bears, and its resolver has stopped it
// at the latest when the picture has been changing for too long, counted from the first change. Both depend on
// settings, and the second on the size of the cluster. What is added covers the way of the first accusation through its
// side.

package node

import (
	"strings"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
)

// takeoverMargin is the margin where it does not follow from gossip, see margin.
const takeoverMargin = 2 * time.Second

// Takeover returns the takeover time of a cluster with that many members: Shard.TakeoverTime when it is set, the
// default without a resolver, else DerivedTakeover.
func (c Config) Takeover(members int) time.Duration { return c.takeover()(members) }

// DerivedTakeover returns when an owner that is cut off has suspended itself for certain, counted from the cut, in a
// cluster with that many members: the longest silence, the resolver's longest time to decide and a margin. That of
// PatienceCalm follows from its gossip; else it is two seconds, and the sum is rounded up to a second.
func (c Config) DerivedTakeover(members int) time.Duration { return c.derived()(members) }

// parkMargin is what a message may have to wait beside the takeover time: for the removal of the lost owner, the
// reports to a new coordinator and the order to the next owner.
const parkMargin = 10 * time.Second

// leastParkTime is the derived time that a message may wait in a small cluster.
const leastParkTime = 30 * time.Second

// ParkTimeFor returns how long a message may wait for the home of its shard when the takeover time is this: long enough
// for the shard of a lost owner to have a home again.
func ParkTimeFor(takeover time.Duration) time.Duration {
	return max(leastParkTime, takeover+parkMargin)
}

// ExitLimit returns the longest ExitTimeout: a leaver that ran out of time hosts until it ends, and when it is cut off
// while it exits it is removed at once; it must have ended before its shards live elsewhere.
func (c Config) ExitLimit() time.Duration {
	t := c.Takeover(1)
	return t - c.margin(t)
}

// Takeover returns the takeover time by the number of members that there have been lately.
func (n *Node) Takeover() time.Duration { return n.shards.Takeover() }

// Moves lists the moves of a type that a node leads, and its term as coordinator over it; zero when it has none.
func Moves(n *Node, id route.TypeID) (list []shard.MoveState, term uint32) {
	return shard.Moves(n.shards, id)
}

// derived asks the detector once, for all numbers of members.
func (c Config) derived() func(members int) time.Duration {
	silence, r := c.Membership.SilenceBound(), c.Resolver.WithDefaults()
	return func(members int) time.Duration {
		d := silence + r.DecidedWithin(members)
		d += c.margin(d)
		if c.Patience == cluster.PatienceCalm {
			return (d + time.Millisecond - 1).Truncate(time.Millisecond)
		}
		return (d + time.Second - 1).Truncate(time.Second)
	}
}

func (c Config) takeover() func(members int) time.Duration {
	fixed := c.Shard.TakeoverTime
	if fixed == 0 && c.Resolver.Strategy == ResolverOff {
		fixed = shard.DefaultTakeoverTime
	}
	if fixed != 0 {
		return func(int) time.Duration { return fixed }
	}
	return c.derived()
}

// sharding is the configuration of the sharding machine.
func (c Config) sharding() shard.Config {
	s := c.Shard
	if s.TakeoverTime == 0 && s.TakeoverFor == nil {
		s.TakeoverFor = c.takeover()
	}
	s.ProofOnly = c.Session.On() || c.Tenure.On()
	return s
}

// StopsWithin returns DerivedTakeover for all sizes of a cluster as one line of text. It must be the same on all nodes,
// for each counts on the others to have stopped by then. Without a resolver nothing stops them: "never".
func (c Config) StopsWithin() string {
	if c.Resolver.Strategy == ResolverOff {
		return "never"
	}
	var list []string
	derived := c.derived()
	for _, n := range sbr.Sizes() {
		if d := derived(n).String(); len(list) == 0 || list[len(list)-1] != d {
			list = append(list, d)
		}
	}
	return strings.Join(list, " ")
}
