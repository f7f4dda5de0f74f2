// Bounds: what a process parks, writes and keeps in mailboxes stays within its bounds, and is given back in the end.

package sim

import "github.com/kith-io/kith/internal/flow"

// bounds: what is parked on a process stays within its bound.
func (p *proc) bounds() {
	if used := p.parked.Used(); used > p.parked.Limit || used < 0 {
		p.w.check.violate(p, "bounds", "%d bytes parked, at most %d may be", used, p.parked.Limit)
	}
}

// linkBound: what waits for a peer stays within its bound.
func (l *link) bounds() {
	w := l.conn.from.w
	limit := w.cfg.Data.LinkBuffer
	if limit == 0 {
		limit = flow.DefaultLinkBuffer
	}
	if n := l.flow.Pending(); n > limit+flow.MarkerRoom {
		w.check.violate(l.conn.from, "bounds", "%d bytes wait for %s, at most %d may", n, w.name(l.conn.to), limit)
	}
}

// idle: a process that has nothing left to do holds nothing of its budgets.
func (p *proc) idle() {
	parked := 0
	for _, r := range p.regions {
		for i := range r.slots {
			n, _ := r.slots[i].Parked()
			parked += n
		}
	}
	if used := p.parked.Used(); used != 0 || parked > 0 {
		p.w.check.violate(p, "bounds", "%d bytes still count as parked, %d messages are", used, parked)
	}
	if n := p.asks.waiting(); n > 0 {
		p.w.check.violate(p, "asks", "%d asks were neither answered nor failed", n)
	}
	for _, r := range p.regions {
		for _, h := range r.shards {
			if h != nil && h.shard.Stats().Timers > 0 {
				return
			}
		}
	}
	if used := p.mailbox.Used(); used != 0 && len(p.tasks) == 0 {
		p.w.check.violate(p, "bounds", "%d bytes still count as waiting in mailboxes, nothing is", used)
	}
}
