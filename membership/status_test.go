// Tests of the steps of a member, of who downed one, and of the metadata (MEM-2, MEM-12).

package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kith-io/kith/cluster"
	"github.com/stretchr/testify/require"
)

// A state lets a member take the allowed steps and no others (MEM-2).
func TestStepsOfAMember(t *testing.T) {
	for from := cluster.Joining; from.Known(); from++ {
		for to := cluster.Joining; to.Known(); to++ {
			s := newState(version{members: []cluster.Member{{ID: nid("a"), Status: from}}})
			s.setStatus(nid("a"), to)
			require.Equal(t, from.CanBecome(to), from != s.members[0].Status, "%s to %s", from, to)
		}
	}
}

// Of two who downed a member at once one is named, everywhere the same, and a tombstone remembers it.
func TestWhoDowned(t *testing.T) {
	s := stateOf([]string{"a up", "b up", "c up"}, "abc")
	x, y := s.draft(), s.draft()
	x.setDown(nid("c"), nid("a"), cluster.CauseOperator)
	y.setDown(nid("c"), nid("b"), cluster.CauseResolver)
	x.setDown(nid("c"), nid("b"), cluster.CauseLease)
	require.Equal(t, nid("a"), x.members[2].By, "the first verdict stays")
	both := mergeStates(x.commit(nid("a")), y.commit(nid("b")))
	require.Equal(t, cluster.CauseResolver, both.members[2].Cause)
	require.Equal(t, nid("b"), both.members[2].By)
	d := both.draft()
	d.remove(nid("c"))
	require.Equal(t, []tombstone{{nid("c"), cluster.Down, cluster.CauseResolver, nid("b")}}, d.tombs)
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
	for i := range cluster.MaxMetadata {
		d, _ = d.with(fmt.Sprintf("key%02d", i), "v", nid("a"))
	}
	_, err := d.with("more", "v", nid("a"))
	require.ErrorIs(t, err, cluster.ErrMetadataFull)
	other, _ := metadata(nil).with("a", "v", nid("b"))
	require.Len(t, d.merge(other), cluster.MaxMetadata)
	require.Equal(t, d.merge(other), other.merge(d))
	require.ErrorIs(t, New(nid("a"), Config{}, nil).Do(0, SetMetadataCommand{"k", nil}), ErrNotMember)
}
