// Turns: what a process's control loop does for its slots, and for members that were removed, when it is due.

package sim

import (
	"time"

	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// lookout is the next turn that is planned.
type lookout struct {
	planned bool
	at      time.Duration
	nth     uint64
}

// attend makes sure that a turn comes when something is due.
func (p *proc) attend() {
	at, ok := p.agenda.Next()
	if due, some := p.removed.Next(); some && (!ok || due < at) {
		at, ok = due, true
	}
	l := &p.looks
	if !ok || l.planned && l.at <= at {
		return
	}
	l.planned, l.at = true, at
	l.nth++
	nth := l.nth
	p.later(max(at-p.clock(), 0), func() {
		if nth == l.nth {
			l.planned = false
			p.turn()
		}
	})
}

// turn does what is due. A stuck control loop does it when it goes on.
func (p *proc) turn() {
	if p.stuck() {
		return
	}
	p.askHomes()
	now := p.clock()
	for _, k := range p.agenda.Stalled(now) {
		k.r.drain(k.shard)
	}
	for _, k := range p.agenda.Waiting(now) {
		next, watch := plane.Expire(k.slot(), now, func(frame []byte) {
			p.w.plane.Expired++
			p.failed(frame, route.TimedOut, "parked too long")
		})
		k.r.follow(k.shard, next)
		if watch {
			p.watch(k)
		}
	}
	for id, ok := p.removed.Due(now); ok && p.alive; id, ok = p.removed.Due(now) {
		p.forgetPeer(id)
	}
	if p.alive {
		p.attend()
	}
}

// want has the home of a slot's shard asked for.
func (p *proc) want(k flowSlot) {
	if !p.w.cfg.Data.AskTogether {
		p.post(shard.WantCommand{Type: k.r.id, Shards: []route.ShardID{k.shard}})
		p.watch(k)
		return
	}
	p.agenda.Want(p.clock(), k)
	p.attend()
}

// askHomes asks for the homes that senders wanted, in one command for each type.
func (p *proc) askHomes() {
	list := p.agenda.Wanted()
	for _, r := range p.regions {
		var shards []route.ShardID
		for _, k := range list {
			if k.r == r {
				shards = append(shards, k.shard)
			}
		}
		if len(shards) > 0 && p.alive {
			p.do(shard.WantCommand{Type: r.id, Shards: shards})
		}
	}
}

// watch looks after the time limits of what waits in a slot.
func (p *proc) watch(k flowSlot) {
	p.agenda.Watch(p.clock(), k)
	p.attend()
}

// drainSoon goes on with a slot at whose head a large message stood, after the present step.
func (p *proc) drainSoon(k flowSlot) {
	p.later(0, func() {
		k.r.drain(k.shard)
		p.watch(k)
	})
}

// roomy goes on with slots whose drain met a full link.
func (p *proc) roomy() {
	p.agenda.Roomy()
	p.attend()
}
