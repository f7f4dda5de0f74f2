// Checks of what is said of messages that were not taken.

package check

import (
	"fmt"
	"slices"

	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Refuses notes a tell that is refused: it may be reported to its sender once. An ask is answered, and that is all.
func (c *Checker) Refuses(p *world.Process, from peer.ID, e *wire.Envelope) {
	if e.Flags&(wire.FlagAsk|wire.FlagBulk) != 0 || from == p.ID {
		return
	}
	c.tells.of(p.ID, from).refused++
}

// Told: a process gets reports of no more refused messages than tells of it were refused.
func (c *Checker) Told(p *world.Process, by peer.ID, n uint64) {
	r := c.tells.of(by, p.ID)
	if r.told += n; r.told > r.refused {
		c.Violate(p, "refusals", "%s refused %d messages and is said to have refused %d", c.w.Name(by), r.refused, r.told)
	}
}

// Untold: only of one that is no member any more is it given up to tell, or that cannot be heard again; and of no more
// than were refused.
func (c *Checker) Untold(p *world.Process, to peer.ID, n uint64) {
	if m, ok := p.View.Member(to); ok && m.Status != membership.Down && c.CalmMail {
		c.Violate(p, "refusals", "%d refused messages of %s, a member, are not told", n, c.w.Name(to))
	}
	r := c.tells.of(p.ID, to)
	if r.untold += n; r.untold > r.refused {
		c.Violate(p, "refusals", "of %d refused messages of %s, %d are given up", r.refused, c.w.Name(to), r.untold)
	}
}

// Unreported names refused messages between two processes that run and hold each other for members, and that were not
// reported; "" when there are none.
func (c *Checker) Unreported() string {
	if c.w.Config.Data.OldCredit {
		return "" // an earlier version tells once, and hopes
	}
	running := c.w.Running()
	for _, p := range running {
		for _, q := range running {
			if n := c.tells.of(p.ID, q.ID).missing(); n > 0 && c.members(p, q) && c.members(q, p) {
				return fmt.Sprintf("%d tells of %s, refused by %s,", n, c.w.Name(q.ID), c.w.Name(p.ID))
			}
		}
	}
	return ""
}

// members reports whether q is a member to p that is not Down.
func (c *Checker) members(p, q *world.Process) bool {
	m, ok := p.View.Member(q.ID)
	return ok && m.Status != membership.Down
}

// Refusal: an ask that met a bound of another process learns that bound.
func (c *Checker) Refusal(p *world.Process, typ route.TypeID, from peer.ID, why route.Reason, text []byte) {
	switch why {
	case route.MailboxFull, route.BudgetFull, route.QueueFull, route.Suspended:
	default:
		return // others may be a handler's answer
	}
	if c.w.Config.Data.OldCredit {
		return // an earlier version has no words for some
	}
	at := slices.IndexFunc(c.w.Processes, func(o *world.Process) bool { return o.ID == from })
	blame, limit := plane.BlameFor(why, true, text)
	if want := c.w.Processes[at].LimitOf(typ, why); blame != plane.BlameThat || limit != want {
		c.Violate(p, "refusals", "an ask was refused as %v by a bound of %d, the bound is %d", why, limit, want)
	}
}
