// Pinning on Linux: a child inherits the affinity of the thread that forks it, so every thread of its runtime has it.

package cli

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// CanPin reports whether children can be pinned to cores on this system.
const CanPin = true

// CPUs returns the cores that this process may run on, in order.
func CPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read affinity: %w", err)
	}
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

// startOn starts cmd so that it may run on cpus only. The runtime of a Go child sees the mask before it makes its
// first thread and takes its length for GOMAXPROCS.
func startOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	var old, set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	runtime.LockOSThread()
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("read affinity: %w", err)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("pin to cores %v: %w", cpus, err)
	}
	err := cmd.Start()
	if back := unix.SchedSetaffinity(0, &old); back != nil {
		if err == nil {
			_ = cmd.Process.Kill()
		}
		return fmt.Errorf("restore affinity: %w", back) // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
