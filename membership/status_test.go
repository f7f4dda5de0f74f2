// Tests of the states of a member, of application versions and of the metadata (MEM-2, MEM-12).

package membership

import (
	"fmt"
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
	require.Len(t, all, int(lastStatus)+1)
	for from, want := range all {
		for to := Joining; to <= lastStatus; to++ {
			allowed := strings.Contains(" "+want+" ", " "+to.String()+" ")
			require.Equal(t, allowed, from.canBecome(to), "%s to %s", from, to)
			if allowed {
				require.Less(t, from.Rank(), to.Rank(), "%s to %s: the merge must not undo a step (Q4)", from, to)
			}
			s := newState(version{members: []Member{{ID: nid("a"), Status: from}}})
			s.setStatus(nid("a"), to)
			require.Equal(t, allowed, from != s.members[0].Status, "%s to %s", from, to)
		}
	}
	require.Equal(t, "status-9", Status(9).String())
	require.Equal(t, "cause-99", Cause(99).String())
	for s := Joining; s <= lastStatus; s++ {
		counts := strings.Fields("up leaving preparing-for-shutdown ready-for-shutdown")
		require.Equal(t, slices.Contains(counts, s.String()), s.counts(), "%s", s)
	}
}

// Of two who downed a member at once one is named, everywhere the same, and a tombstone remembers it.
func TestWhoDowned(t *testing.T) {
	s := stateOf([]string{"a up", "b up", "c up"}, "abc")
	x, y := s.draft(), s.draft()
	x.setDown(nid("c"), nid("a"), CauseOperator)
	y.setDown(nid("c"), nid("b"), CauseResolver)
	x.setDown(nid("c"), nid("b"), CauseLease)
	require.Equal(t, nid("a"), x.members[2].By, "the first verdict stays")
	both := mergeStates(x.commit(nid("a")), y.commit(nid("b")))
	require.Equal(t, CauseResolver, both.members[2].Cause)
	require.Equal(t, nid("b"), both.members[2].By)
	d := both.draft()
	d.remove(nid("c"))
	require.Equal(t, []tombstone{{nid("c"), Down, CauseResolver, nid("b")}}, d.tombs)
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
		if bad != "" {
			require.Error(t, Config{AppVersion: bad}.Validate(), bad)
		}
	}
	for _, good := range []string{"1", "v1", "1.2.3-x.y.z", "1.2.3+5-abcd", "nightly"} {
		require.NoError(t, Config{AppVersion: good}.Validate(), good)
	}
}

// MEM-12: the last writer wins, deleted keys do not come back, everything is bounded.
func TestMetadata(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.AppVersion = "1.4"
	all := w.cluster(3)
	w.do(all[0], SetMetadataCommand{"schema", []byte("7")})
	w.do(all[2], SetMetadataCommand{"schema", []byte("8")})
	w.do(all[1], SetMetadataCommand{"mode", []byte("x")})
	w.until(5e9, "the same state everywhere", w.settled)
	for _, a := range all {
		require.Equal(t, all[0].view.Metadata, a.view.Metadata)
		require.Len(t, a.view.Metadata, 2)
		require.Equal(t, "1.4", a.view.Members[2].AppVersion)
	}
	for _, a := range all {
		require.Contains(t, kindsOf(a.events), MetadataChanged)
	}
	w.do(all[1], SetMetadataCommand{"schema", nil})
	w.until(5e9, "deleted everywhere", func() bool {
		_, ok := all[0].view.MetadataValue("schema")
		v, mode := all[2].view.MetadataValue("mode")
		return !ok && mode && string(v) == "x" && w.settled()
	})
	before := all[0].m.st
	w.do(all[0], SetMetadataCommand{"mode", []byte("x")})
	w.do(all[0], SetMetadataCommand{"schema", nil})
	w.do(all[0], SetMetadataCommand{"none", nil})
	require.Same(t, before, all[0].m.st, "nothing changed")

	for _, c := range []SetMetadataCommand{{"", nil}, {strings.Repeat("k", 65), nil}, {"k", make([]byte, 1025)}} {
		require.ErrorIs(t, all[0].m.Do(w.now, c), ErrBadMetadata)
	}
	var d metadata
	for i := range MaxMetadata {
		d, _ = d.with(fmt.Sprintf("key%02d", i), "v", nid("a"))
	}
	_, err := d.with("more", "v", nid("a"))
	require.ErrorIs(t, err, ErrMetadataFull)
	other, _ := metadata(nil).with("a", "v", nid("b"))
	require.Len(t, d.merge(other), MaxMetadata)
	require.Equal(t, d.merge(other), other.merge(d))
	require.ErrorIs(t, New(nid("a"), Config{}, nil).Do(0, SetMetadataCommand{"k", nil}), ErrNotMember)
}
