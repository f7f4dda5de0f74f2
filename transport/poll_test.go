// Tests of loops that poll before they sleep.

package transport

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kith-io/kith/wire"
)

// sockets returns a connected pair of sockets that do not block.
func sockets(t *testing.T) (ours, theirs int) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = syscall.Close(fds[0]), syscall.Close(fds[1]) })
	return fds[0], fds[1]
}

// Polling ends with a task, with something to read, which goes first, or with its time; and it does not begin when it
// is off or when there are many connections (CARD-3).
func TestPoll(t *testing.T) {
	ours, theirs := sockets(t)
	task := taskFunc(func() {})
	l := &Loop{busy: true, polled: polled{every: time.Hour}}
	l.polled.add(ours)
	l.pending = []Task{task}
	require.True(t, l.poll())
	_, err := syscall.Write(theirs, []byte{1})
	require.NoError(t, err)
	require.False(t, l.poll(), "what is to be read goes first: gnet reads it now")
	_, err = syscall.Read(ours, make([]byte, 8))
	require.NoError(t, err)

	l.pending = nil
	done := make(chan bool)
	go func() { done <- l.poll() }()
	require.NoError(t, l.queue(task, 1)) // it would ring a bell that is not there if the loop did not count as busy
	require.True(t, want(t, done))
	l.pending = nil
	go func() { done <- l.poll() }()
	_, err = syscall.Write(theirs, []byte{1})
	require.NoError(t, err)
	require.False(t, want(t, done))
	_, err = syscall.Read(ours, make([]byte, 8))
	require.NoError(t, err)

	l.polled.every = time.Millisecond
	require.False(t, l.poll(), "its time is over")
	l.polled.every = time.Hour
	l.polled.fds = make([]unix.PollFd, maxPolled+1)
	require.False(t, l.poll(), "too many connections")
	l.polled = polled{}
	l.polled.add(ours)
	require.False(t, l.poll(), "off")
}

// Frames go back and forth between two loops that poll, and a closed connection is polled no more.
func TestPollingTransports(t *testing.T) {
	a, b := newRider(), newRider()
	polling := func(c *Config) { c.PollFor = MaxPollFor }
	ta, tb := start(t, a, polling), start(t, b, polling)
	there, back := ta.Link(tb.Self()), tb.Link(ta.Self())
	b.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func([]byte) { _ = send(t, back, 0, 0, 64, nil) })
		c.Consumed(len(frames))
	}
	got := make(chan int, 100)
	a.onData = func(c *InConn, frames []byte) {
		eachFrame(frames, func(f []byte) { got <- len(f) })
		c.Consumed(len(frames))
	}
	for range 200 {
		require.NoError(t, send(t, there, 0, 0, 64, nil))
		require.Equal(t, wire.SizeEnvelope(1, 64), want(t, got))
	}
	polls := func() int {
		n := make(chan int, 1)
		require.NoError(t, ta.Loops()[0].Execute(taskFunc(func() { n <- len(ta.Loops()[0].polled.fds) })))
		return want(t, n)
	}
	require.Equal(t, 3, polls(), "the bell, a connection out and one in")
	tb.Close()
	until(t, func() bool { return polls() == 1 })
}

func TestPollForIsBounded(t *testing.T) {
	for _, d := range []time.Duration{-1, MaxPollFor + 1} {
		_, err := New(Config{Incarnation: 1, Name: "x", PollFor: d}, newRider())
		require.ErrorContains(t, err, "PollFor")
	}
}
