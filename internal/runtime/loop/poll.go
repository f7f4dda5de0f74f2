// Polling: a data loop that has just worked looks for more for a while before it sleeps (opt-in, Config.PollFor).

package loop

import (
	"runtime"
	"time"
)

const (
	// MaxPollFor is the longest Config.PollFor.
	MaxPollFor = time.Millisecond
	// maxPolled is up to how many connections a loop polls: looking costs time for each. One with more sleeps at once.
	maxPolled = 64
	// robbed is what a look takes at most, and goroutines that run in between, unless another process had the core.
	robbed = 5 * time.Microsecond
	// maxVain bounds how many chances to poll in a row are left out because polling was in vain.
	maxVain = 256
)

// polled is what a loop looks at, or sleeps over (rest): its connections and its bell. Only the loop touches it.
type polled struct {
	every time.Duration // zero: off
	fds   []pollFd
	vain  int // doubles with each poll in vain, up to maxVain; zero after one that was not
	skips int // chances to poll that are left out from now on
}

// polls reports whether the loop would poll now instead of sleeping.
func (p *polled) polls() bool { return p.every > 0 && p.skips == 0 && len(p.fds) <= maxPolled }

// chance takes the next chance to poll, or leaves it out.
func (p *polled) chance() bool {
	if p.polls() {
		return true
	}
	p.skips = max(p.skips-1, 0)
	return false
}

// learn takes what came of a poll after so many looks: something had come by the last one, gap after the look before
// it, or nothing had. Polling burns a core in the hope that what it waits for comes soon. Where processes share cores
// that hope keeps it from coming: the poller sits where the peer would run. So each poll in vain, one after the other,
// leaves out twice as many chances as the one before, and the first that is not in vain ends that.
func (p *polled) learn(came bool, looks int, gap time.Duration) {
	switch {
	case came && looks == 1: // it was there already, which tells nothing
	case came && gap < robbed:
		p.vain = 0
	default: // also when it came while others had the core: sleeping would have been as good
		p.vain = min(max(2*p.vain, 1), maxVain)
		p.skips = p.vain - 1 // one alone is an accident
	}
}

func (p *polled) add(fd int) {
	p.fds = append(p.fds, pollFd{Fd: int32(fd), Events: pollIn})
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
// early when something is to be read: gnet does that next, without having slept. Other goroutines run in between. While
// it waits the loop counts as busy, so a goroutine that queues a task rings no wake-up. A loop that has polled in vain
// leaves out the next chances.
func (l *Loop) poll() (tasks bool) {
	p := &l.polled
	if !p.chance() {
		return false
	}
	l.stats.polls.Add(1)
	last := time.Now()
	until := last.Add(p.every)
	for looks := 1; ; looks++ {
		n := lookAt(p.fds)
		readable, tasks := n != 0, l.hasTasks()
		now := time.Now()
		if readable || tasks {
			p.learn(n > 0 || tasks, looks, now.Sub(last))
			return !readable // on an error too: then polling is no use, and sleeping is safe
		}
		if now.After(until) {
			p.learn(false, looks, 0)
			l.stats.emptyPolls.Add(1)
			return false
		}
		last = now
		runtime.Gosched()
	}
}

func (l *Loop) hasTasks() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) > 0
}
