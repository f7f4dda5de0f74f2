// State: what a node keeps of its partitions. What it does with them is in the files behind this one.

package partition

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/route"
)

// How often a hub looks what there is to do, when nothing has changed.
const (
	lookBusy = 100 * time.Millisecond // while something is under way
	lookIdle = 2 * time.Second
)

// door is what a hub needs of its node: the table, and the way to change it.
type door interface {
	// Table returns the table as this node has it. It must not be changed.
	Table() []State
	// Changed has something when the table may have changed since.
	Changed() <-chan struct{}
	Define(ctx context.Context, d Definition) error
	Undefine(ctx context.Context, path string) error
	Move(ctx context.Context, path string, slot int, to kith.ID) error
	Complete(ctx context.Context, c Change) error
}

// hub is what the partitions of a node have in common.
type hub struct {
	node       *kith.Node
	door       door
	self       kith.ID
	pool       *driver.Pool
	log        *slog.Logger
	askTimeout time.Duration
	began      time.Time
	wake       chan struct{} // has room for one
	stray      atomic.Uint64 // messages that nobody here reads
	unreported atomic.Uint64 // refused messages that could be reported to no sender
	left       atomic.Bool   // the node leaves, and hands its instances over no more

	mu   sync.Mutex
	open map[string]*Partition
}

// find returns the partition of a path that is open here, nil for none.
func (h *hub) find(path string) *Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[path]
}

// list returns those that are open, by path.
func (h *hub) list() []*Partition {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*Partition, 0, len(h.open))
	for _, p := range h.open {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Partition) int { return strings.Compare(a.path, b.path) })
	return list
}

// ear returns the id by which the instance of a slot on a node is notified; false: no way there is known.
func (h *hub) ear(node kith.ID, slot int, path string) (string, bool) {
	shard, ok := h.pool.ShardAt(node)
	return earID(shard, slot, path), ok
}

// ping makes the hub look soon.
func (h *hub) ping() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Partition is one that is open on a node. All methods are safe for concurrent use.
type Partition struct {
	hub  *hub
	path string
	cfg  Config

	row  atomic.Pointer[row]   // as this node has it, never nil
	room atomic.Pointer[room]  // of hand-offs that buffer; nil: none was needed yet
	err  atomic.Pointer[error] // why the definition of this node does not stand
	// What this node has defined, whether that was seen in the table, when it was said, and the version of the definition
	// that it was warned to differ from: of the hub's goroutine.
	said  *Definition
	stood bool
	since time.Time
	told  uint64

	held    held
	tasks   tasks
	count   counts
	waiting atomic.Int64 // messages that are to be sent on, and have no way yet
}

// held are the instances here, and what is known of changes.
type held struct {
	placed atomic.Bool // this node has seen the partition placed

	mu    sync.Mutex
	here  map[int]*instance
	known known
}

// tasks are what is being done that takes time.
type tasks struct {
	mu   sync.Mutex
	busy map[task]bool
}

// row is the partition in the table.
type row struct {
	State
	ok bool // it is there
}

// gone reports whether the definition was taken back and all instances have ended: what comes yet makes none.
func (h *held) gone(r *row) bool { return r.Epoch == 0 && h.placed.Load() }

// task is something that takes time, of which one at a time is done.
type task struct {
	act  act
	slot int
}

type counts struct {
	sent, handled, forwarded, refused, returned, moved atomic.Uint64
}

// instance is the handler of a slot. What takes messages here may be two entities for a moment, when the shard moves in
// which messages come to this node: the turn decides which calls the handler.
type instance struct {
	p     *Partition
	slot  int
	name  string // that a Context shows as its ID
	fence kith.Fence
	at    stamp         // of the table by which it is here
	turn  chan struct{} // has room for one call

	h    kith.Handler // of the one that has the turn; nil: New has made none yet
	over bool         // likewise
}

func newInstance(p *Partition, slot int, at stamp, birth uint64) *instance {
	// The order of merges: the epoch of the partition, then the number of the leader that wrote it.
	f := route.MakeFence(birth, uint32(min(at.epoch, 1<<32-1)), at.writer)
	return &instance{p: p, slot: slot, name: strconv.Itoa(slot), fence: f, at: at, turn: make(chan struct{}, 1)}
}

// lives returns the instance of a slot here, nil for none.
func (h *held) lives(slot int) *instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.here[slot]
}

// drop forgets an instance, if it is the one that is here, and reports whether it was.
func (h *held) drop(i *instance) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.here[i.slot] != i {
		return false
	}
	delete(h.here, i.slot)
	return true
}

// instance returns the instance of a slot here, made if need be.
func (p *Partition) instance(slot int, at stamp) *instance {
	birth := p.hub.node.View().Birth
	p.held.mu.Lock()
	defer p.held.mu.Unlock()
	i := p.held.here[slot]
	if i == nil {
		i = newInstance(p, slot, at, birth)
		p.held.here[slot] = i
	}
	return i
}

// isOver reports whether the change of a slot that is pending is over on this node.
func (h *held) isOver(s *State, slot int) bool {
	c, pending := s.Change(slot)
	if !pending {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known.isOver(&c)
}

// start has f do a task on a goroutine of its own, unless it is being done.
func (b *tasks) start(t task, f func()) {
	b.mu.Lock()
	busy := b.busy[t]
	b.busy[t] = true
	b.mu.Unlock()
	if busy {
		return
	}
	go func() {
		f()
		b.mu.Lock()
		delete(b.busy, t)
		b.mu.Unlock()
	}()
}

// note notes that a change of a slot is over on this node.
func (h *held) note(slot int, change stamp) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known.over[slot] = change
}

// room is the type of a path on a node.
type room struct {
	p    *Partition
	pool *driver.Pool // that the region is of; all its shards have homes, which all nodes know

	lives [cluster.MaxInstances]atomic.Bool // instances here, by slot

	wishes  [cluster.MaxInstances]kith.Addr // as they were said last; of the hub's goroutine
	version uint64                          // likewise
}

func (r *room) region() *driver.Region { return r.pool.Region() }

// living returns how many instances are here.
func (r *room) living() (n int) {
	for slot := range r.lives {
		if r.lives[slot].Load() {
			n++
		}
	}
	return n
}

// home returns where the instance of a slot lives as far as this node knows.
func (r *room) home(slot int) (kith.ID, bool) { return r.region().Home(route.ShardID(slot)) }

// fail notes why the partition is not as this node wants it.
func (p *Partition) fail(err error) { p.err.Store(&err) }
