// Clock: the time of one node, in two kinds: exact, and coarse but one load.

package exec

import (
	"sync/atomic"
	"time"
)

const coarseStep = 8 * time.Millisecond // most that the coarse clock moves in one step: below entity.SlowAfter

// Clock is monotonic time since a node's start. Init comes first; then methods are safe for concurrent use.
type Clock struct {
	start  time.Time
	_      [64]byte
	slept  atomic.Int64 // what is added to the monotonic clock; read by the data plane, so it has a line of its own
	_      [56]byte
	coarse atomic.Int64 // slewed clock of handlers, nanoseconds since start
}

// Init begins the node's time at start, which has a monotonic reading.
func (c *Clock) Init(start time.Time) { c.start = start }

// Now is monotonic time since the node's start, with the sleeps of the machine that were noticed.
func (c *Clock) Now() time.Duration { return time.Since(c.start) + time.Duration(c.slept.Load()) }

// Slept returns how much of Now are sleeps of the machine.
func (c *Clock) Slept() time.Duration { return time.Duration(c.slept.Load()) }

// SetSlept makes slept the sum of the sleeps, unless another goroutine has changed it from old meanwhile.
func (c *Clock) SetSlept(old, slept time.Duration) { c.slept.CompareAndSwap(int64(old), int64(slept)) }

// Coarse is the time at the last Tick. It moves by small steps, so that a step between two looks does not make a call
// look slow.
func (c *Clock) Coarse() time.Duration { return time.Duration(c.coarse.Load()) }

// Tick moves the coarse clock towards now. One goroutine calls it.
func (c *Clock) Tick(now time.Duration) {
	c.coarse.Store(min(int64(now), c.coarse.Load()+int64(coarseStep)))
}
