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

// bounds: what is kept while the gate is closed stays within its bound.
func (g *gate) bounds(p *proc) {
	if most := p.w.cfg.Data.Keep; g.kept > most {
		p.w.check.violate(p, "bounds", "%d bytes are kept at the gate, at most %d may be", g.kept, most)
	}
}

// bounds: what a process sends to itself and what waits stays within its bound, but for one message.
func (q *workQueue) bounds() {
	n, last := 0, 0
	for _, f := range q.frames {
		if f.own {
			n, last = n+len(f.frame), len(f.frame)
		}
	}
	if most := q.p.w.cfg.Data.LocalBuffer; n > most && n > last {
		q.p.w.check.violate(q.p, "bounds", "%d bytes of its own wait for a worker or loop, at most %d may", n, most)
	}
}
