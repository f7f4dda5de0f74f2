// State: what a node keeps of its partitions. What it does with them is in the files behind this one.

package partition

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	table "github.com/kith-io/kith/internal/core/partition"
	"github.com/kith-io/kith/internal/runtime/footing"
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
	Define(ctx context.Context, d Definition) error
	Undefine(ctx context.Context, path string) error
	Move(ctx context.Context, path string, slot int, to kith.ID) error
	Complete(ctx context.Context, c Change) error
}

// hub is what the partitions of a node have in common.
type hub struct {
	node       footing.Node
	door       door
	self       kith.ID
	pool       footing.Lane
	log        *slog.Logger
	askTimeout time.Duration
	began      time.Time
	wake       chan struct{} // has room for one
	stray      atomic.Uint64 // messages that nobody here reads
	unreported atomic.Uint64 // refused messages that could be reported to no sender
	waiting    atomic.Int64  // those of paths that are not open, which have no way back to their senders yet
	left       atomic.Bool   // the node leaves, and hands its instances over no more
	lingers    bool          // shards of ears stay while the node drains; of the goroutine of run

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

// leads reports whether this node knows a way to a node.
func (h *hub) leads(node kith.ID) bool {
	if node.IsZero() {
		return false
	}
	_, known := h.pool.ShardAt(node)
	return known
}

// ping makes the hub look soon.
func (h *hub) ping() {
	h.node.Ring(h.wake)
}

// uptime is how long the hub has been there.
func (h *hub) uptime() time.Duration { return h.node.Now().Sub(h.began) }

// Partition is one that is open on a node. All methods are safe for concurrent use.
type Partition struct {
	hub  *hub
	path string
	cfg  Config

	row  current               // as this node has it, never nil
	room atomic.Pointer[room]  // of hand-offs that buffer; nil: none was needed yet
	err  atomic.Pointer[error] // why the definition of this node does not stand
	// What this node has defined, whether that was seen in the table, when it was said, and the version of the definition
	// that it was warned to differ from: of the hub's goroutine.
	said  *Definition
	stood bool
	since time.Time
	told  uint64

	gauge   gauge
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
	rests map[int]rest // by slot, of instances that have failed here; nil: of none
}

// tasks are what is being done that takes time.
type tasks struct {
	on   footing.Node
	mu   sync.Mutex
	busy map[task]bool
}

// current is the table by which the hub goes.
type current struct{ atomic.Pointer[row] }

// newest is above the stamp of every table.
var newest = stamp{math.MaxUint64, math.MaxUint32}

// by returns the table by which a message is dealt with that was sent by the table of a stamp: that of the node where
// the hub has not looked at it yet, and the sender has.
func (c *current) by(at stamp, h *hub, path string) *row {
	r := c.Load()
	if !at.above(stampOf(&r.State)) {
		return r
	}
	rows := table.Table(h.door.Table())
	i, ok := rows.Find(path)
	if !ok || !stampOf(&rows[i]).above(stampOf(&r.State)) {
		return r
	}
	if now := h.rowOf(rows[i], r); c.CompareAndSwap(r, now) {
		h.ping()
		return now
	}
	return c.Load()
}

// row is the partition in the table.
type row struct {
	State
	ok     bool      // it is there
	before []earlier // by slot, of instances that have come to nodes to which this one knew no way then; nil: of none
}

// earlier is where the instance of a slot was by the table of a stamp; no node: that is not known.
type earlier struct {
	at   stamp
	node kith.ID
}

// rowOf is the row of a table that comes behind another one.
func (h *hub) rowOf(s State, was *row) *row {
	r := &row{State: s, ok: true}
	if s.InForce != was.InForce || s.InForce.New == cluster.NewBuffers {
		return r
	}
	for slot := range s.Instances {
		to, e := target(&s, slot), was.earlier(slot)
		if from := target(&was.State, slot); from != to && h.leads(from) {
			e = earlier{stampOf(&was.State), from}
		}
		if to.IsZero() || e.node.IsZero() || h.leads(to) {
			continue
		}
		if r.before == nil {
			r.before = make([]earlier, len(s.Instances))
		}
		r.before[slot] = e
	}
	return r
}

// earlier returns where the instance of a slot was before it came to a node to which no way was known.
func (r *row) earlier(slot int) earlier {
	if slot >= len(r.before) {
		return earlier{}
	}
	return r.before[slot]
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

// all is how many calls instances here have handled in all, those of hand-offs that buffer included. r may be nil.
func (c *counts) all(r *room) uint64 {
	n := c.handled.Load()
	if r != nil {
		for slot := range r.calls {
			n += r.calls[slot].Load()
		}
	}
	return n
}

// instance is the handler of a slot. What takes messages here may be two entities for a moment, when the shard moves in
// which messages come to this node: the turn decides which calls the handler.
type instance struct {
	p     *Partition
	slot  int
	name  string // that a Context shows as its ID
	fence kith.Fence
	at    stamp         // of the table by which it is here
	turn  chan struct{} // has something while nobody calls the handler

	h    kith.Handler // of the one that has the turn; nil: New has made none yet
	over bool         // likewise
}

func newInstance(p *Partition, slot int, at, rank stamp, birth uint64) *instance {
	f := fenceOf(birth, rank)
	i := &instance{p: p, slot: slot, name: strconv.Itoa(slot), fence: f, at: at, turn: make(chan struct{}, 1)}
	i.turn <- struct{}{}
	return i
}

// ownedTerm is in the term of each fence of hand-offs that buffer, and of no other: up-numbers end there.
const ownedTerm = 1 << 31

// fenceOf is the fence of an instance of hand-offs that do not buffer, in the order of merges: the epoch of the
// partition, then the number of the leader that wrote it.
func fenceOf(birth uint64, rank stamp) kith.Fence {
	return route.MakeFence(birth, uint32(min(rank.epoch, ownedTerm-1)), rank.writer)
}

// fenceOfOwner is that of hand-offs that buffer: the owner's, above all of the other kind. So a partition that goes
// over to such a hand-off has a later fence than it had, and no fence is given twice.
func fenceOfOwner(f kith.Fence) kith.Fence {
	return route.MakeFence(f.Birth(), f.Term()|ownedTerm, f.Epoch())
}

// lives returns the instance of a slot here, nil for none.
func (h *held) lives(slot int) *instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.here[slot]
}

// any reports whether an instance is here.
func (h *held) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.here) > 0
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

// instance returns the instance of a slot here, made if need be: by the table of a stamp, and with a fence of a rank.
// nil means that there is none, and that the hub goes by another table than r since: r says nothing any more.
func (p *Partition) instance(r *row, slot int, at, rank stamp) *instance {
	birth := p.hub.node.View().Birth
	p.held.mu.Lock()
	defer p.held.mu.Unlock()
	i := p.held.here[slot]
	if i == nil && p.row.Load() == r {
		i = newInstance(p, slot, at, rank, birth)
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

// start has f do a task on a goroutine of its own, unless it is being done. It reports whether it does.
func (b *tasks) start(t task, f func()) (began bool) {
	b.mu.Lock()
	busy := b.busy[t]
	b.busy[t] = true
	b.mu.Unlock()
	if busy {
		return false
	}
	spawn(b.on, func() {
		f()
		b.mu.Lock()
		delete(b.busy, t)
		b.mu.Unlock()
	})
	return true
}

// note notes that a change of a slot is over on this node.
func (h *held) note(slot int, change stamp) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known.over[slot] = change
}

// An instance that has failed, since it panicked or could not be made, is begun anew by the next message. Where none
// comes its node begins it after a rest, which doubles with each failure that comes within restMost of the last one.
const (
	restLeast = time.Second
	restMost  = time.Minute
)

// rest is that of a slot.
type rest struct {
	times int           // how often it has failed
	until time.Duration // by the uptime
}

// fails notes that the instance of a slot has failed here.
func (h *held) fails(slot int, now time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rests[slot]
	if now >= r.until+restMost {
		r.times = 0
	}
	r.until = now + min(restLeast<<min(r.times, 10), restMost)
	r.times++
	if h.rests == nil {
		h.rests = map[int]rest{}
	}
	h.rests[slot] = r
}

// resting is for how long a slot still rests; zero: it does not.
func (h *held) resting(slot int, now time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.rests[slot].until-now)
}

// wakes is when the next rest ends, at most within wait.
func (h *held) wakes(now, wait time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.rests { // the least: the order does not show
		if left := r.until - now; left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// failed is fails now, and has the hub look.
func (h *held) failed(slot int, of *hub) {
	h.fails(slot, of.uptime())
	of.ping()
}

// asks notes that the new node of a change is asked.
func (h *held) asks(slot int, change stamp) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known.asked[slot] = change
}

// mayAsk reports whether the new node of a change has been asked to make the instance, or can be: as long as this one
// knows no way to it the change has not begun here, and the instance of this node handles.
func (h *held) mayAsk(of *hub, path string, c *Change) bool {
	if _, known := of.ear(c.To, c.Slot, path); known {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.known.asked[c.Slot]
	return ok && at == changeOf(c)
}

// room is the type of a path on a node.
type room struct {
	p    *Partition
	lane footing.Lane

	lives [cluster.MaxInstances]atomic.Bool   // instances here, by slot
	calls [cluster.MaxInstances]atomic.Uint64 // that they have handled

	wishes  [cluster.MaxInstances]kith.Addr     // as they were said last; of the hub's goroutine
	version uint64                              // likewise
	begun   [cluster.MaxInstances]time.Duration // when the instance was last asked to begin; likewise
	pulls   [cluster.MaxInstances]pulled
}

// pulled is how often a shard was ordered to move here in vain, and when it may be ordered again.
type pulled struct {
	orders  int // of the hub's goroutine
	next    time.Duration
	refused atomic.Bool // the last order was not taken, so that nothing has moved
}

// has reports whether the instance of a slot is here. There may be no room. One that was abandoned, as that of a node
// that was lost for the others, is not stopped: it counts as long as its shard has no other home.
func (r *room) has(slot int) bool {
	if r == nil || !r.lives[slot].Load() {
		return false
	}
	home, known := r.home(slot)
	return !known || home == r.p.hub.self
}

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
func (r *room) home(slot int) (kith.ID, bool) { return r.lane.Home(route.ShardID(slot)) }

// fail notes why the partition is not as this node wants it.
func (p *Partition) fail(err error) { p.err.Store(&err) }
