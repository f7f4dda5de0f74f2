// Tests of the rules of one state: scenarios 7, 9 and 12 of the reference, up-numbers, which members block (MEM-5,
// MEM-6, GOS-3, GOS-9).

package members

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// Scenario 7: convergence in a single data centre.
func TestScenario7Convergence(t *testing.T) {
	for _, c := range []struct {
		members []string
		seen    string
		marks   []string
		exited  peer.Set
		from    string
		want    bool
	}{
		{[]string{"a up", "b up"}, "a", nil, nil, "a", false},
		{[]string{"a up", "b up"}, "ab", nil, nil, "a", true},
		{[]string{"a up", "b up", "e joining"}, "ab", nil, nil, "a", true},
		{[]string{"a up", "b up", "e down"}, "ab", nil, nil, "a", true},
		{[]string{"a up", "b up", "c leaving"}, "ab", nil, nil, "a", false},
		{[]string{"a up", "b up", "c leaving"}, "ab", nil, peer.SetOf(nid("c")), "a", true},
		{[]string{"a up", "b up", "c leaving"}, "ab", []string{"b->c"}, peer.SetOf(nid("c")), "a", true},
		{[]string{"a up", "b up"}, "ab", []string{"b->a"}, nil, "b", false},
		{[]string{"a up", "b up"}, "ab", []string{"b->a"}, nil, "a", true},
		{[]string{"a up", "b up", "e down"}, "abe", []string{"e->a"}, nil, "b", true},
		{[]string{"a up", "b up", "e exiting"}, "ab", []string{"b->e"}, nil, "b", true},
		{nil, "", nil, nil, "a", true},
		{[]string{"a joining", "b joining"}, "a", nil, nil, "a", false},
		{[]string{"a joining", "b joining"}, "ab", nil, nil, "a", true},
	} {
		require.Equal(t, c.want, Converged(stateOf(c.members, c.seen, c.marks...), nid(c.from), c.exited), "%+v", c)
	}
}

// Scenario 9: the leader needs no election.
func TestScenario9Leader(t *testing.T) {
	for _, c := range []struct {
		members    []string
		marks      []string
		from, want string
	}{
		{[]string{"c up", "e up"}, nil, "c", "c"},
		{[]string{"c exiting", "e up"}, nil, "c", "e"},
		{[]string{"c exiting"}, nil, "c", "c"},
		{[]string{"c up", "e up"}, []string{"e->c"}, "e", "e"},
		{[]string{"c up", "e up"}, []string{"e->c"}, "c", "c"},
		{[]string{"e down"}, nil, "e", ""},
		{[]string{"a down", "b up"}, nil, "b", "b"},
		{[]string{"a joining", "b leaving"}, nil, "b", "b"},
		{[]string{"a exiting", "b joining"}, nil, "b", "b"},
		{[]string{"a up", "b up", "c down"}, []string{"c->a"}, "b", "a"},
		{nil, nil, "a", ""},
	} {
		want := peer.ID{}
		if c.want != "" {
			want = nid(c.want)
		}
		require.Equal(t, want, stateOf(c.members, "", c.marks...).Leader(nid(c.from)), "%+v", c)
	}
}

// Scenario 12, the order in which members lead.
func TestScenario12LeaderOrder(t *testing.T) {
	members := []string{"c exiting", "f exiting", "b down", "d down", "e joining", "g joining", "h up", "i up"}
	for _, want := range []string{"h", "i", "e", "g", "c", "f"} {
		require.Equal(t, nid(want), stateOf(members, "").Leader(nid("z")))
		members = slices.DeleteFunc(members, func(m string) bool { return m[:1] == want })
	}
	require.Zero(t, stateOf(members, "").Leader(nid("z")))
}

// TestOrphaned: the joiners of a cluster are orphaned when all its members are Down (MEM-5). Found by storm
// 46477: two of them, out of each other's reach, let themselves in, and both carried the cluster on.
func TestOrphaned(t *testing.T) {
	for _, c := range []struct {
		members string
		want    bool
	}{
		{"a up", false}, {"a joining", false}, {"a joining b weaklyup", false}, {"a down b joining", true},
		{"a down b weaklyup c joining", true}, {"a down b joining c exiting", false}, {"a down b leaving", false},
		{"a down b up c joining", false},
	} {
		var list []string
		for f := strings.Fields(c.members); len(f) > 0; f = f[2:] {
			list = append(list, f[0]+" "+f[1])
		}
		s := stateOf(list, "")
		require.Equal(t, c.want, s.Orphaned(), c.members)
	}
	s := stateOf([]string{"a down", "b joining"}, "")
	s.Members[s.Index(nid("a"))].UpNumber = 0
	require.False(t, s.Orphaned(), "nobody was ever up: minimum numbers of members are not reached yet")
}

// A pass of the leader removes first; each removed member that was never seen Up consumes a number, and so does each
// that waits for one after a loss; joining ones get the next in address order when all of them have seen the state;
// leaving becomes exiting (MEM-5).
func TestLeaderActions(t *testing.T) {
	s := stateOf([]string{"a up", "b joining", "c joining", "d leaving", "e exiting", "f down", "g down"}, "abcdefg",
		"a->f")
	s.HighestUp = 7
	s.Members[s.Index(nid("f"))].UpNumber = 0
	next, removed := Lead(s, nid("a"), peer.SetOf(nid("e")), never, true)
	require.Len(t, removed, 2)
	require.Equal(t, []Tombstone{{ID: nid("e"), Last: cluster.Exiting}, {ID: nid("f"), Last: cluster.Down}}, next.Tombs)
	require.Equal(t, []cluster.Member{{ID: nid("a"), Status: cluster.Up, UpNumber: 1},
		{ID: nid("b"), Status: cluster.Up, UpNumber: 11},
		{ID: nid("c"), Status: cluster.Up, UpNumber: 12}, {ID: nid("d"), Status: cluster.Exiting, UpNumber: 4},
		{ID: nid("g"), Status: cluster.Down, UpNumber: 7}}, next.Members)
	require.Equal(t, uint32(12), next.HighestUp, "one for f, two that a lost leader may have given to b and c")
	require.Equal(t, 1, next.Seen.Count())
	require.True(t, next.HasSeen(nid("a")))
	require.Equal(t, gossip.After, next.Clock.Compare(s.Clock))

	s.Seen = stateOf([]string{"a up", "b joining", "c joining", "d leaving", "e exiting", "f down", "g down"}, "abd").Seen
	next, _ = Lead(s, nid("a"), peer.SetOf(nid("e")), never, true)
	require.Equal(t, []cluster.Status{cluster.Up, cluster.Joining, cluster.Joining, cluster.Exiting, cluster.Down},
		[]cluster.Status{next.Members[0].Status, next.Members[1].Status, next.Members[2].Status, next.Members[3].Status,
			next.Members[4].Status}, "c has not seen it: nobody gets a number")
	require.Equal(t, uint32(10), next.HighestUp)
	next, _ = Lead(stateOf([]string{"a up", "b joining", "g down"}, "ab"), nid("a"), nil, never, true)
	require.Equal(t, uint32(102), next.Members[1].UpNumber, "g, not removed yet, may have given one")
	s = stateOf([]string{"a up", "b joining", "f down", "g down"}, "ab")
	s.Members[s.Index(nid("f"))].UpNumber = 0
	next, _ = Lead(s, nid("a"), nil, never, true)
	require.Equal(t, uint32(103), next.Members[1].UpNumber, "and one to f before it was downed (storm 40515)")

	next, _ = Lead(stateOf([]string{"a up", "g down"}, "ag"), nid("a"), nil, never, true)
	require.Nil(t, next, "a Down member that is reachable and not replaced stays for now")
	s = stateOf([]string{"a up", "g down"}, "ag")
	s.Add(cluster.Member{ID: peer.ID{Addr: nid("g").Addr, Inc: 99}, Status: cluster.Joining})
	next, _ = Lead(s, nid("a"), nil, never, true)
	require.Equal(t, []Tombstone{{ID: nid("g"), Last: cluster.Down}}, next.Tombs, "its successor proves it dead")
	next, _ = Lead(stateOf([]string{"a exiting", "b exiting"}, "ab"), nid("a"), peer.SetOf(nid("a")), never, true)
	require.Nil(t, next, "self goes last")
	next, _ = Lead(stateOf([]string{"a exiting", "b exiting"}, "ab"), nid("a"), peer.SetOf(nid("a"), nid("b")), never,
		true)
	require.Empty(t, next.Members)
}

// MEM-6: a weakly up member leaves through exiting like any other.
func TestWeaken(t *testing.T) {
	s := stateOf([]string{"a up", "b joining", "c joining", "d up"}, "a", "a->c", "a->d")
	next := Weaken(s, nid("a"), true)
	require.Equal(t, cluster.WeaklyUp, next.Status(nid("b")))
	require.Equal(t, cluster.Joining, next.Status(nid("c")), "unreachable")
	require.Nil(t, Weaken(next, nid("a"), true), "once")
	require.Nil(t, Weaken(s, nid("a"), false))
	require.Nil(t, Weaken(stateOf([]string{"a preparing-for-shutdown", "b joining"}, "a"), nid("a"), true))
	require.False(t, Converged(stateOf([]string{"a up", "b weakly-up"}, "a", "a->b"), nid("a"), nil), "unreachable blocks")
	require.True(t, Converged(stateOf([]string{"a up", "b weakly-up"}, "a"), nid("a"), nil), "need not have seen")
	require.False(t, Converged(stateOf([]string{"a joining", "b weakly-up"}, "a"), nid("a"), nil), "while none is up")
	next, _ = Lead(stateOf([]string{"a up", "b weakly-up"}, "ab"), nid("a"), nil, never, true)
	require.Equal(t, cluster.Member{ID: nid("b"), Status: cluster.Up, UpNumber: 101}, next.Members[1])
	require.Equal(t, nid("b"), stateOf([]string{"a joining", "b weakly-up"}, "").Leader(nid("a")))
	require.Equal(t, nid("b"), stateOf([]string{"a weakly-up", "b ready-for-shutdown"}, "").Leader(nid("a")))
}

// The blockers are exactly those that make Converged false.
func TestBlockersAgreeWithConverged(t *testing.T) {
	for _, c := range []struct {
		members []string
		seen    string
		marks   []string
		want    string
	}{
		{[]string{"a up", "b up"}, "ab", nil, ""},
		{[]string{"a up", "b up", "c up"}, "a", nil, "bc"},
		{[]string{"a up", "b up", "c up"}, "ab", []string{"b->c"}, "c"},
		{[]string{"a up", "b down", "c exiting"}, "a", []string{"a->b", "a->c"}, ""},
		{[]string{"a up", "b joining"}, "a", []string{"a->b"}, "b"},
		{[]string{"a up", "b joining", "c weakly-up"}, "a", nil, ""},
		{[]string{"a joining", "b joining"}, "a", nil, "b"},
		{[]string{"a up", "b up"}, "ab", []string{"b->a"}, ""},
		{[]string{"a up", "b down", "c up"}, "ac", []string{"b->c"}, ""},
	} {
		s := stateOf(c.members, c.seen, c.marks...)
		got := ""
		list, count := Blockers(s, nid("a"), len(s.Members), nil)
		require.Len(t, list, count)
		for _, i := range list {
			got += s.Members[i].ID.Addr.Host()
		}
		require.Equal(t, c.want, got, "%+v", c)
		require.Equal(t, got == "", Converged(s, nid("a"), nil), "%+v", c)
	}
}

// GOS-9: the deputies are those after the leader in sorted order, from the front again behind the last.
func TestDeputiesFollowTheLeader(t *testing.T) {
	s := stateOf([]string{"a up", "b up", "c down", "d leaving", "e joining", "f up"}, "a")
	for _, c := range []struct {
		leader string
		n      int
		want   []int
	}{
		{"a", 2, []int{1, 3}}, {"a", 9, []int{1, 3, 5}}, {"d", 2, []int{5, 0}}, {"f", 1, []int{0}}, {"a", 0, nil},
		{"x", 3, nil},
	} {
		require.Equal(t, c.want, s.Deputies(nid(c.leader), c.n, nil), "%+v", c)
	}
}

// TestMissing: the walk over two lists finds those that a search for each finds.
func TestMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyState().Draw(t, "a"), anyState().Draw(t, "b")
		var want []int
		for i := range b.Members {
			if !a.Has(b.Members[i].ID) {
				want = append(want, i)
			}
		}
		require.Equal(t, want, a.Missing(b.Version))
		require.Nil(t, a.Missing(a.Version))
	})
}
