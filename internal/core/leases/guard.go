// Guard: the end of a lease that comes though nobody steps its holder.

package leases

import "time"

// Guard knows until when a lease counts as held. A goroutine that can read the clock asks it while the one that steps
// the Holder is stuck: the entity must not live on only because of that (SHD-12). The zero value guards nothing. Its
// owner keeps its verbs, and what follows from them, in one order.
type Guard struct {
	until time.Duration // zero: it is not held, or its end has been reported
	ended bool          // it has been reported, and Follow was not called since
}

// Follow takes over until when the lease counts as held: Holder.Valid, after each of its verbs; zero: it is not held.
// It reports whether Tick has reported the end of a lease that the Holder has held all the time, for it was confirmed
// at the last moment: the entity may live again.
func (g *Guard) Follow(until time.Duration) (again bool) {
	again = g.ended && until != 0
	g.until, g.ended = until, false
	return again
}

// Until returns when Tick has something to tell; zero: never.
func (g *Guard) Until() time.Duration { return g.until }

// Tick reports, once, that the lease has ended by now: the entity must not live, whatever its Holder has said last.
func (g *Guard) Tick(now time.Duration) (ended bool) {
	if g.until == 0 || now < g.until {
		return false
	}
	g.until, g.ended = 0, true
	return true
}
