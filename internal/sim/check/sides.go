// Sides: no two sides of a broken cluster survive.

package check

import (
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// resolverDown reports whether the member was downed by a resolver.
func resolverDown(m *membership.Member) bool {
	return m.Status == membership.Down && (m.Cause == membership.CauseResolver || m.Cause == membership.CauseUnstable ||
		m.Cause == membership.CauseLease)
}

// sides is the checker that no two sides survive: it remembers which members each process holds for downed by a
// resolver. Two processes that hold each other for that are two sides that have decided to live. One of them may not
// have decided yet about its latest loss; when the takeover time is over, it must have, and from then on they never
// both handle messages.
func (c *Checker) sides(p *world.Process, v *membership.View) {
	if self, ok := v.SelfMember(); !ok || self.Status == membership.Down || c.w.Splits() {
		return
	}
	for i := range v.Members {
		m := &v.Members[i]
		if resolverDown(m) {
			bury(c, p, m.ID)
		}
	}
}

// bury notes that a process holds another one for downed by a resolver: its view says so, or it has carried out that
// decision itself. A process that is alone then removes all that it downs in the same step, and no view shows them
// Down.
func bury(c *Checker, p *world.Process, id peer.ID) {
	if id == p.ID || c.buried[reportKey{p.ID, id}] {
		return
	}
	c.buried[reportKey{p.ID, id}] = true
	if q := c.w.ProcessOf(id); c.buried[reportKey{id, p.ID}] && q != nil {
		c.w.After(c.w.Takeover(), func() { c.bothLive(p, q) })
	}
}

// sidesEvery is how often two processes that have downed each other are looked at.
const sidesEvery = 100 * time.Millisecond

// bothLive asks, for as long as two processes run that have downed each other, whether both live on and handle
// messages.
func (c *Checker) bothLive(p, q *world.Process) {
	if !p.Alive || !q.Alive {
		return
	}
	if c.survives(p) && c.survives(q) {
		c.Violate(p, "two-survivors", "%s and %s have downed each other, and both live on", c.w.Name(p.ID), c.w.Name(q.ID))
		return
	}
	c.w.After(sidesEvery, func() { c.bothLive(p, q) })
}

// survives reports whether a process is a member in its own view and handles messages.
func (c *Checker) survives(p *world.Process) bool {
	self, ok := p.View.SelfMember()
	return !p.Paused() && !p.Held() && ok && self.Status != membership.Down
}
