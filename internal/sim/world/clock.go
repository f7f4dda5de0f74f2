// Clocks of a process: its own monotonic time, which begins somewhere and may run a little fast or slow, and the slewed
// one by which it times the calls of its handlers.

package world

import (
	"time"

	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
)

// clocks are those of a process.
type clocks struct {
	origin time.Duration // the world's time at which its monotonic clock showed zero
	leapt  time.Duration // sum of the sleeps that it has not shown
	drift  int64         // millionths by which that runs fast
	unseen time.Duration // the last of these sleeps, until the control loop knew of it
	skew   time.Duration // by which its wall clock is ahead of its host's
	slewed slewing

	stepped   time.Duration // what the clock showed at the control loop's last step
	gapLimit  time.Duration // age of that step above which the data plane handles nothing
	Overslept time.Duration // the world's time at which it last went on after it had stood still for too long; 0: never
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

// sinceStep returns for how long the control loop has not stepped, at a time of the world.
func (c *clocks) sinceStep(at time.Duration, v *membership.View) time.Duration {
	if mayDoze(v) {
		return 0
	}
	return c.clockAt(at) - c.stepped
}

// StoodTooLong reports whether a process with this view has stood still for so long, at a time of the world, that its
// data plane may handle nothing, and its node has to suspend itself when it steps.
func (c *clocks) StoodTooLong(at time.Duration, v *membership.View) bool {
	return !mayDoze(v) && max(c.sinceStep(at, v), c.unseen) > c.gapLimit
}

// goesOn notes that the process goes on at a time of the world.
func (c *clocks) goesOn(at time.Duration, v *membership.View) {
	if c.StoodTooLong(at, v) {
		c.Overslept = at
	}
}

// mayDoze reports whether a process with this view need not step: it is alone, and has no deadlines.
func mayDoze(v *membership.View) bool { return v == nil || len(v.Members) < 2 }

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
