// Book: the watches that entities of this node have, each under a number.

package watch

import (
	"cmp"
	"fmt"
	"sort"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// Wanted is a watch: its number on the node of the watcher, and the entity it is on.
type Wanted struct {
	Number uint64
	Type   route.TypeID
	Shard  route.ShardID
	ID     string
}

// Entry is a watch of an entity of this node, which lives in a Host.
type Entry[H any] struct {
	Host     H
	Entity   *entity.Entity
	Instance uint32
	Name     string // of the type of the other one
	Wanted
}

// What a watch takes: an entry beside its id, and a watcher on the node of the entity that it watches.
const (
	entryBytes   = 256
	watcherBytes = 128
)

func (e *Entry[H]) bytes() int { return entryBytes + len(e.ID) }

// Book is the watches of the entities of one node. The zero value is empty. Goroutines that share it lock it.
type Book[H any] struct {
	last    uint64
	entries map[uint64]*Entry[H]
	of      map[*entity.Entity]map[target]uint64
	here    int // watchers of entities here
	taken   int // bytes, of those too
	full    uint64
}

// target is what an instance of an entity watches.
type target struct {
	instance uint32
	typ      route.TypeID
	id       string
}

// Begin notes a watch and returns it with its number. fresh is false when there was such a one. The error wraps
// entity.ErrWatchesFull.
func (b *Book[H]) Begin(e Entry[H]) (w Wanted, fresh bool, err error) {
	if b.entries == nil {
		b.entries, b.of = map[uint64]*Entry[H]{}, map[*entity.Entity]map[target]uint64{}
	}
	own, t := b.of[e.Entity], target{e.Instance, e.Type, e.ID}
	switch n, is := own[t]; {
	case is:
		return b.entries[n].Wanted, false, nil
	case len(own) >= entity.MaxWatches:
		b.full++
		return w, false, fmt.Errorf("%w: the entity has %d", entity.ErrWatchesFull, len(own))
	case !b.room(e.bytes()):
		return w, false, fmt.Errorf("%w: those of the node take %d bytes", entity.ErrWatchesFull, b.taken)
	}
	if own == nil {
		own = map[target]uint64{}
		b.of[e.Entity] = own
	}
	b.last++
	e.Number = b.last
	own[t] = e.Number
	b.entries[e.Number] = &e
	return e.Wanted, true, nil
}

// Room takes room for n watchers of entities here, or gives -n back, and reports whether there was.
func (b *Book[H]) Room(n int) bool {
	ok := b.room(n * watcherBytes)
	if ok {
		b.here += n
	}
	return ok
}

// room is that for bytes.
func (b *Book[H]) room(n int) bool {
	if n > entity.MaxWatchBytes-b.taken {
		b.full++
		return false
	}
	b.taken += n
	return true
}

// End takes a watch back. ok is false when there is none.
func (b *Book[H]) End(e *entity.Entity, instance uint32, typ route.TypeID, id string) (w Wanted, ok bool) {
	n, ok := b.of[e][target{instance, typ, id}]
	if !ok {
		return w, false
	}
	w = b.entries[n].Wanted
	return w, b.Due(n)
}

// Due reports, once, whether a watch stands, and ends it.
func (b *Book[H]) Due(number uint64) bool {
	e := b.entries[number]
	if e == nil {
		return false
	}
	b.taken -= e.bytes()
	delete(b.entries, number)
	own := b.of[e.Entity]
	if delete(own, target{e.Instance, e.Type, e.ID}); len(own) == 0 {
		delete(b.of, e.Entity)
	}
	return true
}

// Over ends the watches of an entity but those of one instance, zero for none, and returns them by number.
func (b *Book[H]) Over(e *entity.Entity, living uint32) (list []Wanted) {
	for t, n := range b.of[e] { // sorted below: the order does not show
		if t.instance != living {
			list = append(list, b.entries[n].Wanted)
		}
	}
	sort.Slice(list, func(i, k int) bool { return list[i].Number < list[k].Number })
	for i := range list {
		b.Due(list[i].Number)
	}
	return list
}

// Of returns the watch of a number, nil when it stands no more.
func (b *Book[H]) Of(number uint64) *Entry[H] { return b.entries[number] }

// Figures returns how many watches there are, how many watchers entities here have, how many bytes all take, and how
// many were refused for want of room.
func (b *Book[H]) Figures() (watches, watchers, bytes int, refused uint64) {
	return len(b.entries), b.here, b.taken, b.full
}

// byNumber orders numbers.
func byNumber(m map[uint64]struct{}) []uint64 {
	list := make([]uint64, 0, len(m))
	for n := range m { // sorted below: the order does not show
		list = append(list, n)
	}
	sort.Slice(list, func(i, k int) bool { return cmp.Less(list[i], list[k]) })
	return list
}
