// Tests of the lock by which a process proves the one before it dead (AVL-5, SHD-9).

package life

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// lived makes a file in a new directory that names an incarnation that is over, and returns its path.
func lived(t *testing.T, addr string, inc uint64) string {
	path := filepath.Join(t.TempDir(), fileName)
	l, dead, err := Take(path, addr, inc)
	require.NoError(t, err)
	require.Zero(t, dead)
	l.Release(false)
	return path
}

const at1 = "10.0.0.1:1"

// A node that gets the lock knows the end of the last one that held it, each of the one before it. While somebody holds
// it nobody else gets it, and the file says what it said.
func TestLifeProvesTheLastOne(t *testing.T) {
	path := lived(t, at1, 7)
	l, dead, err := Take(path, at1, 8)
	require.NoError(t, err)
	require.Equal(t, uint64(7), dead)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	_, dead, err = Take(path, at1, 9)
	require.ErrorIs(t, err, unix.EWOULDBLOCK)
	require.Zero(t, dead)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	l.Release(false)
	l, dead, err = Take(path, at1, 10)
	require.NoError(t, err)
	require.Equal(t, uint64(8), dead)
	l.Release(true)
	require.NoFileExists(t, path)
}

// Nothing is proven at another address, after another boot, by a copy of the file, or by one that is damaged.
func TestLifeProvesNothing(t *testing.T) {
	change := func(from, to string) func(*testing.T, string) string {
		return func(t *testing.T, path string) string {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			f := strings.Fields(string(text))
			place := strings.ReplaceAll(f[2]+" "+f[3], strings.NewReplacer("BOOT", f[2]).Replace(from), to)
			require.NoError(t, os.WriteFile(path, []byte(textOf(at1, 7, place)), 0o600))
			return path
		}
	}
	copied := func(t *testing.T, path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path+"2", text, 0o600))
		return path + "2"
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, string) string
		port  string
	}{
		"another address": {nil, "2"}, "another boot": {change("BOOT", "0b0e8a3c-0000-4000-8000-000000000000"), "1"},
		"a copy":    {copied, "1"},
		"truncated": {func(t *testing.T, path string) string { require.NoError(t, os.Truncate(path, 20)); return path }, "1"},
		"empty":     {func(t *testing.T, path string) string { require.NoError(t, os.Truncate(path, 0)); return path }, "1"},
		"damaged": {func(t *testing.T, path string) string {
			text, _ := os.ReadFile(path)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), " 7 ", " 6 ", 1)), 0o600))
			return path
		}, "1"},
	} {
		path := lived(t, at1, 7)
		if c.spoil != nil {
			path = c.spoil(t, path)
		}
		l, dead, err := Take(path, "10.0.0.1:"+c.port, 8)
		require.NoError(t, err, name)
		require.Zero(t, dead, name)
		l.Release(false)
	}
	path := lived(t, at1, 7)
	l, dead, err := Take(change("BOOT", bootOf(t))(t, path), at1, 8)
	require.NoError(t, err)
	require.Equal(t, uint64(7), dead, "what the table changes is what counts")
	l.Release(false)
}

func bootOf(t *testing.T) string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}

// A link, what is no file, a file that others may write, a second name of one, and file systems of other machines are
// no place for the lock.
func TestLifeOnlyInAFileOfOnesOwn(t *testing.T) {
	for name, make := range map[string]func(path, target string) error{
		"link":      func(path, target string) error { return os.Symlink(target, path) },
		"dangling":  func(path, target string) error { return os.Symlink(target+"?", path) },
		"second":    func(path, target string) error { return os.Link(target, path) },
		"pipe":      func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"open": func(path, _ string) error {
			return os.WriteFile(path, nil, 0o600)
		},
	} {
		target := lived(t, at1, 7)
		path := target + "-" + name
		require.NoError(t, make(path, target))
		if name == "open" {
			require.NoError(t, os.Chmod(path, 0o666))
		}
		_, dead, err := Take(path, at1, 8)
		require.Error(t, err, name)
		require.Zero(t, dead, name)
	}
	_, _, err := Take("/proc/self/mem", at1, 8) // a regular file of this user alone
	require.ErrorContains(t, err, "file system 9fa0")
	require.NotContains(t, local, int64(0x6969), "NFS")
	require.NotContains(t, local, int64(0x65735546), "FUSE")
}

// Where the lock is: in the node's directory, else among the temporary files, by address and cluster.
func TestPath(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	require.Equal(t, "/d/life", Path("/d", at1, "a"))
	one := Path("", at1, "a")
	info, err := os.Stat(filepath.Dir(one))
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o700, info.Mode())
	require.NotEqual(t, one, Path("", at1, "b"))
	require.NotEqual(t, one, Path("", "10.0.0.1:2", "a"))
}

// A link in place of the directory among the temporary files, which anybody may put there, leads nowhere.
func TestPathFollowsNoLink(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	elsewhere := t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(os.TempDir(), "kith-"+strconv.Itoa(os.Geteuid()))))
	_, _, err := Take(Path("", at1, "a"), at1, 7)
	require.ErrorIs(t, err, os.ErrNotExist)
	made, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, made)
}
