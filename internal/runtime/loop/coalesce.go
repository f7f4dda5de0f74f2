// Rest: a loop sleeps for some microseconds over its sockets, so that more gathers before it writes.

package loop

import "time"

// restFor is how long; the kernel may add the slack of its timers, which is 50 us unless it was changed.
const restFor = 20 * time.Microsecond

// Await runs a task once the loop has rested, at the end of this pass. On the loop, if mayRest.
func (l *Loop) Await(t Task) { l.coalescing = append(l.coalescing, t) }

// MayRest reports whether the loop can wait for more frames and still hear of everything at once. One that polls need
// not: nobody rings for it.
func (l *Loop) MayRest() bool {
	return canRest && !l.polled.polls() && len(l.polled.fds) > 0 && len(l.polled.fds) <= maxPolled
}

// rest sleeps while tasks wait for it, until something is to be read: a wake-up, if there is a task. It reports
// whether there were such; they are the next to be run. Meanwhile the loop does not count as busy.
func (l *Loop) rest() bool {
	if len(l.coalescing) == 0 {
		return false
	}
	restOver(l.polled.fds, restFor)
	l.dirty = append(l.dirty, l.coalescing...)
	clear(l.coalescing)
	l.coalescing = l.coalescing[:0]
	l.stats.rests.Add(1)
	l.mu.Lock()
	l.busy = true
	l.mu.Unlock()
	return true
}
