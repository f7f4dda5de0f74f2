// Oldest: everything on the oldest member, for singletons.

package strategy

import (
	"cmp"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Oldest gives every shard to the region on the oldest member, that of the lowest up-number among those that are
// eligible, and moves there what lives elsewhere. So a shard moves when its member leaves or is lost, and otherwise
// only when an older member takes part that could not before. It does not look at versions. It keeps nothing and may
// be copied.
type Oldest struct{}

// Allocate returns the region on the oldest member.
func (Oldest) Allocate(v *View, _ route.ShardID) (peer.ID, error) {
	best := oldest(v)
	if best == nil {
		return peer.ID{}, ErrNoRegion
	}
	return best.ID, nil
}

// oldest returns the region on the oldest member, nil when none is eligible.
func oldest(v *View) (best *Region) {
	for i := range v.Regions { // sorted: of equals the first
		if r := &v.Regions[i]; r.Eligible() && (best == nil || cmp.Compare(r.UpNumber, best.UpNumber) < 0) {
			best = r
		}
	}
	return best
}

// Rebalance moves to the oldest member what lives on others that are eligible.
func (Oldest) Rebalance(v *View) (moves []Move, err error) {
	best := oldest(v)
	if best == nil || v.Holds() != 0 {
		return nil, nil
	}
	for i := range v.Regions {
		r := &v.Regions[i]
		if r == best || !r.Eligible() {
			continue
		}
		for _, s := range r.Shards {
			if len(moves) == v.Room() {
				return moves, nil
			}
			if !v.IsMoving(s) {
				moves = append(moves, Move{s, r.ID, best.ID})
			}
		}
	}
	return moves, nil
}
