// Tests of merging as a cost: what it allocates, what it shares, and how it stands to a merge with maps (MEM-4,
// CARD-4).

package membership

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// concurrent returns two versions of a state of n members with full clocks that neither is newer than the other: on
// each side something happened to every tenth member, on one side somebody is accused as well.
func concurrent(n int) (a, b *state) {
	base := bigState(n)
	for i, m := range base.members {
		base.clock = append(base.clock, gossip.Entry{ID: m.ID, N: uint64(1 + i%7)})
	}
	side := func(offset int) *state {
		s := base.draft()
		for i := offset; i < n; i += 10 {
			s.members[i].Status = cluster.Leaving
		}
		if offset == 0 {
			s.reach = s.reach.with(s.members[1].ID, s.members[2].ID, true)
		}
		s = s.commit(s.members[offset].ID)
		got, err := readState(wire.KindGossip, payload(s)) // as from the wire: nothing is shared
		if err != nil {
			panic(err)
		}
		return got
	}
	return side(0), side(5)
}

// mapMerge is the plain way to the same view: everything into maps by identity, then out of them in order.
func mapMerge(a, b *state, self peer.ID, seq uint64) *cluster.View {
	members := map[peer.ID]cluster.Member{}
	tombs := map[peer.ID]tombstone{}
	rows := map[peer.ID]row{}
	clock := map[peer.ID]uint64{}
	for _, s := range []*state{a, b} {
		for _, t := range s.tombs {
			if was, ok := tombs[t.id]; !ok || was.last.Rank() < t.last.Rank() {
				tombs[t.id] = t
			}
		}
		for _, m := range s.members {
			if was, ok := members[m.ID]; ok {
				m = mergeMembers(was, m)
			}
			members[m.ID] = m
		}
		for _, r := range s.reach {
			if was, ok := rows[r.observer]; ok {
				r = joinRows(was, r)
			}
			rows[r.observer] = r
		}
		for _, e := range s.clock {
			clock[e.ID] = max(clock[e.ID], e.N)
		}
	}
	v := version{cluster: a.cluster, birth: max(a.birth, b.birth), highestUp: max(a.highestUp, b.highestUp)}
	for id, m := range members {
		if _, dead := tombs[id]; !dead {
			v.members = append(v.members, m)
		}
	}
	slices.SortFunc(v.members, func(x, y cluster.Member) int { return x.ID.Compare(y.ID) })
	for _, t := range tombs {
		v.tombs = append(v.tombs, t)
	}
	slices.SortFunc(v.tombs, func(x, y tombstone) int { return x.id.Compare(y.id) })
	for id, r := range rows {
		if _, dead := tombs[id]; !dead {
			v.reach = append(v.reach, r)
		}
	}
	slices.SortFunc(v.reach, func(x, y row) int { return x.observer.Compare(y.observer) })
	v.reach = v.reach.only(func(id peer.ID) bool { _, dead := tombs[id]; return !dead })
	for id, n := range clock {
		if _, dead := tombs[id]; !dead {
			v.clock = append(v.clock, gossip.Entry{ID: id, N: n})
		}
	}
	slices.SortFunc(v.clock, func(x, y gossip.Entry) int { return x.ID.Compare(y.ID) })
	s := newState(v)
	s.seen = gossip.NewSeen(len(v.members))
	s.seal()
	view := &cluster.View{Self: self, Seq: seq, ClusterID: s.cluster, Birth: s.birth, Hash: uint64(s.digest),
		Members: s.members, Unreachable: s.unreachable.Clone(), Accusations: s.reach.accusations(),
		Converged: converged(s, self, nil)}
	view.Leader = view.RoleLeader("")
	return view
}

// joiner returns a member that merges b into a and publishes, as a function.
func joiner(a, b *state) func() *cluster.View {
	m := New(a.members[0].ID, Config{}, rand.New(rand.NewPCG(1, 1)))
	m.phase = member
	return func() *cluster.View {
		next, how := m.store.work.newerOrMerged(a, b)
		if how != isMerged {
			panic(how)
		}
		m.install(next, false)
		m.view = nil
		return m.nextView()
	}
}

// The merge of two states of 1,000 members into a published view takes three allocations: the state with its view, the
// members, the clock. It is the view that maps give as well.
func TestMergeAllocations(t *testing.T) {
	a, b := concurrent(1000)
	publish := joiner(a, b)
	want := mapMerge(a, b, a.members[0].ID, 1)
	require.Equal(t, want, publish())
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { publish() }), 3.0)
}

// A list that equals the one of a side is that side's, so a state that only adds to another's clock copies no member.
func TestMergeShares(t *testing.T) {
	a, b := concurrent(50)
	m := mergeStates(a, b)
	require.True(t, sameSlice(m.reach, a.reach))
	require.True(t, sameSlice(m.accused, a.accused))
	require.True(t, sameSlice(m.tombs, a.tombs))
	again := mergeStates(m, b)
	require.True(t, sameSlice(again.members, m.members) && sameSlice(again.clock, m.clock))
	again = mergeStates(b, m)
	require.True(t, sameSlice(again.members, m.members) && sameSlice(again.clock, m.clock))
	require.Equal(t, m.digest, again.digest)
}

// Every field of a member makes a difference to the merge: a field that equalMembers forgets would be lost.
func TestEqualMembersKnowsEveryField(t *testing.T) {
	kind := reflect.TypeFor[cluster.Member]()
	for i := range kind.NumField() {
		var x, y cluster.Member
		f := reflect.ValueOf(&y).Elem().Field(i)
		switch f.Interface().(type) {
		case peer.ID: // the key, or who did something
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

// A converged leader of a thousand that has nothing to do allocates nothing and drafts no state to find that out.
func TestIdleLeaderDraftsNothing(t *testing.T) {
	s := crowd(1000, 0, 1000)
	for i := range s.members {
		s.seen.Add(i)
	}
	m := New(s.members[0].ID, Config{}, rand.New(rand.NewPCG(1, 1)))
	m.phase = member
	m.install(s, false)
	require.True(t, converged(m.st, m.self, nil))
	require.Zero(t, testing.AllocsPerRun(10, m.duties))
	require.Same(t, s, m.st)
}

// BenchmarkMerge merges two concurrent states of 1,000 members into a published view, ours and with maps.
func BenchmarkMerge(b *testing.B) {
	x, y := concurrent(1000)
	b.Run("walk", func(b *testing.B) {
		publish := joiner(x, y)
		b.ReportAllocs()
		for b.Loop() {
			publish()
		}
	})
	b.Run("maps", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mapMerge(x, y, x.members[0].ID, 1)
		}
	})
}
