// Checks of what is said of messages that were not taken.

package check

import (
	"slices"

	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/internal/world"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Refuses notes a tell that is refused: it may be reported to its sender once. An ask is answered, and that is all.
func (c *Checker) Refuses(from peer.ID, e *wire.Envelope) {
	if e.Flags&(wire.FlagAsk|wire.FlagBulk) != 0 {
		return
	}
	if c.tells == nil {
		c.tells = map[peer.ID]uint64{}
	}
	c.tells[from]++
}

// Told: a process is told of no more refused messages than tells of it were refused.
func (c *Checker) Told(p *world.Process, n uint64) {
	if c.tells[p.ID] < n {
		c.Violate(p, "refusals", "%d messages are said to be refused, %d were", n, c.tells[p.ID])
		return
	}
	c.tells[p.ID] -= n
}

// Refusal: an ask that met a bound of another process is told that bound.
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
