// Ownership: at most one live owner of a shard, fences that grow, takeover times that were waited for, and a store
// that remembers the highest fence.

package check

import (
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// route32 is a type's hash, reportKey a report from a node to a coordinator.
type route32 = route.TypeID

type reportKey struct{ coordinator, from peer.ID }

// farewells are what leavers have sent to others.
type farewells struct {
	leaveNotices map[peer.ID]bool   // processes that host nothing and never will again, by their word to anybody
	exits        map[reportKey]bool // a process, and one that reported to it to be done leaving
}

type storeKey struct {
	typ route.TypeID
	id  string
}

type storeRow struct {
	fence route.Fence
	owner peer.ID
}

// ownership is the latest owner of a shard and the highest fence ever given out for it.
type ownership struct {
	p         *world.Process
	fence     route.Fence
	allocated route.Fence
	confirmed bool     // it stopped every entity and said so
	hosting   []seatIn // processes that have it live, the dead and the stopped left out
	moves     int      // how often another process has become its owner
	placing   placing
}

// seatKey is the seat of a type's coordinator at one process.
type seatKey struct {
	p   *world.Process
	typ route32
}

type coordinatorSeat struct {
	p    *world.Process
	term uint32
}

func (c *Checker) owner(key world.ShardKey) *ownership {
	o := c.owners[key]
	if o == nil {
		o = &ownership{}
		c.owners[key] = o
	}
	return o
}

// Hosts is a process that makes a shard live.
func (c *Checker) Hosts(p *world.Process, key world.ShardKey, f route.Fence) {
	o := c.owner(key)
	c.hosted[hostedKey{key, f}] = p
	o.placing.heirs.begins(p, f)
	name := c.w.ShardName(key.Type, key.Shard)
	if c.leaveNotices[p.ID] {
		c.Violate(p, "leave-notice", "%s starts here after this node said that it hosts nothing ever again", name)
	}
	if c.excusedBy(p, name+" starts here") {
		c.hostsLost(p, key, o, f)
		return
	}
	for _, h := range o.hosting {
		q := h.Process
		_, down := c.gone[q.ID]
		switch {
		case q == p:
			c.Violate(p, "hosted-twice", "%s is started here again", name)
		case !q.Alive:
		case down && c.pairs.apart(p.ID, q.ID):
			c.NotTold++
			c.suspendedBefore(p, q, name)
		case f.Birth() != h.fence.Birth() && q.Held(): // a new cluster, in which nobody hears of those of the old one
			c.NotTold++
		default:
			c.Violate(p, "two-owners", "%s starts here under %s while it lives at %s under %s", name, world.FenceName(f),
				c.w.Name(q.ID), world.FenceName(h.fence))
		}
	}
	if f.IsZero() || f.Compare(o.fence) <= 0 {
		c.Violate(p, "fence-order", "%s starts under %s after %s", name, world.FenceName(f), world.FenceName(o.fence))
	}
	if o.p != nil && o.p != p && !o.confirmed {
		c.tookOver(p, o, f, name)
	}
	if o.p != nil && o.p != p {
		o.moves++
	}
	o.p, o.fence, o.confirmed = p, f, false
	o.hosting = append(o.hosting, seatIn{p, f})
	c.pairs.hosted[ownKey{p.ID, key}] = f
}

// excusedBy reports whether a process is Down somewhere and may not know it: most rules of ownership do not bind it
// then, for nothing but fences can. One with a view that shows itself Down knows it.
func (c *Checker) excusedBy(p *world.Process, what string) bool {
	if _, down := c.gone[p.ID]; !down {
		return false
	}
	if p.View != nil {
		if self, ok := p.View.SelfMember(); ok && self.Status == membership.Down {
			c.Violate(p, "knows-its-end", "%s though its own view shows that it is down", what)
		}
	}
	return true
}

// suspendedBefore: an owner q that is lost for p, and has not heard of it, handles nothing any more when its shard
// lives at p, if anything has to have stopped it.
func (c *Checker) suspendedBefore(p, q *world.Process, name string) {
	switch {
	case q.Held():
		c.Suspended++
	case c.pairs.hasToStop(p, q):
		c.Violate(q, "suspended-before", "%s starts elsewhere while this owner, cut off, handles messages", name)
	}
}

// millionths is what a clock drift is given in.
const millionths = 1_000_000

// tookOver: when its owner did not confirm the stop, a shard gets another owner only when the takeover time has passed.
func (c *Checker) tookOver(p *world.Process, o *ownership, f route.Fence, name string) {
	since, down := c.pairs.goneFor(p.ID, o.p.ID)
	if _, known := c.gone[o.p.ID]; !known {
		down = false
	}
	least := c.w.Node().Takeover(1) // whether it is long enough for this cluster is for suspendedBefore to say
	switch {
	case f.Birth() != o.fence.Birth() && (!o.p.Alive || c.w.Config.Records && o.p.Held()):
		// A cluster that was formed anew has lost nobody of the old one, so no time counts from that. The node that forms it
		// waits for the takeover time by its records; that the owner has stopped is what this time is for. Should it go on,
		// delivers finds that the shard lives elsewhere.
	case provenDead(c, o.p.ID):
		// The host of the dead process has said so itself, or the next process there has got its lock, or a member has ended
		// its session lease or proven that its tenure is over, or somebody has said or assumed that it is.
	case c.w.Config.TenureVoters > 0, c.w.Resolves() && c.w.Config.SessionTTL > 0 && !c.pairs.forgotten(p, o.p.ID):
		// No time frees the shards of an owner with a tenure. Where nobody remembers an owner with a session the takeover
		// time counts, as without; that it has stopped by then is for suspendedBefore to say. Without a resolver an operator
		// downs owners that live.
		c.Violate(p, "takeover", "%s starts here, and nothing proves that %s has ended", name, c.w.Name(o.p.ID))
	case !down:
		c.Violate(p, "takeover", "%s starts here though %s neither stopped it nor is down", name, c.w.Name(o.p.ID))
	case c.w.Now-since < least-least*time.Duration(c.w.Config.Drift)/millionths:
		c.Violate(p, "takeover", "%s starts here %v after %s was first seen down", name, c.w.Now-since, c.w.Name(o.p.ID))
	}
}

// Stopped is a process in which a shard lives no more; confirmed when every entity was stopped in order.
func (c *Checker) Stopped(p *world.Process, key world.ShardKey, confirmed bool) {
	o := c.owner(key)
	for i, h := range o.hosting {
		if h.Process == p {
			o.hosting = append(o.hosting[:i], o.hosting[i+1:]...)
			break
		}
	}
	if o.p == p && confirmed {
		o.confirmed = true
	}
}

// Died takes a process out of the books of hosts.
func (c *Checker) Died(p *world.Process) {
	p.EachType(func(typ route.TypeID, live []route.ShardID) {
		for _, n := range live {
			c.Stopped(p, world.ShardKey{Type: typ, Shard: n}, false)
		}
		c.leaves(p, typ)
	})
}

// Shard checks what a coordinator says it does.
func (c *Checker) Shard(p *world.Process, e *shard.Event) {
	if e.Number != (shard.Number{}) { // of a move
		c.owner(world.ShardKey{Type: e.Type, Shard: e.Shard}).placing.last.follow(c.w.Now, e)
	}
	switch e.Kind {
	case shard.CoordinatorStarted:
		c.collects[seatKey{p, e.Type}] = c.w.Now
	case shard.CoordinatorReady:
		c.ready(p, e)
	case shard.CoordinatorStopped:
		c.leaves(p, e.Type)
	case shard.ShardAllocated:
		c.allocated(p, e)
		given(c, p, e)
	case shard.MoveBegan:
		moves(c, p, e)
		fallthrough
	case shard.MoveMarked, shard.MoveAborted, shard.MoveHandedOver:
		c.owner(world.ShardKey{Type: e.Type, Shard: e.Shard}).placing.heirs.follow(e)
	case shard.MoveDone:
		if e.Home == e.To {
			c.Violate(p, "moved", "%s is told as moved from %s to itself", c.w.ShardName(e.Type, e.Shard), c.w.Name(e.Home))
		}
	}
}

// ready: one coordinator that may allocate, and only with the report of every member that it knows of.
func (c *Checker) ready(p *world.Process, e *shard.Event) {
	if c.excusedBy(p, "a coordinator is ready here") {
		c.rival(p, e)
	} else {
		c.seat(p, e)
	}
	since, known := c.collects[seatKey{p, e.Type}]
	if !known || p.View == nil {
		return
	}
	for i := range p.View.Members {
		m := &p.View.Members[i] // of any role: it may have registered the type with another one
		if m.ID == p.ID {
			continue
		}
		if m.Status == membership.Down || c.leaveNotices[m.ID] || provenDead(c, m.ID) {
			continue // what others hold of it is no excuse: this view has to
		}
		if at, ok := c.heard[reportKey{p.ID, m.ID}]; !ok || at < since {
			c.Violate(p, "reports", "ready for %s in term %d without the report of %s", c.w.TypeName(e.Type), e.Term,
				c.w.Name(m.ID))
		}
	}
}

// provenDead reports whether a member's process is dead where that may be proven: its host says so, or the next process
// there.
func provenDead(c *Checker, id peer.ID) bool {
	if c.w.Leases.ProvenEnded(id) {
		return true
	}
	p := c.w.ProcessOf(id)
	return p != nil && !p.Alive && (c.w.Config.ProcessDeathIsProof || c.w.Proven(id))
}

// seat: a ready coordinator takes the seat of a type's coordinator, and nobody else sits there. A leaver that sent its
// leave notice may not know yet that it is the oldest no more, however far its coordinator term had come by then: the
// one of the higher term has promises of all others to refuse it, and it hosts nothing itself.
func (c *Checker) seat(p *world.Process, e *shard.Event) {
	seat := c.leads[e.Type]
	if seat != nil && seat.p != p && seat.p.Alive {
		switch _, down := c.gone[seat.p.ID]; {
		case down && c.pairs.apart(p.ID, seat.p.ID), c.leaveNotices[seat.p.ID]:
		case bygone(c, seat.p, p):
		case bygone(c, p, seat.p):
			return
		case c.leaveNotices[p.ID] && e.Term < seat.term:
			return
		default:
			c.Violate(p, "two-coordinators", "ready for %s in term %d beside %s in term %d", c.w.TypeName(e.Type),
				e.Term, c.w.Name(seat.p.ID), seat.term)
		}
	}
	c.leads[e.Type] = &coordinatorSeat{p: p, term: e.Term}
}

// bygone reports whether a process is suspended in another cluster than a second one: one that is older, of which the
// node that formed the second anew knows nothing, or one of nodes with tenures that has too few members for a seat. Or
// it is suspended on another side of a cut, both of which live by their strategy. It gives out nothing.
func bygone(c *Checker, held, other *world.Process) bool {
	was, is := held.View.Birth, other.View.Birth
	return held.Held() && (was < is || was != is && c.w.Config.TenureVoters > 0 ||
		c.w.Splits() && c.pairs.apart(held.ID, other.ID))
}

// Delivers: an envelope reaches an entity only under the fence under which its shard lives here, and while it does.
func (c *Checker) Delivers(p *world.Process, key world.ShardKey, e *wire.Envelope) {
	o := c.owner(key)
	if c.excusedBy(p, "a message is delivered here") {
		c.lateHandling(p, key, o)
		if h := o.livesIn(p); h == nil || h.fence.Term() != e.Term || h.fence.Epoch() != e.Epoch {
			c.Violate(p, "delivery-fence", "a message for %s under %d.%d is delivered where it does not live so",
				c.w.ShardName(key.Type, key.Shard), e.Term, e.Epoch)
		}
		return
	}
	if o.p != p || o.fence.Term() != e.Term || o.fence.Epoch() != e.Epoch {
		c.Violate(p, "delivery-fence", "a message for %s under %d.%d is delivered, the shard lives at %s under %s",
			c.w.ShardName(key.Type, key.Shard), e.Term, e.Epoch, c.w.NameOf(o.p), world.FenceName(o.fence))
	}
}

// lateHandling: one that is Down somewhere and has not heard of it handles nothing any more once its shard lives under
// a higher fence with another that runs, if anything has to have stopped it: see suspendedBefore. What reaches the
// mailboxes of a node that is suspended, as what had waited for a move does, is not handled: that no call begins
// meanwhile is looked at where calls begin.
func (c *Checker) lateHandling(p *world.Process, key world.ShardKey, o *ownership) {
	own := o.livesIn(p)
	if own == nil || c.w.Resolves() && p.Outside || p.Held() {
		return
	}
	for _, h := range o.hosting {
		if h.Process != p && h.Process.Alive && h.fence.Compare(own.fence) > 0 && c.pairs.hasToStop(h.Process, p) {
			c.Violate(p, "late-handling", "a message for %s is handled under %s while it lives at %s under %s",
				c.w.ShardName(key.Type, key.Shard), world.FenceName(own.fence), c.w.NameOf(h.Process), world.FenceName(h.fence))
		}
	}
}

// allocated: a shard that lives somewhere is not given out, and every fence is above the one before.
func (c *Checker) allocated(p *world.Process, e *shard.Event) {
	if c.leaveNotices[p.ID] {
		return // nobody takes its orders any more, see hosts
	}
	o := c.owner(world.ShardKey{Type: e.Type, Shard: e.Shard})
	name := c.w.ShardName(e.Type, e.Shard)
	if c.excusedBy(p, "a shard is given out here") {
		free(c, p, o, e, name)
		return
	}
	free(c, p, o, e, name)
	if e.Fence.Compare(o.allocated) <= 0 {
		c.Violate(p, "fence-order", "%s given out under %s after %s", name, world.FenceName(e.Fence),
			world.FenceName(o.allocated))
	}
	o.allocated = e.Fence
}

// free: a shard that is given out lives at no process on the side of the coordinator p.
func free(c *Checker, p *world.Process, o *ownership, e *shard.Event, name string) {
	for _, h := range o.hosting {
		q := h.Process
		if after := h.fence.Compare(e.Fence); after == 0 && q.ID == e.Home || after > 0 && q.ID == p.ID {
			continue // the coordinator's own node has started it within the same step, under this fence or the next
		}
		_, down := c.gone[q.ID]
		_, lost := c.gone[p.ID]
		if f := e.Fence; f.Birth() != h.fence.Birth() && q.Held() {
			continue // of a cluster that is no more
		}
		if q.Alive && !((down || lost) && c.pairs.apart(p.ID, q.ID)) {
			c.Violate(p, "allocation", "%s given to %s while it lives at %s", name, c.w.Name(e.Home), c.w.Name(q.ID))
		}
	}
}

// Write is an entity's conditional write to the ideal store, which remembers the highest fence it has seen.
func (c *Checker) Write(p *world.Process, typ route.TypeID, id string, f route.Fence) bool {
	key := storeKey{typ, id}
	row := c.store[key]
	switch f.Compare(row.fence) {
	case -1:
		c.Fenced++
		if _, down := c.gone[p.ID]; !down || !c.pairs.apart(p.ID, row.owner) {
			c.Violate(p, "late-owner", "%s/%s writes under %s, the store has %s", c.w.TypeName(typ), id, world.FenceName(f),
				world.FenceName(row.fence))
		}
		return false
	case 0:
		if row.owner != p.ID {
			c.Violate(p, "fence-shared", "%s/%s written under %s by %s and here", c.w.TypeName(typ), id, world.FenceName(f),
				c.w.Name(row.owner))
		}
	}
	c.store[key] = storeRow{f, p.ID}
	return true
}

// Moves returns how often a shard has come from one owner to another.
func Moves(c *Checker) (n int) {
	for _, o := range c.owners { // in any order: it is a sum
		n += o.moves
	}
	return n
}

// Excuse notes that a process is or will be down for a good reason.
func (c *Checker) Excuse(id peer.ID) { c.excused[id] = true }

// Homes returns where a shard lives now, the latest last, and the fence under which it does there, else that of its
// latest owner; processes that do not know yet that they are down are among them. The list is the caller's.
func (c *Checker) Homes(key world.ShardKey) (homes []*world.Process, f route.Fence) {
	o := c.owners[key]
	if o == nil {
		return nil, f
	}
	f = o.fence
	for _, h := range o.hosting {
		homes, f = append(homes, h.Process), h.fence
	}
	return homes, f
}
