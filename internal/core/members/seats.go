// Seats: when a leader may change the list of seats, and of which members (MEM-10).

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
)

// SeenByAll reports whether all members that are not Down are known to have seen s: those that are joining or leaving
// too, but for those in exited, which confirmed that they are done. It asks for more than Converged, and not for that
// all are heard.
func (s *State) SeenByAll(exited peer.Set) bool {
	for i := range s.Members {
		if m := &s.Members[i]; m.Status != cluster.Down && !s.Seen.Has(i) && !exited.Has(m.ID) {
			return false
		}
	}
	return true
}

// Unproven appends those that s lists as Down or removed, and not as proven dead: they may live. They are sorted.
func (s *Version) Unproven(ids []peer.ID) []peer.ID {
	for i := range s.Members {
		if m := &s.Members[i]; m.Status == cluster.Down && m.Cause != cluster.CauseProvenDead {
			ids = append(ids, m.ID)
		}
	}
	for i := range s.Tombs {
		if t := &s.Tombs[i]; t.Cause != cluster.CauseProvenDead {
			ids = append(ids, t.ID)
		}
	}
	slices.SortFunc(ids, peer.ID.Compare)
	return ids
}

// Reseat returns the next version, in which the leader self has changed the list of that many seats by one step; nil
// when there is nothing to change. Members with the role that are Up get a seat; all members do when role is empty. The
// caller holds that self leads under convergence, and that all have seen s: SeenByAll.
//
// Founding an electorate waits for the end of all that are lost. The first one does not wait for those that have left:
// they are no part of another side that could found one.
func Reseat(s *State, self peer.ID, voters int, role string) *State {
	people := make([]tenure.Member, len(s.Members))
	for i := range s.Members {
		m := &s.Members[i]
		people[i] = tenure.Member{ID: m.ID, Zone: m.Zone(), Up: m.Status == cluster.Up && m.HasRole(role),
			Down: m.Status == cluster.Down, Leaving: m.Status == cluster.Leaving || m.Status == cluster.Exiting}
	}
	ended := !slices.ContainsFunc(s.Unproven(nil), func(id peer.ID) bool {
		t, _ := s.Tomb(id)
		return s.Seats.Number > 0 || t.Last != cluster.Exiting
	})
	next, ok := s.Seats.Next(self, voters, people, ended)
	if !ok {
		return nil
	}
	d := s.Draft()
	d.Seats = next
	return d.Commit(self)
}
