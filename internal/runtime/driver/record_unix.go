// One process per directory: where the system has flock.

//go:build unix

package driver

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/base/files"
)

// errLocked says that another process, or another node of this one, uses the directory.
var errLocked = errors.New("another node uses it: each needs one of its own")

// lockDirectory takes the lock file for this node until the file is closed, or the process ends.
func lockDirectory(path string) (*os.File, error) {
	f, err := files.Lock(path, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
