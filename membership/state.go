// State: what is gossiped, one immutable value per version.

package membership

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// tombstone remembers a removed incarnation and its last status, Exiting or Down, and for Down who decided that and
// why. It decides: whoever has one is no member, whatever another state says (MEM-1).
type tombstone struct {
	id    peer.ID
	last  Status
	cause Cause
	by    peer.ID
}

// state is one version of what is gossiped. All but seen is immutable once sealed. Invariants: members and tombstones
// are sorted and disjoint; observers, subjects, clock entries and seen bits are members; no member is Removed; no
// up-number exceeds highestUp.
type state struct {
	cluster   uint64 // random id of the cluster
	birth     uint64
	highestUp uint32 // the highest up-number ever given or consumed
	members   []Member
	tombs     []tombstone
	reach     reachability
	meta      metadata
	clock     gossip.Clock
	seen      gossip.Seen

	// Derived by seal.
	core        []byte // canonical bytes of all but seen
	contentSize int    // of core, all before the clock
	digest      gossip.Digest
	unreachable peer.Set // by observers that are not Down
}

func (s *state) index(id peer.ID) int {
	i, ok := slices.BinarySearchFunc(s.members, id, func(m Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		return -1
	}
	return i
}

func (s *state) has(id peer.ID) bool { return s.index(id) >= 0 }

// status returns where id stands; Removed for one who is no member.
func (s *state) status(id peer.ID) Status {
	if i := s.index(id); i >= 0 {
		return s.members[i].Status
	}
	return Removed
}

func (s *state) tomb(id peer.ID) (tombstone, bool) {
	i, ok := slices.BinarySearchFunc(s.tombs, id, func(t tombstone, id peer.ID) int { return t.id.Compare(id) })
	if !ok {
		return tombstone{}, false
	}
	return s.tombs[i], true
}

func (s *state) hasSeen(id peer.ID) bool { return s.seen.Has(s.index(id)) }

func (s *state) ids() peer.Set {
	out := make(peer.Set, len(s.members))
	for i := range s.members {
		out[i] = s.members[i].ID
	}
	return out
}

// seal computes what is derived. The state must not change afterwards, but for seen.
func (s *state) seal() *state {
	s.core, s.contentSize = appendCore(nil, s)
	s.digest = gossip.DigestOf(s.core)
	s.unreachable = s.reach.subjects(func(o peer.ID) bool { return s.status(o) != Down })
	return s
}

func (s *state) sameContent(o *state) bool {
	return bytes.Equal(s.core[:s.contentSize], o.core[:o.contentSize])
}

// draft is a state being changed by this node; seal ends it.
func (s *state) draft() *state {
	return &state{cluster: s.cluster, birth: s.birth, highestUp: s.highestUp, members: slices.Clone(s.members),
		tombs: s.tombs, reach: s.reach, meta: s.meta, clock: s.clock}
}

// commit makes a draft of by the next version: one more change in its clock, seen by nobody but it.
func (s *state) commit(by peer.ID) *state {
	s.clock = s.clock.Bump(by).Prune(func(id peer.ID) bool { return !s.has(id) })
	s.reach = s.reach.only(s.has)
	s.seen = gossip.NewSeen(len(s.members))
	s.seen.Add(s.index(by))
	return s.seal()
}

func (s *state) add(m Member) {
	i, ok := slices.BinarySearchFunc(s.members, m.ID, func(m Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		s.members = slices.Insert(s.members, i, m)
	}
}

// setStatus moves a member one allowed step on; anything else changes nothing.
func (s *state) setStatus(id peer.ID, to Status) {
	if i := s.index(id); i >= 0 && s.members[i].Status.canBecome(to) {
		s.members[i].Status = to
	}
}

// setDown marks a member Down and notes who decided it and why. Who is Down stays as it is.
func (s *state) setDown(id peer.ID, by peer.ID, cause Cause) {
	if i := s.index(id); i >= 0 && s.members[i].Status.canBecome(Down) {
		m := &s.members[i]
		m.Status, m.By, m.Cause = Down, by, cause
	}
}

// remove turns a member into a tombstone.
func (s *state) remove(id peer.ID) {
	i := s.index(id)
	if i < 0 {
		return
	}
	t := tombstone{id, s.members[i].Status, s.members[i].Cause, s.members[i].By}
	s.members = slices.Delete(s.members, i, i+1)
	at, _ := slices.BinarySearchFunc(s.tombs, id, func(t tombstone, id peer.ID) int { return t.id.Compare(id) })
	s.tombs = slices.Insert(slices.Clone(s.tombs), at, t)
}

// mergeMembers joins two records of one incarnation: the status further along the chain, the higher up-number. The
// number only grows, so a term once used as a coordinator is never undercut by the same member. Of two who downed it
// at once one is named, everywhere the same.
func mergeMembers(a, b Member) Member {
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

func compareVerdicts(a Cause, aBy peer.ID, b Cause, bBy peer.ID) int {
	return cmp.Or(cmp.Compare(a, b), aBy.Compare(bBy))
}

func mergeTombs(a, b tombstone) tombstone {
	order := cmp.Compare(a.last.Rank(), b.last.Rank())
	if order < 0 || order == 0 && compareVerdicts(a.cause, a.by, b.cause, b.by) < 0 {
		return b
	}
	return a
}

// mergeSorted walks two sorted lists and joins entries of equal key.
func mergeSorted[T any](a, b []T, key func(T) peer.ID, join func(T, T) T) []T {
	out := make([]T, 0, max(len(a), len(b)))
	for len(a) > 0 || len(b) > 0 {
		order := 1
		if len(b) == 0 {
			order = -1
		} else if len(a) > 0 {
			order = key(a[0]).Compare(key(b[0]))
		}
		switch {
		case order < 0:
			out, a = append(out, a[0]), a[1:]
		case order > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, join(a[0], b[0])), a[1:], b[1:]
		}
	}
	return out
}
