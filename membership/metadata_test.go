// Tests of the metadata (MEM-12).

package membership

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	require.ErrorIs(t, New(nid("a"), Config{}, nil).Do(0, SetMetadataCommand{"k", nil}), ErrNotMember)
}
