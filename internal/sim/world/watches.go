// Watches of a process: those of its entities, and those on them, between its hosts and its node. The same book and the
// same verbs of shards as on a node, without locks.

package world

import (
	"slices"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// watches is what hosts and node of a process give each other.
type watches struct {
	book  watch.Book[*hosted]
	turn  watch.TurnCommand
	rung  bool      // the node is about to take that
	asked []*hosted // hosts that somebody has watched an entity of
}

// ring makes the node take what there is for it.
func (p *Process) ring() {
	w := &p.watches
	if w.rung || len(w.turn.Begin)+len(w.turn.End)+len(w.turn.Reports) == 0 {
		return
	}
	w.rung = true
	p.Later(0, func() {
		cmd := w.turn
		w.turn, w.rung = watch.TurnCommand{}, false
		p.Do(cmd)
	})
}

// carryWatches carries out what a step wants of watches.
func carryWatches(p *Process, e *node.Effects) {
	w := &p.watches
	for _, l := range e.Looks {
		lookAtWatch(p, l)
	}
	for _, id := range e.Gone {
		for _, h := range w.asked {
			h.order(func() { h.living(func() { entity.Forget(h.shard, id) }) })
		}
	}
	for _, t := range e.Told {
		entry := w.book.Of(t.Number)
		if entry == nil {
			continue // taken back, or its entity has ended
		}
		to, end := *entry, t.Ended
		end.Type, end.ID = to.Name, to.ID
		h := to.Host
		h.order(func() { h.living(func() { entity.TellEnd(h.shard, to.Entity, to.Instance, to.Number, end) }) })
	}
}

// living steps a host that has not ended.
func (h *hosted) living(do func()) {
	if !h.over {
		do()
		h.follow()
	}
}

// lookAtWatch takes a watch to the host of the entity that it is on, or says that the shard does not live here.
func lookAtWatch(p *Process, l watch.Look) {
	by := entity.Watcher{Node: l.From, Number: l.Number}
	away := func() {
		if !l.Off {
			p.watches.turn.Reports = append(p.watches.turn.Reports, watch.Report{To: by,
				Place: watch.Place{Type: l.Type, Shard: l.Shard}})
			p.ring()
		}
	}
	r := p.Region(l.Type)
	if r == nil || uint32(l.Shard) >= r.Type.Shards || r.shards.Peek(l.Shard) == nil {
		away()
		return
	}
	h := r.shards.Peek(l.Shard)
	if w := &p.watches; !slices.Contains(w.asked, h) {
		w.asked = append(slices.DeleteFunc(w.asked, func(o *hosted) bool { return o.over }), h)
	}
	h.order(func() {
		if h.over {
			away()
			return
		}
		h.living(func() {
			if l.Off {
				entity.Unwatch(h.shard, l.ID, by)
			} else if !entity.Watch(h.shard, l.ID, by) {
				away()
			}
		})
	})
}

// Watches returns how many watches the entities of a process have, and how many watch entities here.
func Watches(p *Process) (standing, watchers int) {
	standing, watchers, _, _ = p.watches.book.Figures()
	return standing, watchers
}

// greets answers for a peer of a version without watches that knows of none, and reports whether it is one.
func (p *Process) greets(to peer.ID, kind wire.Kind) bool {
	old := kind == wire.KindWatchHello && p.World.version() < kind.Since()
	if old {
		p.post(watch.OlderCommand{ID: to})
	}
	return old
}

// Watch implements entity.Watching.
func (r shardRuntime) Watch(e *entity.Entity, instance uint32, typ, id string) error {
	reg := r.p.Region(route.TypeOf(typ))
	if reg == nil {
		return route.ErrNotRegistered
	}
	w := &r.p.watches
	wanted, fresh, err := w.book.Begin(watch.Entry[*hosted]{Host: r.h, Entity: e, Instance: instance, Name: typ,
		Wanted: watch.Wanted{Type: reg.ID, Shard: reg.shardOf(id), ID: id}})
	if fresh {
		w.turn.Begin = append(w.turn.Begin, wanted)
		r.p.ring()
	}
	return err
}

// Unwatch implements entity.Watching.
func (r shardRuntime) Unwatch(e *entity.Entity, instance uint32, typ, id string) {
	if wanted, ok := r.p.watches.book.End(e, instance, route.TypeOf(typ), id); ok {
		r.p.watches.turn.End = append(r.p.watches.turn.End, wanted)
		r.p.ring()
	}
}

// Due implements entity.Watching.
func (r shardRuntime) Due(number uint64) bool { return r.p.watches.book.Due(number) }

// Over implements entity.Watching.
func (r shardRuntime) Over(e *entity.Entity, living uint32) {
	w := &r.p.watches
	w.turn.End = append(w.turn.End, w.book.Over(e, living)...)
	r.p.ring()
}

// Room implements entity.Watching.
func (r shardRuntime) Room(n int) bool { return r.p.watches.book.Room(n) }

// Watched implements entity.Watching.
func (r shardRuntime) Watched(_ *entity.Entity, by []entity.Watcher, instance uint64, why entity.EndCause) {
	w := &r.p.watches
	for _, to := range by {
		w.turn.Reports = append(w.turn.Reports, watch.Report{To: to, Cause: why, Fence: r.h.shard.Fence(),
			Place: watch.Place{Type: r.r.ID, Shard: r.h.shard.ID()}, Instance: instance})
	}
	r.p.ring()
}
