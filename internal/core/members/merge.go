// Merge: the state as a CRDT, and what to do with a state that a peer sent (MEM-4, GOS-4).

package members

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// work is the memory in which states are merged and sealed, reused from one to the next.
type work struct {
	buf   []byte      // canonical bytes of what is being sealed
	ids   peer.Set    // identities being gathered
	words dictionary  // of what is being encoded
	seen  gossip.Seen // of a state that was given up
	pool  *Intern     // nil in production
}

// recycle takes the seen set of a state that nobody uses any more.
func (w *work) recycle(s *State) { w.seen, s.Seen = s.Seen, gossip.Seen{} }

// sealed is a merged state with everything that belongs to it, in one allocation.
type sealed struct {
	state   State
	version Version
	view    cluster.View
}

// mergeStates joins two versions of one cluster's state: tombstones unite and decide which incarnations are no members;
// members, rows and clock entries join one by one. It is commutative, associative and idempotent, and the result is not
// older than either (MEM-4). Nobody has seen the result. Lists that equal those of a or b are shared with them.
func mergeStates(a, b *State) *State { return new(work).merge(a, b) }

func (w *work) merge(a, b *State) *State {
	if known := w.pool.join(a.Version, b.Version); known != nil {
		return w.stateOf(known)
	}
	last := a.Version
	if comparePrunings(last, b.Version) < 0 {
		last = b.Version
	}
	box := &sealed{}
	v := &box.version
	*v = Version{Cluster: a.Cluster, Birth: max(a.Birth, b.Birth), HighestUp: max(a.HighestUp, b.HighestUp),
		Prunes: last.Prunes, Pruned: last.Pruned}
	v.Tombs = union(a.Tombs, b.Tombs, compareTombs, sameTombs, mergeTombs)
	v.Members = union(a.Members, b.Members, compareMembers, sameMembers, mergeMembers)
	v.Reach = union(a.Reach, b.Reach, compareRows, sameRows, joinRows)
	v.meta = a.meta.merge(b.meta)
	v.Parts = partition.Merge(a.Parts, b.Parts)
	if v.Seats = a.Seats; b.Seats.Newer(a.Seats) {
		v.Seats = b.Seats
	}
	v.Clock = a.Clock.Merge(b.Clock)
	if len(v.Tombs) != len(a.Tombs) || len(v.Tombs) != len(b.Tombs) { // else neither has one that the other lacks
		if alive := bury(v.Members, v.Tombs); len(alive) < len(v.Members) {
			v.Tombs = keepProofs(v.Members, v.Tombs)
			v.Members = alive
			v.Reach = v.Reach.only(v.Has)
			v.Clock = v.Clock.Prune(func(id peer.ID) bool { return !v.Has(id) })
		}
	}
	v.sealIn(w, a.Version, b.Version)
	if w.pool != nil {
		w.pool.verify(v)
		known := w.pool.one(v)
		w.pool.joined(a.Version, b.Version, known)
		return w.stateOf(known)
	}
	box.state = State{Version: v, Seen: w.takeSeen(len(v.Members)), spare: &box.view}
	return &box.state
}

// takeSeen returns an empty set over n members, in the memory of one that was given up.
func (w *work) takeSeen(n int) gossip.Seen {
	s := w.seen
	w.seen = gossip.Seen{}
	s.Reset(n)
	return s
}

// stateOf returns a version that nobody has seen.
func (w *work) stateOf(v *Version) *State {
	return &State{Version: v, Seen: w.takeSeen(len(v.Members))}
}

// mergeMembers joins two records of one incarnation: the status further along the chain, the higher up-number. The
// number only grows, so a term once used as a coordinator is never undercut by the same member. Of two that downed it
// at once one is named, everywhere the same.
func mergeMembers(a, b cluster.Member) cluster.Member {
	order := cmp.Compare(a.Status.Rank(), b.Status.Rank())
	if order < 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {
		a.Status, a.Cause, a.By = b.Status, b.Cause, b.By
	}
	a.AppVersion = max(a.AppVersion, b.AppVersion) // it never changes either
	a.UpNumber = max(a.UpNumber, b.UpNumber)
	if slices.Compare(a.Roles, b.Roles) < 0 {
		a.Roles = b.Roles // a member never changes its roles; if it did, all would agree
	}
	return a
}

func compareVerdicts(a cluster.Cause, aBy peer.ID, b cluster.Cause, bBy peer.ID) int {
	return cmp.Or(cmp.Compare(a, b), aBy.Compare(bBy))
}

func compareMembers(x, y *cluster.Member) int {
	if x.ID == y.ID {
		return 0
	}
	return x.ID.Compare(y.ID)
}

// sameMembers says which of two records of one incarnation is their join. Most of the time they are equal.
func sameMembers(x, y *cluster.Member) (isX, isY bool) {
	if equalMembers(x, y) {
		return true, true
	}
	j := mergeMembers(*x, *y)
	return equalMembers(&j, x), equalMembers(&j, y)
}

// equalMembers compares every field but the identity, which is known to be equal.
func equalMembers(x, y *cluster.Member) bool {
	return x.Status == y.Status && x.UpNumber == y.UpNumber && x.AppVersion == y.AppVersion && x.Cause == y.Cause &&
		x.By == y.By && (sameSlice(x.Roles, y.Roles) || slices.Equal(x.Roles, y.Roles))
}

func compareTombs(x, y *Tombstone) int {
	if x.ID == y.ID {
		return 0
	}
	return x.ID.Compare(y.ID)
}

func sameTombs(x, y *Tombstone) (isX, isY bool) {
	if *x == *y {
		return true, true
	}
	j := mergeTombs(*x, *y)
	return j == *x, j == *y
}

func mergeTombs(a, b Tombstone) Tombstone {
	order := cmp.Compare(a.Last.Rank(), b.Last.Rank())
	if order < 0 || order == 0 && compareVerdicts(a.Cause, a.By, b.Cause, b.By) < 0 {
		return b
	}
	return a
}

// bury returns the members without those that have a tombstone; the list itself when there are none.
func bury(members []cluster.Member, tombs []Tombstone) []cluster.Member {
	var alive []cluster.Member
	t := 0
	for i := range members {
		for t < len(tombs) && tombs[t].ID.Less(members[i].ID) {
			t++
		}
		dead := t < len(tombs) && tombs[t].ID == members[i].ID
		if dead && alive == nil {
			alive = append(make([]cluster.Member, 0, len(members)), members[:i]...)
		} else if !dead && alive != nil {
			alive = append(alive, members[i])
		}
	}
	if alive == nil {
		return members
	}
	return alive
}

// keepProofs returns the tombstones with what the records of their members know: that a process is proven dead must not
// be lost because somebody removed it for another reason.
func keepProofs(members []cluster.Member, tombs []Tombstone) []Tombstone {
	shared := true
	for i := range members {
		m := &members[i]
		if m.Cause != cluster.CauseProvenDead {
			continue
		}
		at, buried := slices.BinarySearchFunc(tombs, m.ID, func(t Tombstone, id peer.ID) int { return t.ID.Compare(id) })
		if !buried {
			continue
		}
		if shared {
			tombs, shared = slices.Clone(tombs), false
		}
		tombs[at] = mergeTombs(tombs[at], Tombstone{m.ID, cluster.Down, m.Cause, m.By})
	}
	return tombs
}

// Outcome is how a received state stands to the local one.
type Outcome uint8

// The outcomes of a comparison.
const (
	Same   Outcome = iota // the same version: seen sets unite
	Older                 // theirs is older: ours stays
	Newer                 // theirs is newer: it is taken
	Merged                // each had something: the join is taken
	Bumped                // the join says more than its clock does: it must become a change of this node
)

// newerOrMerged decides between the local and a received state of one cluster: the newer of the two, or their join.
//
// Removal takes a node's entry out of the clock, so a clock can look concurrent that is only older; the join then
// equals one side, contents and clock, and that side wins with its seen set. And a change by a node that was removed
// before it spread leaves no trace in the clock. Then the join equals a side in its clock but not in its contents, or
// it has the clock of another join, of a state without that change. One clock must never name two contents, so such a
// join is made a change of its own.
func (w *work) newerOrMerged(local, remote *State) (*State, Outcome) {
	switch remote.Clock.Compare(local.Clock) {
	case gossip.Same:
		if remote.Digest == local.Digest {
			return local, Same
		}
	case gossip.Before:
		return local, Older
	case gossip.After:
		return remote, Newer
	}
	merged := w.merge(local, remote)
	likeLocal := merged.Clock.Compare(local.Clock) == gossip.Same
	likeRemote := merged.Clock.Compare(remote.Clock) == gossip.Same
	switch {
	case likeLocal && merged.sameContent(local.Version):
		return local, Older
	case likeRemote && merged.sameContent(remote.Version):
		return remote, Newer
	case likeLocal || likeRemote || unnamed(local, remote, merged) || unnamed(remote, local, merged):
		return merged, Bumped
	}
	return merged, Merged
}

// unnamed reports whether the join may hold a change that no entry of its clock names: of a member of s that o has
// removed, with its entry, so that nobody knows whether o had that change. A row of Reach is its observer's alone, and
// goes with it; all else any member may have changed.
func unnamed(s, o, join *State) bool {
	dropped := func(e gossip.Entry) bool { return !join.Has(e.ID) }
	if len(join.Tombs) == len(s.Tombs) || !slices.ContainsFunc(s.Clock, dropped) {
		return false
	}
	equal := func(x, y cluster.Member) bool { return x.ID == y.ID && equalMembers(&x, &y) }
	return !slices.EqualFunc(join.Members, o.Members, equal) || !slices.Equal(join.Tombs, o.Tombs) ||
		!slices.Equal(join.meta, o.meta) || !partition.Equal(join.Parts, o.Parts) || join.Seats.Newer(o.Seats)
}
