// Sleeping to within microseconds, on Linux.

package bench

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil returns at a time, a few microseconds late at best: as exact as the kernel's timers without the slack of
// 50 us that threads have by default.
func sleepUntil(at time.Time) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) == nil {
		defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }() // the default again
	}
	for wait := time.Until(at); wait > 0; wait = time.Until(at) { // a signal may have cut it short
		t := unix.NsecToTimespec(int64(wait))
		_ = unix.Nanosleep(&t, nil)
	}
}
