// Step: what a node does for one partition, when the table or the members have changed.

package partition

import (
	"context"
	"errors"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/peer"
)

// duties is what there is to do for the instances here.
func (h *held) duties(s *State, of *hub) ([]duty, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known.here = make(map[int]stamp, len(h.here))
	for slot, i := range h.here { // into another map: the order does not show
		h.known.here[slot] = i.at
	}
	return duties(s, of.self, &h.known, of.uptime())
}

// step does what there is to do now, and returns when to look again.
func (p *Partition) step(ctx context.Context, rows table.Table) time.Duration {
	r, was := &row{}, p.row.Load()
	if i, ok := rows.Find(p.path); ok {
		r = p.hub.rowOf(rows[i], was)
	}
	if r.ok && stampOf(&was.State).above(stampOf(&r.State)) || !p.row.CompareAndSwap(was, r) {
		return time.Millisecond // a message has shown a later table meanwhile
	}
	if r.Epoch > 0 {
		p.held.placed.Store(true)
	}
	wait := time.Duration(lookIdle)
	if !p.define(ctx, rows, r) {
		wait = lookBusy
	}
	if len(r.Changes) > 0 {
		wait = lookBusy
	}
	wait = min(wait, measureDue(ctx, p, r))
	list, soon := p.held.duties(&r.State, p.hub)
	if soon > 0 {
		wait = min(wait, soon)
	}
	for _, d := range list {
		if d.act == begins && (p.hub.left.Load() || p.held.resting(d.slot, p.hub.uptime()) > 0) {
			continue // a node that leaves has ended it, and does not give one fence twice
		}
		wait = lookBusy
		p.carryOut(ctx, r, d)
	}
	settled := true
	if r.InForce.New == NewBuffers && r.Epoch > 0 {
		settled = p.buffered(ctx, r)
	} else if room := p.room.Load(); room != nil {
		settled = room.clear()
	}
	if !settled {
		wait = lookBusy
	}
	return p.held.wakes(p.hub.uptime(), wait)
}

// carryOut does one thing for the instance of a slot. What fails is tried again.
func (p *Partition) carryOut(ctx context.Context, r *row, d duty) {
	switch d.act {
	case begins:
		if p.room.Load().has(d.slot) {
			return // it ends first
		}
		at := stampOf(&r.State)
		i := p.instance(r, d.slot, at, rankOf(&r.State, p.hub.self, d.slot, at)) // it is here from now on
		if i == nil {
			return
		}
		begun := p.tasks.start(task{begins, d.slot}, func() {
			err := i.begin()
			if errors.Is(err, errRoom) {
				i.forget()
			} else if err != nil && !errors.Is(err, errOver) {
				p.hub.log.Error("an instance of a partition could not be made", "event", "partition-not-made", "path", p.path,
					"slot", d.slot, "error", err)
			}
		})
		if !begun {
			i.forget() // it is tried again
		}
	case asks:
		if p.room.Load().has(d.slot) || !p.held.mayAsk(p.hub, p.path, &d.change) {
			return // likewise
		}
		p.held.asks(d.slot, changeOf(&d.change))
		p.tasks.start(task{asks, d.slot}, func() { p.handOver(ctx, r.InForce, d.change) })
	case completes:
		if p.hub.door.Complete(ctx, d.change) == nil {
			p.held.note(d.slot, changeOf(&d.change))
		}
	case ends:
		p.end(d.slot)
		if d.change.To.IsZero() && !d.change.From.IsZero() {
			p.held.note(d.slot, changeOf(&d.change))
		}
	}
}

// handOver asks the new node to make the instance; once that is ready the change is over here. Where this node sends on
// what comes, the call that its own instance is in ends first: one of the two handles at a time.
func (p *Partition) handOver(ctx context.Context, way Handoff, c Change) {
	if i := p.held.lives(c.Slot); i != nil && way.Old == cluster.OldForwards {
		i.take()
		i.give()
	}
	limited, cancel := p.hub.node.Within(ctx, time.Second)
	defer cancel()
	id, ok := p.hub.ear(c.To, c.Slot, p.path)
	if !ok {
		return
	}
	f := frame{kind: isInit, at: changeOf(&c), from: p.hub.self}
	if _, err := p.hub.pool.Ask(limited, appendFrame(nil, &f), id, peer.AppendID(nil, c.To)); err != nil {
		return
	}
	p.held.note(c.Slot, changeOf(&c))
	p.count.moved.Add(1)
	p.hub.ping()
}

// end ends the instance of a slot here.
func (p *Partition) end(slot int) {
	i := p.held.lives(slot)
	if i == nil {
		return
	}
	f := frame{kind: isEnd, at: i.at, from: p.hub.self}
	id, ok := p.hub.ear(p.hub.self, slot, p.path)
	if ok && p.hub.pool.Tell(appendFrame(nil, &f), id, nil) == nil {
		return
	}
	p.tasks.start(task{ends, slot}, func() { // nothing comes here any more
		i.stop(&kith.Context{}, true)
		p.hub.ping()
	})
}
