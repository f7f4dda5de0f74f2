// Time since the run began, by the clock that all its processes share.

package chaos

import "time"

// clock tells the time since a moment of the machine's clock.
type clock struct {
	at   time.Time // monotonic: reading it is cheaper than asking the machine
	then time.Duration
}

// newClock returns a clock that counts from zero, a moment of machineTime.
func newClock(zero time.Duration) clock { return clock{time.Now(), machineTime() - zero} }

// now returns the time since zero.
func (c clock) now() time.Duration { return c.then + time.Since(c.at) }
