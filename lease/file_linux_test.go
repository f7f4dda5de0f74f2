// Tests of leases in files: the suite, and what lies in the directory that none of them wrote (MEM-10).

package lease

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/sbr/leasetest"
)

func files(t *testing.T, dir string, ttl time.Duration) *File {
	f, err := OpenFile(dir, ttl)
	require.NoError(t, err)
	return f
}

func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by it")
	open := func(t *testing.T) leasetest.Lease { return files(t, dir, 0) }
	leasetest.Run(t, open)
	leasetest.RunNames(t, open)
	leasetest.RunEnds(t, time.Second, func(t *testing.T) leasetest.Lease { return files(t, dir, time.Second) })
	require.Equal(t, DefaultTTL, files(t, dir, 0).TTL())
}

// A machine that has started again has no owners left; a record that is damaged, of another lease, a link or somebody
// else's is refused by both calls, and stays.
func TestFileOfAnotherBootOrHand(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		spoil   func(path string) error
		foreign bool
	}{
		"another boot": {func(path string) error {
			text, err := json.Marshal(record{[]byte("n"), []byte("a"), "0b0e8a3c", 1 << 62})
			require.NoError(t, err)
			return os.WriteFile(path, text, 0o600)
		}, false},
		"damaged": {func(path string) error { return os.Truncate(path, 20) }, true},
		"empty":   {func(path string) error { return os.Truncate(path, 0) }, true},
		"another name": {func(path string) error {
			text, err := json.Marshal(record{[]byte("m"), []byte("a"), "0b0e8a3c", 1 << 62})
			require.NoError(t, err)
			return os.WriteFile(path, text, 0o600)
		}, true},
		"a link": {func(path string) error {
			require.NoError(t, os.Rename(path, path+".is"))
			return os.Symlink(path+".is", path)
		}, true},
		"for everybody": {func(path string) error { return os.Chmod(path, 0o666) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := files(t, t.TempDir(), time.Hour)
			ok, err := f.Acquire(ctx, "n", "a")
			require.True(t, ok && err == nil, err)
			require.NoError(t, c.spoil(f.path("n")))
			ok, err = f.Acquire(ctx, "n", "b")
			require.Equal(t, !c.foreign, ok)
			require.Equal(t, c.foreign, err != nil)
			if c.foreign {
				require.Error(t, f.Release(ctx, "n", "a"))
			}
		})
	}
}

// TestFileChild is the process of TestFileOfAProcess: it holds the lock of a directory.
func TestFileChild(t *testing.T) {
	dir := os.Getenv("KITH_LEASE_DIR")
	if dir == "" {
		t.Skip("it is no child")
	}
	free, err := lockDir(dir)
	require.True(t, free != nil && err == nil, err)
	fmt.Println("locked")
	select {}
}

// While a process has the lock and stands still nobody gets a lease, and each call says so when its time is over. When
// it is killed the others go on.
func TestFileOfAProcess(t *testing.T) {
	f := files(t, t.TempDir(), time.Hour)
	ok, err := f.Acquire(context.Background(), "n", "a")
	require.True(t, ok && err == nil, err)
	child := exec.Command(os.Args[0], "-test.run=TestFileChild$")
	child.Env = append(os.Environ(), "KITH_LEASE_DIR="+f.dir)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "locked\n", line)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	ok, err = f.Acquire(ctx, "n", "a")
	require.False(t, ok)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, f.Release(ctx, "n", "a"), context.DeadlineExceeded)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	ok, err = f.Acquire(context.Background(), "n", "b")
	require.True(t, !ok && err == nil, err)
	ok, err = f.Acquire(context.Background(), "n", "a")
	require.True(t, ok && err == nil, err)
}

// What is no absolute directory of this user's on this machine is refused.
func TestFileRefuses(t *testing.T) {
	_, err := OpenFile("leases", 0)
	require.ErrorIs(t, err, ErrBadConfig)
	_, err = OpenFile(t.TempDir(), time.Millisecond)
	require.ErrorIs(t, err, ErrBadConfig)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err = files(t, dir, 0).Acquire(context.Background(), "n", "a")
		require.Error(t, err)
	}
	f := files(t, t.TempDir(), 0)
	_, err = f.Acquire(context.Background(), "", "a")
	require.ErrorIs(t, err, ErrBadName)
	require.ErrorIs(t, f.Release(context.Background(), "n", string(make([]byte, MaxName+1))), ErrBadName)
}
