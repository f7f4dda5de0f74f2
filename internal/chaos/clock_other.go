//go:build !linux

// The one clock where the monotonic one is a process's own: the wall clock, which must not be set during a run.

package chaos

import "time"

// machineTime returns what the clock of the machine says.
func machineTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
