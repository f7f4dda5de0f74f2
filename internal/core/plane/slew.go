// Slew: how the clock moves by which calls of handlers are timed.

package plane

import "time"

const (
	// ClockTick is how often a runtime looks at the time for code that does not read a clock of its own: it slews a clock,
	// fires what is due.
	ClockTick = 5 * time.Millisecond
	// SlewStep is the most that the slewed clock moves in one tick: below entity.SlowAfter, so that a stall of the whole
	// process between two ticks makes no call look slow; above ClockTick, so that the clock catches up.
	SlewStep = 8 * time.Millisecond
)

// Slew returns what the slewed clock shows after a tick at now. It is never ahead of now. After a stall it lags by the
// stall's length and needs the longer to catch up: deadlines counted from it would be early.
func Slew(slewed, now time.Duration) time.Duration { return min(now, slewed+SlewStep) }
