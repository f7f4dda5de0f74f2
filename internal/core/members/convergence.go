// Convergence: which members keep a node from it, and which observers accuse those (GOS-3).

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// Converged reports whether self can prove that all members that count have seen s (GOS-3). Nobody may be unreachable
// but Down or Exiting members, self (a node never waits because others accuse it) and those in exited, which confirmed
// that they are done leaving. While no member is Up or Leaving, joining ones must have seen it too, so that the first
// up-number is given once. Up stands for the two states of a full shutdown as well.
func Converged(s *State, self peer.ID, exited peer.Set) bool {
	for _, id := range s.Unreachable {
		if st := s.Status(id); id != self && st != cluster.Down && st != cluster.Exiting && !exited.Has(id) {
			return false
		}
	}
	first := true
	for i := range s.Members {
		if s.Members[i].Status.Counts() {
			first = false
			break
		}
	}
	for i := s.waits; i < len(s.Members); i++ {
		m := &s.Members[i]
		switch wanted := m.Status.Counts() || first && (m.Status == cluster.Joining || m.Status == cluster.WeaklyUp); {
		case !wanted || s.Seen.Has(i):
			if i == s.waits {
				s.waits++ // seen sets only grow: all questions about one version together look at each member once
			}
		case !exited.Has(m.ID):
			return false
		}
	}
	return true
}

// Blockers counts the members that keep self from convergence, by the rules of Converged, and appends the positions of
// the first limit of them in the members.
func Blockers(s *State, self peer.ID, limit int, into []int) (list []int, count int) {
	first := !slices.ContainsFunc(s.Members, func(m cluster.Member) bool { return m.Status.Counts() })
	for i := range s.Members {
		m := &s.Members[i]
		st := m.Status
		silent := m.ID != self && st != cluster.Down && st != cluster.Exiting && s.Unreachable.Has(m.ID)
		unseen := (st.Counts() || first && (st == cluster.Joining || st == cluster.WeaklyUp)) && !s.Seen.Has(i)
		if !silent && !unseen {
			continue
		}
		if count++; count <= limit {
			into = append(into, i)
		}
	}
	return into, count
}

// Accusers returns the observers that are not Down and hold id unreachable.
func (s *State) Accusers(id peer.ID) (out peer.Set) {
	for _, r := range s.Reach {
		if _, ok := r.find(id); ok && s.Status(r.observer) != cluster.Down {
			out = append(out, r.observer)
		}
	}
	return out
}

// AccusedByAnother reports whether an observer other than self, and not Down, holds id unreachable.
func (s *State) AccusedByAnother(id, self peer.ID) bool {
	for _, r := range s.Reach {
		if _, ok := r.find(id); ok && r.observer != self && s.Status(r.observer) != cluster.Down {
			return true
		}
	}
	return false
}
