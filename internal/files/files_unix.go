// How files are opened where the system is a Unix.

//go:build unix

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	nonBlock = unix.O_NONBLOCK
	noFollow = unix.O_NOFOLLOW
)

// SyncDirectory has the names in a directory written to the disk.
func SyncDirectory(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
