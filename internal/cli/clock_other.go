//go:build !linux

// The one clock where the monotonic one is a process's own: the wall clock, which must not be set during a run.

package cli

import "time"

// MachineTime returns what the clock of the machine says.
func MachineTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
