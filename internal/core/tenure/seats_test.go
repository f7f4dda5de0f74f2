// Tests of the list of seats: which member gets one, in which order, and its bytes.

package tenure

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// ups returns members that are Up; a negative number is one that is Down.
func ups(all ...int) (some []Member) {
	for _, n := range all {
		m := Member{ID: id(max(n, -n)), Up: true, Down: n < 0}
		some = append(some, m)
	}
	slices.SortFunc(some, func(a, b Member) int { return a.ID.Compare(b.ID) })
	return some
}

func next(t *testing.T, s Seats, members []Member) Seats {
	n, ok := s.Next(id(1), 3, members, s.Number == 0)
	require.True(t, ok)
	require.Equal(t, s.Number+1, n.Number)
	require.True(t, n.Newer(s))
	return n
}

func still(t *testing.T, s Seats, members []Member) {
	_, ok := s.Next(id(1), 3, members, false)
	require.False(t, ok)
}

// TestFirstList: the first list fills a quorum of the seats at once, and the others as members come (MEM-10).
func TestFirstList(t *testing.T) {
	still(t, Seats{}, ups(1))
	s := next(t, Seats{}, ups(1, 2))
	require.Equal(t, list(1, 1, 2, 0), s)
	still(t, s, ups(1, 2))
	s = next(t, s, ups(1, 2, 3))
	require.Equal(t, list(2, 1, 2, 3), s)
	still(t, s, ups(1, 2, 3, 4))
}

// TestFoundedWhenAllHaveEnded: an electorate is founded, and founded anew, in one step, when all that are lost have
// ended (ended-before-refounding).
func TestFoundedWhenAllHaveEnded(t *testing.T) {
	_, ok := Seats{}.Next(id(1), 3, ups(1, 2, -3), false)
	require.False(t, ok)
	s, ok := list(4, 1, 2, 3).Next(id(1), 3, ups(1, -2, -3, 4, 5), true)
	require.True(t, ok)
	require.Equal(t, list(5, 1, 4, 5), s)
	_, ok = list(4, 1, 2, 3).Next(id(1), 3, ups(1, -2, -3), true)
	require.False(t, ok, "one is no quorum")
	s, ok = list(4, 1, 2, 3).Next(id(1), 3, ups(1, 2, -3, 4), true)
	require.True(t, ok)
	require.Equal(t, list(5, 1, 2, 0), s, "a quorum is left: it is emptied first")
}

// TestEmptiedFirst: a seat is emptied in one list and filled in a later one (emptied-first), and a quorum stays
// (quorum-stays).
func TestEmptiedFirst(t *testing.T) {
	s := next(t, list(1, 1, 2, 3), ups(1, 2, -3, 4))
	require.Equal(t, list(2, 1, 2, 0), s)
	s = next(t, s, ups(1, 2, 4))
	require.Equal(t, list(3, 1, 2, 4), s)
	still(t, list(1, 1, 2, 3), ups(1, -2, -3, 4, 5))
	still(t, list(2, 1, 2, 0), ups(1, -2, 4, 5))
	require.Equal(t, list(2, 1, 2, 0), next(t, list(1, 1, 2, 3), ups(1, 2, 4)), "3 was removed")
}

// TestLeaversMove: the seat of a leaver moves while a quorum stays and somebody else can have it; the leader's own does
// not.
func TestLeaversMove(t *testing.T) {
	m := ups(1, 2, 3, 4, 5)
	m[1].Leaving, m[2].Leaving = true, true
	s := next(t, list(1, 1, 2, 3), m)
	require.Equal(t, list(2, 1, 0, 3), s)
	s = next(t, s, m)
	require.Equal(t, list(3, 1, 4, 3), s)
	s = next(t, next(t, s, m), m)
	require.Equal(t, list(5, 1, 4, 5), s)
	still(t, s, m)
	m[0].Leaving = true
	still(t, s, m)
	alone := ups(1, 2, 3)
	alone[1].Leaving = true
	still(t, list(1, 1, 2, 3), alone)
}

// TestZones: seats go to as many zones as there are.
func TestZones(t *testing.T) {
	m := ups(1, 2, 3, 4, 5)
	for i, z := range []string{"a", "a", "a", "b", "c"} {
		m[i].Zone = z
	}
	require.Equal(t, list(1, 1, 4, 5), next(t, Seats{}, m))
	m[4].Up = false
	require.Equal(t, list(1, 1, 4, 2), next(t, Seats{}, m))
}

// TestSeatsBytes: what is read is what was written; nothing configured costs two bytes; a list that no leader writes is
// refused.
func TestSeatsBytes(t *testing.T) {
	require.Len(t, AppendSeats(nil, Seats{}), 2)
	read := func(b []byte) (Seats, error) {
		r := wire.NewReader(0, b)
		s := ReadSeats(&r)
		return s, r.Done()
	}
	for _, s := range []Seats{{}, list(1, 1, 2, 3), list(MaxNumber, 1, 2, 0), list(7, 1, 2, 3, 4, 5)} {
		b := AppendSeats(nil, s)
		got, err := read(b)
		require.NoError(t, err)
		require.Equal(t, s, got)
		for n := range b {
			_, err = read(b[:n])
			require.Error(t, err)
		}
	}
	nobody := list(1, 1, 2, 3)
	nobody.Writer = peer.ID{}
	for name, s := range map[string]Seats{"twice": list(1, 1, 1, 2), "no quorum": list(1, 1, 0, 0), "even": list(1, 1, 2),
		"nobody's": nobody} {
		_, err := read(AppendSeats(nil, s))
		require.Error(t, err, name)
	}
	_, err := read([]byte{0, 3})
	require.Error(t, err)
}

// FuzzSeats: whatever comes, nothing panics, and what is read is written as it came.
func FuzzSeats(f *testing.F) {
	f.Add([]byte{0, 0})
	f.Add(AppendSeats(nil, list(7, 1, 2, 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(0, b)
		s := ReadSeats(&r)
		if r.Done() != nil {
			return
		}
		r = wire.NewReader(0, AppendSeats(nil, s))
		require.Equal(t, s, ReadSeats(&r))
		require.NoError(t, r.Done())
	})
}
