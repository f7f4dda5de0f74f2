// Tests of files: what stands in their place, and what is read and written all the same.

//go:build unix

package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// traps are what may stand where a file is expected, by what is said of them.
func traps(t *testing.T) map[string]string {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, unix.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Symlink(at("pipe"), at("link to a pipe")))
	require.NoError(t, os.Symlink("/dev/zero", at("link to zero")))
	require.NoError(t, os.WriteFile(at("large"), make([]byte, 1001), 0o600))
	return map[string]string{"/dev/zero": "a device", "/dev/null": "a device", dir: "a directory", at("pipe"): "a pipe",
		at("link to a pipe"): "a pipe", at("link to zero"): "a device", at("large"): "more than 1000 bytes",
		at("nothing"): "no such file"}
}

// Nothing but a regular file of bounded size is read, and nobody waits for what else is there.
func TestTrapsAreRefused(t *testing.T) {
	for name, why := range traps(t) {
		_, err := Read(name, 1000)
		require.ErrorContains(t, err, why, name)
		require.ErrorContains(t, err, name)
		_, err = ReadOwn(name, 1000)
		require.Error(t, err, name)
	}
	_, err := Read("/dev/zero", 1000)
	require.ErrorIs(t, err, ErrNotRegular)
	_, err = Read("/proc/self/environ", 1)
	require.ErrorIs(t, err, ErrTooLarge, "what says that it has no bytes, too")
}

// A link is followed where a file is only read, as those of secrets are, and refused where this process writes: its
// target is as it was.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(target, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	text, err := Read(link, 1000)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	_, err = ReadOwn(link, 1000)
	require.ErrorIs(t, err, ErrLink)
	_, err = Lock(link, 0o600)
	require.ErrorIs(t, err, ErrLink)
	require.ErrorIs(t, Replace(link, []byte("yours"), 0o600), ErrLink)
	own := filepath.Join(dir, "own")
	require.NoError(t, os.Symlink(target, own+".new"))
	require.NoError(t, Replace(own, []byte("yours"), 0o600), "a link beside it goes, and is not followed")
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "dangling")))
	_, err = Lock(filepath.Join(dir, "dangling"), 0o600)
	require.ErrorIs(t, err, ErrLink)
	text, err = os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	text, err = ReadOwn(own, 1000)
	require.NoError(t, err)
	require.Equal(t, "yours", string(text))
	require.NoFileExists(t, filepath.Join(dir, "nowhere"))
}

// A file is replaced as a whole, whatever a process that died has left beside it, and gets the mode that is wanted.
func TestReplace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name+".new", []byte("half"), 0o644))
	for _, text := range []string{"a", strings.Repeat("b", 100), ""} {
		require.NoError(t, Replace(name, []byte(text), 0o600))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoFileExists(t, name+".new")
	require.NoError(t, os.Mkdir(name+".new", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(name+".new", "x"), nil, 0o600))
	require.Error(t, Replace(name, nil, 0o600), "what cannot be removed is in the way")
	lock, err := Lock(filepath.Join(t.TempDir(), "lock"), 0o600)
	require.NoError(t, err)
	require.NoError(t, lock.Close())
}

// Modes that let others in are reported.
func TestLoose(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		loose bool
	}{{file, 0o600, false}, {file, 0o640, true}, {file, 0o604, true}, {dir, 0o700, false}, {dir, 0o755, false},
		{dir, 0o777, true}, {dir, 0o777 | os.ModeSticky, false}, {dir, 0o770, true}} {
		require.NoError(t, os.Chmod(c.name, c.mode))
		_, loose := Loose(c.name)
		require.Equal(t, c.loose, loose, "%s %v", c.name, c.mode)
	}
	_, loose := Loose(filepath.Join(dir, "nothing"))
	require.False(t, loose)
}
