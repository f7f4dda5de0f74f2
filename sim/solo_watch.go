// Watches of an Entity that is alone: what it watches, and what a test has it hear.

package sim

import (
	"slices"

	"github.com/kith-io/kith/entity"
)

// Watch is another entity that this one watches.
type Watch struct{ Type, ID string }

// soloWatch is a watch of one instance.
type soloWatch struct {
	Watch
	e        *entity.Entity
	instance uint32
	number   uint64
}

// Watches returns the entities that the entity watches, in the order in which it began to.
func (e *Entity) Watches() (list []Watch) {
	for _, w := range e.r.watches {
		list = append(list, w.Watch)
	}
	return list
}

// End makes the entity hear what became of another one that it watches, named by end.Type and end.ID, and returns what
// came of it. Of one that it does not watch it hears nothing.
func (e *Entity) End(end entity.Ended) *Call {
	e.t.Helper()
	e.begin()
	i := slices.IndexFunc(e.r.watches, func(w soloWatch) bool { return w.Type == end.Type && w.ID == end.ID })
	if i >= 0 && e.shard != nil {
		w := e.r.watches[i]
		entity.TellEnd(e.shard, w.e, w.instance, w.number, end)
		e.shard.Tick(e.r.now)
		e.run()
	}
	return e.end()
}

// Watch implements entity.Watching.
func (r *solo) Watch(e *entity.Entity, instance uint32, typ, id string) error {
	w := soloWatch{Watch{typ, id}, e, instance, r.numbered + 1}
	if !slices.ContainsFunc(r.watches, w.same) {
		r.numbered++
		r.watches = append(r.watches, w)
	}
	return nil
}

func (w soloWatch) same(o soloWatch) bool {
	return o.Watch == w.Watch && o.instance == w.instance && o.e == w.e
}

// Unwatch implements entity.Watching.
func (r *solo) Unwatch(e *entity.Entity, instance uint32, typ, id string) {
	r.watches = slices.DeleteFunc(r.watches, soloWatch{Watch{typ, id}, e, instance, 0}.same)
}

// Due implements entity.Watching.
func (r *solo) Due(number uint64) bool {
	before := len(r.watches)
	r.watches = slices.DeleteFunc(r.watches, func(w soloWatch) bool { return w.number == number })
	return len(r.watches) < before
}

// Over implements entity.Watching.
func (r *solo) Over(e *entity.Entity, living uint32) {
	r.watches = slices.DeleteFunc(r.watches, func(w soloWatch) bool { return w.e == e && w.instance != living })
}

// Room implements entity.Watching.
func (r *solo) Room(int) bool { return true }

// Watched implements entity.Watching. Nobody watches one that is alone.
func (r *solo) Watched(*entity.Entity, []entity.Watcher, uint64, entity.EndCause) {}
