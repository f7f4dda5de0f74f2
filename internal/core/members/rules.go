// Rules: convergence, the leader, and what a leader does; functions of one state (MEM-5, GOS-3).

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// Leader returns the leader of all members as self sees it, zero for none.
func (s *State) Leader(self peer.ID) peer.ID {
	return cluster.Leader(s.Members, s.Unreachable, self, "")
}

// Lead returns the next version after one pass of leader actions by self under convergence, and the removed members;
// nil when there is nothing to do. Removal comes first: Down members that are unreachable or have a new incarnation at
// their address, which proves the old one dead; Exiting ones that confirmed or are unreachable; self last of all. Each
// removed member that was never seen Up consumes an up-number, because a leader on the far side of a cut may have given
// it one, and after a loss so does each one that has none; then joining members get theirs in address order, and
// leaving ones become exiting, unless the partition table names them, which is then planned. Tombstones for which
// expired says true are forgotten. While the cluster prepares for a full shutdown no member is let in, an Up one
// prepares too, and one that prepares becomes ready; without letIn none is let in either, nor before all joining
// members have seen this version.
func Lead(s *State, self peer.ID, exited peer.Set, expired func(peer.ID) bool, letIn bool) (next *State,
	removed []cluster.Member) {
	d := s.Draft()
	for _, m := range s.Members {
		if m.ID != self && removable(s, m, exited) {
			removed = append(removed, m)
		}
	}
	if i := s.Index(self); i >= 0 && s.Members[i].Status == cluster.Exiting && exited.Has(self) &&
		len(removed) == len(s.Members)-1 {
		removed = append(removed, s.Members[i])
	}
	lost := false
	for _, m := range removed {
		d.Remove(m.ID)
		if m.UpNumber == 0 {
			d.consume(1)
		}
		lost = lost || m.Status == cluster.Down
	}
	if len(removed) > 0 && len(d.Parts) > 0 {
		d.meta = d.withDrains(d.Draining(), self) // those that are no members any more go
	}
	skip := uint32(0) // those that are removed have consumed theirs
	if slices.ContainsFunc(s.Members, func(m cluster.Member) bool { return m.Status == cluster.Down }) {
		skip = d.unheard()
	}
	if lost {
		d.consume(skip)
		skip = 0
	}
	changed := d.promote(letIn && s.seenByJoiners(removed), skip) || len(removed) > 0
	if parts := d.Parts.Plan(d.Members, d.numberOf(self), nil, d.Draining()...); !partition.Equal(parts, d.Parts) {
		d.Parts, changed = parts, true
	}
	if kept := keepTombs(d.Tombs, expired); len(kept) < len(d.Tombs) {
		d.Tombs, changed = kept, true
	}
	if !changed {
		return nil, nil
	}
	return d.Commit(self), removed
}

// numberOf returns the up-number of a member, 0 for one that has none.
func (s *Version) numberOf(id peer.ID) uint32 {
	if i := s.Index(id); i >= 0 {
		return s.Members[i].UpNumber
	}
	return 0
}

// WithPartitions returns the next version, in which by has changed the partition table, or nil when it is the same.
func (s *State) WithPartitions(t partition.Table, by peer.ID) *State {
	if partition.Equal(s.Parts, t) {
		return nil
	}
	d := s.Draft()
	d.Parts = t
	return d.Commit(by)
}

// Orphaned reports whether all that were ever up are Down, as cluster.Orphaned says of a list of members.
func (s *State) Orphaned() bool { return cluster.Orphaned(s.Members) }

// seenByJoiners reports whether all that have no up-number yet have seen s, besides those that are removed. Convergence
// does not wait for them, but numbers must: what a leader gave just before it died may be known only to the joiner that
// it promoted, and a leader that gives numbers without knowing of it gives the same number to another member.
func (s *State) seenByJoiners(removed []cluster.Member) bool {
	for i := range s.Members {
		m := &s.Members[i]
		if m.Status.Numbered() < 0 && !s.Seen.Has(i) &&
			!slices.ContainsFunc(removed, func(r cluster.Member) bool { return r.ID == m.ID }) {
			return false
		}
	}
	return true
}

// unheard returns how many numbers a leader that is Down may have given to members of s so that no living member has
// heard of it: no more than there are members without one, Down ones included, because numbers are given only
// when all of them have seen the state before.
func (s *State) unheard() (n uint32) {
	for i := range s.Members {
		if s.Members[i].UpNumber == 0 {
			n++
		}
	}
	return n
}

// promote moves every member one step on under convergence, and reports whether one moved. Up-numbers are given only
// when letIn says so; the first of them, as many as skip says, to nobody.
func (s *State) promote(letIn bool, skip uint32) (changed bool) {
	stopping := cluster.Preparing(s.Members)
	letIn = letIn && !stopping
	for i := range s.Members {
		m := &s.Members[i]
		was := m.Status
		switch {
		case was.Numbered() < 0 && letIn && skip < MaxUpNumber-s.HighestUp:
			s.HighestUp += skip + 1
			skip = 0
			m.Status, m.UpNumber = cluster.Up, s.HighestUp
		case was == cluster.Up && stopping:
			m.Status = cluster.PreparingForShutdown
		case was == cluster.PreparingForShutdown:
			m.Status = cluster.ReadyForShutdown
		case was == cluster.Leaving && (stopping || !s.Parts.Names(m.ID)):
			m.Status = cluster.Exiting
		}
		changed = changed || m.Status != was
	}
	return changed
}

func removable(s *State, m cluster.Member, exited peer.Set) bool {
	switch m.Status {
	case cluster.Down:
		return s.Unreachable.Has(m.ID) || s.Replaced(m.ID)
	case cluster.Exiting:
		return s.Unreachable.Has(m.ID) || exited.Has(m.ID)
	}
	return false
}

// Replaced reports whether another incarnation at the same address is a member that is not Down.
func (s *State) Replaced(id peer.ID) bool {
	other := s.At(id.Addr)
	return !other.IsZero() && other != id
}

// At returns the member at the address that is not Down, or zero.
func (s *State) At(addr peer.Addr) peer.ID {
	for i := range s.Members {
		if m := &s.Members[i]; m.ID.Addr == addr && m.Status != cluster.Down {
			return m.ID
		}
	}
	return peer.ID{}
}

func keepTombs(tombs []Tombstone, expired func(peer.ID) bool) []Tombstone {
	kept := make([]Tombstone, 0, len(tombs))
	for _, t := range tombs {
		if !expired(t.ID) {
			kept = append(kept, t)
		}
	}
	return kept
}

// Weaken returns the next version in which self, leading without convergence, has let in the joining members that it
// can reach; nil when there are none.
func Weaken(s *State, self peer.ID, letIn bool) *State {
	if !letIn || cluster.Preparing(s.Members) {
		return nil
	}
	var d *State
	for i := range s.Members {
		if m := &s.Members[i]; m.Status == cluster.Joining && (m.ID == self || !s.Unreachable.Has(m.ID)) {
			if d == nil {
				d = s.Draft()
			}
			d.Members[i].Status = cluster.WeaklyUp
		}
	}
	if d == nil {
		return nil
	}
	return d.Commit(self)
}

// Deputies appends the positions of the n members after the leader in sorted order, going on at the front behind the
// last, among those that count; the leader is none of them. Without a leader there are none.
func (s *State) Deputies(leader peer.ID, n int, into []int) []int {
	first := s.Index(leader)
	if first < 0 {
		return into
	}
	for k := 1; k < len(s.Members) && n > 0; k++ {
		if i := (first + k) % len(s.Members); s.Members[i].Status.Counts() {
			into = append(into, i)
			n--
		}
	}
	return into
}

// Prepare returns the next version, in which all Up members prepare for a full shutdown; nil when nobody is Up.
func Prepare(s *State, self peer.ID) *State {
	d := s.Draft()
	any := false
	for i := range d.Members {
		if d.Members[i].Status == cluster.Up {
			d.Members[i].Status, any = cluster.PreparingForShutdown, true
		}
	}
	if !any {
		return nil
	}
	return d.Commit(self)
}
