// Laws of every type: copies that changed apart become equal, and a delta does what its state does.

package replicated_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/replicated"
	"github.com/kith-io/kith/replicated/replicatedtest"
)

type (
	words    = replicated.ORSet[string]
	counters = replicated.ORMap[string, replicated.PNCounter]
)

var letters = []string{"a", "b", "c", "d", ""}

func letter(r *rand.Rand) string { return letters[r.IntN(len(letters))] }

// Every type keeps the laws (REP-1).
func TestLaws(t *testing.T) {
	t.Parallel()
	run(t, "counter", replicated.GCounter{}, func(r *rand.Rand, c replicated.GCounter, me peer.ID) replicated.GCounter {
		return c.Add(me, r.Uint64N(5))
	})
	run(t, "up-down-counter", replicated.PNCounter{},
		func(r *rand.Rand, c replicated.PNCounter, me peer.ID) replicated.PNCounter {
			return c.Add(me, r.Int64N(9)-4)
		})
	run(t, "set", replicated.GSet[int]{}, func(r *rand.Rand, s replicated.GSet[int], _ peer.ID) replicated.GSet[int] {
		return s.Add(r.IntN(9), r.IntN(9))
	})
	run(t, "observed-remove set", words{}, func(r *rand.Rand, s words, me peer.ID) words {
		if r.IntN(3) == 0 {
			return s.Remove(letter(r), letter(r))
		}
		return s.Add(me, letter(r), letter(r)).Remove(letter(r))
	})
	run(t, "last-write register", replicated.LWWRegister[string]{},
		func(r *rand.Rand, l replicated.LWWRegister[string], me peer.ID) replicated.LWWRegister[string] {
			return l.Set(me, time.Unix(0, r.Int64N(20)), letter(r))
		})
	run(t, "multi-value register", replicated.MVRegister[[]byte]{},
		func(r *rand.Rand, m replicated.MVRegister[[]byte], me peer.ID) replicated.MVRegister[[]byte] {
			return m.Set(me, []byte(letter(r)))
		})
	run(t, "map", counters{}, func(r *rand.Rand, m counters, me peer.ID) counters {
		if r.IntN(3) == 0 {
			return m.Remove(letter(r))
		}
		return m.Update(me, letter(r), func(c replicated.PNCounter) replicated.PNCounter { return c.Add(me, 1) })
	})
}

func run[V replicated.Value[V]](t *testing.T, name string, zero V, change func(*rand.Rand, V, peer.ID) V) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		replicatedtest.Laws(t, 1, zero, change)
	})
}

// broken is a value that breaks a law: its merge takes sides.
type broken struct{ replicated.GCounter }

func (b broken) Merge(o broken) broken { return o }
func (b broken) Since(broken) broken   { return b }
func (b broken) Fold(peer.ID) broken   { return b }
func (b broken) Parse(text []byte) (broken, error) {
	c, err := b.GCounter.Parse(text)
	return broken{c}, err
}
func (b broken) add(r *rand.Rand, me peer.ID) broken { return broken{b.Add(me, 1)} }

// tells is a t that tells whether the suite fails.
type tells struct {
	testing.TB
	failed *bool
}

func (t tells) Fatalf(string, ...any) { *t.failed = true; panic(t) }
func (t tells) Helper()               {}

// The suite finds a merge that takes sides.
func TestLawsFindABrokenMerge(t *testing.T) {
	t.Parallel()
	failed := false
	require.Panics(t, func() {
		replicatedtest.Laws(tells{t, &failed}, 1, broken{},
			func(r *rand.Rand, b broken, me peer.ID) broken { return b.add(r, me) })
	})
	require.True(t, failed)
}

var a, b, c = replicatedtest.IDs[0], replicatedtest.IDs[1], replicatedtest.IDs[2]

// What each type means, by the examples that are in every paper on them.
func TestMeaning(t *testing.T) {
	t.Parallel()
	n := replicated.GCounter{}.Add(a, 3)
	require.EqualValues(t, 9, n.Add(b, 5).Merge(replicated.GCounter{}.Add(a, 4)).Value())
	require.EqualValues(t, 9, n.Add(b, 6).Fold(b).Value())
	require.EqualValues(t, -2, replicated.PNCounter{}.Add(a, 3).Add(b, -5).Value())

	s := words{}.Add(a, "u1", "u2", "u3")
	left := s.Add(b, "u1").Remove("u2", "u3")
	right := s.Add(a, "u4").Remove("u3").Add(a, "u2")
	both := left.Merge(right)
	require.Equal(t, 3, both.Len())
	require.True(t, both.Has("u1") && both.Has("u2") && both.Has("u4"), "an addition wins over a removal beside it")

	at := time.Unix(100, 0)
	first := replicated.LWWRegister[string]{}.Set(a, at, "A")
	second := replicated.LWWRegister[string]{}.Set(b, at, "B")
	v, ok := first.Merge(second).Get()
	require.True(t, ok && v == "B", "of two writes at one time that of the higher identity stands")
	v, _ = second.Set(a, at.Add(-time.Hour), "C").Get()
	require.Equal(t, "C", v, "a clock that goes back does not lose to what it replaces")

	m := replicated.MVRegister[string]{}.Set(a, "x")
	require.Equal(t, []string{"y", "z"}, m.Set(a, "y").Merge(m.Set(b, "z")).Get())
	require.Equal(t, []string{"w"}, m.Set(a, "y").Merge(m.Set(b, "z")).Set(c, "w").Get())

	k := counters{}.Update(a, "k", func(c replicated.PNCounter) replicated.PNCounter { return c.Add(a, 2) })
	more := k.Update(b, "k", func(c replicated.PNCounter) replicated.PNCounter { return c.Add(b, 3) })
	got, ok := k.Remove("k").Merge(more).Get("k")
	require.True(t, ok, "a change beside a removal stays")
	require.EqualValues(t, 5, got.Value())
	_, ok = k.Remove("k").Merge(k).Get("k")
	require.False(t, ok)
}

// An element that was added and removed leaves nothing but the number up to which its node has added.
func TestRemovedElementsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := words{}
	for range 1000 {
		s = s.Add(a, "x").Remove("x")
	}
	text, err := s.Append(nil)
	require.NoError(t, err)
	require.Less(t, len(text), 32)
}

// Parse refuses or takes any bytes, and what it takes it writes and reads again.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	for _, v := range []interface{ Append([]byte) ([]byte, error) }{
		replicated.GCounter{}.Add(a, 3).Add(b, 9), words{}.Add(a, "x", "y").Add(b, "z").Remove("y"),
		replicated.GSet[string]{}.Add("x", ""), replicated.LWWRegister[string]{}.Set(a, time.Unix(1, 0), "v"),
		counters{}.Update(a, "k", func(c replicated.PNCounter) replicated.PNCounter { return c.Add(a, -2) }),
	} {
		text, err := v.Append(nil)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		again(t, replicated.GCounter{}, text)
		again(t, replicated.PNCounter{}, text)
		again(t, replicated.GSet[string]{}, text)
		again(t, words{}, text)
		again(t, replicated.LWWRegister[string]{}, text)
		again(t, replicated.MVRegister[string]{}, text)
		again(t, counters{}, text)
	})
}

func again[V replicated.Value[V]](t *testing.T, zero V, text []byte) {
	v, err := zero.Parse(text)
	if err != nil {
		require.ErrorIs(t, err, replicated.ErrMalformed)
		return
	}
	b, err := v.Append(nil)
	require.NoError(t, err)
	back, err := zero.Parse(b)
	require.NoError(t, err)
	once, err := back.Append(nil)
	require.NoError(t, err)
	require.Equal(t, b, once)
}
