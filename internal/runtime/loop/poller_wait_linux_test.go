// Tests of the control loop that waits in Go's poller.

package loop

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/wire"
)

// ownConn is what parking asks of a connection.
type ownConn struct {
	gnet.Conn
	fd int
}

func (c *ownConn) Fd() int { return c.fd }

// A loop parks until something is to be read, not while somebody wakes it by gnet's means, and no more once there is a
// socket that it would not hear of (FD-4, CARD-3).
func TestPollerWait(t *testing.T) {
	ours, theirs := sockets(t)
	l := New(Config{Lane: wire.LaneControl})
	l.busy = true
	l.openPollerWait()
	defer l.closePollerWait()
	conn := &ownConn{fd: ours}
	l.watch(conn)
	parked := func() chan struct{} {
		done := make(chan struct{})
		go func() {
			l.waitInPoller()
			close(done)
		}()
		return done
	}
	done := parked()
	until(t, func() bool { return l.stats.pollerWaits.Load() == 1 })
	select {
	case <-done:
		t.Fatal("there is nothing to read")
	default:
	}
	_, err := syscall.Write(theirs, []byte{1})
	require.NoError(t, err)
	want(t, done)
	want(t, parked()) // until it is read
	_, err = syscall.Read(ours, make([]byte, 8))
	require.NoError(t, err)
	require.EqualValues(t, 2, l.stats.pollerWaits.Load())

	l.hold()
	require.Len(t, l.pending, 1, "so that a pass that is under way looks again")
	l.pending[0].Run(l)
	want(t, parked())
	l.hold()
	l.release()
	require.Len(t, l.pending, 2, "one still holds it")
	l.release()
	require.Len(t, l.pending, 3, "one that sleeps where gnet has it sleep comes back from there")
	l.depth = 1
	want(t, parked()) // within another pass
	l.depth = 0
	require.EqualValues(t, 2, l.stats.pollerWaits.Load())

	data := New(Config{Lane: wire.LaneData, Control: l})
	data.openPollerWait()
	require.Nil(t, data.pollerWait.pollSet, "it must wake fast")
	data.listen()
	require.Zero(t, data.listened, "nobody waits")
	done = parked()
	until(t, l.pollerWait.in.Load)
	data.listen() // nothing is to be read
	l.pollerWait.pollSet.call()
	select {
	case <-done:
		t.Fatal("called for nothing")
	default:
	}
	data.listened = time.Time{}
	_, err = syscall.Write(theirs, []byte{1})
	require.NoError(t, err)
	want(t, done)
	l.pollerWait.in.Store(true) // as if Go's poller had not reported it
	data.listen()
	called := make(chan error, 1)
	go func() { called <- l.pollerWait.pollSet.raw.Read(func(uintptr) bool { return false }) }()
	require.ErrorIs(t, want(t, called), os.ErrDeadlineExceeded)
	again := data.listened
	data.listened = again.Add(time.Hour)
	data.listen()
	require.Equal(t, again.Add(time.Hour), data.listened, "it has listened already")
	require.Zero(t, testing.AllocsPerRun(100, func() { data.listener.hears(l.pollerWait.pollSet) }))
	l.pollerWait.in.Store(false)
	_, err = syscall.Read(ours, make([]byte, 8))
	require.NoError(t, err)

	l.unwatch(conn)
	require.False(t, l.pollerWait.pollSet.any())
	l.watch(&ownConn{fd: -1})
	want(t, parked())
	l.pollerWait.pollSet.close()
	require.False(t, data.listener.hears(l.pollerWait.pollSet))
}
