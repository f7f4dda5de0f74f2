// State: what is gossiped, one immutable value per version, and who has seen it.

package membership

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// tombstone remembers a removed incarnation and its last status, Exiting or Down, and for Down who decided that and
// why. It decides: whoever has one is no member, whatever another state says (MEM-1).
type tombstone struct {
	id    peer.ID
	last  cluster.Status
	cause cluster.Cause
	by    peer.ID
}

// version is one version of what is gossiped. It is immutable once sealed, so it may be shared. Invariants: members and
// tombstones are sorted and disjoint; observers, subjects and clock entries are members; no member is Removed; no
// up-number exceeds highestUp.
type version struct {
	cluster   uint64 // random id of the cluster
	birth     uint64
	highestUp uint32        // the highest up-number ever given or consumed
	prunes    uint32        // how often the clock was pruned
	pruned    gossip.Digest // the version from which it was pruned last
	members   []cluster.Member
	tombs     []tombstone
	reach     reachability
	meta      metadata
	clock     gossip.Clock

	// Derived by seal.
	digest      gossip.Digest // of the canonical bytes
	content     gossip.Digest // of those before the clock
	unreachable peer.Set      // by observers that are not Down
	accused     []cluster.Accusation
	live        []cluster.Metadata // what a view shows of meta
	anyDown     bool
	allUp       bool // nothing to do for a leader but to forget tombstones

	bytes  []byte // the canonical bytes, nil until they are wanted
	packed packed // the bytes that travel, empty until they are wanted
	people people // empty until they are wanted
	delta  delta  // the last one that was asked for
}

// state is a version and what one node knows of who has seen it. Seen bits stand for the version's members.
type state struct {
	*version
	seen  gossip.Seen
	spare *cluster.View // room for the view of this state, allocated with it; nil when used
	floor uint64        // this node's own changes, of which a pruned clock may not tell
	waits int           // those before this position have seen it, or do not count
}

func newState(v version) *state {
	v.bytes, v.packed, v.people = nil, packed{}, people{}
	v.delta = delta{}
	return &state{version: &v}
}

func (s *version) index(id peer.ID) int {
	i, ok := slices.BinarySearchFunc(s.members, id, func(m cluster.Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		return -1
	}
	return i
}

// indexFrom is index for a member that comes not before position i: most of the time it is there or close by.
func (s *version) indexFrom(i int, id peer.ID) int {
	for end := min(i+4, len(s.members)); i >= 0 && i < end; i++ {
		if s.members[i].ID == id {
			return i
		}
	}
	return s.index(id)
}

func (s *version) has(id peer.ID) bool { return s.index(id) >= 0 }

// status returns where id stands; Removed for one who is no member.
func (s *version) status(id peer.ID) cluster.Status {
	if i := s.index(id); i >= 0 {
		return s.members[i].Status
	}
	return cluster.Removed
}

func (s *version) tomb(id peer.ID) (tombstone, bool) {
	i, ok := slices.BinarySearchFunc(s.tombs, id, func(t tombstone, id peer.ID) int { return t.id.Compare(id) })
	if !ok {
		return tombstone{}, false
	}
	return s.tombs[i], true
}

func (s *state) hasSeen(id peer.ID) bool { return s.seen.Has(s.index(id)) }

// people are the identities of the members and their ring; they stay from version to version while nobody comes or
// goes.
type people struct {
	ids  peer.Set
	ring fd.Ring
}

// everybody returns the identities of the members and their ring, and keeps them here and in last, where they are taken
// from when they are still right.
func (s *version) everybody(last *people) (peer.Set, fd.Ring) {
	if s.people.ids == nil {
		same := slices.EqualFunc(s.members, last.ids, func(m cluster.Member, id peer.ID) bool { return m.ID == id })
		if !same {
			ids := make(peer.Set, len(s.members))
			for i := range s.members {
				ids[i] = s.members[i].ID
			}
			*last = people{ids, fd.RingOf(ids)}
		}
		s.people = *last
	}
	*last = s.people
	return s.people.ids, s.people.ring
}

// seal computes what is derived. The version must not change afterwards.
func (s *state) seal() *state {
	var w work
	s.sealIn(&w, nil, nil)
	s.bytes = w.buf
	return s
}

// sealIn is seal in the memory of w; what a or b derived is shared where it is the same.
func (v *version) sealIn(w *work, a, b *version) {
	content := 0
	w.buf, content = w.appendCore(w.buf[:0], v)
	v.content, v.digest = gossip.DigestOf(w.buf[:content]), gossip.DigestOf(w.buf)
	v.bytes, v.packed, v.accused, v.unreachable = nil, packed{}, nil, nil
	v.anyDown, v.allUp = false, true
	for i := range v.members {
		v.anyDown = v.anyDown || v.members[i].Status == cluster.Down
		v.allUp = v.allUp && v.members[i].Status == cluster.Up
	}
	v.live = nil
	if a != nil && sameSlice(a.meta, v.meta) {
		v.live = a.live
	} else {
		v.live = v.meta.live()
	}
	if len(v.reach) == 0 {
		return
	}
	w.ids = v.reach.subjectsInto(w.ids[:0], func(o peer.ID) bool { return v.status(o) != cluster.Down })
	for _, o := range [...]*version{a, b} {
		if o == nil {
			continue
		}
		if sameSlice(o.reach, v.reach) {
			v.accused = o.accused
		}
		if o.unreachable.Equal(w.ids) {
			v.unreachable = o.unreachable
		}
	}
	if v.unreachable == nil && len(w.ids) > 0 {
		v.unreachable = w.ids.Clone()
	}
	if v.accused == nil {
		v.accused = v.reach.accusations()
	}
}

// canonical returns the bytes that the digest names. They must not be changed.
func (v *version) canonical() []byte {
	if v.bytes == nil {
		v.bytes, _ = appendCore(nil, v)
	}
	return v.bytes
}

func (v *version) sameContent(o *version) bool { return v.content == o.content }

// takeView returns room for a view: what was allocated with the state, else new.
func (s *state) takeView() *cluster.View {
	v := s.spare
	if s.spare = nil; v == nil {
		v = new(cluster.View)
	}
	return v
}

// draft is a state being changed by this node; seal ends it.
func (s *state) draft() *state {
	d := newState(version{cluster: s.cluster, birth: s.birth, highestUp: s.highestUp, prunes: s.prunes,
		pruned: s.pruned, members: slices.Clone(s.members), tombs: s.tombs, reach: s.reach, meta: s.meta,
		clock: s.clock})
	d.floor = s.floor
	return d
}

// commit makes a draft of by the next version: one more change in its clock, seen by nobody but it.
func (s *state) commit(by peer.ID) *state {
	s.clock = s.clock.BumpTo(by, max(s.floor, s.clock.Of(by))+1).Prune(func(id peer.ID) bool { return !s.has(id) })
	s.reach = s.reach.only(s.has)
	s.seen = gossip.NewSeen(len(s.members))
	s.seen.Add(s.index(by))
	return s.seal()
}

func (s *version) add(m cluster.Member) {
	i, ok := slices.BinarySearchFunc(s.members, m.ID, func(m cluster.Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		s.members = slices.Insert(s.members, i, m)
	}
}

// setStatus moves a member one allowed step on; anything else changes nothing.
func (s *version) setStatus(id peer.ID, to cluster.Status) {
	if i := s.index(id); i >= 0 && s.members[i].Status.CanBecome(to) {
		s.members[i].Status = to
	}
}

// setDown marks a member Down and notes who decided it and why. Who is Down stays as it is.
func (s *version) setDown(id peer.ID, by peer.ID, cause cluster.Cause) {
	if i := s.index(id); i >= 0 && s.members[i].Status.CanBecome(cluster.Down) {
		m := &s.members[i]
		m.Status, m.By, m.Cause = cluster.Down, by, cause
	}
}

// remove turns a member into a tombstone.
func (s *version) remove(id peer.ID) {
	i := s.index(id)
	if i < 0 {
		return
	}
	t := tombstone{id, s.members[i].Status, s.members[i].Cause, s.members[i].By}
	s.members = slices.Delete(s.members, i, i+1)
	s.entomb(t)
}

// entomb adds a tombstone for one who has none.
func (s *version) entomb(t tombstone) {
	at, _ := slices.BinarySearchFunc(s.tombs, t.id, func(t tombstone, id peer.ID) int { return t.id.Compare(id) })
	s.tombs = slices.Insert(slices.Clone(s.tombs), at, t)
}

// without returns the state without one member, seen by nobody: the last one of a node whose membership is over. No
// clock names it, so it is never sent.
func (s *state) without(id peer.ID) *state {
	d := s.draft()
	d.remove(id)
	d.clock = d.clock.Prune(func(id peer.ID) bool { return !d.has(id) })
	d.reach = d.reach.only(d.has)
	d.seen = gossip.NewSeen(len(d.members))
	return d.seal()
}

// seenBy returns the state of a version and those of its members that have seen it, one bit each.
func (v *version) seenBy(seen gossip.Seen) *state { return &state{version: v, seen: seen} }
