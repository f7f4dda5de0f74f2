// Whether bytes wait on a connection that nobody has read yet, where the system can tell.

//go:build unix

package door

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// waits reports whether bytes wait to be read on a connection.
func waits(nc net.Conn) bool {
	sys, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _, _ = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && n > 0
}
