// Sides: how a state stands to one from beyond a cut, where each may have removed members of the other (MEM-1).

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// UpCount returns how many members are Up, or in a full shutdown.
func (s *State) UpCount() uint32 {
	n := uint32(0)
	for i := range s.Members {
		if s.Members[i].Status.Working() {
			n++
		}
	}
	return n
}

// LowestUp returns the first of them in address order, zero when there is none.
func (s *State) LowestUp() peer.ID {
	for i := range s.Members {
		if s.Members[i].Status.Working() {
			return s.Members[i].ID
		}
	}
	return peer.ID{}
}

// Outlives reports whether this side, of two that have removed each other, is the one that lives: it has more Up
// members, or as many and the lowest id. up and lowest are those of the other side.
func (s *State) Outlives(up uint32, lowest peer.ID) bool {
	mine := s.UpCount()
	return mine > up || mine == up && s.LowestUp().Less(lowest)
}

// Covers reports whether s had the member as one and has removed it, whether or not it remembers.
func (s *Version) Covers(mb *cluster.Member) bool {
	return mb.UpNumber != 0 && mb.UpNumber <= s.HighestUp && !s.Has(mb.ID)
}

// HasAddr reports whether some incarnation at the address is a member, whatever its status.
func (s *Version) HasAddr(a peer.Addr) bool {
	i, _ := slices.BinarySearchFunc(s.Members, a, func(m cluster.Member, a peer.Addr) int { return m.ID.Addr.Compare(a) })
	return i < len(s.Members) && s.Members[i].ID.Addr == a
}

// SameMembers reports whether both hold one and the same list of members, records and all, without looking at it.
func (s *State) SameMembers(o *State) bool { return sameSlice(s.Members, o.Members) }

// Missing returns the members of o, by position, that s has not; nil when it has all. Both lists are walked in step, so
// that it takes one comparison a member.
func (s *Version) Missing(o *Version) (at []int) {
	k := 0
	for i := range o.Members {
		id := o.Members[i].ID
		for k < len(s.Members) && s.Members[k].ID != id && s.Members[k].ID.Less(id) {
			k++
		}
		if k < len(s.Members) && s.Members[k].ID == id {
			k++
		} else {
			at = append(at, i)
		}
	}
	return at
}
