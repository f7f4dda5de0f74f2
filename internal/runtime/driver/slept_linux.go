// The clock of Linux that counts the sleeps of the machine.

package driver

import (
	"time"

	"golang.org/x/sys/unix"
)

func bootTime() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
