// Tests of the merge: its laws, what it shares, how it stands to one with maps, and which member downed another (MEM-4,
// MEM-2, CARD-4).

package members

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// MEM-4: the merge is commutative, associative, idempotent and monotonic; clocks included.
func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyState().Draw(t, "a"), anyState().Draw(t, "b"), anyState().Draw(t, "c")
		ab := mergeStates(a, b)
		require.Equal(t, ab.canonical(), mergeStates(b, a).canonical())
		require.Equal(t, mergeStates(ab, c).canonical(), mergeStates(a, mergeStates(b, c)).canonical())
		require.Equal(t, a.canonical(), mergeStates(a, a).canonical())
		require.Equal(t, ab.canonical(), mergeStates(ab, a).canonical(), "absorption")
		require.Zero(t, ab.Seen.Count())
		for _, m := range a.Members {
			require.LessOrEqual(t, m.Status.Rank(), ab.Status(m.ID).Rank())
		}
		for _, r := range a.Reach {
			for _, c := range r.records {
				if c.kind == quarantined && ab.Has(r.observer) && ab.Has(c.subject) {
					require.True(t, ab.Reach.Quarantines(r.observer, c.subject), "a quarantine is final (FD-4)")
				}
			}
		}
		for _, o := range a.Tombs {
			require.False(t, ab.Has(o.ID), "a tombstone decides")
		}
		for _, m := range b.Members {
			_, dead := a.Tomb(m.ID)
			require.Equal(t, !dead, ab.Has(m.ID), "nothing but a tombstone removes")
		}
	})
}

func TestNewerOrMerged(t *testing.T) {
	base := stateOf([]string{"a up", "b up", "x up"}, "a").Draft().Commit(nid("x"))
	later := base.Draft()
	later.SetStatus(nid("b"), cluster.Leaving)
	later.Commit(nid("b"))
	_, how := new(work).newerOrMerged(base, base)
	require.Equal(t, Same, how)
	got, how := new(work).newerOrMerged(base, later)
	require.Equal(t, Newer, how)
	require.Same(t, later, got)
	got, how = new(work).newerOrMerged(later, base)
	require.Equal(t, Older, how)
	require.Same(t, later, got)

	other := base.Draft()
	other.Reach = other.Reach.With(nid("a"), nid("x"), true)
	other.Commit(nid("a"))
	got, how = new(work).newerOrMerged(later, other)
	require.Equal(t, Merged, how)
	again, _ := new(work).newerOrMerged(other, later)
	require.Equal(t, got.Digest, again.Digest, "both sides reach the same version")

	// x is removed: its entry leaves the clock, which makes the older state look concurrent. It is only older.
	removed := base.Draft()
	removed.Remove(nid("x"))
	removed.Commit(nid("a"))
	require.Equal(t, gossip.Concurrent, base.Clock.Compare(removed.Clock))
	got, how = new(work).newerOrMerged(removed, base)
	require.Equal(t, Older, how)
	require.Same(t, removed, got)
	got, how = new(work).newerOrMerged(base, removed)
	require.Equal(t, Newer, how)
	require.Same(t, removed, got)

	// x made a change that the remover never saw: the clock of the join names the remover's version, its contents do
	// not. It must become a change of its own, or one clock would name two states.
	unseen := base.Draft()
	unseen.Add(cluster.Member{ID: nid("j"), Status: cluster.Joining})
	unseen.Commit(nid("x"))
	got, how = new(work).newerOrMerged(removed, unseen)
	require.Equal(t, Bumped, how)
	require.True(t, got.Has(nid("j")))
	require.False(t, got.Has(nid("x")))
}

// mapMerge is the plain way to the same state: everything into maps by identity, then out of them in order.
func mapMerge(a, b *State) *State {
	members := map[peer.ID]cluster.Member{}
	tombs := map[peer.ID]Tombstone{}
	rows := map[peer.ID]row{}
	clock := map[peer.ID]uint64{}
	for _, s := range []*State{a, b} {
		for _, t := range s.Tombs {
			if was, ok := tombs[t.ID]; !ok || was.Last.Rank() < t.Last.Rank() {
				tombs[t.ID] = t
			}
		}
		for _, m := range s.Members {
			if was, ok := members[m.ID]; ok {
				m = mergeMembers(was, m)
			}
			members[m.ID] = m
		}
		for _, r := range s.Reach {
			if was, ok := rows[r.observer]; ok {
				r = joinRows(was, r)
			}
			rows[r.observer] = r
		}
		for _, e := range s.Clock {
			clock[e.ID] = max(clock[e.ID], e.N)
		}
	}
	v := Version{Cluster: a.Cluster, Birth: max(a.Birth, b.Birth), HighestUp: max(a.HighestUp, b.HighestUp)}
	for id, m := range members {
		if _, dead := tombs[id]; !dead {
			v.Members = append(v.Members, m)
		}
	}
	slices.SortFunc(v.Members, func(x, y cluster.Member) int { return x.ID.Compare(y.ID) })
	for _, t := range tombs {
		v.Tombs = append(v.Tombs, t)
	}
	slices.SortFunc(v.Tombs, func(x, y Tombstone) int { return x.ID.Compare(y.ID) })
	for id, r := range rows {
		if _, dead := tombs[id]; !dead {
			v.Reach = append(v.Reach, r)
		}
	}
	slices.SortFunc(v.Reach, func(x, y row) int { return x.observer.Compare(y.observer) })
	v.Reach = v.Reach.only(func(id peer.ID) bool { _, dead := tombs[id]; return !dead })
	for id, n := range clock {
		if _, dead := tombs[id]; !dead {
			v.Clock = append(v.Clock, gossip.Entry{ID: id, N: n})
		}
	}
	slices.SortFunc(v.Clock, func(x, y gossip.Entry) int { return x.ID.Compare(y.ID) })
	s := NewState(v)
	s.Seen = gossip.NewSeen(len(v.Members))
	return s.Seal()
}

// The merge is what maps give as well, in three allocations: the state with room for its view, the members, the clock.
func TestMergeAgreesWithMaps(t *testing.T) {
	a, b := concurrent(1000)
	w := new(work)
	require.Equal(t, mapMerge(a, b).canonical(), w.merge(a, b).canonical())
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { w.recycle(w.merge(a, b)) }), 3.0)
}

// A list that equals the one of a side is that side's, so a state that only adds to another's clock copies no member.
func TestMergeShares(t *testing.T) {
	a, b := concurrent(50)
	m := mergeStates(a, b)
	require.True(t, sameSlice(m.Reach, a.Reach))
	require.True(t, sameSlice(m.Accused, a.Accused))
	require.True(t, sameSlice(m.Tombs, a.Tombs))
	again := mergeStates(m, b)
	require.True(t, sameSlice(again.Members, m.Members) && sameSlice(again.Clock, m.Clock))
	again = mergeStates(b, m)
	require.True(t, sameSlice(again.Members, m.Members) && sameSlice(again.Clock, m.Clock))
	require.Equal(t, m.Digest, again.Digest)
}

// Every field of a member makes a difference to the merge: a field that equalMembers forgets would be lost.
func TestEqualMembersKnowsEveryField(t *testing.T) {
	kind := reflect.TypeFor[cluster.Member]()
	for i := range kind.NumField() {
		var x, y cluster.Member
		f := reflect.ValueOf(&y).Elem().Field(i)
		switch f.Interface().(type) {
		case peer.ID: // the key, or the node that did something
			f.Set(reflect.ValueOf(ip(1)))
		case []string:
			f.Set(reflect.ValueOf([]string{"a"}))
		case string:
			f.SetString("a")
		default:
			if f.CanUint() {
				f.SetUint(1)
			} else {
				f.SetInt(1)
			}
		}
		if kind.Field(i).Name != "ID" {
			require.False(t, equalMembers(&x, &y), kind.Field(i).Name)
		}
	}
}

// BenchmarkMerge merges two concurrent states of 1,000 members, ours and with maps.
func BenchmarkMerge(b *testing.B) {
	x, y := concurrent(1000)
	b.Run("walk", func(b *testing.B) {
		w := new(work)
		b.ReportAllocs()
		for b.Loop() {
			w.recycle(w.merge(x, y))
		}
	})
	b.Run("maps", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mapMerge(x, y)
		}
	})
}

// A state lets a member take the allowed steps and no others (MEM-2).
func TestStepsOfAMember(t *testing.T) {
	for from := cluster.Joining; from.Known(); from++ {
		for to := cluster.Joining; to.Known(); to++ {
			s := NewState(Version{Members: []cluster.Member{{ID: nid("a"), Status: from}}})
			s.SetStatus(nid("a"), to)
			require.Equal(t, from.CanBecome(to), from != s.Members[0].Status, "%s to %s", from, to)
		}
	}
}

// Of two that downed a member at once one is named, everywhere the same, and a tombstone remembers it.
func TestWhoDowned(t *testing.T) {
	s := stateOf([]string{"a up", "b up", "c up"}, "abc")
	x, y := s.Draft(), s.Draft()
	x.SetDown(nid("c"), nid("a"), cluster.CauseOperator)
	y.SetDown(nid("c"), nid("b"), cluster.CauseResolver)
	x.SetDown(nid("c"), nid("b"), cluster.CauseLease)
	require.Equal(t, nid("a"), x.Members[2].By, "the first verdict stays")
	both := mergeStates(x.Commit(nid("a")), y.Commit(nid("b")))
	require.Equal(t, cluster.CauseResolver, both.Members[2].Cause)
	require.Equal(t, nid("b"), both.Members[2].By)
	d := both.Draft()
	d.Remove(nid("c"))
	require.Equal(t, []Tombstone{{nid("c"), cluster.Down, cluster.CauseResolver, nid("b")}}, d.Tombs)
}

// The keys of the metadata are bounded, deleted ones included; of more that meet all nodes keep the same (MEM-12).
func TestMetadataIsBounded(t *testing.T) {
	var d metadata
	for i := range cluster.MaxMetadata {
		d, _ = d.with(fmt.Sprintf("key%02d", i), "v", nid("a"))
	}
	_, err := d.with("more", "v", nid("a"))
	require.ErrorIs(t, err, cluster.ErrMetadataFull)
	other, _ := metadata(nil).with("a", "v", nid("b"))
	require.Len(t, d.merge(other), cluster.MaxMetadata)
	require.Equal(t, d.merge(other), other.merge(d))
}
