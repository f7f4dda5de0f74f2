// What a Unix says of descriptors.

//go:build unix

package descriptors

import (
	"os"

	"golang.org/x/sys/unix"
)

// Limit returns how many descriptors this process may have; zero: not known.
func Limit() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return uint64(r.Cur)
}

// hold takes a descriptor. Each is opened by itself: a copy would be no help when the system as a whole has no open
// file left.
func hold() (int, error) {
	return unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func release(fd int) { _ = unix.Close(fd) }
