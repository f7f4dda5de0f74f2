// Waker: wakes an event loop from any goroutine by one byte on a socket pair. gnet's own Execute allocates a closure
// and a queue node at each call; this does not.

package loop

import "github.com/panjf2000/gnet/v2"

// waker is the writing end of a socket pair; the reading end is enrolled in the loop.
type waker struct {
	fd   int
	loop *Loop
}

var wakeByte = []byte{1}

// enrol makes the pair and enrols its reading end.
func (b *waker) enrol(l *Loop) error {
	b.loop = l
	conn, fd, err := wakingPair()
	if err != nil {
		return err
	}
	if _, err := l.client.EnrollContext(conn, Socket(b)); err != nil {
		closeWaking(fd)
		return err
	}
	b.fd = fd
	return nil
}

// wake wakes the loop. At most one byte is on its way at a time, so the pair's buffer never fills.
func (b *waker) wake() { wakeBy(b.fd, wakeByte) }

func (b *waker) close() { closeWaking(b.fd) }

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
