// Polling: a data loop that has just worked looks for more for a while before it sleeps (opt-in, Config.PollFor).

package transport

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// MaxPollFor is the longest Config.PollFor.
	MaxPollFor = time.Millisecond
	// maxPolled is up to how many connections a loop polls: looking costs time for each. One with more sleeps at once.
	maxPolled = 64
)

// polled is what a loop looks at, or sleeps over (rest): its connections and its bell. Only the loop touches it.
type polled struct {
	every time.Duration // zero: off
	fds   []unix.PollFd
}

func (p *polled) add(fd int) {
	p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
}

func (p *polled) remove(fd int) {
	for i := range p.fds {
		if p.fds[i].Fd == int32(fd) {
			last := len(p.fds) - 1
			p.fds[i] = p.fds[last]
			p.fds = p.fds[:last]
			return
		}
	}
}

// poll waits for tasks without sleeping, for as long as polling goes on, and reports whether some have come. It ends
// early when something is to be read: gnet does that next, without having slept. Other goroutines run in between.
// While it waits the loop counts as busy, so whoever queues a task rings no bell.
func (l *Loop) poll() (tasks bool) {
	p := &l.polled
	if p.every == 0 || len(p.fds) > maxPolled {
		return false
	}
	until := time.Now().Add(p.every)
	for {
		if n, err := unix.Poll(p.fds, 0); n != 0 && err != unix.EINTR {
			return false // also on an error: then polling is no use, and sleeping is safe
		}
		if l.hasTasks() {
			return true
		}
		runtime.Gosched()
		if time.Now().After(until) {
			return false
		}
	}
}

func (l *Loop) hasTasks() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) > 0
}
