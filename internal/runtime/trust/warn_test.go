// Tests of warnings about files (SEC-1).

package trust

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key that others can read is warned of; one that is somebody else's, and this process's by its group alone, as pods
// and units are given theirs, is not.
func TestKeysThatOthersCanRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	warned := func(mode os.FileMode) bool {
		require.NoError(t, os.Chmod(file, mode))
		var text bytes.Buffer
		(&Store{cfg: TLS{KeyFile: file}}).CheckKeyFile(slog.New(slog.NewTextHandler(&text, nil)))
		return text.Len() > 0
	}
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o440: true, 0o604: true,
		0o620: true} {
		require.Equal(t, want, warned(mode), "its own, %v", mode)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	require.NoError(t, os.Chown(file, 12345, 12345))
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o440: false, 0o460: true, 0o444: true,
		0o644: true} {
		require.Equal(t, want, warned(mode), "another's, %v", mode)
	}
}
