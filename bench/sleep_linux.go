// Sleeping to within microseconds, on Linux.

package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil returns at a time, as exactly as the kernel wakes a thread: some tens of microseconds late.
func sleepUntil(at time.Time) {
	for wait := time.Until(at); wait > 0; wait = time.Until(at) { // a signal may have cut it short
		t := unix.NsecToTimespec(int64(wait))
		_ = unix.Nanosleep(&t, nil)
	}
}
