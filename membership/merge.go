// Merge: the state as a CRDT, and what to do with a state that a peer sent (MEM-4, GOS-4).

package membership

import (
	"slices"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// mergeStates joins two versions of one cluster's state: tombstones unite and decide who is no member; members, rows
// and clock entries join one by one. It is commutative, associative and idempotent, and the result is not older than
// either (MEM-4). Nobody has seen the result.
func mergeStates(a, b *state) *state {
	out := &state{cluster: a.cluster, birth: max(a.birth, b.birth), highestUp: max(a.highestUp, b.highestUp)}
	out.tombs = mergeSorted(a.tombs, b.tombs, func(t tombstone) peer.ID { return t.id }, mergeTombs)
	out.members = mergeSorted(a.members, b.members, func(m Member) peer.ID { return m.ID }, mergeMembers)
	out.members = slices.DeleteFunc(out.members, func(m Member) bool {
		_, dead := out.tomb(m.ID)
		return dead
	})
	out.reach = a.reach.merge(b.reach, out.has)
	out.meta = a.meta.merge(b.meta)
	out.clock = a.clock.Merge(b.clock).Prune(func(id peer.ID) bool { return !out.has(id) })
	out.seen = gossip.NewSeen(len(out.members))
	return out.seal()
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

// reconcile decides between the local and a received state of the same cluster.
//
// Removal takes a node's entry out of the clock, so a clock can look concurrent that is only older; the join then
// equals one side, contents and clock, and that side wins with its seen set. And a change by a node that was removed
// before it spread leaves no trace in the clock: then the join equals a side in its clock but not in its contents. One
// clock must never name two contents, so such a join is made a change of its own.
func reconcile(local, remote *state) (*state, outcome) {
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
	merged := mergeStates(local, remote)
	likeLocal := merged.clock.Compare(local.clock) == gossip.Same
	likeRemote := merged.clock.Compare(remote.clock) == gossip.Same
	switch {
	case likeLocal && merged.sameContent(local):
		return local, isOlder
	case likeRemote && merged.sameContent(remote):
		return remote, isNewer
	case likeLocal || likeRemote:
		return merged, isBumped
	}
	return merged, isMerged
}
