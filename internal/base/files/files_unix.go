// How files are opened where the system is a Unix.

//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	nonBlock = unix.O_NONBLOCK
	noFollow = unix.O_NOFOLLOW
)

// SyncDirectory writes the names in a directory to the disk.
func SyncDirectory(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Usable returns why files cannot be made in a directory, or in the one that it would be made in; nil when they can. It
// makes none.
func Usable(dir string) error {
	info, err := os.Stat(dir)
	for errors.Is(err, os.ErrNotExist) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err == nil {
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	if p := (*os.PathError)(nil); err == nil || errors.As(err, &p) {
		return err
	}
	return &os.PathError{Op: "use", Path: dir, Err: err}
}
