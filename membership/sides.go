// Sides: how a state stands to one from beyond a cut, where each may have removed members of the other (MEM-1).

package membership

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

func (s *state) upCount() uint32 {
	n := uint32(0)
	for i := range s.members {
		if s.members[i].Status.Working() {
			n++
		}
	}
	return n
}

func (s *state) lowestUp() peer.ID {
	for i := range s.members {
		if s.members[i].Status.Working() {
			return s.members[i].ID
		}
	}
	return peer.ID{}
}

// outlives reports whether this side, of two that have removed each other, is the one that lives: it has more Up
// members, or as many and the lowest id. up and lowest are those of the other side.
func (s *state) outlives(up uint32, lowest peer.ID) bool {
	mine := s.upCount()
	return mine > up || mine == up && s.lowestUp().Less(lowest)
}

// covers reports whether s had the member as one and has removed it, whether or not it remembers.
func (s *version) covers(mb *cluster.Member) bool {
	return mb.UpNumber != 0 && mb.UpNumber <= s.highestUp && !s.has(mb.ID)
}

// hasAddr reports whether some incarnation at the address is a member, whatever its status.
func (s *version) hasAddr(a peer.Addr) bool {
	i, _ := slices.BinarySearchFunc(s.members, a, func(m cluster.Member, a peer.Addr) int { return m.ID.Addr.Compare(a) })
	return i < len(s.members) && s.members[i].ID.Addr == a
}

// sameMembers reports whether both hold one and the same list of members, records and all, without looking at it.
func (s *state) sameMembers(o *state) bool { return sameSlice(s.members, o.members) }
