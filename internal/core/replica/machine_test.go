// Tests of the machine: rumours, rounds, gaps, long states, levels, bounds, bad input.

package replica

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// What is changed apart comes to everybody, and at rest nothing but a digest a second is sent.
func TestUpdatesComeToAll(t *testing.T) {
	t.Parallel()
	w := newNet(t, 5)
	for i := range 5 {
		for range 3 {
			w.add(i, Local, 0)
		}
	}
	w.until(func() bool { return w.equal(15, all(5)...) })
	w.run(5 * time.Second)
	clear(w.bytes)
	w.run(10 * time.Second)
	require.Equal(t, map[wire.Kind]int{wire.KindReplicaDigest: 5 * 10 * 8}, w.bytes, "a digest a second, and no more")
	require.Zero(t, w.m[0].Stats().Refused)
	require.Positive(t, w.m[0].Stats().Bytes)
}

// After a partition of two halves all are equal within 3 + 2 log2(n) rounds (REP-1).
func TestConvergesAfterAPartition(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 8, 33} {
		w := newNet(t, n)
		w.drops = func(from, to int, _ wire.Kind) bool { return from%2 != to%2 }
		for i := range n {
			w.add(i, Local, 0)
		}
		w.run(20 * time.Second)
		require.False(t, w.equal(uint64(n), all(n)...))
		w.drops = nil
		w.run(time.Duration(3+2*bits.Len(uint(n-1))) * Round)
		require.True(t, w.equal(uint64(n), all(n)...), "%d nodes", n)
	}
}

// What two nodes lack of each other after a partition is sent in parts within a budget, and all are equal within
// 3 + 2 log2(n) rounds all the same. Many nodes of one half have changed each key, so that what is held of all keys is
// far more than that, and one node of the other half (REP-1).
func TestConvergesWithinItsBudget(t *testing.T) {
	t.Parallel()
	const keys, entry = 120, 2 << 10 // no entry of a frame is longer
	for _, n := range []int{3, 9, 33, 100} {
		w := newNet(t, n)
		writers := min(n/2, 20)
		for k := range keys {
			for i := range n {
				w.do(i, OpenCommand{fmt.Sprint(k), tallies})
			}
		}
		w.drops = func(from, to int, _ wire.Kind) bool { return from%2 != to%2 }
		for k := range keys {
			for i := range writers {
				w.do(2*i, UpdateCommand{fmt.Sprint(k), plus(2 * i), Local, 0})
			}
			w.do(1, UpdateCommand{fmt.Sprint(k), plus(1), Local, 0})
		}
		unlike := func(i int) bool {
			for k := range keys {
				if v, _ := w.m[i].Value(fmt.Sprint(k)); v.(tally).sum() != uint64(writers+1) {
					return true
				}
			}
			return false
		}
		w.run(6 * time.Second)
		require.True(t, unlike(0))
		w.drops, w.most = nil, 0
		w.run(time.Duration(3+2*bits.Len(uint(n-1))) * Round)
		require.False(t, slices.ContainsFunc(all(n), unlike), "%d nodes", n)
		require.LessOrEqual(t, w.most, 2*(maxFrame+entry), "of %d nodes one sends more at a time", n)
		t.Logf("%d nodes: at most %d bytes at a time", n, w.most)
	}
}

// A delta behind one that was lost is refused, and what is missing is asked for.
func TestGap(t *testing.T) {
	t.Parallel()
	w := newNet(t, 2)
	w.drops = func(int, int, wire.Kind) bool { return true }
	w.add(0, Majority, 1)
	w.deliver()
	w.drops = nil
	w.add(0, Majority, 2)
	w.deliver()
	require.True(t, w.done[0][1] && w.done[0][2], "who holds the later one holds the earlier")
	require.EqualValues(t, 1, w.m[1].Stats().Gaps)
	require.True(t, w.equal(2, 0, 1))
}

// A value longer than a frame travels in pieces, of which at most one is on its way.
func TestLongState(t *testing.T) {
	t.Parallel()
	w := newNet(t, 2)
	w.drops = func(int, int, wire.Kind) bool { return true }
	long := func(old any) any {
		v := maps.Clone(old.(tally))
		for n := range 10_000 {
			v[peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: uint64(n + 1)}] = 1
		}
		return v
	}
	w.do(0, UpdateCommand{"k", long, Majority, 1})
	w.run(time.Second)
	pieces := 0
	w.drops = func(_, _ int, kind wire.Kind) bool {
		if kind == wire.KindReplicaPiece {
			require.LessOrEqual(t, len(w.mail), 4)
			pieces++
		}
		return pieces == 5 // one is lost on the way
	}
	w.until(func() bool { return w.done[0][1] })
	require.True(t, w.equal(10_000, 0, 1))
	require.Greater(t, pieces, 230_000/maxBody)
	require.Empty(t, w.m[0].out)
	require.Empty(t, w.m[1].in)
}

// An update that a majority holds survives the loss of any minority. An update that no majority holds yet names the
// members that have not answered (REP-1).
func TestMajority(t *testing.T) {
	t.Parallel()
	w := newNet(t, 5)
	deaf := []int{3, 4}
	w.drops = func(from, to int, _ wire.Kind) bool { return slices.Contains(deaf, from) || slices.Contains(deaf, to) }
	w.add(0, Majority, 1)
	w.add(0, All, 2)
	w.deliver()
	require.True(t, w.done[0][1])
	require.False(t, w.done[0][2])
	missing, need, have := w.m[0].Missing(2)
	require.Equal(t, []peer.ID{id(3), id(4)}, missing)
	require.Equal(t, [2]int{5, 3}, [2]int{need, have})
	deaf = []int{0, 1} // a minority is lost, with the one that made the update
	w.members(2, 3, 4)
	w.until(func() bool { return w.equal(2, 2, 3, 4) })

	w = newNet(t, 5)
	deaf = []int{2, 3, 4}
	w.drops = func(from, to int, _ wire.Kind) bool { return slices.Contains(deaf, from) || slices.Contains(deaf, to) }
	w.add(0, Majority, 1)
	w.run(10 * time.Second)
	require.False(t, w.done[0][1])
	deaf = nil
	w.until(func() bool { return w.done[0][1] })

	w.drops = func(int, int, wire.Kind) bool { return true }
	w.add(1, Majority, 2)
	w.add(1, Majority, 3)
	w.do(1, CancelCommand{2})
	w.members(1)
	require.False(t, w.done[1][2])
	require.True(t, w.done[1][3], "of one member one is the majority")
	require.Zero(t, w.m[1].Stats().Waiting)
	require.ErrorIs(t, w.m[1].Do(w.now, ReadCommand{"nothing", All, 9}), ErrNotOpen)
}

// A read of a majority has what a majority got.
func TestRead(t *testing.T) {
	t.Parallel()
	w := newNet(t, 5)
	w.drops = func(from, to int, _ wire.Kind) bool { return from == 4 || to == 4 || from == 3 || to == 3 }
	w.add(0, Majority, 1)
	w.deliver()
	require.True(t, w.done[0][1])
	w.drops = func(from, to int, kind wire.Kind) bool {
		return kind == wire.KindReplicaDigest || from == 0 || to == 0 || from == 1 || to == 1
	}
	w.do(4, ReadCommand{"k", Majority, 1})
	w.deliver()
	require.True(t, w.done[4][1])
	require.True(t, w.equal(1, 4), "it is here before the read is over")
}

// A node that opens a value late gets it, and nobody waits for it before.
func TestOpenedLate(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	late := w.m[2]
	delete(late.keys, "k")
	late.table, late.sums = [buckets][]*entry{}, [buckets]uint64{}
	w.add(0, Majority, 1)
	w.add(0, All, 2)
	w.run(5 * time.Second)
	require.True(t, w.done[0][1])
	require.False(t, w.done[0][2])
	w.do(2, OpenCommand{"k", tallies})
	w.until(func() bool { return w.done[0][2] && w.equal(2, 2) })
}

// Frames of a removed incarnation are not believed, and another kind under the same name is not merged.
func TestStrangersAndOtherKinds(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	w.members(0, 1)
	w.m[2].members.Add(id(0))
	w.m[2].live = []peer.ID{id(0)}
	w.add(2, All, 1)
	w.run(time.Second)
	require.True(t, w.equal(0, 0, 1))
	require.Positive(t, w.m[0].Stats().Strangers)

	other := *tallies
	other.Name = "other"
	w.do(0, OpenCommand{"o", tallies})
	w.do(1, OpenCommand{"o", &other})
	w.do(0, UpdateCommand{"o", plus(0), All, 2})
	w.run(5 * time.Second)
	require.False(t, w.done[0][2])
	require.Positive(t, w.m[1].Stats().Refused)
	require.ErrorIs(t, w.m[0].Do(w.now, OpenCommand{"o", &other}), ErrOpen)
}

// Each bound refuses with its error and changes nothing.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := newNet(t, 1)
	m := w.m[0]
	require.ErrorIs(t, m.Do(w.now, OpenCommand{"", tallies}), ErrBadName)
	require.ErrorIs(t, m.Do(w.now, OpenCommand{string(make([]byte, MaxName+1)), tallies}), ErrBadName)
	require.ErrorIs(t, m.Do(w.now, UpdateCommand{Name: "nothing"}), ErrNotOpen)
	require.ErrorIs(t, m.Do(w.now, nil), ErrBadCommand)
	much := func(old any) any {
		v := maps.Clone(old.(tally))
		for n := range 60_000 {
			v[peer.ID{Addr: peer.MustAddr("10.0.0.9:1"), Inc: uint64(n + 1)}] = 1
		}
		return v
	}
	require.ErrorIs(t, m.Do(w.now, UpdateCommand{Name: "k", Change: much}), ErrTooLarge)
	require.Empty(t, w.value(0))
	m.bytes = MaxTotal
	require.ErrorIs(t, m.Do(w.now, UpdateCommand{Name: "k", Change: plus(0)}), ErrFull)
	require.Empty(t, w.value(0))
	m.bytes = 0
	for i := range MaxWriters {
		m.keys["k"].held.raise(id(i+1), 1)
	}
	require.ErrorIs(t, m.Do(w.now, UpdateCommand{Name: "k", Change: plus(0)}), ErrWriters)
	for i := range MaxKeys - 1 {
		w.do(0, OpenCommand{string(rune('a'+i%26)) + string(rune(0x4e00+i)), tallies})
	}
	require.ErrorIs(t, m.Do(w.now, OpenCommand{"one more", tallies}), ErrKeys)
	require.Equal(t, MaxKeys, m.Stats().Keys)
}

// Many small updates of one value do not make it look large.
func TestWeight(t *testing.T) {
	t.Parallel()
	w := newNet(t, 1)
	for range 10_000 {
		w.add(0, Local, 0)
	}
	require.Less(t, w.m[0].Stats().Bytes, int64(1024))
	require.LessOrEqual(t, len(w.m[0].keys["k"].log), keptDeltas)
}

// A frame that claims updates of this incarnation that it never made is refused, whole or as a delta.
func TestUpdatesThatWereNeverMade(t *testing.T) {
	t.Parallel()
	w := newNet(t, 2)
	body, _ := tallies.Append(nil, tally{id(0): 9})
	d := keyDeltas{"k", "tally", []delta{{id(0), 0, 9, body}}}
	require.ErrorIs(t, w.m[0].Handle(w.now, w.now, id(1), wire.KindReplicaDeltas,
		appendKeyDeltas(wire.AppendU64(nil, 0), &d)), errMine)
	run := append(appendHeld(nil, held{{id(0), 9}}), body...)
	require.ErrorIs(t, w.m[0].Handle(w.now, w.now, id(1), wire.KindReplicaPiece,
		appendPiece(nil, &piece{name: "k", kind: "tally", total: len(run), bytes: run})), errMine)
	require.Empty(t, w.value(0))
	require.EqualValues(t, 2, w.m[0].Stats().Refused)
}

// A view without this node, or with members that are down, counts the right members.
func TestMembers(t *testing.T) {
	t.Parallel()
	w := newNet(t, 1)
	v := &cluster.View{Members: []cluster.Member{{ID: id(0), Status: cluster.Up}, {ID: id(1), Status: cluster.Down},
		{ID: id(2), Status: cluster.Up}, {ID: id(3), Status: cluster.Exiting}}, Unreachable: peer.SetOf(id(2))}
	w.do(0, ViewCommand{v})
	require.Equal(t, peer.SetOf(id(0), id(2)), w.m[0].members)
	require.Empty(t, w.m[0].live)
	w.add(0, Majority, 1)
	require.False(t, w.done[0][1], "one that is out of reach counts")
}

// What was merged of a frame is reported, as any other change is, though its next delta is refused: a caller that waits
// for it hears that it is held.
func TestRefusedBehindAMerged(t *testing.T) {
	t.Parallel()
	w := newNet(t, 2)
	good, _ := tallies.Append(nil, tally{id(1): 1})
	d := keyDeltas{"k", "tally", []delta{{id(1), 0, 1, good}, {id(1), 1, 2, []byte{1}}}}
	err := w.m[0].Handle(w.now, w.now, id(1), wire.KindReplicaDeltas, appendKeyDeltas(wire.AppendU64(nil, 0), &d))
	require.Error(t, err)
	var e Effects
	w.m[0].Drain(&e)
	require.Equal(t, []Change{{"k", tally{id(1): 1}}}, e.Changes)
	require.Equal(t, w.m[0].keys["k"].digest(), w.m[0].keys["k"].sum)
}

// Two incarnations that were the last for which there was room, on two sides of a partition: both sides come together.
func TestWritersOverTheBound(t *testing.T) {
	t.Parallel()
	w := newNet(t, 2)
	w.drops = func(int, int, wire.Kind) bool { return true }
	var before held
	for n := range MaxWriters - 1 {
		before = append(before, mark{id(n + 10), 1})
	}
	for i := range 2 {
		e := w.m[i].keys["k"]
		e.held = slices.Clone(before)
		w.add(i, Local, 0)
	}
	w.drops = nil
	w.until(func() bool { return w.equal(2, 0, 1) })
	w.run(5 * time.Second)
	require.Len(t, w.m[0].keys["k"].held, MaxWriters+1)
	w.add(0, Majority, 1)
	w.until(func() bool { return w.done[0][1] })
}
