// Merge: the state as a CRDT, and what to do with a state that a peer sent (MEM-4, GOS-4).

package membership

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
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
func (w *work) recycle(s *state) { w.seen, s.seen = s.seen, gossip.Seen{} }

// sealed is a merged state with everything that belongs to it, in one allocation.
type sealed struct {
	state   state
	version version
	view    cluster.View
}

// mergeStates joins two versions of one cluster's state: tombstones unite and decide who is no member; members, rows
// and clock entries join one by one. It is commutative, associative and idempotent, and the result is not older than
// either (MEM-4). Nobody has seen the result. Lists that equal those of a or b are shared with them.
func mergeStates(a, b *state) *state { return new(work).merge(a, b) }

func (w *work) merge(a, b *state) *state {
	if known := w.pool.join(a.version, b.version); known != nil {
		return w.stateOf(known)
	}
	last := a.version
	if comparePrunings(last, b.version) < 0 {
		last = b.version
	}
	box := &sealed{}
	v := &box.version
	*v = version{cluster: a.cluster, birth: max(a.birth, b.birth), highestUp: max(a.highestUp, b.highestUp),
		prunes: last.prunes, pruned: last.pruned}
	v.tombs = union(a.tombs, b.tombs, compareTombs, sameTombs, mergeTombs)
	v.members = union(a.members, b.members, compareMembers, sameMembers, mergeMembers)
	v.reach = union(a.reach, b.reach, compareRows, sameRows, joinRows)
	v.meta = a.meta.merge(b.meta)
	v.clock = a.clock.Merge(b.clock)
	if len(v.tombs) != len(a.tombs) || len(v.tombs) != len(b.tombs) { // else neither has one that the other lacks
		if alive := bury(v.members, v.tombs); len(alive) < len(v.members) {
			v.members = alive
			v.reach = v.reach.only(v.has)
			v.clock = v.clock.Prune(func(id peer.ID) bool { return !v.has(id) })
		}
	}
	v.sealIn(w, a.version, b.version)
	if w.pool != nil {
		w.pool.verify(v)
		known := w.pool.one(v)
		w.pool.joined(a.version, b.version, known)
		return w.stateOf(known)
	}
	box.state = state{version: v, seen: w.takeSeen(len(v.members)), spare: &box.view}
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
func (w *work) stateOf(v *version) *state {
	return &state{version: v, seen: w.takeSeen(len(v.members))}
}

// mergeMembers joins two records of one incarnation: the status further along the chain, the higher up-number. The
// number only grows, so a term once used as a coordinator is never undercut by the same member. Of two who downed it
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

func compareTombs(x, y *tombstone) int {
	if x.id == y.id {
		return 0
	}
	return x.id.Compare(y.id)
}

func sameTombs(x, y *tombstone) (isX, isY bool) {
	if *x == *y {
		return true, true
	}
	j := mergeTombs(*x, *y)
	return j == *x, j == *y
}

func mergeTombs(a, b tombstone) tombstone {
	order := cmp.Compare(a.last.Rank(), b.last.Rank())
	if order < 0 || order == 0 && compareVerdicts(a.cause, a.by, b.cause, b.by) < 0 {
		return b
	}
	return a
}

// bury returns the members without those who have a tombstone; the list itself when there are none.
func bury(members []cluster.Member, tombs []tombstone) []cluster.Member {
	var alive []cluster.Member
	t := 0
	for i := range members {
		for t < len(tombs) && tombs[t].id.Less(members[i].ID) {
			t++
		}
		dead := t < len(tombs) && tombs[t].id == members[i].ID
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

// outcome is how a received state stands to the local one.
type outcome uint8

const (
	isSame   outcome = iota // the same version: seen sets unite
	isOlder                 // theirs is older: ours stays
	isNewer                 // theirs is newer: it is taken
	isMerged                // each had something: the join is taken
	isBumped                // the join says more than its clock does: it must become a change of this node
)

// newerOrMerged decides between the local and a received state of one cluster: the newer of the two, or their join.
//
// Removal takes a node's entry out of the clock, so a clock can look concurrent that is only older; the join then
// equals one side, contents and clock, and that side wins with its seen set. And a change by a node that was removed
// before it spread leaves no trace in the clock: then the join equals a side in its clock but not in its contents. One
// clock must never name two contents, so such a join is made a change of its own.
func (w *work) newerOrMerged(local, remote *state) (*state, outcome) {
	switch remote.clock.Compare(local.clock) {
	case gossip.Same:
		if remote.digest == local.digest {
			return local, isSame
		}
	case gossip.Before:
		return local, isOlder
	case gossip.After:
		return remote, isNewer
	}
	merged := w.merge(local, remote)
	likeLocal := merged.clock.Compare(local.clock) == gossip.Same
	likeRemote := merged.clock.Compare(remote.clock) == gossip.Same
	switch {
	case likeLocal && merged.sameContent(local.version):
		return local, isOlder
	case likeRemote && merged.sameContent(remote.version):
		return remote, isNewer
	case likeLocal || likeRemote:
		return merged, isBumped
	}
	return merged, isMerged
}
