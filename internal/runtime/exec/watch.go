// Watches: those of the entities here, and those on them, between the hosts and the node, which carries them to and
// fro.

package exec

import (
	"sync"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/stats"
)

// watchers is what hosts and node give each other. What comes from hosts gathers until the node takes it.
type watchers struct {
	mu    sync.Mutex
	book  watch.Book[*Host]
	turn  watch.TurnCommand
	rung  bool                 // the node has heard that there is something to take
	jobs  map[*Host][]watchJob // orders that are on their way
	asked map[*Host]struct{}   // hosts that somebody has watched an entity of
}

// watchJob is what a host is to do: look at a watch, forget a node, or tell one of its entities.
type watchJob struct {
	look watch.Look
	gone peer.ID
	told *entity.Ended
	to   watch.Entry[*Host]
}

// do runs f with the lock, and rings the node if there is something to take.
//
//go:noinline
func (x *Exec) watches(f func(*watchers)) {
	w := &x.watching
	w.mu.Lock()
	f(w)
	t := &w.turn
	ring := !w.rung && len(t.Begin)+len(t.End)+len(t.Reports) > 0
	w.rung = w.rung || ring
	w.mu.Unlock()
	if ring {
		x.needs.Watches()
	}
}

// WatchTurn takes what hosts have for the node, as Needs.Watches has announced.
func WatchTurn(x *Exec) (t watch.TurnCommand) {
	x.watches(func(w *watchers) { t, w.turn, w.rung = w.turn, watch.TurnCommand{}, false })
	return t
}

// BeginWatch makes an instance of an entity of the host watch the entity id of a type and shard.
func BeginWatch(h *Host, e *entity.Entity, instance uint32, typ *Type, s route.ShardID, id string) (err error) {
	h.x.watches(func(w *watchers) {
		wanted, fresh, full := w.book.Begin(watch.Entry[*Host]{Host: h, Entity: e, Instance: instance, Name: typ.typ.Name,
			Wanted: watch.Wanted{Type: typ.id, Shard: s, ID: id}})
		if fresh {
			w.turn.Begin = append(w.turn.Begin, wanted)
		}
		err = full
	})
	return err
}

// EndWatch takes that back.
func EndWatch(h *Host, e *entity.Entity, instance uint32, typ route.TypeID, id string) {
	h.x.watches(func(w *watchers) {
		if wanted, ok := w.book.End(e, instance, typ, id); ok {
			w.turn.End = append(w.turn.End, wanted)
		}
	})
}

// Due implements entity.Watching. It and those below are called seldom, and through several types.
//
//go:noinline
func (h *Host) Due(number uint64) (due bool) {
	h.x.watches(func(w *watchers) { due = w.book.Due(number) })
	return due
}

// Over implements entity.Watching.
//
//go:noinline
func (h *Host) Over(e *entity.Entity, living uint32) {
	h.x.watches(func(w *watchers) { w.turn.End = append(w.turn.End, w.book.Over(e, living)...) })
}

// Room implements entity.Watching.
//
//go:noinline
func (h *Host) Room(n int) (ok bool) {
	h.x.watches(func(w *watchers) { ok = w.book.Room(n) })
	return ok
}

// Watched implements entity.Watching.
//
//go:noinline
func (h *Host) Watched(_ *entity.Entity, by []entity.Watcher, instance uint64, why entity.EndCause) {
	h.x.watches(func(w *watchers) {
		for _, to := range by {
			w.turn.Reports = append(w.turn.Reports, watch.Report{To: to, Place: watch.Place{Type: h.t.id, Shard: h.shard},
				Cause: why, Fence: h.fence, Instance: instance})
		}
	})
}

// LookAtWatch takes a watch to the host of the entity that it is on, or says that the shard does not live here.
func LookAtWatch(x *Exec, l watch.Look) {
	if t := x.types.Load().byID.At(l.Type); t != nil && uint32(l.Shard) < t.shards {
		if h := t.Host(l.Shard); h != nil {
			h.job(watchJob{look: l})
			return
		}
	}
	x.watches(func(w *watchers) { w.away(&l) })
}

// away says that the shard of an entity that is watched does not live here.
func (w *watchers) away(l *watch.Look) {
	if !l.Off {
		w.turn.Reports = append(w.turn.Reports, watch.Report{To: entity.Watcher{Node: l.From, Number: l.Number},
			Place: watch.Place{Type: l.Type, Shard: l.Shard}})
	}
}

// ForgetWatchers ends all watches of a node on entities here.
func ForgetWatchers(x *Exec, id peer.ID) {
	var list []*Host
	x.watches(func(w *watchers) {
		for h := range w.asked {
			list = append(list, h)
		}
	})
	for _, h := range list {
		h.job(watchJob{gone: id})
	}
}

// TellEnd tells an entity here what became of one that it watches. A watch that stands no more is skipped.
func TellEnd(x *Exec, t watch.Told) {
	var to watch.Entry[*Host]
	x.watches(func(w *watchers) {
		if e := w.book.Of(t.Number); e != nil {
			to = *e
		}
	})
	if to.Host != nil {
		t.Ended.Type, t.Ended.ID = to.Name, to.ID
		to.Host.job(watchJob{told: &t.Ended, to: to})
	}
}

// job gives a host something to do.
func (h *Host) job(j watchJob) {
	first := false
	h.x.watches(func(w *watchers) {
		if w.jobs == nil {
			w.jobs, w.asked = map[*Host][]watchJob{}, map[*Host]struct{}{}
		}
		if w.jobs[h] = append(w.jobs[h], j); j.look.Number != 0 {
			w.asked[h] = struct{}{}
		}
		first = len(w.jobs[h]) == 1
	})
	if first {
		h.give(orderWatch)
	}
}

// watchNow carries out an orderWatch. Called where the host's messages are ordered. ended: nothing steps the shard.
func watchNow(h *Host, ended bool) {
	var list []watchJob
	h.x.watches(func(w *watchers) {
		list = w.jobs[h]
		if delete(w.jobs, h); ended {
			delete(w.asked, h)
		}
	})
	for i := range list {
		j, by := &list[i], entity.Watcher{}
		by.Node, by.Number = j.look.From, j.look.Number
		switch {
		case by.Number != 0 && !j.look.Off:
			if ended || !entity.Watch(h.sh, j.look.ID, by) {
				h.x.watches(func(w *watchers) { w.away(&j.look) })
			}
		case ended:
		case by.Number != 0:
			entity.Unwatch(h.sh, j.look.ID, by)
		case j.told != nil:
			entity.TellEnd(h.sh, j.to.Entity, j.to.Instance, j.to.Number, *j.told)
		default:
			entity.Forget(h.sh, j.gone)
		}
	}
}

// forgetHost forgets a host when its shard lives here no more.
func (x *Exec) forgetHost(h *Host) {
	x.watches(func(w *watchers) { delete(w.asked, h) })
}

// Watches returns what there is of watches on a node, but for the ends that were delivered.
func Watches(x *Exec) (s stats.Watches) {
	x.watches(func(w *watchers) { s.Standing, s.Watchers, s.Bytes, s.Refused = w.book.Figures() })
	return s
}
