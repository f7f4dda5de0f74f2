// Tests of the Reachability table: scenarios 4 to 6 of the reference (FD-3).

package members

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

// joined is the table of two, as a merge makes it.
func joined(a, b Reachability, member func(peer.ID) bool) Reachability {
	return union(a, b, compareRows, sameRows, joinRows).only(member)
}

func unreachableIn(t Reachability) string {
	out := ""
	for _, id := range t.subjectsInto(nil, everybody) {
		out += id.Addr.Host()
	}
	return out
}

// Scenario 4: "b->a" b accuses a, "b=>a" b withdraws it.
func TestScenario4Reachability(t *testing.T) {
	r := marks(nil, "b->a")
	require.True(t, r.Accuses(nid("b"), nid("a")))
	require.Equal(t, "a", unreachableIn(r))
	require.Equal(t, r, marks(r, "b->a"), "the same verdict again changes nothing")
	require.Nil(t, marks(nil, "b=>a"), "nor does a withdrawal of nothing")

	r = marks(nil, "b->a", "c->a", "b=>a")
	require.Equal(t, "a", unreachableIn(r), "FD-3: one observer still says so")
	require.Equal(t, "bc", unreachableIn(marks(r, "c=>a", "b->c", "c->b")))

	r = marks(nil, "c->a", "c=>a", "c->b", "b->a", "b->c")
	require.Equal(t, "abc", unreachableIn(r))
	without := r.only(among("a", "c"))
	require.Equal(t, "", unreachableIn(without), "b is gone as an observer and as a subject")
	rest := slices.DeleteFunc(slices.Clone(r), func(o row) bool { return o.observer == nid("b") })
	require.Equal(t, "b", unreachableIn(rest), "without what b says")
}

// Scenario 5: a row that says nothing any more goes empty, its version stays and goes on.
func TestScenario5VersionsGoOn(t *testing.T) {
	r := marks(nil, "b->a", "b->c", "b=>a", "b=>c")
	require.Equal(t, uint64(4), r.VersionOf(nid("b")))
	require.Empty(t, unreachableIn(r))
	r = marks(r, "b->a", "b->c")
	require.Equal(t, []record{{nid("a"), 5, unreachable}, {nid("c"), 6, unreachable}}, r[0].records)
}

// Scenario 6: the row with the higher version wins whole.
func TestScenario6ReachabilityMerge(t *testing.T) {
	r1 := marks(nil, "b->a", "c->d")
	r2 := marks(r1, "b=>a", "d->e", "c->a")
	for _, m := range []Reachability{joined(r1, r2, everybody), joined(r2, r1, everybody)} {
		require.False(t, m.Accuses(nid("b"), nid("a")))
		require.True(t, m.Accuses(nid("c"), nid("a")))
		require.True(t, m.Accuses(nid("c"), nid("d")))
		require.True(t, m.Accuses(nid("d"), nid("e")))
	}
	m := joined(r1, r2, among("a", "b", "c", "e"))
	require.False(t, m.Accuses(nid("c"), nid("d")))
	require.False(t, m.Accuses(nid("d"), nid("e")))
	require.Len(t, m, 2, "rows of b and c")

	r2, r3 := marks(r1, "a->e"), marks(r1, "b=>a")
	for _, m := range []Reachability{joined(r2, r3, everybody), joined(r3, r2, everybody)} {
		require.Equal(t, Reachability{{nid("a"), 1, []record{{nid("e"), 1, unreachable}}},
			{nid("b"), 2, []record{}}, {nid("c"), 1, []record{{nid("d"), 1, unreachable}}}}, m)
	}
	versions := func(v map[string]uint64) Reachability {
		var out Reachability
		for _, n := range []string{"a", "b", "c", "d"} {
			if v[n] > 0 {
				out = append(out, row{observer: nid(n), version: v[n]})
			}
		}
		return out
	}
	left, right := map[string]uint64{"a": 3, "b": 5, "c": 7}, map[string]uint64{"a": 6, "b": 2, "d": 1}
	require.Equal(t, versions(map[string]uint64{"a": 6, "b": 5, "c": 7, "d": 1}),
		joined(versions(left), versions(right), everybody))
}

// The quarantine of an observer that is Down counts nowhere, as all that it says.
func TestQuarantineByDownObserver(t *testing.T) {
	s := sampleOf(cluster.Up, cluster.Up, cluster.Up)
	s.Reach = s.Reach.Quarantine(ip(2), ip(3))
	require.Equal(t, peer.Set{ip(3)}, s.Draft().Seal().Unreachable)
	s.Members[1].Status = cluster.Down
	require.Empty(t, s.Draft().Seal().Unreachable)
	v := &cluster.View{Self: ip(1), Members: s.Members, Accusations: s.Reach.accusations()}
	require.Empty(t, v.Quarantined())
}

func sampleOf(statuses ...cluster.Status) *State {
	s := NewState(Version{Cluster: 0x11, Birth: 1, HighestUp: 10})
	for i, st := range statuses {
		s.Add(cluster.Member{ID: ip(i + 1), Status: st, UpNumber: uint32(i + 1)})
	}
	return s
}
