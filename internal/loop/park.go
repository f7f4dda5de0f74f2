// Parking: the control loop waits in Go's poller, so that it keeps no processor of Go from others while it sleeps.

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
type parking struct {
	nest *nest        // nil: the loop sleeps as gnet has it sleep
	in   atomic.Bool  // it waits
	held atomic.Int32 // callers for whom it must, because they wake it by gnet's means
}

// openParking makes the control loop one that parks. Where that cannot be it sleeps as others do.
func (l *Loop) openParking() {
	if l.cfg.Lane != wire.LaneControl {
		return
	}
	if n, err := newNest(); err == nil {
		l.parking.nest = n
	}
}

// park waits until something is to be read: a bell, if there is a task. It runs on the loop, at the end of a pass,
// where gnet goes to sleep next; gnet finds what was waited for at once then.
func (l *Loop) park() {
	p := &l.parking
	if p.nest != nil && l.depth == 0 && p.held.Load() == 0 {
		l.stats.parks.Add(1)
		p.in.Store(true)
		p.nest.wait()
		p.in.Store(false)
	}
}

// listenEvery is how often a busy data loop listens for the control loop.
const listenEvery = 500 * time.Microsecond

// listen has a data loop look at what the control loop waits for. While all processors are busy the runtime looks at
// its poller every 10 ms only, and heartbeats would wait for that.
func (l *Loop) listen() {
	if l.cfg.Control == nil {
		return
	}
	p := &l.cfg.Control.parking
	if p.nest == nil || !p.in.Load() {
		return
	}
	if now := time.Now(); now.Sub(l.listened) >= listenEvery {
		l.listened = now
		if l.listener.hears(p.nest) {
			p.nest.call()
		}
	}
}

// watch and unwatch say which sockets the loop hears of while it polls, rests or parks.
func (l *Loop) watch(c gnet.Conn) {
	l.polled.add(c.Fd())
	if n := l.parking.nest; n != nil && n.add(c.Fd()) != nil {
		l.parking.held.Add(1) // one that it would not hear of: it parks no more
	}
}

func (l *Loop) unwatch(c gnet.Conn) {
	l.polled.remove(c.Fd())
	if n := l.parking.nest; n != nil {
		n.remove(c.Fd())
	}
}

// unpark ends parking for good, before the bell is closed.
func (l *Loop) unpark() {
	if l.parking.nest != nil {
		l.parking.held.Add(1)
		l.bell.ring()
	}
}

// closeParking gives up what parking needs, when the loop has ended.
func (l *Loop) closeParking() {
	if l.parking.nest != nil {
		l.parking.nest.close()
	}
}

// hold has the loop sleep where gnet can wake it, until release. Not on the loop.
func (l *Loop) hold() {
	if l.parking.nest != nil {
		l.parking.held.Add(1)
		_ = l.queue(noTask{}, int(^uint(0)>>1)) // a bell, if it sleeps
	}
}

func (l *Loop) release() { l.parking.held.Add(-1) }

// noTask is a task that only wakes its loop.
type noTask struct{}

// Run does nothing.
func (noTask) Run(*Loop) {}
