// Tests of the vector clock: scenarios 1 to 3 of the reference and the laws of a join (GOS-1, GOS-2).

package gossip

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/internal/base/spent"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func node(n int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:7355", n)), Inc: uint64(n)}
}

func clock(incs ...int) Clock {
	var c Clock
	for _, n := range incs {
		c = c.Bump(node(n))
	}
	return c
}

// Scenario 1: clocks built from empty by increments compare as listed, and the reverse the other way round.
func TestScenario1ClockComparison(t *testing.T) {
	reverse := map[Order]Order{Same: Same, Before: After, After: Before, Concurrent: Concurrent}
	for _, c := range []struct {
		a, b Clock
		want Order
	}{
		{nil, nil, Same}, {clock(1, 2, 1), clock(1, 2, 1), Same}, {clock(1, 2, 1), clock(1, 2, 1, 3), Before},
		{clock(1), clock(2), Concurrent}, {clock(1, 2, 1), clock(1, 1, 3), Concurrent},
		{clock(2, 2), clock(1, 2, 2, 3), Before}, {clock(1, 2), clock(1, 1), Concurrent},
		{clock(1, 2, 2, 3), clock(1, 2, 2, 2, 2), Concurrent}, {clock(1, 3, 3), clock(1, 3, 2), Concurrent},
		{nil, clock(1), Before},
	} {
		require.Equal(t, c.want, c.a.Compare(c.b), "%v %v", c.a, c.b)
		require.Equal(t, reverse[c.want], c.b.Compare(c.a), "%v %v", c.b, c.a)
	}
}

// Scenario 2: the merge holds all entries and is not older than either input.
func TestScenario2ClockMerge(t *testing.T) {
	p, q, r := clock(1, 2, 2, 3), clock(1, 2, 2, 2, 2), clock(4, 4)
	m := p.Merge(q)
	require.Len(t, m, 3)
	require.Equal(t, Before, p.Compare(m))
	require.Equal(t, Before, q.Compare(m))
	require.Equal(t, Same, m.Compare(q.Merge(p)))
	pr := p.Merge(r)
	require.Len(t, pr, 4)
	require.Equal(t, Before, p.Compare(pr))
	require.Equal(t, Before, r.Compare(pr))
	c := clock(1, 1).Merge(clock(2)).Bump(node(3))
	require.Equal(t, After, c.Compare(clock(1, 1)))
	require.Equal(t, After, c.Compare(clock(2)))
}

// Pruning deletes an entry: the pruned clock is Before the whole one, and Concurrent after a further change.
func TestScenario3ClockPruning(t *testing.T) {
	c := clock(1, 2, 3)
	pruned := c.Prune(func(id peer.ID) bool { return id == node(2) })
	require.Len(t, pruned, 2)
	require.Equal(t, Before, pruned.Compare(c))
	require.Equal(t, Concurrent, pruned.Bump(node(1)).Compare(c))
	require.Equal(t, c, c.Prune(func(peer.ID) bool { return false }))
}

func anyClock() *rapid.Generator[Clock] {
	return rapid.Custom(func(t *rapid.T) Clock {
		return clock(rapid.SliceOfN(rapid.IntRange(1, 5), 0, 8).Draw(t, "incs")...)
	})
}

// Laws: merging is a join, and the order is the one that the join induces.
func TestClockLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyClock().Draw(t, "a"), anyClock().Draw(t, "b"), anyClock().Draw(t, "c")
		same := func(x, y Clock) bool { return x.Compare(y) == Same }
		require.True(t, same(a.Merge(b), b.Merge(a)))
		require.True(t, same(a.Merge(b).Merge(c), a.Merge(b.Merge(c))))
		require.True(t, same(a.Merge(a), a))
		order := a.Compare(b)
		require.Equal(t, order == Same || order == After, same(a.Merge(b), a))
		require.Equal(t, order == Same || order == Before, same(a.Merge(b), b))
		require.Equal(t, After, a.Bump(node(1)).Compare(a))
	})
}

func TestClockCodec(t *testing.T) {
	c := clock(1, 2, 2)
	b := AppendClock(nil, c)
	require.Equal(t, "02"+"040a000001bb1c0100000000000000"+"01"+"040a000002bb1c0200000000000000"+"02",
		fmt.Sprintf("%x", b))
	r := wire.NewReader(wire.KindVersion, b)
	require.Equal(t, c, ReadClock(&r, 10))
	require.NoError(t, r.Done())
	for n := range b {
		r := wire.NewReader(wire.KindVersion, b[:n])
		ReadClock(&r, 10)
		require.ErrorIs(t, r.Err(), wire.ErrTruncated, n)
	}
	for _, bad := range []struct {
		body []byte
		err  error
	}{
		{append([]byte{1}, append(peer.AppendID(nil, node(1)), 0)...), wire.ErrBadValue},
		{AppendClock(nil, Clock{{node(2), 1}, {node(1), 1}}), wire.ErrBadOrder},
		{AppendClock(nil, Clock{{node(2), 1}, {node(2), 1}}), wire.ErrBadOrder},
		{AppendClock(nil, clock(1, 2, 3)), wire.ErrTooLarge},
	} {
		r := wire.NewReader(wire.KindVersion, bad.body)
		require.Empty(t, ReadClock(&r, 2))
		require.ErrorIs(t, r.Err(), bad.err)
	}
}

func FuzzClock(f *testing.F) {
	f.Add(AppendClock(nil, clock(1, 2, 2)))
	f.Add([]byte{0})
	f.Add([]byte{255, 255, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		r := wire.NewReader(wire.KindVersion, b)
		c := ReadClock(&r, 100)
		if r.Done() != nil {
			return
		}
		again := wire.NewReader(wire.KindVersion, AppendClock(nil, c))
		require.Equal(t, Same, c.Compare(ReadClock(&again, 100)))
	})
}

// FuzzSeen: a set that is accepted encodes to the same bytes and has no one beyond its members.
func FuzzSeen(f *testing.F) {
	f.Add([]byte{5}, uint16(3))
	f.Add([]byte{255, 1}, uint16(9))
	f.Add([]byte{255, 2}, uint16(9))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		before := spent.Bytes()
		defer func() { spent.Within(t, before, 64*len(b)) }()
		r := wire.NewReader(wire.KindSeen, b)
		s := ReadSeen(&r, int(n))
		if r.Done() != nil {
			return
		}
		require.LessOrEqual(t, s.Count(), int(n))
		require.Equal(t, string(b), string(AppendSeen(nil, s)))
	})
}
