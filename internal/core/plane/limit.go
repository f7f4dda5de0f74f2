// Limits: how long an ask is waited for, as its envelope carries it.

package plane

import (
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Moment returns a time of a node's clock as limits in memory have it: milliseconds modulo 1<<32, rounded down.
func Moment(now time.Duration) uint32 { return uint32(now / time.Millisecond) }

// MomentAfter is Moment rounded up.
func MomentAfter(now time.Duration) uint32 {
	return uint32((now + time.Millisecond - 1) / time.Millisecond)
}

// LimitOf returns the limit that the envelope of an ask carries if its asker gives up after d, at the wheel's tick due;
// ok is false for one that is waited for so long that it carries none. It is never before that tick: clocks run at
// rates that differ, by up to one in 512 here.
func LimitOf(due int64, d time.Duration) (moment uint32, ok bool) {
	if d > wire.MaxLimit*time.Millisecond {
		return 0, false
	}
	return MomentAfter(time.Duration(due)*WheelTick + max(d, 0)/512), true
}

// LimitAt returns a limit of an envelope as a time of the node's clock, which shows now. It is never zero.
func LimitAt(moment uint32, now time.Duration) time.Duration {
	at := now.Truncate(time.Millisecond) + time.Duration(wire.Left(moment, Moment(now)))*time.Millisecond
	if at == 0 {
		return 1
	}
	return at
}

// Unanswered returns why an ask fails that has expired. One that went nowhere was certainly not executed, and will
// not be: what waits for its route is not sent once nobody waits for the answer.
func Unanswered(went bool) route.Reason {
	if went {
		return route.TimedOut
	}
	return route.Expired
}

// Over reports whether the moment of a limit has come.
func Over(moment uint32, now time.Duration) bool { return wire.Left(moment, Moment(now)) <= 0 }
