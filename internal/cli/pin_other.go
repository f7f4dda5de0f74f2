// Pinning elsewhere: not possible, and said so.

//go:build !linux

package cli

import (
	"errors"
	"os/exec"
	"syscall"
)

// CanPin reports whether children can be pinned to cores on this system.
const CanPin = false

var errNoPin = errors.New("processes can be pinned to cores on Linux only")

// CPUs returns the cores that this process may run on; unknown here.
func CPUs() ([]int, error) { return nil, errNoPin }

func startOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) > 0 {
		return errNoPin
	}
	return cmd.Start()
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
