// Writing: the one place through which the bytes of a dialled connection go, and the goroutine that waits with what a
// socket did not take.

package transport

import (
	"os"
	"syscall"
	"time"
)

// parked waits in Go's own poller, in a goroutine, until a socket takes the rest of a batch. It owns the writing side
// of its connection meanwhile: the loop writes nothing, and leaves the batch as it is, until it has been told. The
// goroutine is there only while the socket is full; the descriptor, from the first time on, as long as the connection.
type parked struct {
	oc   *outConn
	file *os.File // the socket by a descriptor of its own
	rest []byte
	done chan struct{} // capacity 1: the batch is of no use to the goroutine any more
	err  error         // valid then
}

// run is the goroutine.
func (w *parked) run(on *Loop) {
	_, w.err = w.file.Write(w.rest)
	w.rest = nil
	w.done <- struct{}{}
	on.post(w.oc)
}

// write sends b, on the loop. It returns true when the socket has taken it all. Otherwise the caller ends its turn: the
// connection has been closed and closed has run; or a parked writer has the rest, b must stay as it is, and the
// uplink's queue is run again once the writer is through.
func (oc *outConn) write(on *Loop, b []byte) bool {
	on.stats.wrote(len(b))
	if oc.secure != nil {
		return oc.seal(on, b)
	}
	return oc.push(on, b)
}

// seal encrypts b piece by piece and pushes each. It returns as write does; what is not sealed yet when a writer is
// parked is kept for it.
func (oc *outConn) seal(on *Loop, b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), sealChunk)
		out, err := oc.secure.seal(b[:n])
		if err != nil {
			oc.breaks(err)
			return false
		}
		b = b[n:]
		if !oc.push(on, out) {
			oc.rest = b
			return false
		}
		oc.secure.release()
	}
	return true
}

// push gives b to the socket. gnet's own Write is not used: it hides a short write, and keeps the rest without a bound.
func (oc *outConn) push(on *Loop, b []byte) bool {
	for {
		n, err := syscall.Write(oc.c.Fd(), b)
		oc.u.writes.Add(1)
		switch {
		case err == syscall.EINTR:
		case err == nil && n == len(b):
			return true
		case err == nil:
			return oc.park(on, b[n:])
		case err == syscall.EAGAIN:
			return oc.park(on, b)
		default:
			oc.breaks(os.NewSyscallError("write", err))
			return false
		}
	}
}

// park has a goroutine write b. It returns false, as push does.
func (oc *outConn) park(on *Loop, b []byte) bool {
	on.stats.stalls.Add(1)
	if oc.parker == nil {
		file, err := ownFile(oc.c.Fd())
		if err != nil {
			oc.breaks(err)
			return false
		}
		oc.parker = &parked{oc: oc, file: file, done: make(chan struct{}, 1)}
	}
	oc.writer = oc.parker
	oc.writer.rest = b
	oc.waits((*stopwatch).start)
	go oc.writer.run(on)
	return false
}

// ownFile returns the socket as a file of Go's poller, by a descriptor of its own: gnet closes the other one.
func ownFile(fd int) (*os.File, error) {
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

// Run goes on when the parked writer is through. It is a task of the loop.
func (oc *outConn) Run(on *Loop) {
	w := oc.writer
	if w == nil {
		return // closed meanwhile
	}
	<-w.done // told before this was posted
	oc.writer = nil
	oc.waits((*stopwatch).stop)
	if w.err != nil {
		oc.breaks(w.err)
		return
	}
	if oc.secure != nil {
		oc.secure.release()
		rest := oc.rest
		oc.rest = nil
		if !oc.seal(on, rest) {
			return
		}
	}
	oc.u.q.Run(on)
}

// unpark ends a parked writer and waits until it has let go of its batch, which is at once: it is woken, and its system
// calls do not block.
func (oc *outConn) unpark() {
	if oc.parker != nil {
		_ = oc.parker.file.Close()
	}
	if w := oc.writer; w != nil {
		<-w.done
		oc.writer, oc.rest = nil, nil
		oc.waits((*stopwatch).stop)
	}
	if oc.secure != nil {
		oc.secure.release()
	}
}

// waits starts or stops the clock of the uplink that says how long its socket was full.
func (oc *outConn) waits(change func(*stopwatch, func() time.Duration)) {
	oc.u.mu.Lock()
	change(&oc.u.fullSocket, oc.u.t.cfg.Now)
	oc.u.mu.Unlock()
}

// breaks closes the connection because a write met err.
func (oc *outConn) breaks(err error) {
	oc.broken = err
	oc.hangUp()
}

// hangUp closes the connection, on the loop; closed has run when it returns.
func (oc *outConn) hangUp() { _ = oc.c.EventLoop().Close(oc.c) }
