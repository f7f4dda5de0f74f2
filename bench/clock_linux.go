// The clock that processes of one machine share: CLOCK_MONOTONIC.

package bench

import "golang.org/x/sys/unix"

func sharedClock() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail for this clock
	return t.Nano()
}
