// Region: the routes of one type's shards, and the checks before a message takes one.

package driver

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Region is one registered type on this node.
type Region struct {
	d       *Driver
	typ     entity.Type
	id      route.TypeID
	shards  uint32
	chosen  bool // by a function of the type, which shard an id is of
	sends   bool // the type has something around its sends
	parking *flow.Parking
	parked  budget
	cells   exec.Places[routeCell]
	hosts   *exec.Type
	keep    *Keep                 // nil: no entity is kept alive
	crew    crewed                // nil: its entities are not the workers of a pool
	lease   *leaseKeeper          // nil: it needs none
	refused atomic.Pointer[error] // why the cluster does not have this type; routes stay unknown then
	count   regionCounters
	no      int // of its registration, as they came
	heirs   successorTable
	crowd   atomic.Uint64 // how many entities were last reported

	full [route.Reasons]error // this node's own bounds, by reason
}

// crewed is a pool as its region sees it.
type crewed interface {
	of(r *Region)                         // its workers are entities of r
	muster()                              // homes or members are others now; on the control goroutine
	refused(by peer.ID, why route.Reason) // a node has refused a message
	TellWith(h *Headers, payload []byte) error
	AskWith(ctx context.Context, h *Headers, payload []byte) ([]byte, error)
	askFor(by *exec.Host, d time.Duration, h *Headers, payload, into []byte) ([]byte, error)
}

// routeCell is one shard as senders see it, half a line of memory. route is the fast path: nil means the slow one,
// through slow. What link and stamp say is of the route that stands before and after they are read: they change only
// while there is none.
type routeCell struct {
	route atomic.Pointer[routeEntry]
	link  atomic.Pointer[transport.Link] // of the route: a send touches nothing of that itself; nil: it leads here
	stamp atomic.Uint64                  // the term and the epoch of the route
	slow  atomic.Pointer[regionSlot]     // nil: nobody has dealt with the shard
}

// open lets senders take the route e. The slot's lock is held.
func (c *routeCell) open(e *routeEntry) {
	c.route.Store(nil)
	c.link.Store(e.link)
	c.stamp.Store(uint64(e.term)<<32 | uint64(e.epoch))
	c.route.Store(e)
}

// regionSlot is what else there is of a shard that this node has dealt with.
type regionSlot struct {
	*routeCell

	mu   sync.Mutex
	slot flow.Slot
	next *routeEntry // where the slot leads, once it is drained; set by lead
	was  lastHome    // where it led last, while it leads nowhere
}

// lastHome names another node, in one word: a node knows of very many slots.
type lastHome struct{ unique.Handle[peer.ID] }

// id returns the node, the zero ID for none.
func (h lastHome) id() peer.ID {
	if h == (lastHome{}) {
		return peer.ID{}
	}
	return h.Value()
}

// lead notes where the slot leads, nil for nowhere, and counts it there. The lock is held.
func (s *regionSlot) lead(e *routeEntry) {
	if s.next != nil && s.next.remote != nil {
		s.next.remote.homes.Add(-1)
		s.was = lastHome{unique.Make(s.next.remote.id)}
	}
	if e != nil {
		s.was = lastHome{}
	}
	if s.next = e; e != nil && e.remote != nil {
		e.remote.homes.Add(1)
	}
}

// slotOf returns the slot of a shard, made if need be.
func slotOf(r *Region, n route.ShardID) *regionSlot {
	c := r.cells.At(n)
	if s := c.slow.Load(); s != nil {
		return s
	}
	c.slow.CompareAndSwap(nil, &regionSlot{routeCell: c, slot: flow.MakeSlot(r.parking)})
	return c.slow.Load()
}

// known returns the slot of a shard, nil if this node has not dealt with it.
func known(r *Region, n route.ShardID) *regionSlot { return r.cells.Find(n).slow.Load() }

// knownShards yields the shards that this node has dealt with.
func knownShards(r *Region) iter.Seq[route.ShardID] {
	return func(yield func(route.ShardID) bool) {
		for n, c := range r.cells.All {
			if c.slow.Load() != nil && !yield(n) {
				return
			}
		}
	}
}

// slotRef names a slot.
type slotRef struct {
	r     *Region
	shard route.ShardID
}

func (s slotRef) slot() *regionSlot { return slotOf(s.r, s.shard) }

// host returns the host of the shard when it lives here, its stop included, else nil.
func (s slotRef) host() *exec.Host { return s.r.hosts.Host(s.shard) }

// routeEntry is an immutable home of a shard. An appender compares it with the slot's under the lock that orders
// the append: it is the generation of the route.
type routeEntry struct {
	host        *exec.Host      // the shard lives here
	remote      *peerConn       // or there,
	link        *transport.Link // reached by this
	term, epoch uint32
	doubted     atomic.Bool // a receiver has refused it; asked about once
	of          slotRef
	fence       route.Fence
	since       time.Duration // when this node learnt of it
}

// successorTable knows to which nodes shards have moved lately: they may answer asks that were sent before.
type successorTable struct {
	mu sync.Mutex
	of map[route.ShardID]*plane.Successors
}

// add notes that a shard leaves the owner under a fence.
func (t *successorTable) add(n route.ShardID, left route.Fence, to peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[route.ShardID]*plane.Successors{}
	}
	if t.of[n] == nil {
		t.of[n] = &plane.Successors{}
	}
	t.of[n].Add(left, to)
}

// may reports whether a node may answer an ask that was sent to the owner of a shard under a fence.
func (t *successorTable) may(n route.ShardID, from peer.ID, asked route.Fence) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[n].May(from, asked)
}

// mayAnswerFor reports whether a node may answer an ask beside the one that it was sent to: the shard has moved to it
// since, and the ask with it.
func mayAnswerFor(e *routeEntry, from peer.ID) bool {
	if e.of.r == nil {
		return false
	}
	if e.of.r.heirs.may(e.of.shard, from, e.fence) {
		return true
	}
	s := e.of.slot()
	s.mu.Lock()
	defer s.mu.Unlock()
	return plane.IsNextHome(&s.slot, from, e.fence)
}

// over reports whether an ask that was sent to e, nil for one that is parked, waits for an answer over a connection.
func (e *routeEntry) over(r *peerConn) bool { return e != nil && e.remote == r && !hasMoved(e) }

// hasMoved reports whether the shard that an ask was sent to lives elsewhere by now: then another node answers it.
func hasMoved(e *routeEntry) bool {
	if e.of.r == nil {
		return false
	}
	s := e.of.slot()
	s.mu.Lock()
	defer s.mu.Unlock()
	return plane.HasMoved(&s.slot, e.fence)
}

// regionTable is the immutable table of registered types. The zero value is empty.
type regionTable struct {
	byID   exec.Table[Region]
	hosts  *exec.Types // of the same types
	list   []*Region   // in the order of registration; a later table may have more behind it in the same memory
	leased []*Region   // those that live under leases
}

// with returns the table with one more type, in the place of a refused one of its name. It is made of the newest table
// alone: the memory of the list is shared.
func (t *regionTable) with(r *Region) *regionTable {
	n := &regionTable{byID: t.byID.With(r.id, r), list: append(t.list, r), leased: t.leased}
	if t.hosts == nil {
		t = &regionTable{hosts: &exec.Types{}}
	}
	n.hosts = t.hosts.With(r.hosts)
	old := t.byID.At(r.id)
	isOld := func(o *Region) bool { return o == old }
	if old != nil {
		n.list = slices.DeleteFunc(slices.Clone(n.list), isOld)
	}
	if r.lease != nil || old != nil && old.lease != nil {
		n.leased = slices.DeleteFunc(slices.Clone(n.leased), isOld)
	}
	if r.lease != nil {
		n.leased = append(n.leased, r)
	}
	return n
}

// without returns the table as it was before the newest type; others may be reading its place in the list.
func (t *regionTable) without() *regionTable {
	n := *t
	n.list = slices.Clip(n.list)
	return &n
}

// muster makes pools look up their workers where stale says that these may have changed.
func (t *regionTable) muster(stale func(*Region) bool) {
	for _, r := range t.list {
		if r.crew != nil && stale(r) {
			r.crew.muster()
		}
	}
}

// named returns a type by its name, nil for none.
func (t *regionTable) named(name string) *Region {
	if r := t.byID.At(route.TypeOf(name)); r != nil && r.typ.Name == name {
		return r
	}
	return nil
}

// Named returns the region of a type that a node has registered, nil when it has not.
func Named(typ string, d *Driver) *Region { return d.regions.Load().named(typ) }

// know publishes the table of registered types.
func (d *Driver) know(t *regionTable) {
	d.regions.Store(t)
	if t.hosts == nil {
		d.exec.SetTypes(&exec.Types{})
		return
	}
	d.exec.SetTypes(t.hosts)
}

// Register makes a type known on this node.
func (d *Driver) Register(t entity.Type) (*Region, error) { return RegisterKept(d, t, nil) }

// RegisterKept makes a type known on a node of which k, if not nil, keeps an entity of each shard alive: all its shards
// get homes, though nobody sends. With a lease it lives only while that is held.
func RegisterKept(d *Driver, t entity.Type, k *Keep) (*Region, error) {
	t = t.WithDefaults()
	if err := t.Validate(); err != nil {
		return nil, fmt.Errorf("kith: register: %w", err)
	}
	r := newRegion(d, t)
	if k != nil && k.crew != nil {
		r.crew, k = k.crew, nil
		r.crew.of(r)
	}
	if r.keep = k; k != nil {
		r.hosts.Keep(&k.Keep)
	}
	if r.lease = leaseFor(d, r); r.lease != nil {
		exec.KeepLeased(r.hosts, &k.Keep, func() { r.lease.overdue() })
	}
	answer := make(chan error, 1)
	if !d.inbox.post(func() { answer <- d.register(r) }) {
		return nil, d.ended()
	}
	select {
	case err := <-answer:
		if err != nil {
			return nil, fmt.Errorf("kith: register type %q: %w", t.Name, err)
		}
		return r, nil
	case <-d.done:
		return nil, d.ended()
	}
}

func newRegion(d *Driver, t entity.Type) *Region {
	r := &Region{d: d, typ: t, id: route.TypeOf(t.Name), shards: t.Shards, chosen: t.ShardBy.Of != nil,
		sends: entity.SendsAround(&t)}
	r.parked.limit = int64(d.cfg.Sharding.ParkBytes)
	r.parking = flow.NewParking(0, d.cfg.Sharding.ParkBytes, d.cfg.Sharding.ParkTime, &r.parked)
	if d.cfg.Sharding.ParkTime == 0 {
		r.parking.Follow(func() time.Duration { return d.takeover.parkTime() })
	}
	r.full = d.bounds.fullHere(r)
	r.cells.Init(t.Shards)
	r.hosts = d.exec.NewType(t, func(h *exec.Host) entity.Runtime { return hostRuntime{h, r} })
	return r
}

// register runs on the control goroutine. The region is published first: the answer may bring shards.
func (d *Driver) register(r *Region) error {
	before := d.regions.Load()
	if other := before.byID.At(r.id); other != nil {
		if other.typ.Name != r.typ.Name {
			return fmt.Errorf("%w: %q", shard.ErrHashCollision, other.typ.Name)
		}
		if other.refused.Load() == nil || other.hosts.Living() > 0 {
			return ErrTypeExists
		}
	}
	if r.lease != nil {
		d.control.leases.list = append(d.control.leases.list, r.lease)
	}
	d.control.registered++
	r.no = d.control.registered
	d.know(before.with(r))
	settings := shard.Settings{Name: r.typ.Name, Shards: r.typ.Shards, Role: r.typ.Role,
		ShardBy: r.typ.ShardBy.Name}
	err := d.command(shard.RegisterCommand{Settings: settings, Strategy: r.typ.Strategy})
	if err != nil {
		d.know(before.without())
		d.control.leases.drop(r.lease)
		return err
	}
	if r.keep != nil || r.typ.Remembered != nil || r.typ.Hosted != nil || r.crew != nil {
		return d.command(shard.EagerCommand{Type: r.id})
	}
	return nil
}

// typeRefused notes that the cluster has this type with other settings. What is parked fails, and all later sends.
func (d *Driver) typeRefused(t shard.TypeRefused) {
	r := d.regions.Load().byID.At(t.Type)
	if r == nil {
		return
	}
	d.log.Error("type refused by the cluster", "type", r.typ.Name, "error", t.Err)
	err := t.Err
	r.refused.Store(&err)
	for s := range knownShards(r) {
		d.failParked(slotRef{r, s}, route.NotRegistered)
	}
}

// Type returns the declaration, defaults filled in.
func (r *Region) Type() entity.Type { return r.typ }

// Shard returns the shard of an entity id, route.NoShard where the type's function gives none.
func (r *Region) Shard(id string) route.ShardID {
	sh, _ := r.typ.ShardOf(id)
	return sh
}

// Refused returns why the cluster does not have this type, nil while it has.
func (r *Region) Refused() error {
	if err := r.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// Home returns where a shard of the region lives as far as this node knows, and whether it knows.
func (r *Region) Home(n route.ShardID) (peer.ID, bool) {
	s := known(r, n)
	if s == nil {
		return peer.ID{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.slot.State() < flow.Local:
		return peer.ID{}, false
	case s.slot.IsLocal():
		return r.d.self, true
	}
	return s.slot.Home(), true
}

// check judges what a caller gives; errLarge when it is in order but for a payload that fits no frame.
func (r *Region) check(id string, payload []byte, h *Headers) error {
	if err := h.check(); err != nil {
		return err
	}
	if r.fit(id, payload) {
		return nil
	}
	return r.unfit(id, len(payload))
}

func (r *Region) fit(id string, payload []byte) bool {
	return !r.d.exec.Gate.Closed() && uint(len(id)-1) < wire.MaxIDSize && len(payload) <= r.d.cfg.MaxPayload
}

// unfit is why check refuses.
func (r *Region) unfit(id string, size int) error {
	if err := route.CheckID(id); err != nil {
		return err
	}
	if size > r.d.cfg.MaxPayload {
		return errLarge
	}
	if r.d.exec.Gate.Closed() {
		return r.suspended()
	}
	return nil // the gate has opened meanwhile
}

// unanswered returns the error of an ask that has ended, and that went by e (nil: nowhere). Where no answer came it
// names the entity, its owner, and the owner's outage: the node that was asked, or, when the shard had no home, the one
// that it lived on last.
func unanswered(e *routeEntry, r *Region, id string, sh route.ShardID, reason route.Reason, err error) error {
	if !route.Unanswered(reason) || r == nil || r.d == nil { // a table of its own knows no node
		return err
	}
	u := &route.UnansweredError{Type: r.typ.Name, ID: id, Err: err}
	switch {
	case e != nil && e.remote != nil:
		u.Owner = e.remote.id
	case e != nil:
		u.Owner = r.d.self
	default:
		if s := known(r, sh); s != nil {
			s.mu.Lock()
			u.Owner = s.was.id()
			s.mu.Unlock()
		}
	}
	for _, o := range r.d.takeover.told(r.d.start, r.d.now()) {
		if o.Member == u.Owner {
			u.Lost = true
			if !o.ServedBy.IsZero() && !o.Late {
				u.ServedIn = max(time.Until(o.ServedBy), 1)
			}
		}
	}
	return u
}
