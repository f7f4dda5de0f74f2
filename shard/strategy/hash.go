// ConsistentHash: a shard's home follows from its number and from the regions that host, with bounded load.

package strategy

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// DefaultSlack is how many percent above the mean a region may have by ConsistentHash where nothing is given.
const DefaultSlack = 25

// maxSlack lets the largest number of regions be of no account but one.
const maxSlack = 100 * cluster.MaxMembers

// ConsistentHash gives each shard the eligible region with the highest hash of key, address and shard (rendezvous
// hashing, by xxhash64), and where that one is full the next: no region gets more shards than Slack allows. The homes
// do not depend on the order in which shards are wanted, nor on loads; so shards of the same number of types with one
// Key and one number of shards live together, as long as the same regions are eligible for both, and few shards move
// when a region comes or goes. A region that comes back at its address gets back what it had. A newer version of the
// application is not preferred.
//
// It keeps a table of all homes and makes it anew when other regions are eligible: shards times regions steps. Change
// no field after the first use.
type ConsistentHash struct {
	Key   string // of types with shards that live together
	Slack int    // percent that a region may have above the mean; 0 means DefaultSlack, less none
	Limit int    // moves of one round at most; 0 means View.Room

	regions []peer.ID // for which homes was made
	homes   []int32   // by shard: index in regions
}

// Allocate returns the home of the shard.
func (h *ConsistentHash) Allocate(v *View, s route.ShardID) (peer.ID, error) {
	h.table(v)
	if int(s) >= len(h.homes) {
		return peer.ID{}, ErrNoRegion
	}
	return h.regions[h.homes[s]], nil
}

// Rebalance returns moves of shards that live elsewhere than at their home: region by region in the order of their
// identities, the oldest shards of each first. Others may move meanwhile.
func (h *ConsistentHash) Rebalance(v *View) ([]Move, error) {
	if v.Holds() != 0 {
		return nil, nil
	}
	h.table(v)
	room := v.Room()
	if h.Limit > 0 {
		room = min(room, h.Limit-len(v.Moving))
	}
	var moves []Move
	for _, r := range eligible(v) {
		for _, s := range r.Shards {
			if len(moves) >= room {
				return moves, nil
			}
			if to := h.regions[h.homes[s]]; to != r.ID && !v.IsMoving(s) {
				moves = append(moves, Move{s, r.ID, to})
			}
		}
	}
	return moves, nil
}

// table makes the table of homes if it is not that of the view.
func (h *ConsistentHash) table(v *View) {
	regions := eligible(v)
	if len(h.homes) == int(v.Shards) && slices.EqualFunc(h.regions, regions, func(id peer.ID, r *Region) bool {
		return id == r.ID
	}) {
		return
	}
	h.regions, h.homes = nil, nil
	for _, r := range regions {
		h.regions = append(h.regions, r.ID)
	}
	if n := len(regions); n > 0 {
		slack := min(max(0, cmp.Or(h.Slack, DefaultSlack)), maxSlack)
		most := (int64(v.Shards)*int64(100+slack) + int64(100*n) - 1) / int64(100*n)
		h.homes = newTable(h.Key, h.regions, int(v.Shards), int(most)).homes()
	}
}

// table assigns shards to regions: each shard prefers the regions by descending score, each region the shards too, and
// keeps the best that it has room for. With one score for both there is one stable assignment, whichever begins.
type table struct {
	seeds []uint64 // by region
	most  int
	kept  []shelf // by region
}

func newTable(key string, regions []peer.ID, shards, most int) *table {
	t := &table{seeds: make([]uint64, len(regions)), most: most, kept: make([]shelf, len(regions))}
	for i, id := range regions {
		t.seeds[i] = xxhash.Sum64String(key + "\x00" + id.Addr.String())
	}
	for s := range shards {
		t.settle(proposal{shard: route.ShardID(s), region: nowhere})
	}
	return t
}

// proposal is a shard and the region that it prefers most after those that have refused it. Equal scores are decided by
// the region, then the shard, so that the order is total.
type proposal struct {
	score  uint64
	region int32
	shard  route.ShardID
}

func (p proposal) compare(o proposal) int {
	return cmp.Or(cmp.Compare(p.score, o.score), -cmp.Compare(p.region, o.region), -cmp.Compare(p.shard, o.shard))
}

// next returns the proposal of a shard that comes after last, which is its first when it has none yet.
func (t *table) next(last proposal) proposal {
	best := proposal{shard: last.shard, region: nowhere}
	var text [12]byte
	for i, seed := range t.seeds {
		p := proposal{xxhash.Sum64(wire.AppendU32(wire.AppendU64(text[:0], seed), uint32(last.shard))), int32(i), last.shard}
		if (last.region == nowhere || p.compare(last) < 0) && (best.region == nowhere || p.compare(best) > 0) {
			best = p
		}
	}
	return best
}

// settle finds a place for a shard, then for the shard that it drives out, and so on. Each time a shard leaves a region
// for one that it prefers less, so it ends.
func (t *table) settle(p proposal) {
	for {
		p = t.next(p)
		at := &t.kept[p.region]
		if len(*at) < t.most {
			heap.Push(at, p)
			return
		}
		if least := (*at)[0]; p.compare(least) > 0 {
			(*at)[0] = p
			heap.Fix(at, 0)
			p = least
		}
	}
}

func (t *table) homes() []int32 {
	n := 0
	for _, list := range t.kept {
		n += len(list)
	}
	homes := make([]int32, n)
	for i, list := range t.kept {
		for _, p := range list {
			homes[p.shard] = int32(i)
		}
	}
	return homes
}

// shelf is a heap of what a region keeps, the least preferred first.
type shelf []proposal

func (s shelf) Len() int           { return len(s) }
func (s shelf) Less(i, j int) bool { return s[i].compare(s[j]) < 0 }
func (s shelf) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *shelf) Push(p any)        { *s = append(*s, p.(proposal)) }
func (s *shelf) Pop() any          { return nil } // nothing is ever taken out alone
