// Allocation: the least-shard strategy, as pure functions (SHD-6).

package shard

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
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

// rebalance returns the shards that one round would move, by the newer least-shard algorithm. owned holds the shards of
// each region of loads in the order of their allocation. First whatever a region has above the optimum, the mean
// rounded up, then, while regions lack two or more to it, one from each that has the optimum; no more than the limits.
// No shard is moved yet: Stats tells how many would be.
func rebalance(loads []load, owned [][]route.ShardID, absolute, percent int) []route.ShardID {
	total := 0
	order := make([]int, len(loads))
	for i := range loads {
		order[i] = i
		total += len(owned[i])
	}
	if total == 0 {
		return nil
	}
	slices.SortFunc(order, func(a, b int) int { return loads[a].suits(loads[b]) })
	optimal := (total + len(loads) - 1) / len(loads)
	limit := max(1, min(total*percent/100, absolute))
	var moves []route.ShardID
	for _, i := range order {
		if over := len(owned[i]) - optimal; over > 0 {
			moves = append(moves, owned[i][:over]...)
		}
	}
	if len(moves) > 0 {
		return moves[:min(len(moves), limit)]
	}
	below := 0
	for i := range owned {
		below += max(0, optimal-1-len(owned[i]))
	}
	for _, i := range order {
		if len(moves) < min(below, limit) && len(owned[i]) >= optimal {
			moves = append(moves, owned[i][0])
		}
	}
	return moves
}
