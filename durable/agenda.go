// Agendas: which entities of a shard have a reminder that is due soon, as long as the shard lives here.

package durable

import (
	"container/heap"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/store"
	"github.com/kith-io/kith/wire"
)

const (
	horizon    = time.Minute      // how far ahead an agenda reads
	mostOnIt   = 4096             // entities that are read for one agenda; as many again may come by commits
	mostFails  = mostOnIt / 4     // of them: those that could not be woken
	mostAwake  = 32               // entities of one shard that handle reminders at once
	nap        = 5 * time.Second  // how long an agenda sleeps at most: so soon it finds that the clock was set
	wakeTime   = 30 * time.Second // how long one entity may take
	awayMost   = 10 * time.Second // between two tries where the store, or an owner, may soon answer again
	never      = 1<<63 - 1
	noReminder = -1 // of an item: the entity has none any more
)

// item is one entity on an agenda. It is in the heap unless it is awake.
type item struct {
	id    string
	at    int64 // in milliseconds: not before
	place int   // in the heap
	awake bool
	told  int64 // what commits said since it was woken: when it is due, noReminder; 0: nothing
	tries int   // to wake it, that failed
}

// agenda wakes the entities of one shard for their reminders in time. It is a machine that is given the time, in
// milliseconds, with a lock: methods are safe for concurrent use.
type agenda struct {
	rate   int
	ground ground.Ground
	bell   chan struct{} // holds one: look

	mu     sync.Mutex
	items  map[string]*item
	order  itemHeap
	until  int64 // what is due before is on the agenda
	full   bool  // it was full when the store was read
	look   int64 // when to read again
	tries  int   // to read, that failed
	awake  int
	fails  int // items with tries
	second int64
	used   int // reminders begun since second
}

// itemHeap is a heap of items by time.
type itemHeap []*item

func (h itemHeap) Len() int { return len(h) }

// Less orders by time, then by id.
func (h itemHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].id < h[j].id
}

// Swap keeps the places.
func (h itemHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds an item.
func (h *itemHeap) Push(x any) {
	i := x.(*item)
	i.place = len(*h)
	*h = append(*h, i)
}

// Pop takes the last one.
func (h *itemHeap) Pop() any {
	last := len(*h) - 1
	i := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return i
}

func newAgenda(rate int, on ground.Ground) *agenda {
	return &agenda{rate: rate, ground: on, bell: make(chan struct{}, 1), items: map[string]*item{}}
}

// ring wakes the agenda.
func (a *agenda) ring() { a.ground.Ring(a.bell) }

// put puts an entity on the agenda. The lock is held.
func (a *agenda) put(i *item) {
	a.items[i.id] = i
	heap.Push(&a.order, i)
	if i.place == 0 {
		a.ring()
	}
}

// drop takes an entity off, which is in no heap. The lock is held.
func (a *agenda) drop(i *item) {
	delete(a.items, i.id)
	a.failed(i, 0)
}

// failed notes how often an item could not be woken. The lock is held.
func (a *agenda) failed(i *item, tries int) {
	switch {
	case i.tries == 0 && tries > 0:
		a.fails++
	case i.tries > 0 && tries == 0:
		a.fails--
	}
	i.tries = tries
}

// reads says whether the store is to be read at a time, and up to which time. Commits count from now on up to that.
func (a *agenda) reads(now int64) (by int64, wanted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ahead := horizon.Milliseconds()
	if now < a.look && !(a.full && len(a.items)-a.fails < mostOnIt/2) && a.look-now <= 2*ahead { // or the clock was set
		return 0, false
	}
	a.until, a.full = max(a.until, now+ahead), false
	if a.until > now+2*ahead {
		a.until = now + ahead
	}
	return a.until, true
}

// read takes up what the store said is due; false: there is no room, or what comes is known already.
func (a *agenda) read(id string, at int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.items[id]
	switch {
	case i != nil && !i.awake && i.tries == 0 && at < i.at:
		i.at = at
		heap.Fix(&a.order, i.place)
	case i != nil:
	case len(a.items) >= mostOnIt:
		a.full, a.until = true, min(a.until, at)
		return false
	default:
		a.put(&item{id: id, at: at})
	}
	return true
}

// wasRead notes how reading ended.
func (a *agenda) wasRead(err error, now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.look = now + min(pause(a.tries), awayMost.Milliseconds())
		a.tries++
		return
	}
	half := horizon.Milliseconds() / 2
	a.tries, a.look = 0, now+half-a.ground.Chance(half/2) // shards that began together do not stay so
}

// pause returns how many milliseconds to rest behind so many failures.
func pause(tries int) int64 { return min(againFirst<<min(tries, 10), againMost).Milliseconds() }

// committed notes when entities are due since a commit took place, noReminder for one that has no reminder.
func (a *agenda) committed(id string, due int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.items[id]
	switch {
	case i == nil && (due == noReminder || due >= a.until):
	case i == nil && len(a.items) >= 2*mostOnIt:
		a.full, a.until = true, min(a.until, due)
	case i == nil:
		a.put(&item{id: id, at: due})
	case i.awake:
		i.told = due
	case due == noReminder || due >= a.until:
		heap.Remove(&a.order, i.place)
		a.drop(i)
	default:
		a.failed(i, 0)
		i.at = due
		if heap.Fix(&a.order, i.place); i.place == 0 {
			a.ring()
		}
	}
}

// take returns the entities that are to be woken now, the oldest reminder first, and when to look again.
func (a *agenda) take(now int64) (list []*item, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now >= a.second+1000 || now < a.second {
		a.second, a.used = now, 0
	}
	next = min(a.look, now+nap.Milliseconds())
	for len(a.order) > 0 {
		i := a.order[0]
		switch {
		case i.at > now:
			return list, min(next, i.at)
		case a.awake >= mostAwake:
			return list, next // an entity that falls asleep rings
		case a.used >= a.rate:
			return list, min(next, a.second+1000)
		}
		heap.Pop(&a.order)
		i.awake, i.told = true, 0
		a.awake++
		a.used++
		list = append(list, i)
	}
	return list, next
}

// woken notes what came of waking an entity: when its next reminder is due (noReminder: it has none), or an error.
func (a *agenda) woken(i *item, due int64, err error, now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.ring()
	a.awake--
	i.awake = false
	switch {
	case i.told != 0: // which came behind what the entity itself knew
		i.at = i.told
		a.failed(i, 0)
	case err != nil && a.fails >= mostFails && i.tries == 0: // it is found again when the store is read
		a.drop(i)
		return
	case err != nil:
		rest := pause(i.tries)
		if !errors.Is(err, ErrRecord) {
			rest = min(rest, awayMost.Milliseconds())
		}
		i.at = now + rest
		a.failed(i, i.tries+1)
	default:
		i.at = due
		a.failed(i, 0)
	}
	if i.at == noReminder || i.at >= a.until && i.tries == 0 {
		a.drop(i)
		return
	}
	heap.Push(&a.order, i)
}

// agendaOf returns that of a shard under a fence, nil while there is none.
func (d *desk) agendaOf(s kith.ShardID, f kith.Fence) *agenda {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.agendas[s]; at.fence == f {
		return at.agenda
	}
	return nil
}

// ownAgenda is an agenda and the fence of its owner.
type ownAgenda struct {
	*agenda
	fence kith.Fence
}

// reminds runs the reminders of a shard until ctx ends.
func (d *desk) reminds(ctx context.Context, n kith.ShardID, f kith.Fence) {
	if !d.ground.Wait(ctx, ground.Forever, d.registered) {
		return
	}
	a, at := newAgenda(d.rate, d.ground), store.Shard{Type: d.name, N: n}
	d.mu.Lock()
	d.agendas[n] = ownAgenda{a, f}
	d.mu.Unlock()
	all := ground.Crew{On: d.ground}
	for ctx.Err() == nil && d.stopped.Load() == nil {
		if by, wanted := a.reads(d.now().UnixMilli()); wanted {
			d.readAgenda(ctx, a, at, by)
		}
		now := d.now().UnixMilli()
		list, next := a.take(now)
		for _, i := range list {
			all.Go(func() {
				due, err := d.wake(ctx, i.id)
				a.woken(i, due, err, d.now().UnixMilli())
			})
		}
		d.ground.Wait(ctx, max(time.Duration(next-now)*time.Millisecond, 0), a.bell)
	}
	all.Wait()
	d.trouble.leaves(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agendas[n].agenda == a {
		delete(d.agendas, n)
	}
}

// readAgenda reads what is due by a time, as far as there is room for it.
func (d *desk) readAgenda(ctx context.Context, a *agenda, at store.Shard, by int64) {
	short, cancel := d.ground.Within(ctx, d.patience)
	defer cancel()
	var failed error
	for alarm, err := range d.store.Due(short, at, time.UnixMilli(by)) {
		if failed = err; err != nil || !a.read(alarm.ID, alarm.At.UnixMilli()) {
			break
		}
	}
	switch now := d.now(); {
	case failed == nil:
		d.trouble.works(a, d.ground.Now())
		a.wasRead(nil, now.UnixMilli())
	default:
		if ctx.Err() == nil {
			d.trouble.fails(a, failed, d.ground.Now())
		}
		a.wasRead(failed, now.UnixMilli())
	}
}

// wake makes an entity look at its reminders, and returns when the next one is due.
func (d *desk) wake(ctx context.Context, id string) (due int64, err error) {
	short, cancel := d.ground.Within(ctx, wakeTime)
	defer cancel()
	b, err := d.line.Ask(short, []byte(wakeMark), id, nil)
	if err != nil {
		return 0, err
	}
	if b, err = answered(b); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return noReminder, nil
	}
	in := wire.NewReader(0, b)
	due = int64(in.U64())
	return due, in.Done()
}

// committed notes writes that are stored in the shard's agenda.
func (k *keeper) committed(batch []*pending) {
	a := k.d.agendaOf(k.shard.N, k.fence)
	if a == nil {
		return
	}
	for _, p := range batch {
		due := int64(noReminder)
		if !p.Delete && !p.Due.IsZero() {
			due = p.Due.UnixMilli()
		}
		a.committed(p.ID, due)
	}
}
