// Allocation: the least-shard strategy, as pure functions (SHD-6).

package shard

import (
	"cmp"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// Limits of one round of rebalancing: shards, and the part of all shards in percent.
const (
	rebalanceAbsolute = 20
	rebalancePercent  = 10
)

// load is one region and how many shards it has.
type load struct {
	owner   *client
	id      peer.ID
	leaving bool // gives its shards back, or is leaving the cluster
	shards  int
}

// suits orders regions by how well they suit a further shard, best first: staying before leaving, then fewer shards,
// then the identity, so that the order is total.
func (l load) suits(o load) int {
	if l.leaving != o.leaving {
		if o.leaving {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(l.shards, o.shards), l.id.Compare(o.id))
}

// mostSuitable returns the region that a shard is given to. The list is not empty.
func mostSuitable(loads []load) *load {
	best := &loads[0]
	for i := range loads {
		if loads[i].suits(*best) < 0 {
			best = &loads[i]
		}
	}
	return best
}

// isEven reports whether no region has two shards more than another, so that the default strategy would move none.
func isEven(loads []load) bool {
	if len(loads) == 0 {
		return true
	}
	few, many := loads[0].shards, loads[0].shards
	for _, l := range loads {
		few, many = min(few, l.shards), max(many, l.shards)
	}
	return many-few < 2
}

// rebalance returns the shards that one round would move, by the default strategy. owned holds the shards of each
// region of loads in the order of their allocation: Stats tells how many would be.
func rebalance(loads []load, owned [][]route.ShardID, absolute, percent int) (shards []route.ShardID) {
	v := strategy.View{Limit: route.MaxShards}
	for i := range loads {
		v.Regions = append(v.Regions, strategy.Region{ID: loads[i].id, Status: membership.Up, Draining: loads[i].leaving,
			Count: len(owned[i]), Shards: owned[i]})
	}
	least := strategy.LeastShards{Absolute: absolute, Percent: percent}
	moves, _ := least.Rebalance(&v) // it never fails
	for _, m := range moves {
		shards = append(shards, m.Shard)
	}
	return shards
}
