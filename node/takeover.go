// Takeover: how long shards of a lost owner wait grows with the patience of the resolver (MEM-10, SHD-9).

package node

import (
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/shard"
)

// takeover lengthens the configured takeover time in larger clusters, in which resolvers decide later: an owner that was
// cut off must have stopped by then. A cluster that became smaller keeps the longer time for as long again, for those
// who were cut off from it decide by what they saw last.
type takeover struct {
	base   time.Duration // as configured, for clusters of up to five
	now    time.Duration // in force
	until  time.Duration // when a shorter time may come into force; it moves while the longer one is needed
	needed time.Duration
}

// follow takes a view and gives sharding the time that is needed now.
func (n *Node) follow(v *membership.View) {
	t := &n.takeover
	if v != nil && v.Converged {
		t.needed = t.base + n.rules.DecidedWithin(v.CountUp()) - n.rules.DecidedWithin(1)
	}
	switch {
	case n.rules.Strategy == sbr.Off: // an operator decides, when he likes
		return
	case t.needed >= t.now:
		t.until = n.now + 2*t.needed
	case n.now < t.until:
		return
	}
	if t.needed != t.now {
		t.now = t.needed
		// Never refused.
		_ = n.shards.Do(n.now, shard.TakeoverCommand{Time: t.now})
	}
}

// TakeoverTime returns how long shards of a lost owner wait at present.
func (n *Node) TakeoverTime() time.Duration { return n.takeover.now }
