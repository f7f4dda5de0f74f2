// Clock: the time of one node, in three kinds: exact; as the ticker saw it last, which is one load; and slewed, by
// which calls are timed.

package exec

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/internal/core/plane"
)

// Clock is monotonic time since a node's start. Init comes first; then methods are safe for concurrent use.
type Clock struct {
	start  time.Time
	_      [64]byte
	slept  atomic.Int64 // what is added to the monotonic clock; read by the data plane, so it has a line of its own
	_      [56]byte
	slewed atomic.Int64 // nanoseconds since start, as plane.Slew moves it
	ticked atomic.Int64 // the now of the last Tick
}

// Init begins the node's time at start, which has a monotonic reading.
func (c *Clock) Init(start time.Time) { c.start = start }

// Now is monotonic time since the node's start, with the sleeps of the machine that were noticed.
func (c *Clock) Now() time.Duration { return time.Since(c.start) + time.Duration(c.slept.Load()) }

// Slept returns how much of Now are sleeps of the machine.
func (c *Clock) Slept() time.Duration { return time.Duration(c.slept.Load()) }

// SetSlept makes slept the sum of the sleeps, unless another goroutine has changed it from old meanwhile.
func (c *Clock) SetSlept(old, slept time.Duration) { c.slept.CompareAndSwap(int64(old), int64(slept)) }

// Slewed is a clock that moves by small steps, so that a stall of the process between two looks does not make a call
// look slow. It lags after one, by as much as the stall was long: deadlines are not for it.
func (c *Clock) Slewed() time.Duration { return time.Duration(c.slewed.Load()) }

// Ticked is what Now was at the last Tick: old by some milliseconds, or by a stall, and never ahead.
func (c *Clock) Ticked() time.Duration { return time.Duration(c.ticked.Load()) }

// Fresh returns now, or what Now is by now when a tick has passed since: a batch of messages is handled under one now,
// and may take long.
func (c *Clock) Fresh(now time.Duration) time.Duration {
	if c.ticked.Load() > int64(now) {
		return c.Now()
	}
	return now
}

// Tick moves the other clocks to now, or towards it. One goroutine calls it.
func (c *Clock) Tick(now time.Duration) {
	c.ticked.Store(int64(now))
	c.slewed.Store(int64(plane.Slew(time.Duration(c.slewed.Load()), now)))
}
