// Life on Linux: flock, on file systems where it is the kernel's word alone.

package life

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// local are the file systems, as statfs names them, with locks that no other machine grants: ext2 to 4, xfs, btrfs,
// tmpfs, overlay, zfs, f2fs and bcachefs.
var local = []int64{0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1, 0xf2f52010, 0xca451a4e}

// Lock is an open file of which this process holds the lock. It is a bare descriptor, which no collector closes.
type Lock struct {
	fd   int
	path string
}

// Take takes the lock of the file at path, has the file name incarnation inc at addr, and returns the incarnation at
// addr that it named before, which is over; zero: nothing is known of one. With an error and a lock, dead is true all
// the same, but nothing will prove the end of this one. The error of a lock that is held is unix.EWOULDBLOCK.
func Take(path, addr string, inc uint64) (l *Lock, dead uint64, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, 0, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, 0, err
	}
	l = &Lock{fd, path}
	s, err := l.lock()
	if err != nil {
		return nil, 0, errors.Join(err, unix.Close(fd))
	}
	place := placeOf(string(boot), &s)
	var text [most]byte
	n, _ := unix.Pread(fd, text[:], 0) // what cannot be read names nobody
	dead = incarnation(string(text[:max(n, 0)]), addr, place)
	// A process that dies in between leaves a text that names nobody, and has owned nothing yet.
	if err = unix.Ftruncate(fd, 0); err == nil {
		_, err = unix.Pwrite(fd, []byte(textOf(addr, inc, place)), 0)
	}
	return l, dead, err
}

// placeOf names the very file, under the boot of the machine: a copy, and a file from before, are none of this name.
func placeOf(boot string, s *unix.Stat_t) string {
	return fmt.Sprintf("%s %x:%x", strings.TrimSpace(boot), s.Dev, s.Ino)
}

// lock takes the lock, of a file of this user's own.
func (l *Lock) lock() (s unix.Stat_t, err error) {
	if s, err = own(l.fd); err != nil {
		return s, err
	}
	return s, unix.Flock(l.fd, unix.LOCK_EX|unix.LOCK_NB)
}

// Own returns an error unless an open file is a regular one of this user alone, on a file system with locks that no
// other machine grants.
func Own(fd int) error {
	_, err := own(fd)
	return err
}

func own(fd int) (s unix.Stat_t, err error) {
	var fs unix.Statfs_t
	if err = errors.Join(unix.Fstat(fd, &s), unix.Fstatfs(fd, &fs)); err != nil {
		return s, err
	}
	switch {
	case s.Mode&unix.S_IFMT != unix.S_IFREG || s.Mode&0o077 != 0 || s.Nlink != 1 || int(s.Uid) != os.Geteuid():
		return s, errors.New("it is not a file of this user alone")
	case !slices.Contains(local, int64(uint32(fs.Type))):
		return s, fmt.Errorf("file system %x, whose locks may be another machine's word", fs.Type)
	}
	return s, nil
}

// Release gives the lock up, and removes the file first if that is wanted. It may be called once.
func (l *Lock) Release(remove bool) {
	if remove {
		_ = unix.Unlink(l.path) // one that stays is used again
	}
	_ = unix.Close(l.fd)
}
