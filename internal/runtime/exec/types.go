// Types: the types of which entities may live on this node, and their shards that do; and where a shard has its place,
// so that any goroutine finds it without a lock.

package exec

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Type is one registered type on this node: its shards that live here, and what is counted of it. Methods are safe for
// concurrent use unless said otherwise.
type Type struct {
	x         *Exec
	typ       entity.Type
	id        route.TypeID
	shards    uint32
	rider     func(*Host) entity.Runtime
	keep      *entity.Keep                 // nil: no entity is kept alive
	weighs    atomic.Bool                  // how long handlers run is measured by shard
	leaseLost func()                       // nil: what is kept alive needs no lease
	hosts     Places[atomic.Pointer[Host]] // by shard; set while it lives here, its stop included
	living    atomic.Int32                 // shards that live here, those that are being stopped included
	past      past
	told      incidentLimits

	refused                  [route.Reasons]atomic.Uint64
	panics, slow, lost, hung atomic.Uint64 // lost: states; hung: stop calls
	recalls                  recallCounts
	cancelled                atomic.Uint64 // contexts of handlers
}

// NewType returns a type with its defaults filled in. runtime returns what the handlers of a host reach the world by:
// Host has all of entity.Runtime but Tell and Ask.
func (x *Exec) NewType(t entity.Type, rider func(*Host) entity.Runtime) *Type {
	n := &Type{x: x, typ: t, id: route.TypeOf(t.Name), shards: t.Shards, rider: rider}
	n.hosts.Init(t.Shards)
	return n
}

// Keep keeps an entity alive in each shard that begins to live here from now on; call it before the first of them.
func (t *Type) Keep(k *entity.Keep) { t.keep = k }

// Weigh measures, from now on, how long the handlers of each shard of a type run.
func Weigh(t *Type) {
	t.weighs.Store(true)
	t.x.weighs.Store(true)
}

// KeepLeased is Keep of entities that may live only between Permit and Withhold. Before a handler is called, leaseLost
// is: it withholds them when their lease is over by then.
func KeepLeased(t *Type, k *entity.Keep, leaseLost func()) {
	t.keep, t.leaseLost = k, leaseLost
}

// Types are the types to which messages may come, as a value that is not changed any more. The zero value has none.
type Types struct {
	byID    Table[Type]
	watched []*Type // those that give SlowAfter
}

// With returns the types and t, in the place of another of its number.
func (l *Types) With(t *Type) *Types {
	n := &Types{byID: l.byID.With(t.id, t), watched: l.watched}
	if old := l.byID.At(t.id); t.typ.SlowAfter > 0 || old != nil && old.typ.SlowAfter > 0 {
		n.watched = slices.DeleteFunc(slices.Clone(l.watched), func(o *Type) bool { return o == old })
		if t.typ.SlowAfter > 0 {
			n.watched = append(n.watched, t)
		}
	}
	return n
}

// SetTypes makes the types known to which messages may come.
func (x *Exec) SetTypes(l *Types) { x.types.Store(l) }

// tableShelves is how many parts a Table has: to add one of some thousands copies tens.
const tableShelves = 64

// Table holds things by the numbers of types, as a value that is not changed any more: to make one more costs a part of
// it. The zero value is empty.
type Table[T any] struct {
	shelves [tableShelves]map[route.TypeID]*T
}

// At returns what a number stands for, nil for nothing.
func (t *Table[T]) At(id route.TypeID) *T { return t.shelves[id%tableShelves][id] }

// With returns the table with one more thing, or with another under the same number.
func (t *Table[T]) With(id route.TypeID, v *T) Table[T] {
	n := *t
	shelf := make(map[route.TypeID]*T, len(t.shelves[id%tableShelves])+1)
	maps.Copy(shelf, t.shelves[id%tableShelves])
	shelf[id] = v
	n.shelves[id%tableShelves] = shelf
	return n
}

// ID returns the type's number.
func (t *Type) ID() route.TypeID { return t.id }

// Host returns the host of a shard that lives here, its stop included, else nil. The shard is below Type.Shards.
func (t *Type) Host(shard route.ShardID) *Host {
	return t.hosts.Find(shard).Load()
}

// Living returns how many shards live here, those that are being stopped included.
func (t *Type) Living() int { return int(t.living.Load()) }

// Hosts yields the hosts of the shards of a type that live here.
func Hosts(t *Type) iter.Seq[*Host] {
	return func(yield func(*Host) bool) {
		for _, at := range t.hosts.All {
			if h := at.Load(); h != nil && !yield(h) {
				return
			}
		}
	}
}

// Hosted counts the shards that live here, and those of them that are being stopped.
func (t *Type) Hosted() (all, stopping int) {
	for _, at := range t.hosts.All {
		if h := at.Load(); h != nil {
			all++
			if h.end.began.Load() {
				stopping++
			}
		}
	}
	return all, stopping
}

// Refused counts the messages to entities here that were refused for a reason.
func (t *Type) Refused(reason route.Reason) uint64 {
	if int(reason) >= len(t.refused) {
		return 0
	}
	return t.refused[reason].Load()
}

// Incidents counts the calls into handlers that panicked, and that took too long.
func (t *Type) Incidents() (panics, slow uint64) { return t.panics.Load(), t.slow.Load() }

// StatesLost counts the states that reach no next instance, as this node knows.
func StatesLost(t *Type) uint64 { return t.lost.Load() }

// Cancelled counts the contexts of handlers that have ended because their askers had given up.
func Cancelled(t *Type) uint64 { return t.cancelled.Load() }

// StopsHung counts the calls of Stop and HandOver that had not returned by their deadline.
func StopsHung(t *Type) uint64 { return t.hung.Load() }

// LoseState tells of a state that was handed over, and that nobody will take up.
func LoseState(t *Type, shard route.ShardID, id string, why error) {
	t.x.report(t, entity.Incident{Type: t.typ.Name, ID: id, Shard: shard, Mode: t.typ.Mode, Kind: entity.StateLost,
		Err: why, Text: why.Error()})
}

// Begin makes a shard live here under a fence, and returns its host. It did not before. left is what its last owner did
// not work off: it is handled before anything else, and belongs to the host. states go to the next instances of their
// entities.
func (t *Type) Begin(shard route.ShardID, f route.Fence, left []entity.Message, states []entity.State) *Host {
	invariant.Check(t.Host(shard) == nil, "exec: a shard is to live here twice")
	h := t.x.newHost(t, shard, f, left, states)
	t.hosts.At(shard).Store(h)
	if len(left)+len(states) > 0 {
		h.ticking.Store(true)
		h.give(orderTick)
	}
	if t.keep != nil {
		h.give(orderBegin)
	}
	if t.typ.Remembered != nil {
		t.x.recaller.add(recallJob{h: h})
	}
	if t.typ.Hosted != nil {
		t.x.Attendants.add(attendJob{h: h})
	}
	return h
}

func (t *Type) countRefused(reason route.Reason) {
	if int(reason) < len(t.refused) {
		t.refused[reason].Add(1)
	}
}

// typeCache remembers the type of the last frame: most batches are of one type.
type typeCache struct {
	table *Types
	last  *Type
	id    uint32
}

// typeOf returns the type of an envelope, nil when it is not registered here.
func (c *typeCache) typeOf(x *Exec, env *wire.Envelope) *Type {
	t := x.types.Load()
	if c.table != t || c.id != env.Type || c.last == nil {
		c.table, c.id, c.last = t, env.Type, t.byID.At(route.TypeID(env.Type))
	}
	return c.last
}

// placesOfBlock is how many shards have their places side by side, and mostBlocks in how many blocks at most they do.
const (
	placesOfBlock = 64
	mostBlocks    = 2048
)

// Places holds one T for each shard of a type; a shard begins with its zero value. Those of a type of up to 131,072
// shards lie in blocks, by number: with many shards each message waits for the memory of its own, and the less there is
// of it the more stays in caches. A block is made when a place in it is first asked for: until then 64 shards cost one
// pointer. Of a larger type each place is made by itself: it costs itself and about 20 bytes, and finding it two loads
// more. Places stay. Init comes first; then methods are safe for concurrent use.
type Places[T any] struct {
	shards uint32
	blocks []atomic.Pointer[[placesOfBlock]T]
	cells  atomic.Pointer[cells[T]] // nil: there are blocks
	none   T                        // what Find returns for want of a place

	mu   sync.Mutex // held to make places
	made int        // cells
}

// cell is one place.
type cell[T any] struct {
	v     T
	shard route.ShardID
}

// cells is a hash table, probed linearly and at most half full. Cells are only added, so a lookup needs no lock; a
// larger table replaces it.
type cells[T any] struct {
	list  []atomic.Pointer[cell[T]] // as many as a power of two
	shift uint8                     // by which a hash of 32 bits becomes an index
}

// Init makes room for the places of so many shards.
func (p *Places[T]) Init(shards uint32) {
	p.shards = shards
	if shards > placesOfBlock*mostBlocks {
		p.cells.Store(&cells[T]{list: make([]atomic.Pointer[cell[T]], 8), shift: 32 - 3})
		return
	}
	p.blocks = make([]atomic.Pointer[[placesOfBlock]T], (shards+placesOfBlock-1)/placesOfBlock)
}

// At returns the place of a shard of the type, made if need be. On behalf of another node call Find, so that
// nothing is made for what others name.
func (p *Places[T]) At(s route.ShardID) *T {
	if n := uint(s / placesOfBlock); n < uint(len(p.blocks)) {
		if b := p.blocks[n].Load(); b != nil {
			return &b[s%placesOfBlock]
		}
	}
	return p.far(s)
}

// Find returns the place of a shard, or, if there is none yet or no such shard, one that holds nothing and is not to be
// changed.
func (p *Places[T]) Find(s route.ShardID) *T {
	if n := uint(s / placesOfBlock); n < uint(len(p.blocks)) {
		if b := p.blocks[n].Load(); b != nil {
			return &b[s%placesOfBlock]
		}
	}
	return p.search(s)
}

// search is Find for a type of very many shards, or for want of a block.
//
//go:noinline
func (p *Places[T]) search(s route.ShardID) *T {
	if c := p.cells.Load(); c != nil {
		if v := c.find(s); v != nil {
			return v
		}
	}
	return &p.none
}

// far is At for a type of very many shards, and where there is no block yet.
//
//go:noinline
func (p *Places[T]) far(s route.ShardID) *T {
	c := p.cells.Load()
	if c != nil {
		if v := c.find(s); v != nil {
			return v
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c == nil {
		at := &p.blocks[s/placesOfBlock]
		if at.Load() == nil {
			at.Store(new([placesOfBlock]T))
		}
		return &at.Load()[s%placesOfBlock]
	}
	if c = p.cells.Load(); c.find(s) == nil {
		c = p.room(c)
		c.put(&cell[T]{shard: s})
		p.made++
	}
	return c.find(s)
}

// room returns a table with room for one more place, which is c if that has some. The lock is held.
func (p *Places[T]) room(c *cells[T]) *cells[T] {
	if 2*(p.made+1) <= len(c.list) {
		return c
	}
	larger := &cells[T]{list: make([]atomic.Pointer[cell[T]], 2*len(c.list)), shift: c.shift - 1}
	for i := range c.list {
		if old := c.list[i].Load(); old != nil {
			larger.put(old)
		}
	}
	p.cells.Store(larger)
	return larger
}

// start returns where a shard is looked for first: by a multiplicative hash, the high bits of it.
func (c *cells[T]) start(s route.ShardID) uint32 { return uint32(s) * 0x9e3779b1 >> c.shift }

func (c *cells[T]) find(s route.ShardID) *T {
	mask := uint32(len(c.list) - 1)
	for i := c.start(s); ; i++ {
		n := c.list[i&mask].Load()
		if n == nil {
			return nil
		}
		if n.shard == s {
			return &n.v
		}
	}
}

func (c *cells[T]) put(n *cell[T]) {
	mask := uint32(len(c.list) - 1)
	i := c.start(n.shard)
	for c.list[i&mask].Load() != nil {
		i++
	}
	c.list[i&mask].Store(n)
}

// All yields the places that there are, in no order. Those that are made meanwhile may be left out.
func (p *Places[T]) All(yield func(route.ShardID, *T) bool) {
	for n := range p.blocks {
		if b := p.blocks[n].Load(); b != nil {
			first := uint32(n) * placesOfBlock
			for i := range min(placesOfBlock, p.shards-first) {
				if !yield(route.ShardID(first+i), &b[i]) {
					return
				}
			}
		}
	}
	if c := p.cells.Load(); c != nil {
		for i := range c.list {
			if n := c.list[i].Load(); n != nil && !yield(n.shard, &n.v) {
				return
			}
		}
	}
}

// Made returns how many places there are.
func (p *Places[T]) Made() (n int) {
	for range p.All {
		n++
	}
	return n
}
