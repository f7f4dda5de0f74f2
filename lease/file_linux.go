// File on Linux: flock, and the time since the kernel started, sleeps counted.

package lease

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/internal/base/life"
)

// open opens a file without following a link, and refuses what is none of this user's on a file system of this machine.
func open(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := life.Own(int(file.Fd())); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return file, nil
}

// lockDir takes the lock of a directory; nil: somebody else has it. The kernel gives it up with the process.
func lockDir(dir string) (free func(), err error) {
	file, err := open(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return func() { _ = file.Close() }, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return nil, file.Close()
	default:
		return nil, errors.Join(fmt.Errorf("%s: %w", file.Name(), err), file.Close())
	}
}

// readSmall reads a file of at most so many bytes.
func readSmall(path string, most int64) ([]byte, error) {
	file, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// sinceBoot names this start of the machine, and says how long ago it was.
func sinceBoot() (boot string, now time.Duration, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, err
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(string(text)), time.Duration(t.Nano()), nil
}
