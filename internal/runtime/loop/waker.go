// Waker: wakes an event loop from any goroutine by one byte on a socket pair. gnet's own Execute allocates a closure
// and a queue node at each call; this does not.

package loop

import (
	"net"
	"os"
	"syscall"

	"github.com/panjf2000/gnet/v2"
)

// waker is the writing end of a socket pair; the reading end is enrolled in the loop.
type waker struct {
	fd   int
	loop *Loop
}

var wakeByte = []byte{1}

// hang makes the pair and enrols its reading end.
func (b *waker) enrol(l *Loop) error {
	b.loop = l
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	_ = syscall.SetNonblock(pair[0], true)
	_ = syscall.SetNonblock(pair[1], true)
	file := os.NewFile(uintptr(pair[0]), "bell")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err == nil {
		_, err = l.client.EnrollContext(conn, Socket(b))
	}
	if err != nil {
		_ = syscall.Close(pair[1])
		return err
	}
	b.fd = pair[1]
	return nil
}

// ring wakes the loop. At most one ring is on its way at a time, so the pair's buffer never fills.
func (b *waker) wake() {
	for {
		if _, err := syscall.Write(b.fd, wakeByte); err != syscall.EINTR {
			return
		}
	}
}

func (b *waker) close() { _ = syscall.Close(b.fd) }

func (b *waker) Opened(gnet.Conn) gnet.Action { return gnet.None }

// Traffic takes the byte; the tasks run at the end of the pass.
func (b *waker) Traffic(c gnet.Conn) gnet.Action {
	_, _ = c.Discard(-1)
	b.loop.mu.Lock()
	b.loop.woken = false
	b.loop.mu.Unlock()
	return gnet.None
}

func (b *waker) Closed(error) {}
