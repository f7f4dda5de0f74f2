// Room: the instances of hand-offs that buffer. Each is the one entity of a shard of a hidden type with homes that
// follow the table: moves of shards keep the order of each sender, one instance at a time, and its state.

package partition

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// roomType begins the name of the type of a path.
const roomType = "kith.partition:"

// nameOf is the name of a path's type.
func nameOf(path string) string {
	if len(roomType)+len(path) <= route.MaxTypeName {
		return roomType + path
	}
	h := fnv.New128a()
	_, _ = h.Write([]byte(path))
	return roomType + path[:route.MaxTypeName-len(roomType)-33] + fmt.Sprintf("~%x", h.Sum(nil))
}

// slotShard is the shard of an entity of a room: its id is the slot.
func slotShard(id string) route.ShardID {
	n, err := strconv.Atoi(id)
	if err != nil || n < 0 || n >= cluster.MaxInstances {
		return route.NoShard
	}
	return route.ShardID(n)
}

// newRoom makes the type known on this node.
func newRoom(p *Partition) (*room, error) {
	r := &room{p: p}
	lane, err := p.hub.node.Lane(entity.Type{Name: nameOf(p.path), Shards: cluster.MaxInstances,
		ShardBy: entity.ShardBy{Name: "slot", Of: slotShard}, Strategy: strategy.NewExternal(cluster.MaxInstances),
		New: func(id string, f route.Fence) entity.Handler {
			return &ordered{r: r, slot: int(slotShard(id)), fence: fenceOfOwner(f)}
		}})
	r.lane = lane
	return r, err
}

// ordered is the entity of a slot. It makes the handler when there is something for it.
type ordered struct {
	r     *room
	slot  int
	fence kith.Fence
	h     kith.Handler
}

// show makes a Context show the fence of the instance until the function that it returns is called.
func (o *ordered) show(c *entity.Context) func() {
	f := c.Fence
	c.Fence = o.fence
	return func() { c.Fence = f }
}

func (o *ordered) make() error {
	if o.h != nil {
		if lives := &o.r.lives[o.slot]; !lives.Load() {
			lives.Store(true)
		}
		return nil
	}
	if i := o.r.p.held.lives(o.slot); i != nil { // of the hand-off before, which buffered nothing
		i.stop(&kith.Context{}, true)
	}
	defer func() {
		if o.h == nil {
			o.fails()
		}
	}()
	if o.h = o.r.p.cfg.New(o.slot, o.fence); o.h == nil {
		return ErrNotMade
	}
	o.r.lives[o.slot].Store(true)
	return nil
}

// fails notes that the instance has panicked, could not be made, or did not take its state: no Stop comes.
func (o *ordered) fails() {
	o.r.lives[o.slot].Store(false)
	o.r.p.held.failed(o.slot, o.r.p.hub)
}

// Receive implements Handler.
func (o *ordered) Receive(c *entity.Context, payload []byte) error {
	returned := false
	defer func() {
		if !returned && o.h != nil { // else make has noted it
			o.fails()
		}
	}()
	err := o.receive(c, payload)
	returned = true
	return err
}

func (o *ordered) receive(c *entity.Context, payload []byte) error {
	f, p := frame{kind: isMessage}, o.r.p
	raw := c.Headers()
	if len(raw) > 0 { // else it is of a timer, or of another instance's Context
		var err error
		if f, err = parseFrame(raw); err != nil {
			p.hub.stray.Add(1)
			return err
		}
	}
	switch {
	case f.kind == isEnd:
		p.held.note(o.slot, f.at)
		c.Passivate()
		p.hub.ping()
		return nil
	case f.kind == isBegin:
		return o.make()
	case o.h == nil && !o.buffers(f.at): // the partition has gone over to another kind of hand-off
		c.Passivate()
		return p.receive(c, o.slot, &f, payload)
	case o.h == nil && o.ended():
		c.Passivate()
		return refuse(p.hub, c, p.path, o.slot, &f, noInstance, payload)
	}
	if err := o.make(); err != nil {
		return err
	}
	o.r.calls[o.slot].Add(1)
	defer o.show(c)()
	return plain(o.h.Receive(c, payload))
}

// buffers reports whether hand-offs buffer, for a message that was sent by the table of a stamp: where the sender knows
// more they do.
func (o *ordered) buffers(at stamp) bool {
	r := o.r.p.row.Load()
	return r.Epoch == 0 || r.InForce.New == cluster.NewBuffers || at.above(stampOf(&r.State))
}

// ended reports whether the slot has no instance by the table of this node, or the one that ends has ended.
func (o *ordered) ended() bool {
	p := o.r.p
	r := p.row.Load()
	s := &r.State
	c, pending := s.Change(o.slot)
	return p.held.gone(r) || s.Epoch > 0 && target(s, o.slot).IsZero() ||
		pending && c.To.IsZero() && p.held.isOver(s, o.slot)
}

// Stop implements Handler.
func (o *ordered) Stop(c *entity.Context) {
	o.r.lives[o.slot].Store(false) // also of an instance that a panic ended
	if o.h != nil {
		defer o.show(c)()
		o.h.Stop(c)
	}
}

// HandOver implements Stateful.
func (o *ordered) HandOver(c *entity.Context) ([]byte, error) {
	if s, is := o.h.(entity.Stateful); is {
		defer o.show(c)()
		return s.HandOver(c)
	}
	return nil, nil
}

// errNoState refuses a state for an instance that takes none.
var errNoState = errors.New("partition: the instance is not Stateful")

// TakeUp implements Stateful. An instance that does not take its state is none.
func (o *ordered) TakeUp(c *entity.Context, state []byte) error {
	takes := false
	defer func() {
		if !takes && o.h != nil {
			o.fails()
		}
	}()
	if err := o.make(); err != nil {
		return err
	}
	s, is := o.h.(entity.Stateful)
	if !is {
		return errNoState
	}
	defer o.show(c)()
	err := s.TakeUp(c, state)
	takes = err == nil
	return err
}

// wished returns the node on which the instance of a slot is to live, zero for none.
func wished(s *State, slot int) kith.ID {
	if c, ok := s.Change(slot); ok {
		return c.To
	}
	if slot < len(s.Instances) {
		return s.Instances[slot]
	}
	return kith.ID{}
}

// buffered does what there is to do of a hand-off that buffers, and reports whether nothing is left.
func (p *Partition) buffered(ctx context.Context, row *row) (settled bool) {
	r := p.room.Load()
	if r == nil {
		made, err := newRoom(p)
		if err != nil {
			p.fail(err)
			return false
		}
		p.room.Store(made)
		r = made
	}
	if err := r.lane.Refused(); err != nil {
		p.fail(err)
	}
	settled = r.wish(ctx, &row.State)
	for slot := range cluster.MaxInstances {
		settled = r.tend(ctx, &row.State, slot) && settled
	}
	return settled
}

// clear ends the instances that live in the room of a partition that is gone, or has hand-offs that do not buffer any
// more. It reports whether none is left.
func (r *room) clear() (settled bool) {
	settled = true
	for slot := range r.lives {
		if r.lives[slot].Load() {
			settled = false
			_ = r.lane.Tell(r.frame(isEnd, stamp{}), strconv.Itoa(slot), nil) // of no change; it is tried again
		}
	}
	return settled
}

// wish says where the shards are to live, when that is another place than before.
func (r *room) wish(ctx context.Context, s *State) bool {
	var list []strategy.Wish
	now := r.wishes
	for slot := range now {
		if at := wished(s, slot).Addr; at != now[slot] {
			now[slot] = at
			list = append(list, strategy.Wish{Shard: route.ShardID(slot), Home: at})
		}
	}
	if len(list) == 0 {
		return true
	}
	if r.lane.SetHomes(ctx, r.version+1, list) != nil {
		return false
	}
	r.version, r.wishes = r.version+1, now
	return true
}

// tend does what there is to do for a slot, and reports whether nothing is left.
func (r *room) tend(ctx context.Context, s *State, slot int) bool {
	self, want := r.p.hub.self, wished(s, slot)
	home, known := r.lane.Home(route.ShardID(slot))
	here := known && home == self
	if here || want != self {
		r.pulls[slot].orders = 0
	}
	now := r.p.hub.uptime()
	c, pending := s.Change(slot)
	if pending && c.From == self && !c.Complete {
		r.give(ctx, &c, home, known)
		return false
	}
	switch {
	case want == self && here && !r.lives[slot].Load():
		if r.p.held.resting(slot, now) > 0 {
			return true
		}
		r.begin(s, slot, now)
		return false
	case want == self && here && now-r.begun[slot] >= sureEvery:
		r.begin(s, slot, now)
		return true
	case want == self && known && !here:
		r.pull(ctx, slot, now)
		return false
	case want.IsZero() && here && r.lives[slot].Load():
		_ = r.lane.Tell(r.frame(isEnd, stampOf(s)), strconv.Itoa(slot), nil)
		return false
	}
	return want != self || here
}

// sureEvery is how often an instance is asked to begin that seems to live. Where the shard was lost, and came back, it
// was ended without a word.
const sureEvery = 10 * time.Second

// begin asks the instance of a slot to begin. What is lost is said again.
func (r *room) begin(s *State, slot int, now time.Duration) {
	r.begun[slot] = now
	_ = r.lane.Tell(r.frame(isBegin, stampOf(s)), strconv.Itoa(slot), nil)
}

func (r *room) frame(k kind, at stamp) []byte {
	return appendFrame(nil, &frame{kind: k, at: at, from: r.p.hub.self})
}

// How long the owner of a shard serves it when a move here has not brought it: the first time, and at most. A drain
// waits as long.
const (
	pullRest     = 250 * time.Millisecond
	mostPullRest = 2 * time.Second
)

// pull makes a shard move here. One that came back, since the rest of it was too large to be handed over, is left to
// its owner for a while, for longer each time: moves that follow each other at once leave it no time to work that off.
func (r *room) pull(ctx context.Context, slot int, now time.Duration) {
	d := &r.pulls[slot]
	if d.refused.Swap(false) {
		d.orders, d.next = 0, now
	}
	if d.orders > 0 && now < d.next {
		return
	}
	began := r.p.tasks.start(task{pulls, slot}, func() {
		limited, cancel := r.p.hub.node.Within(ctx, 2*time.Second)
		defer cancel()
		if r.lane.Move(limited, route.ShardID(slot), r.p.hub.self) == nil {
			r.p.hub.ping()
		} else {
			d.refused.Store(true)
		}
	})
	if began {
		d.next = now + min(pullRest<<min(d.orders, 8), mostPullRest)
		d.orders++
	}
}

// give is what the old node does: it completes the change once the shard lives at the new one, or the instance has
// ended.
func (r *room) give(ctx context.Context, c *Change, home kith.ID, known bool) {
	self := r.p.hub.self
	m, _ := r.p.hub.node.View().SelfMember()
	switch {
	case c.To.IsZero() && known && home == self && r.lives[c.Slot].Load():
		if r.ending(c) {
			_ = r.lane.Tell(r.frame(isEnd, changeOf(c)), strconv.Itoa(c.Slot), nil)
		}
		return
	case c.To.IsZero():
	case known && home == c.To:
	case m.Status == kith.Leaving && known && home != self: // the new one gets it from its present owner
	default:
		return
	}
	if r.p.hub.door.Complete(ctx, *c) == nil && !c.To.IsZero() {
		r.p.count.moved.Add(1)
	}
}

// ending reports whether an instance that goes nowhere has handled what came for long enough.
func (r *room) ending(c *Change) bool {
	now := r.p.hub.uptime()
	r.p.held.mu.Lock()
	defer r.p.held.mu.Unlock()
	k := r.p.held.known.seen
	if v, ok := k[c.Slot]; !ok || v.change != changeOf(c) {
		k[c.Slot] = seen{changeOf(c), now}
	}
	return now >= k[c.Slot].at+endGrace
}
