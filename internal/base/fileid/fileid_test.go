// Test of the names of files.

package fileid

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file keeps its name when it is renamed, written to, or opened again; a copy has another one, and so has a file that
// took its place (AVL-3).
func TestNames(t *testing.T) {
	at := filepath.Join(t.TempDir(), "lock")
	of := func() string {
		f, err := os.OpenFile(at, os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.WriteString("x")
		require.NoError(t, err)
		return Of(f)
	}
	first := of()
	if first == "" {
		t.Skip("this file system does not say when a file was made")
	}
	require.Equal(t, first, of())
	was := at
	at = filepath.Join(t.TempDir(), "copy")
	require.NotEqual(t, first, of())
	require.NoError(t, os.Rename(was, at))
	require.Equal(t, first, of())
	require.NoError(t, os.Remove(at))
	require.NotEqual(t, first, of())
}
