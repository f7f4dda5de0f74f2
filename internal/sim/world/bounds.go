// Bounds: what a process parks, writes and keeps in mailboxes stays within its bounds, and is given back in the end.

package world

import (
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
)

// bounds: what is parked on a process stays within its bound.
func (p *Process) bounds() {
	if used := p.parked.Used(); used > p.parked.Limit || used < 0 {
		p.World.Watcher.Violate(p, "bounds", "%d bytes parked, at most %d may be", used, p.parked.Limit)
	}
}

// linkBound: what waits for a peer stays within its bound.
func (l *link) bounds() {
	w := l.conn.from.World
	limit := w.Config.Data.LinkBuffer
	if limit == 0 {
		limit = flow.DefaultLinkBuffer
	}
	if n := l.flow.Pending(); n > limit+flow.MarkerRoom {
		w.Watcher.Violate(l.conn.from, "bounds", "%d bytes wait for %s, at most %d may", n, w.Name(l.conn.to), limit)
	}
}

// Asks returns how many asks of some processes wait for their answer.
func Asks(of []*Process) (n int) {
	for _, p := range of {
		n += p.asks.waiting()
	}
	return n
}

// Idle: a process that has nothing left to do holds nothing of its budgets.
func (p *Process) Idle() {
	parked := 0
	for _, r := range p.Regions {
		for i := range r.slots.All {
			n, _ := r.Slot(i).Parked()
			parked += n
		}
	}
	if used := p.parked.Used(); used != 0 || parked > 0 {
		p.World.Watcher.Violate(p, "bounds", "%d bytes still count as parked, %d messages are", used, parked)
	}
	if n := p.asks.waiting(); n > 0 {
		p.World.Watcher.Violate(p, "asks", "%d asks were neither answered nor failed", n)
	}
	for _, r := range p.Regions {
		for _, at := range r.shards.All {
			h := *at
			if h != nil && h.shard.Stats().Timers > 0 {
				return
			}
		}
	}
	if len(p.tasks) == 0 {
		mailboxesIdle(p)
	}
}

// mailboxesIdle: nothing but states waits, and the budget is out for these alone: one that came last waits for a slow
// worker. A shard that holds one may hold a block of the budget, too. The state of an entity that could not be made
// waits for its next message, which may never come, and counts no more.
func mailboxesIdle(p *Process) {
	left := p.mailbox.Used()
	for _, r := range p.Regions {
		for _, at := range r.shards.All {
			if *at == nil {
				continue
			}
			all, states := entity.Claimed((*at).shard)
			if states > 0 && (*at).shard.Stats().QueuedBytes == states {
				left -= all
			}
		}
	}
	if left != 0 {
		p.World.Watcher.Violate(p, "bounds", "%d bytes still count as waiting in mailboxes, nothing is", left)
	}
}

// bounds: what is kept while the gate is closed stays within its bound.
func (g *gate) bounds(p *Process) {
	if most := p.World.Config.Data.Keep; g.kept > most {
		p.World.Watcher.Violate(p, "bounds", "%d bytes are kept at the gate, at most %d may be", g.kept, most)
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
	if most := q.p.World.Config.Data.LocalBuffer; n > most && n > last {
		q.p.World.Watcher.Violate(q.p, "bounds", "%d bytes of its own wait for a worker or loop, at most %d may", n, most)
	}
}
