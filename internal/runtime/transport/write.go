// Writing: the one place through which the bytes of a connection go once it is on its loop, dialled from here or not,
// and the goroutine that waits with what a socket did not take.

package transport

import (
	"os"
	"sync/atomic"
	"syscall"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/internal/base/descriptors"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/trust"
)

// outlet is the writing side of one connection; it belongs to the connection's loop. The writer ends its turn when that
// returns false, and looks at the connection anew: a write that meets the end of the connection closes it from inside,
// and all that closing does has been done by then.
type outlet struct {
	of          writing
	reserve     *descriptors.Reserve // for the copy that a full socket needs
	calls       *atomic.Uint64       // system calls, nil: they are not counted; what a blocked writer does never is
	c           gnet.Conn
	secure      *trust.Conn    // nil without TLS
	spareWriter *blockedWriter // made when the socket was full for the first time
	writer      *blockedWriter // the same while it has the writing side; nil: the loop writes
	rest        []byte         // with TLS, of the batch that the writer is at: what is not sealed yet
	broken      error          // what a write met
}

// writing is the owner of an outlet.
type writing interface {
	// goOn says that the socket has taken all of the batch that a blocked writer had; on the loop.
	goOn(on *loop.Loop)
	// blocked says that the socket is full and a writer waits, or that this is over; on the loop.
	blocked(now bool)
}

// blockedWriter waits in Go's own poller, in a goroutine, until a socket takes the rest of a batch. It owns the writing
// side of its connection meanwhile: the loop writes nothing, and leaves the batch as it is, until goOn. The
// goroutine is there only while the socket is full; the descriptor, from the first time on, as long as the connection.
type blockedWriter struct {
	o    *outlet
	file *os.File // the socket by a descriptor of its own
	data []byte
	done chan struct{} // capacity 1: the batch is of no use to the goroutine any more
	err  error         // valid then
}

// run is the goroutine.
func (w *blockedWriter) run(on *loop.Loop) {
	_, w.err = w.file.Write(w.data)
	w.data = nil
	w.done <- struct{}{}
	on.Post(w)
}

// Run goes on when the blocked writer is through. It is a task of the loop.
func (w *blockedWriter) Run(on *loop.Loop) { w.o.through(on) }

// write sends b, on the loop. It returns true when the socket has taken it all. Otherwise the caller ends its turn: the
// connection has been closed and closed has run; or a blocked writer has the rest, b must stay as it is, and goOn is
// called once the writer is through.
func (o *outlet) write(on *loop.Loop, b []byte) bool {
	if o.secure != nil {
		return o.seal(on, b)
	}
	return o.push(on, b)
}

// seal encrypts b piece by piece and pushes each. It returns as write does; what is not sealed yet when a writer is
// A writer is kept for it.
func (o *outlet) seal(on *loop.Loop, b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), trust.SealChunk)
		out, err := o.secure.Seal(b[:n])
		if err != nil {
			o.breaks(err)
			return false
		}
		b = b[n:]
		if !o.push(on, out) {
			if o.writer != nil {
				o.rest = b
			}
			return false
		}
		o.secure.Release()
	}
	return true
}

// speak sends what TLS itself has to say, such as the answer to a change of keys. It returns as write does.
func (o *outlet) speak(on *loop.Loop) bool {
	if o.secure == nil || o.secure.Unsaid() == 0 {
		return true
	}
	if !o.push(on, o.secure.Detach()) {
		return false
	}
	o.secure.Release()
	return true
}

// push gives b to the socket. gnet's own Write is not used: it hides a short write, keeps the rest without a bound, and
// closes the connection from inside without saying so.
func (o *outlet) push(on *loop.Loop, b []byte) bool {
	for {
		n, err := syscall.Write(loop.Handle(o.c.Fd()), b)
		if o.calls != nil {
			o.calls.Add(1)
		}
		switch {
		case err == syscall.EINTR:
		case err == nil && n == len(b):
			return true
		case err == nil:
			return o.handOver(on, b[n:])
		case err == syscall.EAGAIN:
			return o.handOver(on, b)
		default:
			o.breaks(os.NewSyscallError("write", err))
			return false
		}
	}
}

// handOver gives b to a goroutine that writes it. It returns false, as push does.
func (o *outlet) handOver(on *loop.Loop, b []byte) bool {
	on.Stalled()
	if o.spareWriter == nil {
		file, err := descriptors.With(o.reserve, func() (*os.File, error) { return loop.OwnFile(o.c.Fd()) })
		if err != nil {
			o.breaks(err)
			return false
		}
		o.spareWriter = &blockedWriter{o: o, file: file, done: make(chan struct{}, 1)}
	}
	o.writer = o.spareWriter
	o.writer.data = b
	o.of.blocked(true)
	go o.writer.run(on)
	return false
}

// through goes on after a blocked writer.
func (o *outlet) through(on *loop.Loop) {
	w := o.writer
	if w == nil {
		return // closed meanwhile
	}
	<-w.done // closed before this was posted
	o.writer = nil
	o.of.blocked(false)
	if w.err != nil {
		o.breaks(w.err)
		return
	}
	if o.secure != nil {
		o.secure.Release()
		rest := o.rest
		o.rest = nil
		if !o.seal(on, rest) {
			return
		}
	}
	o.of.goOn(on)
}

// endPollerWait ends a blocked writer and waits until it has let go of its batch, which is at once: it is woken, and
// its system calls do not block.
func (o *outlet) endPollerWait() {
	if o.spareWriter != nil {
		_ = o.spareWriter.file.Close()
	}
	if w := o.writer; w != nil {
		<-w.done
		o.writer, o.rest = nil, nil
		o.of.blocked(false)
	}
	if o.secure != nil {
		o.secure.Release()
	}
}

// breaks closes the connection because a write met err.
func (o *outlet) breaks(err error) {
	o.broken = err
	o.hangUp()
}

// hangUp closes the connection, on the loop; closed has run when it returns.
func (o *outlet) hangUp() { _ = o.c.EventLoop().Close(o.c) }
