// Convergence: who keeps a node from it, and who accuses those (GOS-3).

package membership

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// converged reports whether self can prove that all who count have seen s (GOS-3). Nobody may be unreachable but
// Down or Exiting members, self (a node never waits because others accuse it) and those in exited, who confirmed that
// they are done leaving. While no member is Up or Leaving, joining ones must have seen it too, so that the first
// up-number is given once. Up stands for the two states of a full shutdown as well.
func converged(s *state, self peer.ID, exited peer.Set) bool {
	for _, id := range s.unreachable {
		if st := s.status(id); id != self && st != cluster.Down && st != cluster.Exiting && !exited.Has(id) {
			return false
		}
	}
	first := true
	for i := range s.members {
		if s.members[i].Status.Counts() {
			first = false
			break
		}
	}
	for i := s.waits; i < len(s.members); i++ {
		m := &s.members[i]
		switch wanted := m.Status.Counts() || first && (m.Status == cluster.Joining || m.Status == cluster.WeaklyUp); {
		case !wanted || s.seen.Has(i):
			if i == s.waits {
				s.waits++ // seen sets only grow: all questions about one version together look at each member once
			}
		case !exited.Has(m.ID):
			return false
		}
	}
	return true
}

// blockers counts who keeps self from convergence, by the rules of converged, and appends the positions of the first
// limit of them in the members.
func blockers(s *state, self peer.ID, limit int, into []int) (list []int, count int) {
	first := !slices.ContainsFunc(s.members, func(m cluster.Member) bool { return m.Status.Counts() })
	for i := range s.members {
		m := &s.members[i]
		st := m.Status
		silent := m.ID != self && st != cluster.Down && st != cluster.Exiting && s.unreachable.Has(m.ID)
		unseen := (st.Counts() || first && (st == cluster.Joining || st == cluster.WeaklyUp)) && !s.seen.Has(i)
		if !silent && !unseen {
			continue
		}
		if count++; count <= limit {
			into = append(into, i)
		}
	}
	return into, count
}

// accusers returns who of those that are not Down holds id unreachable.
func (s *state) accusers(id peer.ID) (out peer.Set) {
	for _, r := range s.reach {
		if _, ok := r.find(id); ok && s.status(r.observer) != cluster.Down {
			out = append(out, r.observer)
		}
	}
	return out
}

// accusedByAnother reports whether an observer other than self, and not Down, holds id unreachable.
func (s *state) accusedByAnother(id, self peer.ID) bool {
	for _, r := range s.reach {
		if _, ok := r.find(id); ok && r.observer != self && s.status(r.observer) != cluster.Down {
			return true
		}
	}
	return false
}
