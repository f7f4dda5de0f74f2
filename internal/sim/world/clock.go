// Clocks of a process: its own monotonic time, which begins somewhere and may run a little fast or slow, and the slewed
// one by which it times the calls of its handlers.

package world

import (
	"time"

	"github.com/kith-io/kith/internal/core/plane"
)

// clocks are those of a process.
type clocks struct {
	origin time.Duration // the world's time at which its monotonic clock showed zero
	leapt  time.Duration // sum of the sleeps that it has not shown
	drift  int64         // millionths by which that runs fast
	skew   time.Duration // by which its wall clock is ahead of its host's
	slewed slewing
}

// clockAt returns what the monotonic clock shows at a time of the world.
func (c *clocks) clockAt(at time.Duration) time.Duration {
	at -= c.origin
	if c.drift == 0 {
		return at
	}
	return at + at/million*time.Duration(c.drift) + at%million*time.Duration(c.drift)/million
}

const million = 1_000_000

// reaches returns the world's time at which the monotonic clock shows at least so much.
func (c *clocks) reaches(clock time.Duration) time.Duration {
	at := c.origin + clock
	if c.drift == 0 {
		return at
	}
	at = c.origin + clock/(million+time.Duration(c.drift))*million +
		clock%(million+time.Duration(c.drift))*million/(million+time.Duration(c.drift))
	for c.clockAt(at) < clock {
		at++
	}
	return at
}

// slewing is the clock by which a process times the calls of its handlers. Its ticks are not events: what they come to
// is found out when somebody looks.
type slewing struct{ ticked, shows time.Duration }

// begin starts the clock with its process.
func (s *slewing) begin(now time.Duration) { s.ticked, s.shows = now, now }

// to does the ticks up to now, and returns what the clock shows.
func (s *slewing) to(now time.Duration) time.Duration {
	for s.shows < s.ticked && s.ticked+plane.ClockTick <= now { // it lags
		s.ticked += plane.ClockTick
		s.shows = plane.Slew(s.shows, s.ticked)
	}
	if s.shows == s.ticked && now > s.ticked {
		s.ticked += (now - s.ticked) / plane.ClockTick * plane.ClockTick
		s.shows = s.ticked
	}
	return s.shows
}

// resume is the first tick of a process that stood still until now. It was brought up to date when that began.
func (s *slewing) resume(now time.Duration) {
	s.ticked = max(now, s.ticked)
	s.shows = plane.Slew(s.shows, s.ticked)
}
