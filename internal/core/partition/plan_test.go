// Tests of the leader's plan: the worked examples of the early specification, and laws against brute force.

package partition

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
)

func at(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7000", n)), Inc: uint64(n)}
}

// nodes returns Up members at those numbers, sorted.
func nodes(numbers ...int) []cluster.Member {
	slices.Sort(numbers)
	list := make([]cluster.Member, len(numbers))
	for i, n := range numbers {
		list[i] = cluster.Member{ID: at(n), Status: cluster.Up, UpNumber: uint32(n)}
	}
	return list
}

func define(t require.TestingT, table Table, path string, n cluster.Count) Table {
	table, err := table.Define(cluster.PartitionDefinition{Path: path, Count: n}, at(1))
	require.NoError(t, err)
	return table
}

// ordinals returns where the instances of a path are in the sorted members, counted from one.
func ordinals(table Table, path string, members []cluster.Member) (list []int) {
	i, _ := table.Find(path)
	for _, id := range table[i].Instances {
		list = append(list, 1+slices.IndexFunc(members, func(m cluster.Member) bool { return m.ID == id }))
	}
	return list
}

// TestPlanWorkedExamples is the early specification's "given a cluster with ten nodes and three partitions, A, B, and
// C, having N-values of 4, 3, and 5", and its "if 5 new nodes join the cluster and in sorted order these nodes appear
// after the current nodes 2, 4, 5, 7, and 8" (PRT-1, PRT-3).
func TestPlanWorkedExamples(t *testing.T) {
	var table Table
	for _, d := range []struct {
		path string
		n    int
	}{{"A", 4}, {"B", 3}, {"C", 5}} {
		table = define(t, table, d.path, Exactly(d.n))
	}
	ten := nodes(10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
	table = table.Plan(ten, 1, nil)
	require.Equal(t, []int{1, 2, 3, 4}, ordinals(table, "A", ten))
	require.Equal(t, []int{5, 6, 7}, ordinals(table, "B", ten))
	require.Equal(t, []int{8, 9, 10, 1, 2}, ordinals(table, "C", ten))

	more := nodes(10, 20, 25, 30, 40, 45, 50, 55, 60, 70, 75, 80, 85, 90, 100)
	after := table.Plan(more, 1, nil)
	require.Equal(t, table, after, "all instances are on the same physical nodes as before")
	require.Equal(t, []int{1, 2, 4, 5}, ordinals(after, "A", more))
	require.Equal(t, []int{7, 9, 10}, ordinals(after, "B", more))
	require.Equal(t, []int{12, 14, 15, 1, 2}, ordinals(after, "C", more))

	// on the wire ordinals change with the members, and here nothing does
	before, later := Append(nil, table, ten), Append(nil, after, more)
	require.NotEqual(t, before, later)
	require.Len(t, later, len(before))
	require.Equal(t, table, parse(t, before, ten))
	require.Equal(t, table, parse(t, later, more))
}

// TestPlanHandsOver is steps 1, 4 and 5 of the early specification's hand-off: "the leader sets a pending change for N1
// to handoff A to N2", N1 "marks the change as complete", "the leader sees the migration is complete and updates the
// partition table" (PRT-4).
func TestPlanHandsOver(t *testing.T) {
	members := nodes(1, 2, 3)
	table := define(t, nil, "a", Exactly(2)).Plan(members, 7, nil)
	require.Equal(t, []peer.ID{at(1), at(2)}, table[0].Instances)
	require.Equal(t, uint64(1), table[0].Epoch)
	require.Equal(t, uint32(7), table[0].Writer)
	require.Empty(t, table[0].Changes, "a first placement needs no hand-off")

	members[0].Status = cluster.Leaving
	table = table.Plan(members, 8, nil)
	change := cluster.PartitionChange{Path: "a", From: at(1), To: at(3), Epoch: 2, Writer: 8}
	require.Equal(t, []cluster.PartitionChange{change}, table[0].Changes)
	require.Equal(t, []peer.ID{at(1), at(2)}, table[0].Instances, "until it is complete")
	require.True(t, table.Names(at(1)))
	require.True(t, table.Names(at(3)))
	require.Equal(t, table, table.Plan(members, 8, nil), "nothing more to do")

	other := change
	other.Epoch++
	require.Equal(t, table, table.Complete(other), "another change")
	done := table.Complete(change)
	require.True(t, done[0].Changes[0].Complete)
	require.False(t, table[0].Changes[0].Complete, "tables are immutable")
	require.Equal(t, done, done.Complete(change))
	next := done.Plan(members, 8, nil)
	require.Equal(t, []peer.ID{at(3), at(2)}, next[0].Instances)
	require.Empty(t, next[0].Changes)
	require.Equal(t, uint64(3), next[0].Epoch)
	require.False(t, next.Names(at(1)), "it may go")

	gone := table.Plan(members[1:], 8, nil)
	require.Equal(t, []peer.ID{at(3), at(2)}, gone[0].Instances, "from is gone: no hand-off")
	require.Empty(t, gone[0].Changes)
	members[2].Status = cluster.Down
	back := table.Plan(members, 8, nil)
	require.Equal(t, []cluster.PartitionChange{{Path: "a", From: at(1), Epoch: 3, Writer: 8}}, back[0].Changes,
		"to is gone, and there is no other: the instance ends")
	require.Equal(t, 2, back[0].Wanted)
}

// TestPlanLossesAndNumbers: a lost instance is replaced at once, and there are as many as wanted, or as nodes (PRT-2).
func TestPlanLossesAndNumbers(t *testing.T) {
	members := nodes(1, 2, 3, 4)
	table := define(t, nil, "a", Exactly(6)).Plan(members, 1, nil)
	require.Equal(t, 6, table[0].Wanted)
	require.Equal(t, 4, table[0].Has(), "as many as there are nodes")
	less := table.Plan(nodes(1, 3, 4), 1, nil)
	require.Equal(t, []peer.ID{at(1), {}, at(3), at(4)}, less[0].Instances, "a slot keeps its number")
	require.Equal(t, 3, less[0].Has())
	more := less.Plan(nodes(1, 3, 4, 5, 6), 1, nil)
	require.Equal(t, []peer.ID{at(1), at(5), at(3), at(4), at(6)}, more[0].Instances)

	few := define(t, more, "a", Exactly(2)).Plan(nodes(1, 3, 4, 5, 6), 1, nil)
	require.Len(t, few[0].Changes, 3, "the last slots end")
	for k, c := range few[0].Changes {
		require.Equal(t, 2+k, c.Slot)
		require.True(t, c.To.IsZero())
	}
	waits := define(t, few, "a", Exactly(5))
	require.Equal(t, waits, waits.Plan(nodes(1, 3, 4, 5, 6), 1, nil), "a definition waits for what is pending")
	for _, c := range few[0].Changes {
		waits = waits.Complete(c)
	}
	done := waits.Plan(nodes(1, 3, 4, 5, 6), 1, nil)
	require.Equal(t, 5, done[0].Has())
	require.Empty(t, done[0].Changes)

	undefined, err := done.Undefine("a", at(2))
	require.NoError(t, err)
	require.Nil(t, undefined.Of("a"))
	ends := undefined.Plan(nodes(1, 3, 4, 5, 6), 1, nil)
	require.Len(t, ends[0].Changes, 5)
	for _, c := range ends[0].Changes {
		ends = ends.Complete(c)
	}
	ends = ends.Plan(nodes(1, 3, 4, 5, 6), 1, nil)
	require.Empty(t, ends[0].Instances)
	require.Empty(t, ends.Live())
	require.Equal(t, ends, ends.Plan(nodes(1, 3, 4), 1, nil))
}

// TestOptionsWaitForWhatIsPending: a hand-off ends under the options under which it began; those that are defined
// meanwhile come into force behind it, with the number that came with them (PRT-4).
func TestOptionsWaitForWhatIsPending(t *testing.T) {
	members := nodes(1, 2, 3)
	table := define(t, nil, "a", Exactly(1)).Plan(members, 1, nil)
	members[0].Status = cluster.Leaving
	table = table.Plan(members, 1, nil)
	require.Len(t, table[0].Changes, 1)
	anew := cluster.PartitionDefinition{Path: "a", Count: Exactly(2), Handoff: cluster.Ordered}
	changed, err := table.Define(anew, at(2))
	require.NoError(t, err)
	require.Equal(t, changed, changed.Plan(members, 1, nil), "it waits")
	require.Equal(t, cluster.Stateless, changed[0].InForce)
	require.Equal(t, 1, changed[0].Wanted)
	done := changed.Complete(table[0].Changes[0]).Plan(members, 1, nil)
	require.Equal(t, cluster.Ordered, done[0].InForce)
	require.Equal(t, 2, done[0].Wanted)
	require.Equal(t, []peer.ID{at(2), at(3)}, done[0].Instances)
}

// TestPlanMovesByHand: "migrations specified by the user" (PRT-5).
func TestPlanMovesByHand(t *testing.T) {
	members := nodes(1, 2, 3)
	members[2].Roles = []string{"r"}
	table := define(t, nil, "a", Exactly(2)).Plan(members, 1, nil)
	_, err := table.Move("a", 0, at(2), at(1))
	require.ErrorIs(t, err, cluster.ErrBadDefinition, "it hosts another instance")
	_, err = table.Move("a", 2, at(3), at(1))
	require.ErrorIs(t, err, cluster.ErrUnknownPartition)
	wish, err := table.Move("a", 1, at(3), at(1))
	require.NoError(t, err)
	_, err = wish.Move("a", 0, at(3), at(1))
	require.ErrorIs(t, err, cluster.ErrMovePending)
	moving := wish.Plan(members, 1, nil)
	require.Equal(t, []cluster.PartitionChange{{Path: "a", Slot: 1, From: at(2), To: at(3), Epoch: 2, Writer: 1}},
		moving[0].Changes)
	moved := moving.Complete(moving[0].Changes[0]).Plan(members, 1, nil)
	require.Equal(t, []peer.ID{at(1), at(3)}, moved[0].Instances)
	require.Equal(t, moved, moved.Plan(members, 1, nil), "once")
	nowhere, err := moved.Move("a", 0, at(9), at(1))
	require.NoError(t, err)
	nowhere = nowhere.Plan(members, 1, nil)
	require.Empty(t, nowhere[0].Changes, "no such member")
	require.Equal(t, nowhere[0].Version, nowhere[0].Heeded)

	role, err := moved.Define(cluster.PartitionDefinition{Path: "a", Count: Exactly(2), Role: "r"}, at(1))
	require.NoError(t, err)
	role = role.Plan(members, 1, nil)
	require.Equal(t, []cluster.PartitionChange{{Path: "a", Slot: 0, From: at(1), Epoch: 4, Writer: 1}}, role[0].Changes,
		"it lacks the role, and nobody else has it")
	members[0].Status = cluster.PreparingForShutdown
	require.Equal(t, role, role.Plan(members, 1, nil))
}

func TestPlanKeepsItsBounds(t *testing.T) {
	var table Table
	for i := range 100 {
		table = define(t, table, fmt.Sprintf("p/%03d", i), Exactly(1))
	}
	members := nodes(1, 2, 3)
	table = table.Plan(members[:1], 1, nil)
	members[0].Status = cluster.Leaving
	table = table.Plan(members, 1, nil)
	require.Equal(t, cluster.MaxPendingChanges, table.Pending())
	for i := 100; i < 300; i++ {
		table = define(t, table, fmt.Sprintf("p/%03d", i), Exactly(32))
	}
	all := make([]int, 100)
	for i := range all {
		all[i] = i + 1
	}
	table = table.Plan(nodes(all...), 1, nil)
	sum := 0
	for i := range table {
		sum += table[i].Has()
	}
	require.LessOrEqual(t, sum, cluster.MaxAllInstances)
	table[0].Epoch = MaxEpoch
	require.Equal(t, table[0], table.Plan(nodes(5), 1, nil)[0], "no epoch is left")
}

// world is a table with its members, changed step by step.
type world struct {
	table   Table
	members []cluster.Member
	roles   bool
}

func (w *world) step(t *rapid.T) {
	switch rapid.IntRange(0, 6).Draw(t, "op") {
	case 0, 1:
		d := cluster.PartitionDefinition{Path: rapid.SampledFrom([]string{"a", "a/b", "b", "c"}).Draw(t, "path"),
			Count: Exactly(rapid.IntRange(1, 5).Draw(t, "n"))}
		if w.roles && rapid.Bool().Draw(t, "role") {
			d.Role = "r"
		}
		w.table, _ = w.table.Define(d, at(1))
	case 2:
		n := rapid.IntRange(1, 7).Draw(t, "who")
		if ordinal(w.members, at(n)) < 0 {
			m := nodes(n)[0]
			if w.roles && rapid.Bool().Draw(t, "has") {
				m.Roles = []string{"r"}
			}
			w.members = append(slices.Clone(w.members), m)
			slices.SortFunc(w.members, func(a, b cluster.Member) int { return a.ID.Compare(b.ID) })
		}
	case 3:
		if len(w.members) > 0 {
			w.members = slices.Clone(w.members)
			w.members[rapid.IntRange(0, len(w.members)-1).Draw(t, "who")].Status =
				rapid.SampledFrom([]cluster.Status{cluster.Up, cluster.Leaving, cluster.Down, cluster.Exiting}).Draw(t, "status")
		}
	case 4:
		for i := range w.table {
			for _, c := range w.table[i].Changes {
				if rapid.Bool().Draw(t, "complete") {
					w.table = w.table.Complete(c)
				}
			}
		}
	case 5:
		if len(w.table) > 0 && len(w.members) > 0 {
			w.table, _ = w.table.Move(w.table[0].Path, rapid.IntRange(0, 4).Draw(t, "slot"),
				w.members[rapid.IntRange(0, len(w.members)-1).Draw(t, "who")].ID, at(1))
		}
	case 6:
		if len(w.table) > 0 {
			w.table, _ = w.table.Undefine(w.table[rapid.IntRange(0, len(w.table)-1).Draw(t, "which")].Path, at(2))
		}
	}
}

func anyWorld(t *rapid.T, roles bool) *world {
	w := &world{roles: roles}
	for range rapid.IntRange(2, 30).Draw(t, "steps") {
		w.step(t)
		if rapid.IntRange(0, 2).Draw(t, "plan") == 0 {
			w.table = w.table.Plan(w.members, 1, nil)
		}
	}
	return w
}

// hosts returns the members that may host an instance of a path.
func (w *world) hosts(role string) (list []peer.ID) {
	for _, m := range w.members {
		if m.Status == cluster.Up && m.HasRole(role) {
			list = append(list, m.ID)
		}
	}
	return list
}

// TestPlanLaws: every leader plans the same, once; instances are distinct, and on members that live; there are as many
// as wanted or as nodes; none moves that need not (PRT-1, PRT-3).
func TestPlanLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t, true)
		before := w.table
		next := before.Plan(w.members, 9, nil)
		require.Equal(t, next, before.Plan(w.members, 9, nil), "deterministic")
		require.True(t, Equal(next, next.Plan(w.members, 9, nil)), "once")
		require.Len(t, next, len(before))
		for i := range next {
			was, is := &before[i], &next[i]
			seen := map[peer.ID]bool{}
			final := 0
			for slot, id := range is.Instances {
				c, moves := is.Change(slot)
				if id.IsZero() {
					continue
				}
				require.False(t, seen[id], "two instances of a path on a node")
				seen[id] = true
				k := slices.IndexFunc(w.members, func(m cluster.Member) bool { return m.ID == id })
				require.GreaterOrEqual(t, k, 0)
				require.Contains(t, []cluster.Status{cluster.Up, cluster.Leaving}, w.members[k].Status)
				if w.members[k].Status == cluster.Leaving {
					require.True(t, moves, "who leaves hands over")
				}
				if moves && !c.To.IsZero() {
					require.False(t, seen[c.To])
					seen[c.To] = true
				}
				if !moves || !c.To.IsZero() {
					final++
				}
			}
			if target := min(is.Wanted, len(w.hosts(is.Role))); len(is.Changes) == 0 {
				require.Equal(t, target, final)
			}
			if !Same(was, is) {
				require.Equal(t, was.Epoch+1, is.Epoch)
				require.Equal(t, uint32(9), is.Writer)
			}
		}
	})
}

// TestPlanMovesLittle: what a plan does is the least that leads to a table that is right (PRT-3).
func TestPlanMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t, true)
		next := w.table.Plan(w.members, 9, nil)
		for i := range next {
			was, is := &w.table[i], &next[i]
			if len(was.Changes) > 0 || !is.MoveTo.IsZero() {
				continue // what was pending, and moves by hand, move more
			}
			stays, must := 0, 0
			up := w.hosts(is.Role)
			lives := append(w.hosts(""), leaving(w.members)...)
			for _, id := range was.Instances {
				switch {
				case slices.Contains(up, id):
					stays++
				case slices.Contains(lives, id):
					must++
				}
			}
			target := min(is.Wanted, len(up))
			require.Len(t, is.Changes, must+max(0, stays-target), "moves")
			for slot, id := range was.Instances {
				if slices.Contains(lives, id) {
					require.Equal(t, id, is.Instances[slot], "nobody is taken out of the table without a hand-off")
				}
			}
		}
	})
}

func leaving(members []cluster.Member) (list []peer.ID) {
	for _, m := range members {
		if m.Status == cluster.Leaving {
			list = append(list, m.ID)
		}
	}
	return list
}

// TestPlanOverlap: of all ways to place what is new beside what stays, none overlaps less: brute force says so (PRT-3).
// Overlap is how many pairs of instances share a node.
func TestPlanOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t, true)
		for i := range w.table { // nothing pending and nothing that must move: then all ways have the same moves
			for _, c := range w.table[i].Changes {
				w.table = w.table.Complete(c)
			}
		}
		for i := range w.members {
			if w.members[i].Status == cluster.Leaving {
				w.members[i].Status = cluster.Down
			}
		}
		next := w.table.Plan(w.members, 9, nil)
		if next.Pending() > 0 {
			return
		}
		var fixed [][]peer.ID // of each path
		var free []int        // instances that are new
		for i := range next {
			var stay []peer.ID
			for slot, id := range next[i].Instances {
				c, came := w.table[i].Change(slot)
				stays := slot < len(w.table[i].Instances) && w.table[i].Instances[slot] == id
				if !id.IsZero() && (stays || came && c.To == id) {
					stay = append(stay, id)
				}
			}
			fixed = append(fixed, stay)
			free = append(free, next[i].Has()-len(stay))
		}
		require.Equal(t, w.least(next, fixed, free, 0, 0), overlap(next), "%v %v", fixed, free)
	})
}

func overlap(t Table) (pairs int) {
	loads := map[peer.ID]int{}
	for i := range t {
		for _, id := range t[i].Instances {
			if !id.IsZero() {
				pairs += loads[id]
				loads[id]++
			}
		}
	}
	return pairs
}

// least tries all ways to add what is free to the paths from one on, and there from a node on.
func (w *world) least(next Table, fixed [][]peer.ID, free []int, path, from int) int {
	if path == len(fixed) {
		var t Table
		for _, ids := range fixed {
			t = append(t, cluster.Partition{Instances: ids})
		}
		return overlap(t)
	}
	if free[path] == 0 {
		return w.least(next, fixed, free, path+1, 0)
	}
	up := w.hosts(next[path].Role)
	best := 1 << 30
	for i := from; i < len(up); i++ {
		if slices.Contains(fixed[path], up[i]) {
			continue
		}
		was := fixed[path]
		fixed[path], free[path] = append(slices.Clone(was), up[i]), free[path]-1
		best = min(best, w.least(next, fixed, free, path, i+1))
		fixed[path], free[path] = was, free[path]+1
	}
	return best
}
