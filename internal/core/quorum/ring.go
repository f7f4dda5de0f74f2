// Ring: which replicas hold which group.

package quorum

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// ring is the members, and the replicas of each group.
type ring struct {
	members peer.Set
	up      peer.Set
	leaving peer.Set
	groups  [Groups][]peer.ID
}

// assign takes other members, and returns the groups that self holds, a bit each.
func (r *ring) assign(c MembersCommand, n int, self peer.ID) (in uint64) {
	r.members, r.up, r.leaving = c.All.Clone(), c.Up.Clone(), c.Leaving.Clone()
	stay := c.Stay()
	for g := range r.groups {
		r.groups[g] = replicasOf(uint8(g), stay, n)
		if slices.Contains(r.groups[g], self) {
			in |= 1 << g
		}
	}
	return in
}

// replicasOf returns the n members that hold a group, by consistent hashing: a member that comes or goes moves none of
// the others. It goes by addresses, so that a new disk at an address has the place of the one that was lost.
func replicasOf(group uint8, members peer.Set, n int) []peer.ID {
	type weighed struct {
		id peer.ID
		w  uint64
	}
	all := make([]weighed, len(members))
	for i, id := range members {
		all[i] = weighed{id, xxhash.Sum64(wire.AppendU16(peer.AppendAddr(nil, id.Addr), uint16(group)))}
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Or(cmp.Compare(b.w, a.w), a.id.Compare(b.id)) })
	out := make([]peer.ID, 0, n)
	for i := range min(n, len(all)) {
		out = append(out, all[i].id)
	}
	return out
}

// share reports whether two replicas both hold a group.
func (r *ring) share(group int, a, b peer.ID) bool {
	return slices.Contains(r.groups[group], a) && slices.Contains(r.groups[group], b)
}

// source returns another disk that has not given all of a group yet, one that leaves if there is any, else one of its
// replicas; zero for none.
func (r *ring) source(group int, c *catching, self peer.ID, rng *rand.Rand) peer.ID {
	for _, among := range [][]peer.ID{r.leaving, r.groups[group], r.members} {
		var list []peer.ID
		for _, id := range among {
			if id != self && r.up.Has(id) && !slices.Contains(c.gave, id) {
				list = append(list, id)
			}
		}
		if len(list) > 0 {
			return list[rng.IntN(len(list))]
		}
	}
	return peer.ID{}
}
