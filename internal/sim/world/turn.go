// Turns: what a process's control loop does for its slots, and for members that were removed, when it is due.

package world

import (
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
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
func (p *Process) attend() {
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
	p.Later(max(at-p.clock(), 0), func() {
		if nth == l.nth {
			l.planned = false
			p.turn()
		}
	})
}

// turn does what is due. A stuck control loop does it when it goes on.
func (p *Process) turn() {
	if p.Stuck() {
		return
	}
	p.askHomes()
	now := p.clock()
	for _, k := range p.agenda.Stalled(now) {
		k.r.drain(k.shard)
	}
	for _, k := range p.agenda.Waiting(now) {
		next, watch := plane.Expire(k.slot(), now, func(frame []byte) {
			p.World.Plane.Expired++
			p.failed(peer.ID{}, frame, route.TimedOut, "parked too long")
		})
		k.r.follow(k.shard, next)
		k.asked(p)
		if watch {
			p.watch(k)
		}
	}
	for id, ok := p.removed.Due(now); ok && p.Alive; id, ok = p.removed.Due(now) {
		p.forgetPeer(id)
	}
	if p.Alive {
		p.attend()
	}
}

// asked: a home is asked for only while somebody waits for it; the next waiter asks anew.
func (k flowSlot) asked(p *Process) {
	s := k.slot()
	if n, _ := s.Parked(); n == 0 && s.State() == flow.Asking {
		p.World.Watcher.Violate(p, "bounds", "nobody waits for the home of %s, and it counts as asked for",
			p.World.ShardName(k.r.ID, k.shard))
	}
}

// want asks for the home of a slot's shard.
func (p *Process) want(k flowSlot) {
	if !p.World.Config.Data.AskTogether {
		p.post(shard.WantCommand{Type: k.r.ID, Shards: []route.ShardID{k.shard}})
		p.watch(k)
		return
	}
	p.agenda.Want(p.clock(), k)
	p.attend()
}

// askHomes asks for the homes that senders wanted, in one command for each type.
func (p *Process) askHomes() {
	list := p.agenda.Wanted()
	for _, r := range p.Regions {
		var shards []route.ShardID
		for _, k := range list {
			if k.r == r {
				shards = append(shards, k.shard)
			}
		}
		if len(shards) > 0 && p.Alive {
			p.Do(shard.WantCommand{Type: r.ID, Shards: shards})
		}
	}
}

// watch looks after the time limits of what waits in a slot.
func (p *Process) watch(k flowSlot) {
	p.agenda.Watch(p.clock(), k)
	p.attend()
}

// drainSoon goes on with a slot with a large message at its head, after the present step.
func (p *Process) drainSoon(k flowSlot) {
	p.Later(0, func() {
		k.r.drain(k.shard)
		p.watch(k)
	})
}

// roomy goes on with slots with a drain that met a full link.
func (p *Process) roomy() {
	p.agenda.Roomy()
	p.attend()
}
