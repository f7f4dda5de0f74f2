// Windows: no loop starts here, and so no node; the package compiles for what needs the simulator alone.

package loop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Handle is what the calls of package syscall take for a socket.
type Handle = syscall.Handle

type pollFd struct {
	Fd     int32
	Events int16
}

const pollIn = 1

func supported() error {
	return fmt.Errorf("a node runs on Linux, macOS and the BSDs; on Windows there is the simulator alone: %w",
		errors.ErrUnsupported)
}

func lookAt([]pollFd) int { return -1 }

func wakingPair() (net.Conn, int, error) { return nil, 0, supported() }

func wakeBy(int, []byte) {}

func closeWaking(int) {}

// OwnFile is not called here.
func OwnFile(int) (*os.File, error) { return nil, supported() }
