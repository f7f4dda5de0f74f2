// The one clock: CLOCK_MONOTONIC is the same for all processes of a machine.

package cli

import (
	"time"

	"golang.org/x/sys/unix"
)

// MachineTime returns what the clock of the machine says.
func MachineTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}
