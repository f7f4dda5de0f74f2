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
	require.EqualValues(t, 5, l.stats.polls.Load())
	require.EqualValues(t, 1, l.stats.pollsVain.Load())
	require.Equal(t, 1, l.polled.vain)
	l.polled.every = time.Hour
	l.polled.fds = make([]unix.PollFd, maxPolled+1)
	require.False(t, l.poll(), "too many connections")
	l.polled = polled{}
	l.polled.add(ours)
	require.False(t, l.poll(), "off")
}

// Polls in vain leave out ever more chances, up to a bound, and one that pays off ends that: where nodes share a core a
// poller does not keep its peer from running (CARD-3, CARD-5).
func TestPollsInVain(t *testing.T) {
	p := polled{every: time.Hour}
	left := func() (n int) {
		for !p.chance() {
			n++
		}
		return n
	}
	require.Zero(t, left())
	for _, want := range []int{0, 1, 3, 7, 15, 31, 63, 127, maxVain - 1, maxVain - 1} {
		p.learn(false, 9, 0)
		require.Equal(t, want, left())
	}
	p.learn(true, 1, 0)
	require.Zero(t, left())
	p.learn(false, 9, 0)
	require.Equal(t, maxVain-1, left(), "what was there already tells nothing")
	p.learn(true, 2, robbed)
	require.Equal(t, maxVain-1, left(), "another process had the core when it came")
	p.learn(true, 2, robbed-1)
	require.Zero(t, left())
	p.learn(false, 2, 0)
	require.Zero(t, left(), "one alone is an accident")

	p.every = 0
	require.False(t, p.chance(), "off")
	p = polled{every: time.Hour, skips: 1}
	require.False(t, p.polls())
	require.False(t, (&Loop{polled: polled{every: time.Hour, fds: make([]unix.PollFd, 1)}}).mayRest(), "nobody rings")
	require.True(t, (&Loop{polled: polled{every: time.Hour, skips: 1, fds: make([]unix.PollFd, 1)}}).mayRest())
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
