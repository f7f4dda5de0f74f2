// Tests of the rules of one state: scenarios 4 to 7, 9 and 16 of the reference, the laws of the merge, up-numbers
// (MEM-3, MEM-4, MEM-5, GOS-3, FD-3).

package membership

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

// nid names node a, b, c, ... with incarnations 1, 2, 3, ...
func nid(name string) peer.ID {
	return peer.ID{Addr: peer.MustAddr(name + ":7355"), Inc: uint64(name[0]-'a') + 1}
}

func everybody(peer.ID) bool { return true }

func among(names ...string) func(peer.ID) bool {
	var s peer.Set
	for _, n := range names {
		s.Add(nid(n))
	}
	return s.Has
}

func marks(t reachability, pairs ...string) reachability {
	for _, p := range pairs {
		t = t.with(nid(p[:1]), nid(p[3:]), p[1:3] == "->")
	}
	return t
}

// joined is the table of two, as a merge makes it.
func joined(a, b reachability, member func(peer.ID) bool) reachability {
	return union(a, b, compareRows, sameRows, joinRows).only(member)
}

func unreachableIn(t reachability) string {
	out := ""
	for _, id := range t.subjectsInto(nil, everybody) {
		out += id.Addr.Host()
	}
	return out
}

// Scenario 4: "b->a" b accuses a, "b=>a" b withdraws it.
func TestScenario4Reachability(t *testing.T) {
	r := marks(nil, "b->a")
	require.True(t, r.accuses(nid("b"), nid("a")))
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
	require.Equal(t, uint64(4), r.versionOf(nid("b")))
	require.Empty(t, unreachableIn(r))
	r = marks(r, "b->a", "b->c")
	require.Equal(t, []record{{nid("a"), 5, unreachable}, {nid("c"), 6, unreachable}}, r[0].records)
}

// Scenario 6: the row with the higher version wins whole.
func TestScenario6ReachabilityMerge(t *testing.T) {
	r1 := marks(nil, "b->a", "c->d")
	r2 := marks(r1, "b=>a", "d->e", "c->a")
	for _, m := range []reachability{joined(r1, r2, everybody), joined(r2, r1, everybody)} {
		require.False(t, m.accuses(nid("b"), nid("a")))
		require.True(t, m.accuses(nid("c"), nid("a")))
		require.True(t, m.accuses(nid("c"), nid("d")))
		require.True(t, m.accuses(nid("d"), nid("e")))
	}
	m := joined(r1, r2, among("a", "b", "c", "e"))
	require.False(t, m.accuses(nid("c"), nid("d")))
	require.False(t, m.accuses(nid("d"), nid("e")))
	require.Len(t, m, 2, "rows of b and c")

	r2, r3 := marks(r1, "a->e"), marks(r1, "b=>a")
	for _, m := range []reachability{joined(r2, r3, everybody), joined(r3, r2, everybody)} {
		require.Equal(t, reachability{{nid("a"), 1, []record{{nid("e"), 1, unreachable}}},
			{nid("b"), 2, []record{}}, {nid("c"), 1, []record{{nid("d"), 1, unreachable}}}}, m)
	}
	versions := func(v map[string]uint64) reachability {
		var out reachability
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

// stateOf builds a state from "a up", "c leaving" and marks "b->a", seen by those named.
func stateOf(members []string, seen string, pairs ...string) *state {
	s := newState(version{cluster: 1, birth: 1, highestUp: 100})
	for _, m := range members {
		for st := cluster.Joining; st.Known(); st++ {
			if m[2:] == st.String() {
				member := cluster.Member{ID: nid(m[:1]), Status: st}
				if st.Numbered() >= 0 {
					member.UpNumber = uint32(m[0]-'a') + 1
				}
				s.add(member)
			}
		}
	}
	s.reach = marks(nil, pairs...)
	s.seen = gossip.NewSeen(len(s.members))
	for _, n := range seen {
		s.seen.Add(s.index(nid(string(n))))
	}
	return s.seal()
}

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
		require.Equal(t, c.want, converged(stateOf(c.members, c.seen, c.marks...), nid(c.from), c.exited), "%+v", c)
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
		require.Equal(t, want, stateOf(c.members, "", c.marks...).leader(nid(c.from)), "%+v", c)
	}
}

// Scenario 12, the order in which members lead.
func TestScenario12LeaderOrder(t *testing.T) {
	members := []string{"c exiting", "f exiting", "b down", "d down", "e joining", "g joining", "h up", "i up"}
	for _, want := range []string{"h", "i", "e", "g", "c", "f"} {
		require.Equal(t, nid(want), stateOf(members, "").leader(nid("z")))
		members = slices.DeleteFunc(members, func(m string) bool { return m[:1] == want })
	}
	require.Zero(t, stateOf(members, "").leader(nid("z")))
}

func never(peer.ID) bool { return false }

// TestOrphaned: joiners of a cluster whose members are all Down belong to nobody (MEM-5). Found by storm 46477: two of
// them, out of each other's reach, let themselves in, and both carried the cluster on.
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
		require.Equal(t, c.want, s.orphaned(), c.members)
	}
	s := stateOf([]string{"a down", "b joining"}, "")
	s.members[s.index(nid("a"))].UpNumber = 0
	require.False(t, s.orphaned(), "nobody was ever up: minimum numbers of members are not reached yet")
}

// A pass of the leader removes first; each removed member that was never seen Up consumes a number, and so does each
// that waits for one after a loss; joining ones get the next in address order when all of them have seen the state;
// leaving becomes exiting (MEM-5).
func TestLeaderActions(t *testing.T) {
	s := stateOf([]string{"a up", "b joining", "c joining", "d leaving", "e exiting", "f down", "g down"}, "abcdefg",
		"a->f")
	s.highestUp = 7
	s.members[s.index(nid("f"))].UpNumber = 0
	next, removed := lead(s, nid("a"), peer.SetOf(nid("e")), never, true)
	require.Len(t, removed, 2)
	require.Equal(t, []tombstone{{id: nid("e"), last: cluster.Exiting}, {id: nid("f"), last: cluster.Down}}, next.tombs)
	require.Equal(t, []cluster.Member{{ID: nid("a"), Status: cluster.Up, UpNumber: 1},
		{ID: nid("b"), Status: cluster.Up, UpNumber: 11},
		{ID: nid("c"), Status: cluster.Up, UpNumber: 12}, {ID: nid("d"), Status: cluster.Exiting, UpNumber: 4},
		{ID: nid("g"), Status: cluster.Down, UpNumber: 7}}, next.members)
	require.Equal(t, uint32(12), next.highestUp, "one for f, two that a lost leader may have given to b and c")
	require.Equal(t, 1, next.seen.Count())
	require.True(t, next.hasSeen(nid("a")))
	require.Equal(t, gossip.After, next.clock.Compare(s.clock))

	s.seen = stateOf([]string{"a up", "b joining", "c joining", "d leaving", "e exiting", "f down", "g down"}, "abd").seen
	next, _ = lead(s, nid("a"), peer.SetOf(nid("e")), never, true)
	require.Equal(t, []cluster.Status{cluster.Up, cluster.Joining, cluster.Joining, cluster.Exiting, cluster.Down},
		[]cluster.Status{next.members[0].Status, next.members[1].Status, next.members[2].Status, next.members[3].Status,
			next.members[4].Status}, "c has not seen it: nobody gets a number")
	require.Equal(t, uint32(10), next.highestUp)
	next, _ = lead(stateOf([]string{"a up", "b joining", "g down"}, "ab"), nid("a"), nil, never, true)
	require.Equal(t, uint32(102), next.members[1].UpNumber, "g, not removed yet, may have given one")
	s = stateOf([]string{"a up", "b joining", "f down", "g down"}, "ab")
	s.members[s.index(nid("f"))].UpNumber = 0
	next, _ = lead(s, nid("a"), nil, never, true)
	require.Equal(t, uint32(103), next.members[1].UpNumber, "and one to f before it was downed (storm 40515)")

	next, _ = lead(stateOf([]string{"a up", "g down"}, "ag"), nid("a"), nil, never, true)
	require.Nil(t, next, "a Down member that is reachable and not replaced stays for now")
	s = stateOf([]string{"a up", "g down"}, "ag")
	s.add(cluster.Member{ID: peer.ID{Addr: nid("g").Addr, Inc: 99}, Status: cluster.Joining})
	next, _ = lead(s, nid("a"), nil, never, true)
	require.Equal(t, []tombstone{{id: nid("g"), last: cluster.Down}}, next.tombs, "its successor proves it dead")
	next, _ = lead(stateOf([]string{"a exiting", "b exiting"}, "ab"), nid("a"), peer.SetOf(nid("a")), never, true)
	require.Nil(t, next, "self goes last")
	next, _ = lead(stateOf([]string{"a exiting", "b exiting"}, "ab"), nid("a"), peer.SetOf(nid("a"), nid("b")), never,
		true)
	require.Empty(t, next.members)
}

// anyState draws what a node of one cluster may hold: any statuses of the same nodes, rows, clocks and tombstones.
func anyState() *rapid.Generator[*state] {
	return rapid.Custom(func(t *rapid.T) *state {
		s := newState(version{cluster: 1, birth: 1, highestUp: 50})
		if s.prunes = uint32(rapid.IntRange(0, 2).Draw(t, "prunings")); s.prunes > 0 {
			s.pruned = gossip.Digest(rapid.IntRange(1, 2).Draw(t, "pruned"))
		}
		for _, n := range []string{"a", "b", "c", "d", "e"} {
			switch st := cluster.Status(rapid.IntRange(0, int(cluster.ReadyForShutdown)+1).Draw(t, n)); st {
			case cluster.ReadyForShutdown + 1:
			case cluster.Removed:
				tomb := tombstone{id: nid(n), last: rapid.SampledFrom([]cluster.Status{cluster.Exiting, cluster.Down}).Draw(t,
					"last")}
				tomb.cause, tomb.by = anyVerdict(t, tomb.last)
				s.tombs = append(s.tombs, tomb)
			default:
				m := cluster.Member{ID: nid(n), Status: st, Roles: []string{"r" + n}, AppVersion: "1." + n}
				m.Cause, m.By = anyVerdict(t, st)
				if st.Numbered() >= 0 {
					m.UpNumber = uint32(rapid.IntRange(1, 9).Draw(t, "number"))
				}
				s.members = append(s.members, m)
			}
		}
		for _, m := range s.members {
			s.clock = append(s.clock, gossip.Entry{ID: m.ID, N: rapid.Uint64Range(1, 3).Draw(t, "count")})
			for _, o := range s.members {
				if o.ID != m.ID && rapid.Bool().Draw(t, "accuses") {
					s.reach = s.reach.with(m.ID, o.ID, true)
				}
				if o.ID != m.ID && rapid.Bool().Draw(t, "withdraws") {
					s.reach = s.reach.with(m.ID, o.ID, false)
				}
				if o.ID != m.ID && rapid.IntRange(0, 9).Draw(t, "quarantines") == 0 {
					s.reach = s.reach.quarantine(m.ID, o.ID)
				}
			}
		}
		for _, k := range []string{"k1", "k2", "k3"} {
			for range rapid.IntRange(0, 2).Draw(t, k) {
				v := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "value")
				s.meta, _ = s.meta.with(k, v, nid(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "writer")))
			}
		}
		s.seen = gossip.NewSeen(len(s.members))
		return s.seal()
	})
}

func anyVerdict(t *rapid.T, st cluster.Status) (cluster.Cause, peer.ID) {
	if st != cluster.Down {
		return cluster.CauseNone, peer.ID{}
	}
	by := nid(rapid.SampledFrom([]string{"a", "b", "z"}).Draw(t, "by"))
	return cluster.Cause(rapid.IntRange(1, int(cluster.CauseQuarantine)).Draw(t, "cause")), by
}

// MEM-4: the merge is commutative, associative, idempotent and monotonic; clocks included.
func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyState().Draw(t, "a"), anyState().Draw(t, "b"), anyState().Draw(t, "c")
		ab := mergeStates(a, b)
		require.Equal(t, ab.canonical(), mergeStates(b, a).canonical())
		require.Equal(t, mergeStates(ab, c).canonical(), mergeStates(a, mergeStates(b, c)).canonical())
		require.Equal(t, a.canonical(), mergeStates(a, a).canonical())
		require.Equal(t, ab.canonical(), mergeStates(ab, a).canonical(), "absorption")
		require.Zero(t, ab.seen.Count())
		for _, m := range a.members {
			require.LessOrEqual(t, m.Status.Rank(), ab.status(m.ID).Rank())
		}
		for _, r := range a.reach {
			for _, c := range r.records {
				if c.kind == quarantined && ab.has(r.observer) && ab.has(c.subject) {
					require.True(t, ab.reach.quarantines(r.observer, c.subject), "a quarantine is final (FD-4)")
				}
			}
		}
		for _, o := range a.tombs {
			require.False(t, ab.has(o.id), "a tombstone decides")
		}
		for _, m := range b.members {
			_, dead := a.tomb(m.ID)
			require.Equal(t, !dead, ab.has(m.ID), "nothing but a tombstone removes")
		}
	})
}

// Every state that a node can hold survives its codec.
func TestStateCodecLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyState().Draw(t, "s")
		if i := rapid.IntRange(-1, 4).Draw(t, "seen"); i >= 0 {
			s.seen.Add(i)
		}
		got, err := readState(0, payload(s))
		require.NoError(t, err)
		require.Equal(t, s.canonical(), got.canonical())
		require.Equal(t, s.digest, got.digest)
		body, err := readStateBody(0, plainBody(1, 2, s))
		require.NoError(t, err)
		require.True(t, s.seen.Equal(body.seen))
		require.Equal(t, s.unreachable, got.unreachable)
	})
}

func TestNewerOrMerged(t *testing.T) {
	base := stateOf([]string{"a up", "b up", "x up"}, "a").draft().commit(nid("x"))
	later := base.draft()
	later.setStatus(nid("b"), cluster.Leaving)
	later.commit(nid("b"))
	_, how := new(work).newerOrMerged(base, base)
	require.Equal(t, isSame, how)
	got, how := new(work).newerOrMerged(base, later)
	require.Equal(t, isNewer, how)
	require.Same(t, later, got)
	got, how = new(work).newerOrMerged(later, base)
	require.Equal(t, isOlder, how)
	require.Same(t, later, got)

	other := base.draft()
	other.reach = other.reach.with(nid("a"), nid("x"), true)
	other.commit(nid("a"))
	got, how = new(work).newerOrMerged(later, other)
	require.Equal(t, isMerged, how)
	again, _ := new(work).newerOrMerged(other, later)
	require.Equal(t, got.digest, again.digest, "both sides reach the same version")

	// x is removed: its entry leaves the clock, which makes the older state look concurrent. It is only older.
	removed := base.draft()
	removed.remove(nid("x"))
	removed.commit(nid("a"))
	require.Equal(t, gossip.Concurrent, base.clock.Compare(removed.clock))
	got, how = new(work).newerOrMerged(removed, base)
	require.Equal(t, isOlder, how)
	require.Same(t, removed, got)
	got, how = new(work).newerOrMerged(base, removed)
	require.Equal(t, isNewer, how)
	require.Same(t, removed, got)

	// x made a change that the remover never saw: the clock of the join names the remover's version, its contents do
	// not. It must become a change of its own, or one clock would name two states.
	unseen := base.draft()
	unseen.add(cluster.Member{ID: nid("j"), Status: cluster.Joining})
	unseen.commit(nid("x"))
	got, how = new(work).newerOrMerged(removed, unseen)
	require.Equal(t, isBumped, how)
	require.True(t, got.has(nid("j")))
	require.False(t, got.has(nid("x")))
}

func viewOf(self string, members []string, pairs ...string) *cluster.View {
	s := stateOf(members, "", pairs...)
	v := &cluster.View{Self: nid(self), Members: s.members, Unreachable: s.unreachable.Clone()}
	v.Unreachable.Remove(v.Self)
	v.Leader = v.RoleLeader("")
	return v
}

func names(events []Event) string {
	out := ""
	for _, e := range events {
		switch e.Kind {
		case LeaderChanged, RoleLeaderChanged:
			out += e.Kind.String() + " " + e.Role + e.Leader.Addr.Host() + "; "
		default:
			out += e.Kind.String() + " " + e.Member.ID.Addr.Host() + " " + e.Previous.String() + "; "
		}
	}
	return out
}

// Scenario 16: events are the difference of two views, in address order.
func TestScenario16Events(t *testing.T) {
	for _, c := range []struct {
		old, next *cluster.View
		want      string
	}{
		{viewOf("a", []string{"a up"}), viewOf("a", []string{"a up", "b up", "e joining"}),
			"member-up b removed; member-joined e removed; "},
		{viewOf("a", []string{"a joining", "b up", "c up"}),
			viewOf("a", []string{"a up", "b up", "c leaving", "e joining"}),
			"member-up a joining; member-left c up; member-joined e removed; leader-changed a; "},
		{viewOf("a", []string{"a up", "d exiting"}), viewOf("a", []string{"a up"}), "member-removed d exiting; "},
		{viewOf("b", []string{"a up", "b up", "c up"}, "c->b", "c->a"), viewOf("b", []string{"a up", "b up", "c up"}),
			"reachable-member a up; leader-changed a; "},
		{viewOf("b", []string{"a up", "b up"}), viewOf("b", []string{"a up", "b up"}, "b->a", "a->b"),
			"unreachable-member a up; leader-changed b; "},
		{viewOf("c", []string{"a leaving", "b exiting", "c up"}),
			viewOf("c", []string{"a exiting", "b exiting", "c up"}),
			"member-exited a leaving; leader-changed c; "},
		{nil, viewOf("a", []string{"a up", "b down"}),
			"member-up a removed; member-downed b removed; leader-changed a; "},
	} {
		require.Equal(t, c.want, names(diff(nil, c.old, c.next)))
	}
	// A restart at the same address within one diff: the old incarnation's removal comes first.
	old := viewOf("a", []string{"a up", "b up"})
	next := viewOf("a", []string{"a up", "b up"})
	next.Members = slices.Clone(next.Members)
	next.Members[1].ID.Inc = 99
	events := diff(nil, old, next)
	require.Equal(t, []EventKind{MemberRemoved, MemberUp}, kindsOf(events))
	require.Equal(t, cluster.Removed, events[0].Member.Status)
	require.Equal(t, cluster.Up, events[0].Previous)
	require.Equal(t, uint64(99), events[1].Member.ID.Inc)

	old, next = viewOf("a", []string{"a up", "b up"}), viewOf("a", []string{"a up", "b up"})
	next.Members = slices.Clone(next.Members)
	next.Members[1].Roles = []string{"x", "y"}
	require.Equal(t, "role-leader-changed xb; role-leader-changed yb; ", names(diff(nil, old, next)))
}
