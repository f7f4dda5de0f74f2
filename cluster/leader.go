// Leader: which member leads, and what else is read off a list of members alone.

package cluster

import "github.com/kith-io/kith/peer"

// Leader returns the leader as self sees it among those with role: the first in address order that is Up or
// Leaving (or in a full shutdown), else the first of the best other status (WeaklyUp, Joining, Exiting). Down members
// never lead, unreachable ones neither, except that nobody takes itself for unreachable. Zero: none. There is no
// election.
func Leader(members []Member, unreachable peer.Set, self peer.ID, role string) peer.ID {
	best, bestClass := peer.ID{}, 4
	for i := range members {
		m := &members[i]
		class := 4
		switch m.Status {
		case Up, Leaving, PreparingForShutdown, ReadyForShutdown:
			class = 0
		case WeaklyUp:
			class = 1
		case Joining:
			class = 2
		case Exiting:
			class = 3
		}
		if class >= bestClass || !m.HasRole(role) || m.ID != self && unreachable.Has(m.ID) {
			continue
		}
		if best, bestClass = m.ID, class; class == 0 {
			break // nobody behind it is better
		}
	}
	return best
}

// Orphaned reports whether all that were ever up are Down, and the others never came Up. None of these may carry the
// cluster on: others like them, out of reach, would do the same.
func Orphaned(members []Member) bool {
	lost := false
	for i := range members {
		m := &members[i]
		if m.UpNumber != 0 && m.Status != Down {
			return false
		}
		lost = lost || m.UpNumber != 0
	}
	return lost
}

// Preparing reports whether the cluster prepares for a full shutdown. It is read off the state, so every node that has
// the state knows it (Q18).
func Preparing(members []Member) bool {
	for i := range members {
		if st := members[i].Status; st == PreparingForShutdown || st == ReadyForShutdown {
			return true
		}
	}
	return false
}
