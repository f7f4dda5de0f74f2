// How a loop sleeps, on Linux: for some microseconds over its sockets, or for good in Go's poller.

package loop

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// canRest says that a loop can sleep for microseconds and hear of what is to be read.
const canRest = true

// restOver sleeps for a time, or until something is to be read from one of fds.
func restOver(fds []unix.PollFd, d time.Duration) {
	pause := unix.NsecToTimespec(int64(d))
	_, _ = unix.Ppoll(fds, &pause, nil) // after an error what waits is done at once
}

// pollSet is a set of sockets that a goroutine waits for in Go's poller: an epoll set within the one of the runtime.
type pollSet struct {
	fd    int
	file  *os.File // the same; closes it
	raw   syscall.RawConn
	ready func(fd uintptr) bool
	first [1]unix.EpollEvent
}

// newPollSet returns an empty one, which is closed in the end.
func newPollSet() (*pollSet, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the file goes to Go's poller
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	n := &pollSet{fd: fd, file: os.NewFile(uintptr(fd), "event loop")}
	n.ready = func(uintptr) bool { return n.any() }
	if n.raw, err = n.file.SyscallConn(); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *pollSet) add(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(n.fd, unix.EPOLL_CTL_ADD, fd, &event))
}

func (n *pollSet) remove(fd int) { _ = unix.EpollCtl(n.fd, unix.EPOLL_CTL_DEL, fd, nil) }

// any reports whether something is to be read, also after an error: then waiting is no use.
func (n *pollSet) any() bool {
	got, err := unix.EpollWait(n.fd, n.first[:], 0)
	return got > 0 || err != nil && !errors.Is(err, unix.EINTR)
}

// wait returns when something is to be read from one of the sockets.
func (n *pollSet) wait() {
	for errors.Is(n.raw.Read(n.ready), os.ErrDeadlineExceeded) { // called; after another error gnet sleeps
		_ = n.file.SetReadDeadline(time.Time{})
		if n.any() {
			return
		}
	}
}

// call ends a wait. Any goroutine.
func (n *pollSet) call() { _ = n.file.SetReadDeadline(time.Unix(1, 0)) }

// listener is what another loop needs to look at a poll set.
type listener struct {
	events [1]unix.EpollEvent
	got    int
	look   func(fd uintptr) // made once
}

// hears reports whether something is to be read from one of the sockets of n, which its own loop may be closing: the
// descriptor is held meanwhile, so that it is no other file's.
func (l *listener) hears(n *pollSet) bool {
	if l.look == nil {
		l.look = func(fd uintptr) { l.got, _ = unix.EpollWait(int(fd), l.events[:], 0) }
	}
	l.got = 0
	return n.raw.Control(l.look) == nil && l.got > 0
}

func (n *pollSet) close() { _ = n.file.Close() }
