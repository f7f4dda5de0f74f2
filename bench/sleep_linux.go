// Sleeping to within microseconds, on Linux.

package bench

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper sleeps as exactly as the kernel wakes a thread: some tens of microseconds late. It waits for a timer of the
// kernel in Go's poller: a goroutine that slept in a system call of its own would keep a processor of Go from all
// others until the runtime notices. Not for concurrent use.
type sleeper struct {
	fd    int
	timer *os.File // the same; closes it
	once  unix.ItimerSpec
	count [8]byte
}

// newSleeper returns one, which is closed in the end.
func newSleeper() (*sleeper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("bench: making a timer: %w", err)
	}
	return &sleeper{fd: fd, timer: os.NewFile(uintptr(fd), "timer")}, nil
}

// until returns at a time.
func (s *sleeper) until(at time.Time) error {
	for wait := time.Until(at); wait > 0; wait = time.Until(at) {
		s.once.Value = unix.NsecToTimespec(int64(wait))
		if err := unix.TimerfdSettime(s.fd, 0, &s.once, nil); err != nil {
			return fmt.Errorf("bench: setting a timer: %w", err)
		}
		if _, err := s.timer.Read(s.count[:]); err != nil {
			return fmt.Errorf("bench: waiting for a timer: %w", err)
		}
	}
	return nil
}

func (s *sleeper) close() { _ = s.timer.Close() }
