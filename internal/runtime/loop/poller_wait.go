// Waiting in the poller: the control loop waits in Go's poller, so that it keeps no processor of Go from others while
// it sleeps.

package loop

import (
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/kith-io/kith/wire"
)

// An event loop that gnet lets sleep is blocked in a system call, and the runtime gives the processor (its P) that it
// had to others only when its monitor notices, which it does after 20 us at best and 10 ms at worst. With as many loops
// as processors that is when nobody looks at Go's poller and timers: what the embedder's own goroutines wait for came
// up to 10 ms late, several times a second. Data loops are at most half of the processors and must wake fast; so it is
// the control loop that waits elsewhere. Waiting in Go's poller costs it some microseconds a wake-up.
type pollerWait struct {
	pollSet *pollSet     // nil: the loop sleeps as gnet has it sleep
	in      atomic.Bool  // it waits
	held    atomic.Int32 // callers that make it wait, because they wake it by gnet's means
}

// openPollerWait makes the control loop one that waits there. Where that cannot be it sleeps as others do.
func (l *Loop) openPollerWait() {
	if l.cfg.Lane != wire.LaneControl {
		return
	}
	if n, err := newPollSet(); err == nil {
		l.pollerWait.pollSet = n
	}
}

// waitInPoller waits until something is to be read: a wake-up, if there is a task. It runs on the loop, at the end of a
// pass, where gnet goes to sleep next; gnet finds what was waited for at once then.
func (l *Loop) waitInPoller() {
	p := &l.pollerWait
	if p.pollSet != nil && l.depth == 0 && p.held.Load() == 0 {
		l.stats.pollerWaits.Add(1)
		p.in.Store(true)
		p.pollSet.wait()
		p.in.Store(false)
	}
}

// listenEvery is how often a busy data loop listens for the control loop.
const listenEvery = 500 * time.Microsecond

// listen makes a data loop look at what the control loop waits for. While all processors are busy the runtime looks at
// its poller every 10 ms only, and heartbeats would wait for that.
func (l *Loop) listen() {
	if l.cfg.Control == nil {
		return
	}
	p := &l.cfg.Control.pollerWait
	if p.pollSet == nil || !p.in.Load() {
		return
	}
	if now := time.Now(); now.Sub(l.listened) >= listenEvery {
		l.listened = now
		if l.listener.hears(p.pollSet) {
			p.pollSet.call()
		}
	}
}

// watch and unwatch say which sockets the loop hears of while it polls, rests or waits.
func (l *Loop) watch(c gnet.Conn) {
	l.polled.add(c.Fd())
	if n := l.pollerWait.pollSet; n != nil && n.add(c.Fd()) != nil {
		l.pollerWait.held.Add(1) // one that it would not hear of: it no longer waits there
	}
}

func (l *Loop) unwatch(c gnet.Conn) {
	l.polled.remove(c.Fd())
	if n := l.pollerWait.pollSet; n != nil {
		n.remove(c.Fd())
	}
}

// endPollerWait ends that way of waiting for good, before the waker is closed.
func (l *Loop) endPollerWait() {
	if l.pollerWait.pollSet != nil {
		l.pollerWait.held.Add(1)
		l.waker.wake()
	}
}

// closePollerWait gives up what waiting there needs, when the loop has ended.
func (l *Loop) closePollerWait() {
	if l.pollerWait.pollSet != nil {
		l.pollerWait.pollSet.close()
	}
}

// hold makes the loop sleep where gnet can wake it, until release. Not on the loop.
func (l *Loop) hold() {
	if l.pollerWait.pollSet != nil {
		l.pollerWait.held.Add(1)
		l.passOnce()
	}
}

// release lets the loop wait in the poller again. It has gone to sleep where gnet can wake it, perhaps, and would stay
// there until something comes, so the last to release wakes it.
func (l *Loop) release() {
	if l.pollerWait.held.Add(-1) == 0 && l.pollerWait.pollSet != nil {
		l.passOnce()
	}
}

// passOnce wakes the loop, if it sleeps.
func (l *Loop) passOnce() { _ = l.queue(noTask{}, int(^uint(0)>>1)) }

// noTask is a task that only wakes its loop.
type noTask struct{}

// Run does nothing.
func (noTask) Run(*Loop) {}
