// State: what is gossiped, one immutable value per version, and which members have seen it.

package members

import (
	"slices"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/core/tenure"
	"github.com/kith-io/kith/peer"
)

// Tombstone remembers a removed incarnation and its last status, Exiting or Down, and for Down which member decided
// that and why. It decides: an incarnation that has one is no member, whatever another state says (MEM-1).
type Tombstone struct {
	ID    peer.ID
	Last  cluster.Status
	Cause cluster.Cause
	By    peer.ID
}

// Version is one version of what is gossiped. It is immutable once sealed, so it may be shared. Invariants: members and
// tombstones are sorted and disjoint; observers, subjects and clock entries are members; no member is Removed; no
// up-number exceeds HighestUp.
type Version struct {
	Cluster   uint64           // random id of the cluster
	Birth     uint64           // of the cluster, the first eight bytes of every fence
	HighestUp uint32           // the highest up-number ever given or consumed
	Prunes    uint32           // how often the clock was pruned
	Pruned    gossip.Digest    // the version from which it was pruned last
	Members   []cluster.Member // sorted by id
	Tombs     []Tombstone      // sorted by id
	Reach     Reachability     // which observer holds which subject unreachable
	meta      metadata
	Parts     partition.Table // instances and changes of it may name nodes that are no members any more
	Seats     tenure.Seats    // of the electorate; their holders and writer may be no members any more
	Clock     gossip.Clock    // how many changes of each member it holds

	// Derived by Seal.
	Digest      gossip.Digest        // of the canonical bytes
	content     gossip.Digest        // of those before the clock
	Unreachable peer.Set             // by observers that are not Down
	Accused     []cluster.Accusation // all records of Reach
	Live        []cluster.Metadata   // what a view shows of meta
	Placed      []cluster.Partition  // what a view shows of Parts
	AnyDown     bool                 // some member is Down
	AllUp       bool                 // nothing to do for a leader but to forget tombstones

	kept
}

// kept is what was made of a sealed version when it was wanted, and stays with it.
type kept struct {
	bytes  []byte // the canonical bytes, nil until they are wanted
	packed Packed // the bytes that travel, empty until they are wanted
	people Roster // empty until they are wanted
	delta  delta  // the last one that was asked for
}

// State is a version and, as far as one node knows, which members have seen it. Seen bits stand for the version's
// members.
type State struct {
	*Version
	Seen  gossip.Seen   // which of the members are known to have seen it
	spare *cluster.View // room for the view of this state, allocated with it; nil when used
	Floor uint64        // this node's own changes, of which a pruned clock may not tell
	waits int           // those before this position have seen it, or do not count
}

// NewState returns a state of v, to be changed and sealed: what v derived is forgotten. The lists of v go over to it.
func NewState(v Version) *State {
	v.kept = kept{}
	return &State{Version: &v}
}

// Index returns the position of a member, -1 for none.
func (s *Version) Index(id peer.ID) int {
	i, ok := slices.BinarySearchFunc(s.Members, id, func(m cluster.Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		return -1
	}
	return i
}

// indexFrom is index for a member that comes not before position i: most of the time it is there or close by.
func (s *Version) indexFrom(i int, id peer.ID) int {
	for end := min(i+4, len(s.Members)); i >= 0 && i < end; i++ {
		if s.Members[i].ID == id {
			return i
		}
	}
	return s.Index(id)
}

// Has reports whether id is a member.
func (s *Version) Has(id peer.ID) bool { return s.Index(id) >= 0 }

// Status returns where id stands; Removed if it is no member.
func (s *Version) Status(id peer.ID) cluster.Status {
	if i := s.Index(id); i >= 0 {
		return s.Members[i].Status
	}
	return cluster.Removed
}

// Tomb returns the tombstone of id; ok is false when there is none.
func (s *Version) Tomb(id peer.ID) (Tombstone, bool) {
	i, ok := slices.BinarySearchFunc(s.Tombs, id, func(t Tombstone, id peer.ID) int { return t.ID.Compare(id) })
	if !ok {
		return Tombstone{}, false
	}
	return s.Tombs[i], true
}

// HasSeen reports whether id is a member and known to have seen the version.
func (s *State) HasSeen(id peer.ID) bool { return s.Seen.Has(s.Index(id)) }

// Roster are the identities of the members, their ring and its zones; they stay from version to version while nobody
// comes or goes.
type Roster struct {
	ids   peer.Set
	ring  fd.Ring
	zones fd.Zones
}

// Everybody returns the identities of the members, their ring and its zones, and keeps them here and in last, where
// they are taken from when they are still right.
func (s *Version) Everybody(last *Roster) (peer.Set, fd.Ring, fd.Zones) {
	if s.people.ids == nil {
		same := slices.EqualFunc(s.Members, last.ids, func(m cluster.Member, id peer.ID) bool { return m.ID == id })
		if !same {
			ids := make(peer.Set, len(s.Members))
			for i := range s.Members {
				ids[i] = s.Members[i].ID
			}
			ring := fd.RingOf(ids)
			*last = Roster{ids, ring, fd.ZonesOf(ring, func(id peer.ID) string { return s.Members[s.Index(id)].Zone() })}
		}
		s.people = *last
	}
	*last = s.people
	return s.people.ids, s.people.ring, s.people.zones
}

// Down returns the members that are Down, nil for none.
func (s *Version) Down() (ids peer.Set) {
	for i := 0; i < len(s.Members) && s.AnyDown; i++ {
		if s.Members[i].Status == cluster.Down {
			ids.Add(s.Members[i].ID)
		}
	}
	return ids
}

// Seal computes what is derived. The version must not change afterwards.
func (s *State) Seal() *State {
	var w work
	s.sealIn(&w, nil, nil)
	s.bytes = w.buf
	return s
}

// sealIn is seal in the memory of w; what a or b derived is shared where it is the same.
func (v *Version) sealIn(w *work, a, b *Version) {
	content := 0
	w.buf, content = w.appendCore(w.buf[:0], v)
	v.content, v.Digest = gossip.DigestOf(w.buf[:content]), gossip.DigestOf(w.buf)
	v.bytes, v.packed, v.Accused, v.Unreachable = nil, Packed{}, nil, nil
	v.AnyDown, v.AllUp = false, true
	for i := range v.Members {
		v.AnyDown = v.AnyDown || v.Members[i].Status == cluster.Down
		v.AllUp = v.AllUp && v.Members[i].Status == cluster.Up
	}
	v.Live = nil
	if a != nil && sameSlice(a.meta, v.meta) {
		v.Live = a.Live
	} else {
		v.Live = v.meta.live()
	}
	if v.Placed = nil; a != nil && partition.Shared(a.Parts, v.Parts) {
		v.Placed = a.Placed
	} else {
		v.Placed = v.Parts.Live()
	}
	if len(v.Reach) == 0 {
		return
	}
	w.ids = v.Reach.subjectsInto(w.ids[:0], func(o peer.ID) bool { return v.Status(o) != cluster.Down })
	for _, o := range [...]*Version{a, b} {
		if o == nil {
			continue
		}
		if sameSlice(o.Reach, v.Reach) {
			v.Accused = o.Accused
		}
		if o.Unreachable.Equal(w.ids) {
			v.Unreachable = o.Unreachable
		}
	}
	if v.Unreachable == nil && len(w.ids) > 0 {
		v.Unreachable = w.ids.Clone()
	}
	if v.Accused == nil {
		v.Accused = v.Reach.accusations()
	}
}

// canonical returns the bytes that the digest names. They must not be changed.
func (v *Version) canonical() []byte {
	if v.bytes == nil {
		v.bytes, _ = appendCore(nil, v)
	}
	return v.bytes
}

func (v *Version) sameContent(o *Version) bool { return v.content == o.content }

// TakeView returns room for a view: what was allocated with the state, else new.
func (s *State) TakeView() *cluster.View {
	v := s.spare
	if s.spare = nil; v == nil {
		v = new(cluster.View)
	}
	return v
}

// Draft is a state being changed by this node; Commit or Seal ends it.
func (s *State) Draft() *State {
	d := NewState(Version{Cluster: s.Cluster, Birth: s.Birth, HighestUp: s.HighestUp, Prunes: s.Prunes,
		Pruned: s.Pruned, Members: slices.Clone(s.Members), Tombs: s.Tombs, Reach: s.Reach, meta: s.meta,
		Parts: s.Parts, Seats: s.Seats, Clock: s.Clock})
	d.Floor = s.Floor
	return d
}

// Commit makes a draft of by the next version: one more change in its clock, seen by nobody but it.
func (s *State) Commit(by peer.ID) *State {
	s.Clock = s.Clock.BumpTo(by, max(s.Floor, s.Clock.Of(by))+1).Prune(func(id peer.ID) bool { return !s.Has(id) })
	s.Reach = s.Reach.only(s.Has)
	s.Seen = gossip.NewSeen(len(s.Members))
	s.Seen.Add(s.Index(by))
	return s.Seal()
}

// Add adds a member to a draft, in its place; one that is there already stays as it is.
func (s *Version) Add(m cluster.Member) {
	i, ok := slices.BinarySearchFunc(s.Members, m.ID, func(m cluster.Member, id peer.ID) int { return m.ID.Compare(id) })
	if !ok {
		s.Members = slices.Insert(s.Members, i, m)
	}
}

// SetStatus moves a member one allowed step on; anything else changes nothing.
func (s *Version) SetStatus(id peer.ID, to cluster.Status) {
	if i := s.Index(id); i >= 0 && s.Members[i].Status.CanBecome(to) {
		s.Members[i].Status = to
	}
}

// SetDown marks a member Down and notes which member decided it and why. A Down member stays as it is.
func (s *Version) SetDown(id peer.ID, by peer.ID, cause cluster.Cause) {
	if i := s.Index(id); i >= 0 && s.Members[i].Status.CanBecome(cluster.Down) {
		m := &s.Members[i]
		m.Status, m.By, m.Cause = cluster.Down, by, cause
	}
}

// ProveDead writes into a draft that the process of id is dead, as by says: of a member, which it marks Down, or of one
// that was removed, so that nodes that have forgotten the member hear of it too. Of any other it says nothing.
func (s *Version) ProveDead(id peer.ID, by peer.ID) {
	if i := s.Index(id); i >= 0 {
		m := &s.Members[i]
		m.Status, m.By, m.Cause = cluster.Down, by, cluster.CauseProvenDead
		return
	}
	s.Tombs = slices.Clone(s.Tombs)
	for i := range s.Tombs {
		if s.Tombs[i].ID == id {
			s.Tombs[i] = Tombstone{id, cluster.Down, cluster.CauseProvenDead, by}
		}
	}
}

// Known reports whether id is a member or has a tombstone.
func (s *Version) Known(id peer.ID) bool {
	_, dead := s.Tomb(id)
	return dead || s.Has(id)
}

// ProvenDead reports whether s says that the process of id is dead.
func (s *Version) ProvenDead(id peer.ID) bool {
	if i := s.Index(id); i >= 0 {
		return s.Members[i].Cause == cluster.CauseProvenDead
	}
	t, _ := s.Tomb(id)
	return t.Cause == cluster.CauseProvenDead
}

// Remove turns a member into a tombstone.
func (s *Version) Remove(id peer.ID) {
	i := s.Index(id)
	if i < 0 {
		return
	}
	t := Tombstone{id, s.Members[i].Status, s.Members[i].Cause, s.Members[i].By}
	s.Members = slices.Delete(s.Members, i, i+1)
	s.Entomb(t)
}

// Entomb adds a tombstone for an incarnation that has none.
func (s *Version) Entomb(t Tombstone) {
	at, _ := slices.BinarySearchFunc(s.Tombs, t.ID, func(t Tombstone, id peer.ID) int { return t.ID.Compare(id) })
	s.Tombs = slices.Insert(slices.Clone(s.Tombs), at, t)
}

// Without returns the state without one member, seen by nobody: the last one of a node when its membership is over. No
// clock names it, so it is never sent.
func (s *State) Without(id peer.ID) *State {
	d := s.Draft()
	d.Remove(id)
	d.Clock = d.Clock.Prune(func(id peer.ID) bool { return !d.Has(id) })
	d.Reach = d.Reach.only(d.Has)
	d.Seen = gossip.NewSeen(len(d.Members))
	return d.Seal()
}

// SeenBy returns the state of a version and those of its members that have seen it, one bit each.
func (v *Version) SeenBy(seen gossip.Seen) *State { return &State{Version: v, Seen: seen} }
