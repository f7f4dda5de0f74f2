// Tests of the statuses of a member and of application versions (MEM-2).

package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// MEM-2, reference 1.4: which status may follow which in one step.
func TestTransitions(t *testing.T) {
	all := map[Status]string{
		Joining:              "weakly-up up leaving down removed",
		WeaklyUp:             "up leaving down removed",
		Up:                   "leaving down removed preparing-for-shutdown",
		Leaving:              "exiting down removed",
		Exiting:              "down removed",
		Down:                 "removed",
		Removed:              "",
		PreparingForShutdown: "leaving down removed ready-for-shutdown",
		ReadyForShutdown:     "leaving down removed",
	}
	require.Len(t, all, int(ReadyForShutdown)+1)
	for from, want := range all {
		for to := Joining; to <= ReadyForShutdown; to++ {
			allowed := strings.Contains(" "+want+" ", " "+to.String()+" ")
			require.Equal(t, allowed, from.CanBecome(to), "%s to %s", from, to)
			if allowed {
				require.Less(t, from.Rank(), to.Rank(), "%s to %s: the merge must not undo a step (Q4)", from, to)
			}
		}
	}
	require.Equal(t, "status-9", Status(9).String())
	require.Equal(t, "cause-99", Cause(99).String())
	for s := Joining; s <= ReadyForShutdown; s++ {
		counts := strings.Fields("up leaving preparing-for-shutdown ready-for-shutdown")
		require.Equal(t, slices.Contains(counts, s.String()), s.Counts(), "%s", s)
	}
}

func TestCompareVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"1.2.3", "1.2.3", 0}, {"1.2", "1.2.0", 0}, {"1", "1.0.0", 0},
		{"1.2.3", "1.2.4", -1}, {"1.2.9", "1.2.10", -1}, {"1.9", "1.10", -1}, {"2", "10", -1},
		{"1.2.3-RC1", "1.2.3", -1}, {"1.2.3-RC1", "1.2.3-RC2", -1}, {"1.2.3-M1", "1.2.3-RC1", -1},
		{"1.2.3+3-73475dce", "1.2.3+10-73475dce", -1}, {"1.2.3", "1.2.3+1-73475dce", -1},
		{"1.2.3-14-gabc", "1.2.3-2-gabc", 1}, {"1.2.3-RC1", "1.2.3+1-abc", -1},
		{"apple", "banana", -1}, {"banana", "1.0", -1}, {"", "0", -1}, {"", "", 0}, {"1.2.3.4", "0", -1},
		{"1.x.3", "1.2.3.4", 1},
	} {
		require.Equal(t, c.want, CompareVersions(c.a, c.b), "%q and %q", c.a, c.b)
		require.Equal(t, -c.want, CompareVersions(c.b, c.a), "%q and %q", c.b, c.a)
	}
	for _, bad := range []string{"", "1.2.3.4", "1.x", "1..2", strings.Repeat("1", 65), "1.-3"} {
		require.Error(t, CheckVersion(bad), bad)
	}
	for _, good := range []string{"1", "v1", "1.2.3-x.y.z", "1.2.3+5-abcd", "nightly"} {
		require.NoError(t, CheckVersion(good), good)
	}
}

// FuzzAppVersion: any text is a version or an error, and the order of versions is one.
func FuzzAppVersion(f *testing.F) {
	for _, s := range []string{"1.2.3", "1.2.3-4", "1.2.3-4-gabc", "1.2-rc1", "main", "", "1.2.3.4", "1..2", "+",
		"9999999999999999999"} {
		f.Add(s, "1.2")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		require.Zero(t, CompareVersions(a, a))
		require.Equal(t, CompareVersions(a, b), -CompareVersions(b, a))
		require.False(t, CheckVersion(a) == nil && len(a) > MaxAppVersion)
	})
}
