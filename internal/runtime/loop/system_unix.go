// What a loop takes of a Unix: a pair of sockets that wakes it, and a look at sockets that does not sleep.

//go:build unix

package loop

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Handle is what the calls of package syscall take for a socket.
type Handle = int

type pollFd = unix.PollFd

const pollIn = unix.POLLIN

func supported() error { return nil }

// lookAt returns how many of the sockets have something to read, without sleeping; less than zero after an error. A
// signal that interrupts it is no error.
func lookAt(fds []pollFd) int {
	n, err := unix.Poll(fds, 0)
	if err == unix.EINTR {
		return 0
	}
	return n
}

// wakingPair makes a pair of sockets: the end that a loop reads, and the descriptor of the one that wakes it.
func wakingPair() (net.Conn, int, error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, 0, os.NewSyscallError("socketpair", err)
	}
	_ = syscall.SetNonblock(pair[0], true)
	_ = syscall.SetNonblock(pair[1], true)
	file := os.NewFile(uintptr(pair[0]), "waker")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		_ = syscall.Close(pair[1])
		return nil, 0, err
	}
	return conn, pair[1], nil
}

// wakeBy writes the byte that wakes, also when a signal interrupts it.
func wakeBy(fd int, b []byte) {
	for {
		if _, err := syscall.Write(fd, b); err != syscall.EINTR {
			return
		}
	}
}

func closeWaking(fd int) { _ = syscall.Close(fd) }

// OwnFile returns a socket as a file of Go's poller, by a descriptor of its own: gnet closes the other one. The caller
// closes the file.
func OwnFile(fd int) (*os.File, error) {
	syscall.ForkLock.RLock()
	own, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(own)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(own), "socket"), nil // the socket does not block, so the file does not either
}
