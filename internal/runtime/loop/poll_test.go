// Tests of loops that poll before they sleep.

package loop

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Polling ends with a task, with something to read, which goes first, or with its time; and it does not begin when it
// is off or when there are many connections (CARD-3).
func TestPoll(t *testing.T) {
	ours, theirs := sockets(t)
	task := taskFunc(func() {})
	l := New(Config{PollFor: time.Hour})
	l.busy = true
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
	require.NoError(t, l.queue(task, 1)) // it would ring a wake-up that is not there if the loop did not count as busy
	require.True(t, want(t, done))
	l.pending = nil
	l.polled.vain, l.polled.skips = 0, 0 // a busy machine may have had the core in between
	go func() { done <- l.poll() }()
	_, err = syscall.Write(theirs, []byte{1})
	require.NoError(t, err)
	require.False(t, want(t, done))
	_, err = syscall.Read(ours, make([]byte, 8))
	require.NoError(t, err)

	l.polled.every = time.Millisecond
	l.polled.vain, l.polled.skips = 0, 0
	require.False(t, l.poll(), "its time is over")
	require.EqualValues(t, 5, l.stats.polls.Load())
	require.EqualValues(t, 1, l.stats.emptyPolls.Load())
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
	require.False(t, (&Loop{polled: polled{every: time.Hour, fds: make([]unix.PollFd, 1)}}).MayRest(), "nobody rings")
	require.True(t, (&Loop{polled: polled{every: time.Hour, skips: 1, fds: make([]unix.PollFd, 1)}}).MayRest())
}
