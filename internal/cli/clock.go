// Time since the run began, by the clock that all its processes share.

package cli

import "time"

// Clock tells the time since a moment of the machine's clock.
type Clock struct {
	at   time.Time // monotonic: reading it is cheaper than asking the machine
	then time.Duration
}

// NewClock returns a clock that counts from zero, a moment of MachineTime.
func NewClock(zero time.Duration) Clock { return Clock{time.Now(), MachineTime() - zero} }

// Now returns the time since zero.
func (c Clock) Now() time.Duration { return c.then + time.Since(c.at) }
