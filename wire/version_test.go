// Tests of versions: what two ranges choose, the text of refusals, and since when each kind exists.

package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A build speaks its own version and those before, no more and no less (CARD-3).
func TestSpoken(t *testing.T) {
	v := Spoken()
	require.True(t, v.Valid())
	require.EqualValues(t, Version, v.Newest)
	require.EqualValues(t, 12, Version)
	require.EqualValues(t, 1, v.Oldest)
}

func TestCommonVersion(t *testing.T) {
	for _, c := range []struct {
		a, b Versions
		want uint16
		ok   bool
	}{
		{Versions{2, 1}, Versions{2, 1}, 2, true},
		{Versions{2, 1}, Versions{1, 1}, 1, true},
		{Versions{2, 1}, Versions{3, 2}, 2, true},
		{Versions{2, 1}, Versions{4, 3}, 2, false},
		{Versions{3, 2}, Versions{1, 1}, 1, false},
		{Versions{9, 1}, Versions{5, 4}, 5, true},
	} {
		for range 2 {
			got, ok := c.a.Common(c.b)
			require.Equal(t, []any{c.want, c.ok}, []any{got, ok}, "%v and %v", c.a, c.b)
			c.a, c.b = c.b, c.a
		}
	}
}

func TestVersionsText(t *testing.T) {
	require.Equal(t, "1-2", Versions{Newest: 2, Oldest: 1}.String())
	require.Equal(t, "7", Versions{Newest: 7, Oldest: 7}.String())
	for _, bad := range []string{"", "x", "-", "1-", "-2", "2-1", "0", "0-1", "70000", "1-70000", "1-2-3", " 1"} {
		_, ok := ParseVersions(bad)
		require.False(t, ok, bad)
	}
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Uint16Range(1, 1<<16-1).Draw(t, "oldest")
		v := Versions{Newest: rapid.Uint16Range(lo, 1<<16-1).Draw(t, "newest"), Oldest: lo}
		back, ok := ParseVersions(v.String())
		require.True(t, ok)
		require.Equal(t, v, back)
	})
}

// versionOne is every kind that version 1 knew. It never changes: a peer of that version closes a connection that
// brings another one.
var versionOne = [][2]Kind{{1, 7}, {16, 18}, {32, 44}, {64, 81}}

// A kind that version 1 did not know says in kindSince when it came, no later than the version of this build; an
// unknown one says nothing.
func TestKindsSince(t *testing.T) {
	old := func(k Kind) bool {
		for _, r := range versionOne {
			if k >= r[0] && k <= r[1] {
				return true
			}
		}
		return false
	}
	for n := range 256 {
		k := Kind(n)
		switch {
		case !k.Known():
			require.Zero(t, k.Since(), k)
			require.Zero(t, kindSince[k], "kind %d is not in the table of kinds", n)
		case old(k):
			require.EqualValues(t, 1, k.Since(), k)
		default:
			require.GreaterOrEqual(t, k.Since(), uint16(2), "%s needs a row in kindSince", k)
			require.LessOrEqual(t, k.Since(), uint16(Version), k)
		}
	}
	require.EqualValues(t, 1, LaneControl.Since())
	require.EqualValues(t, 1, LaneData.Since())
	require.EqualValues(t, 2, (LaneData + 1).Since())
}

// FuzzVersions: a range that is accepted is valid, and is read again from what it prints.
func FuzzVersions(f *testing.F) {
	for _, s := range []string{"1", "1-2", "2-1", "0", "-", "1-2-3", "65536", "+1", "1-", " 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := ParseVersions(s)
		if !ok {
			return
		}
		require.True(t, v.Valid())
		again, ok := ParseVersions(v.String())
		require.True(t, ok)
		require.Equal(t, v, again)
	})
}
