// Tests of paths, definitions, the join of two tables, and their encoding.

package partition

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// TestPaths: a path is "a/b/c", and one below a partition point follows it (PRT-1).
func TestPaths(t *testing.T) {
	for _, good := range []string{"a", "a/b/c", "market prices/€", strings.Repeat("a", 255),
		strings.Repeat("a/", 15) + "b"} {
		require.NoError(t, CheckPath(good), good)
	}
	for bad, why := range map[string]string{"": "empty", "/a": "empty segment", "a/": "empty segment",
		"a//b": "empty segment", "/": "empty segment", "a\n": "printed", "a\xff": "printed",
		strings.Repeat("a", 256):       "256 bytes",
		strings.Repeat("a/", 16) + "b": "16 segments"} {
		err := CheckPath(bad)
		require.ErrorIs(t, err, cluster.ErrBadPath, bad)
		require.ErrorContains(t, err, why, bad)
	}
	require.Equal(t, "a/b", Above("a/b/c"))
	require.Empty(t, Above("a"))
	table := define(t, define(t, nil, "a", Exactly(1)), "a/b", Exactly(2))
	require.Equal(t, "a/b", table.Of("a/b/c/d").Path, "what has no definition follows the point above")
	require.Equal(t, "a", table.Of("a/x").Path)
	require.Nil(t, table.Of("b"))
}

// TestCounts: "n: Int => f: Int where f < n", and scaling by load and hints, as data (PRT-2).
func TestCounts(t *testing.T) {
	for _, c := range []struct {
		count       cluster.Count
		nodes, load int
		want        int
	}{
		{Exactly(3), 10, 0, 3}, {Exactly(3), 1, 0, 3},
		{Survives(2), 5, 0, 3}, {Survives(0), 5, 0, 1}, {Survives(4), 2, 0, 5},
		{Share(50), 5, 0, 3}, {Share(1), 5, 0, 1}, {Share(100), 7, 0, 7}, {Share(100), 100, 0, 32}, {Share(50), 0, 0, 1},
		{Scaled(2, 6, 100), 9, 0, 2}, {Scaled(2, 6, 100), 9, 301, 4}, {Scaled(2, 6, 100), 9, 9999, 6},
	} {
		require.NoError(t, c.count.Validate())
		require.Equal(t, c.want, c.count.Of(c.nodes, c.load), "%+v", c)
	}
	for _, bad := range []cluster.Count{{}, Exactly(0), Exactly(33), Survives(-1), Survives(32), Share(0), Share(101),
		Scaled(0, 2, 1), Scaled(3, 2, 1), Scaled(1, 33, 1), Scaled(1, 2, 0), {Kind: 4, N: 1}, {N: 1, Most: 2}} {
		require.ErrorIs(t, bad.Validate(), cluster.ErrBadCount, "%+v", bad)
	}
}

// TestHandoffOptions: the named ones are the early specification's, and those that make no sense together are refused
// with the reason (PRT-4).
func TestHandoffOptions(t *testing.T) {
	require.Equal(t, cluster.Stateless, cluster.Handoff{}, "2a 3a 4a is the default")
	require.Equal(t, cluster.Handoff{Old: cluster.OldForwards, New: cluster.NewBuffers}, cluster.Ordered)
	require.Equal(t, cluster.Handoff{Old: cluster.OldDrops, Late: cluster.LateDrops}, cluster.Lossy)
	var fine []string
	for _, o := range []cluster.OldOption{cluster.OldKeeps, cluster.OldForwards, cluster.OldDrops, 3} {
		for _, n := range []cluster.NewOption{cluster.NewOpen, cluster.NewBuffers, 2} {
			for _, l := range []cluster.LateOption{cluster.LateForwards, cluster.LateDrops, 2} {
				h := cluster.Handoff{Old: o, New: n, Late: l}
				if err := h.Validate(); err == nil {
					fine = append(fine, h.String())
				} else {
					require.ErrorIs(t, err, cluster.ErrBadHandoff)
				}
			}
		}
	}
	require.Equal(t, []string{"stateless", "2a 3a 4b", "2a 3b 4a", "2b 3a 4a", "ordered", "2c 3a 4a", "lossy", "2c 3b 4a"},
		fine)
	require.ErrorContains(t, cluster.Handoff{New: cluster.NewBuffers, Late: cluster.LateDrops}.Validate(),
		"2a 3b 4b: buffers (3b) are opened by acknowledgements")
}

// TestDefinitions: any node defines, and of two at once one wins (PRT-1).
func TestDefinitions(t *testing.T) {
	table, err := Table(nil).Define(cluster.PartitionDefinition{Path: "a", Count: Exactly(1)}, at(1))
	require.NoError(t, err)
	again, err := table.Define(cluster.PartitionDefinition{Path: "a", Count: Exactly(1)}, at(2))
	require.NoError(t, err)
	require.Equal(t, table, again, "the same again changes nothing")
	for _, bad := range []cluster.PartitionDefinition{{}, {Path: "a"}, {Path: "a", Count: Exactly(1), Hint: -1},
		{Path: "a", Count: Exactly(1), Role: strings.Repeat("r", 129)},
		{Path: "a", Count: Exactly(1), Handoff: cluster.Handoff{Old: 1, Late: 1}}} {
		_, err := table.Define(bad, at(1))
		require.Error(t, err)
	}
	other, err := table.Define(cluster.PartitionDefinition{Path: "a", Count: Exactly(2)}, at(2))
	require.NoError(t, err)
	third, err := table.Define(cluster.PartitionDefinition{Path: "a", Count: Exactly(3)}, at(3))
	require.NoError(t, err)
	require.Equal(t, third, Merge(other, third), "of two at once one wins, everywhere the same")
	require.Equal(t, third, Merge(third, other))
	_, err = table.Undefine("b", at(1))
	require.ErrorIs(t, err, cluster.ErrUnknownPartition)
	for i := range cluster.MaxPartitions - 1 {
		table = define(t, table, fmt.Sprintf("p%d", i), Exactly(1))
	}
	_, err = table.Define(cluster.PartitionDefinition{Path: "b", Count: Exactly(1)}, at(1))
	require.ErrorIs(t, err, cluster.ErrPartitionsFull)
	full := Merge(table, define(t, nil, "aa", Exactly(1)))
	require.Len(t, full, cluster.MaxPartitions, "the last one of two full sides goes")
	require.Equal(t, "aa", full[1].Path)
}

// anyPartition draws what a partition may be, of a faulty writer too.
func anyPartition(path string) *rapid.Generator[cluster.Partition] {
	return rapid.Custom(func(t *rapid.T) cluster.Partition {
		member := rapid.Map(rapid.IntRange(1, 4), at)
		small := rapid.Uint64Range(1, 2)
		p := cluster.Partition{Version: small.Draw(t, "version"), DefinedBy: member.Draw(t, "by"),
			Deleted: rapid.Bool().Draw(t, "deleted")}
		p.Path, p.Count = path, Exactly(rapid.IntRange(1, 2).Draw(t, "n"))
		p.Handoff.Old = cluster.OldOption(rapid.IntRange(0, 1).Draw(t, "old"))
		p.Role = rapid.SampledFrom([]string{"", "r"}).Draw(t, "role")
		p.Hint = rapid.IntRange(0, 1).Draw(t, "hint")
		if rapid.Bool().Draw(t, "move") {
			p.MoveSlot, p.MoveTo = rapid.IntRange(0, 1).Draw(t, "slot"), member.Draw(t, "to")
		}
		if rapid.Bool().Draw(t, "unplaced") {
			return p
		}
		p.Epoch, p.Writer = small.Draw(t, "epoch"), uint32(small.Draw(t, "writer"))
		p.Wanted, p.Heeded = rapid.IntRange(0, 1).Draw(t, "wanted"), small.Draw(t, "heeded")
		for slot := range rapid.IntRange(0, 2).Draw(t, "instances") {
			id := member.Draw(t, "id")
			p.Instances = append(p.Instances, id)
			if to := rapid.Map(rapid.IntRange(0, 4), func(n int) (id peer.ID) {
				if n > 0 {
					id = at(n)
				}
				return id
			}).Draw(t, "to"); to != id && rapid.Bool().Draw(t, "change") {
				p.Changes = append(p.Changes, cluster.PartitionChange{Path: path, Slot: slot, From: id, To: to,
					Complete: rapid.Bool().Draw(t, "complete"), Epoch: rapid.Uint64Range(1, p.Epoch).Draw(t, "since"), Writer: 1})
			}
		}
		return p
	})
}

func anyTable() *rapid.Generator[Table] {
	return rapid.Custom(func(t *rapid.T) (table Table) {
		for _, path := range []string{"a", "a/b", "abc"} {
			if rapid.Bool().Draw(t, "there") {
				table = append(table, anyPartition(path).Draw(t, path))
			}
		}
		return table
	})
}

// TestMergeLaws: the join is commutative, associative and idempotent, whichever node wrote; no epoch and no version
// goes back (PRT-1).
func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyTable().Draw(t, "a"), anyTable().Draw(t, "b"), anyTable().Draw(t, "c")
		ab := Merge(a, b)
		require.True(t, Equal(a, Merge(a, a)))
		require.True(t, Equal(ab, Merge(b, a)), "commutative")
		require.True(t, Equal(Merge(ab, c), Merge(a, Merge(b, c))), "associative")
		require.True(t, Equal(ab, Merge(ab, b)), "not older")
		for i := range a {
			k, ok := ab.Find(a[i].Path)
			require.True(t, ok)
			require.GreaterOrEqual(t, ab[k].Epoch, a[i].Epoch)
			require.GreaterOrEqual(t, ab[k].Version, a[i].Version)
		}
	})
}

// TestMergeJoinsWhatIsComplete: of one placement what either side completed is complete (PRT-4).
func TestMergeJoinsWhatIsComplete(t *testing.T) {
	members := nodes(1, 2, 3, 4)
	table := define(t, nil, "a", Exactly(2)).Plan(members, 1, nil)
	members[0].Status, members[1].Status = cluster.Leaving, cluster.Leaving
	table = table.Plan(members, 1, nil)
	one, two := table.Complete(table[0].Changes[0]), table.Complete(table[0].Changes[1])
	both := Merge(one, two)
	require.True(t, both[0].Changes[0].Complete && both[0].Changes[1].Complete)
	require.False(t, table[0].Changes[0].Complete || table[0].Changes[1].Complete)
	later := table.Plan(members[1:], 2, nil)
	require.Equal(t, later, Merge(one, later), "a later epoch knows better")
}

func parse(t require.TestingT, b []byte, members []cluster.Member) Table {
	r := wire.NewReader(wire.KindGossip, b)
	table := Read(&r, members)
	require.NoError(t, r.Done())
	return table
}

// TestTableGoldenBytes: the bytes are frozen (PRT-1, CARD-4).
func TestTableGoldenBytes(t *testing.T) {
	require.Equal(t, []byte{0}, Append(nil, nil, nil))
	members := nodes(1, 2, 3)
	table := define(t, define(t, nil, "a", Exactly(2)), "a/b", Survives(1)).Plan(members, 7, nil)
	members[0].Status = cluster.Leaving
	table = table.Plan(members, 7, nil)
	table = table.Complete(table[0].Changes[0])
	d := cluster.PartitionDefinition{Path: "c", Count: Scaled(1, 4, 300), Handoff: cluster.Ordered, Role: "db", Hint: 5}
	table, err := table.Define(d, at(9))
	require.NoError(t, err)
	table[2].MoveTo, table[2].MoveSlot = at(3), 1
	require.Equal(t, "03"+
		"00"+"0161"+"10"+"01"+"01"+"0002"+"00"+ // path; flags, version, by; N, hand-off
		"02"+"07"+"02"+"00"+"00"+"020102"+"01"+"0003"+"01"+"07"+ // epoch to heeded; slots; change, complete
		"01"+"022f62"+"10"+"01"+"01"+"0101"+"00"+
		"02"+"07"+"02"+"00"+"00"+"020301"+"01"+"0102"+"00"+"07"+
		"00"+"0163"+"0e"+"01"+"04"+"040a000009581b"+
		"0900000000000000"+"0301"+"04"+"ac02"+"05"+"026462"+"05"+"0103",
		hex.EncodeToString(Append(nil, table, members)))
}

// TestTableCodecLaw: every table survives its codec, and takes the same bytes again (GOS-8).
func TestTableCodecLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := anyTable().Draw(t, "table")
		members := nodes(rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 0, 4, rapid.ID[int]).Draw(t, "members")...)
		b := Append(nil, table, members)
		got := parse(t, b, members)
		require.True(t, Equal(table, got), "%v\n%v", table, got)
		require.Equal(t, b, Append(nil, got, members))
		for n := range b {
			r := wire.NewReader(wire.KindGossip, b[:n])
			_ = Read(&r, members)
			require.Error(t, r.Done(), "cut at byte %d", n)
		}
	})
}

// TestHostileTables: what breaks a bound is refused, and nothing is allocated for it.
func TestHostileTables(t *testing.T) {
	members := nodes(1, 2, 3)
	table := define(t, nil, "a", Exactly(2)).Plan(members, 7, nil)
	for name, change := range map[string]func(p *cluster.Partition){
		"path":          func(p *cluster.Partition) { p.Path = "a//b" },
		"version":       func(p *cluster.Partition) { p.Version = 0 },
		"version high":  func(p *cluster.Partition) { p.Version = MaxVersion + 1 },
		"nobody":        func(p *cluster.Partition) { p.DefinedBy = peer.ID{} },
		"count":         func(p *cluster.Partition) { p.Count = Exactly(33) },
		"hand-off":      func(p *cluster.Partition) { p.Handoff = cluster.Handoff{New: 1, Late: 1} },
		"in force":      func(p *cluster.Partition) { p.InForce = cluster.Handoff{Old: 3} },
		"epoch":         func(p *cluster.Partition) { p.Epoch = MaxEpoch + 1 },
		"many":          func(p *cluster.Partition) { p.Instances = slices.Repeat([]peer.ID{at(1)}, 33) },
		"last is empty": func(p *cluster.Partition) { p.Instances = []peer.ID{at(1), {}} },
		"slot":          func(p *cluster.Partition) { p.Changes = []cluster.PartitionChange{{Slot: 2, To: at(3), Epoch: 1}} },
		"to itself":     func(p *cluster.Partition) { p.Changes = []cluster.PartitionChange{{Slot: 0, To: at(1), Epoch: 1}} },
		"later":         func(p *cluster.Partition) { p.Changes = []cluster.PartitionChange{{Slot: 0, To: at(3), Epoch: 2}} },
		"order": func(p *cluster.Partition) {
			c := cluster.PartitionChange{Slot: 0, To: at(3), Epoch: 1}
			p.Changes = []cluster.PartitionChange{c, c}
		},
	} {
		bad := slices.Clone(table)
		change(&bad[0])
		r := wire.NewReader(wire.KindGossip, Append(nil, bad, members))
		require.Nil(t, Read(&r, members), name)
		require.Error(t, r.Err(), name)
	}
}

func FuzzTable(f *testing.F) {
	members := nodes(1, 2, 3)
	table := define(f, define(f, nil, "a", Exactly(2)), "a/b", Scaled(1, 3, 5)).Plan(members, 7, nil)
	f.Add(Append(nil, table, members))
	members[0].Status = cluster.Leaving
	f.Add(Append(nil, table.Plan(members, 8, nil), members))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(wire.KindGossip, b)
		before := spent.Bytes()
		table := Read(&r, members)
		spent.Within(t, before, 128*len(b))
		if r.Done() == nil {
			again := Append(nil, table, members)
			require.True(t, Equal(table, parse(t, again, members)))
			table.Plan(members, 9, nil)
		}
	})
}
