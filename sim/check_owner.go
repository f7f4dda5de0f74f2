// Ownership: at most one live owner of a shard, fences that grow, takeover times that were waited for, and a store
// that remembers the highest fence.

package sim

import (
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// route32 is a type's hash, reportKey a report from a node to a coordinator.
type route32 = route.TypeID

type reportKey struct{ coordinator, from peer.ID }

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
	p         *proc
	fence     route.Fence
	allocated route.Fence
	confirmed bool     // it stopped every entity and said so
	hosting   []seatIn // who has it live, the dead and the stopped left out
}

// seatKey is the seat of a type's coordinator at one process.
type seatKey struct {
	p   *proc
	typ route32
}

type coordinatorSeat struct {
	p    *proc
	term uint32
}

func (c *checker) owner(key shardKey) *ownership {
	o := c.owners[key]
	if o == nil {
		o = &ownership{}
		c.owners[key] = o
	}
	return o
}

// hosts is a process that makes a shard live.
func (c *checker) hosts(p *proc, key shardKey, f route.Fence) {
	o := c.owner(key)
	name := c.w.shardName(key.typ, key.shard)
	if c.farewells[p.id] {
		c.violate(p, "farewell", "%s starts here after this node said that it hosts nothing ever again", name)
	}
	if c.excusedBy(p, name+" starts here") {
		c.hostsLost(p, key, o, f)
		return
	}
	for _, h := range o.hosting {
		q := h.p
		_, down := c.gone[q.id]
		switch {
		case q == p:
			c.violate(p, "hosted-twice", "%s is started here again", name)
		case !q.alive:
		case down && c.pairs.apart(p.id, q.id):
			c.NotTold++
			c.suspendedBefore(q, name)
		case f.Birth() != h.fence.Birth() && q.held(): // a new cluster, in which nobody is told of those of the old one
			c.NotTold++
		default:
			c.violate(p, "two-owners", "%s starts here under %s while it lives at %s under %s", name, fenceName(f),
				c.w.name(q.id), fenceName(h.fence))
		}
	}
	if f.IsZero() || f.Compare(o.fence) <= 0 {
		c.violate(p, "fence-order", "%s starts under %s after %s", name, fenceName(f), fenceName(o.fence))
	}
	if o.p != nil && o.p != p && !o.confirmed {
		c.tookOver(p, o, f, name)
	}
	o.p, o.fence, o.confirmed = p, f, false
	o.hosting = append(o.hosting, seatIn{p, f})
	c.pairs.hosted[ownKey{p.id, key}] = f
}

// excusedBy reports whether a process is Down somewhere and may not know it: most rules of ownership do not bind it
// then, for nothing but fences can. One whose own view shows that it is Down has been told.
func (c *checker) excusedBy(p *proc, what string) bool {
	if _, down := c.gone[p.id]; !down {
		return false
	}
	if p.view != nil {
		if self, ok := p.view.SelfMember(); ok && self.Status == membership.Down {
			c.violate(p, "knows-its-end", "%s though its own view shows that it is down", what)
		}
	}
	return true
}

// suspendedBefore: a cut-off owner has suspended itself, or ended, before its shard lives elsewhere. One that sleeps
// will not handle anything when it wakes up, if it has slept for long enough. Without a resolver, who was downed by an
// operator while it ran, and has not heard of it, is no case of this rule: nothing makes it stop but fences.
func (c *checker) suspendedBefore(q *proc, name string) {
	switch {
	case q.held():
		c.Suspended++
	case q.outside && !c.w.resolves():
	case q.asleep || cutOff(c.w, q) || c.w.resolves():
		c.violate(q, "suspended-before", "%s starts elsewhere while this owner, cut off, handles messages", name)
	}
}

// millionths is what a clock drift is given in.
const millionths = 1_000_000

// cutOff reports whether a process can reach none of the others that run, or none of them it.
func cutOff(w *world, p *proc) bool {
	others := false
	for _, q := range w.running() {
		if q == p || q.asleep {
			continue
		}
		others = true
		if !w.net.cuts[p.idx][q.idx] && !w.net.cuts[q.idx][p.idx] {
			return false
		}
	}
	return others
}

// tookOver: a shard whose owner did not confirm its stop gets another owner only when the takeover time has passed.
func (c *checker) tookOver(p *proc, o *ownership, f route.Fence, name string) {
	since, down := c.pairs.goneFor(p.id, o.p.id)
	if _, known := c.gone[o.p.id]; !known {
		down = false
	}
	least := c.w.node().Takeover(1) // whether it is long enough for this cluster is for suspendedBefore to say
	switch {
	case f.Birth() != o.fence.Birth() && (!o.p.alive || c.w.cfg.Records && o.p.held()):
		// A cluster that was formed anew has lost nobody of the old one, so no time counts from that. Who forms it waits for
		// the takeover time by its records; that the owner has stopped is what this time is for. Should it go on, delivers
		// finds that the shard lives elsewhere.
	case c.w.cfg.ProcessDeathIsProof && !o.p.alive:
		// The host of the dead process has said so itself.
	case !down:
		c.violate(p, "takeover", "%s starts here though %s neither stopped it nor is down", name, c.w.name(o.p.id))
	case c.w.now-since < least-least*time.Duration(c.w.cfg.Drift)/millionths:
		c.violate(p, "takeover", "%s starts here %v after %s was first seen down", name, c.w.now-since, c.w.name(o.p.id))
	}
}

// stopped is a process in which a shard lives no more; confirmed when every entity was stopped in order.
func (c *checker) stopped(p *proc, key shardKey, confirmed bool) {
	o := c.owner(key)
	for i, h := range o.hosting {
		if h.p == p {
			o.hosting = append(o.hosting[:i], o.hosting[i+1:]...)
			break
		}
	}
	if o.p == p && confirmed {
		o.confirmed = true
	}
}

// died takes a process out of the books of who hosts what.
func (c *checker) died(p *proc) {
	p.eachType(func(typ route.TypeID, live []route.ShardID) {
		for _, n := range live {
			c.stopped(p, shardKey{typ, n}, false)
		}
		c.leaves(p, typ)
	})
}

// shard checks what a coordinator says it does.
func (c *checker) shard(p *proc, e *shard.Event) {
	switch e.Kind {
	case shard.CoordinatorStarted:
		c.collects[seatKey{p, e.Type}] = c.w.now
	case shard.CoordinatorReady:
		c.ready(p, e)
	case shard.CoordinatorStopped:
		c.leaves(p, e.Type)
	case shard.ShardAllocated:
		c.allocated(p, e)
	}
}

// ready: one coordinator that may allocate, and only with the report of every member that it knows of.
func (c *checker) ready(p *proc, e *shard.Event) {
	if c.excusedBy(p, "a coordinator is ready here") {
		c.rival(p, e)
	} else {
		c.seat(p, e)
	}
	since, known := c.collects[seatKey{p, e.Type}]
	if !known || p.view == nil {
		return
	}
	for i := range p.view.Members {
		m := &p.view.Members[i] // of any role: it may have registered the type with another one
		if m.ID == p.id {
			continue
		}
		if m.Status == membership.Down || c.farewells[m.ID] {
			continue // what others hold of it is no excuse: this view has to
		}
		if at, ok := c.heard[reportKey{p.id, m.ID}]; !ok || at < since {
			c.violate(p, "reports", "ready for %s in term %d without the report of %s", c.w.typeName(e.Type), e.Term,
				c.w.name(m.ID))
		}
	}
}

// seat: who is ready takes the seat of a type's coordinator, and nobody else sits there. A leaver that said farewell
// may not know yet that it is the oldest no more, however far its reign had come by then: the one of the higher term
// has promises of all others to refuse it, and it hosts nothing itself.
func (c *checker) seat(p *proc, e *shard.Event) {
	seat := c.leads[e.Type]
	if seat != nil && seat.p != p && seat.p.alive {
		switch _, down := c.gone[seat.p.id]; {
		case down && c.pairs.apart(p.id, seat.p.id), c.farewells[seat.p.id]:
		case bygone(seat.p, p):
		case bygone(p, seat.p):
			return
		case c.farewells[p.id] && e.Term < seat.term:
			return
		default:
			c.violate(p, "two-coordinators", "ready for %s in term %d beside %s in term %d", c.w.typeName(e.Type),
				e.Term, c.w.name(seat.p.id), seat.term)
		}
	}
	c.leads[e.Type] = &coordinatorSeat{p: p, term: e.Term}
}

// bygone reports whether a process has stopped in a cluster that is older than that of another: who formed that one
// anew knows nothing of it, and it gives out nothing.
func bygone(old, fresh *proc) bool { return old.view.Birth < fresh.view.Birth && old.held() }

// delivers: an envelope reaches an entity only under the fence under which its shard lives here, and while it does.
func (c *checker) delivers(p *proc, key shardKey, e *wire.Envelope) {
	o := c.owner(key)
	if c.excusedBy(p, "a message is delivered here") {
		c.lateHandling(p, key, o)
		if h := o.livesIn(p); h == nil || h.fence.Term() != e.Term || h.fence.Epoch() != e.Epoch {
			c.violate(p, "delivery-fence", "a message for %s under %d.%d is delivered where it does not live so",
				c.w.shardName(key.typ, key.shard), e.Term, e.Epoch)
		}
		return
	}
	if o.p != p || o.fence.Term() != e.Term || o.fence.Epoch() != e.Epoch {
		c.violate(p, "delivery-fence", "a message for %s under %d.%d is delivered, the shard lives at %s under %s",
			c.w.shardName(key.typ, key.shard), e.Term, e.Epoch, c.w.nameOf(o.p), fenceName(o.fence))
	}
}

// lateHandling: one that is Down somewhere and has not heard of it handles nothing any more once its shard lives under
// a higher fence with another that runs. Without a resolver nothing stops one whom an operator downed while it ran.
func (c *checker) lateHandling(p *proc, key shardKey, o *ownership) {
	own := o.livesIn(p)
	if own == nil || !c.w.resolves() || p.outside {
		return
	}
	for _, h := range o.hosting {
		if h.p != p && h.p.alive && h.fence.Compare(own.fence) > 0 {
			c.violate(p, "late-handling", "a message for %s is handled under %s while it lives at %s under %s",
				c.w.shardName(key.typ, key.shard), fenceName(own.fence), c.w.nameOf(h.p), fenceName(h.fence))
		}
	}
}

// allocated: a shard that lives somewhere is not given out, and every fence is above the one before.
func (c *checker) allocated(p *proc, e *shard.Event) {
	if c.farewells[p.id] {
		return // nobody takes its orders any more, see hosts
	}
	o := c.owner(shardKey{e.Type, e.Shard})
	name := c.w.shardName(e.Type, e.Shard)
	if c.excusedBy(p, "a shard is given out here") {
		c.free(p, o, e, name)
		return
	}
	c.free(p, o, e, name)
	if e.Fence.Compare(o.allocated) <= 0 {
		c.violate(p, "fence-order", "%s given out under %s after %s", name, fenceName(e.Fence),
			fenceName(o.allocated))
	}
	o.allocated = e.Fence
}

// free: a shard that is given out lives at nobody who is on the side of the coordinator p.
func (c *checker) free(p *proc, o *ownership, e *shard.Event, name string) {
	for _, h := range o.hosting {
		q := h.p
		if q.id == e.Home && h.fence == e.Fence {
			continue // the coordinator's own node has started it within the same step
		}
		_, down := c.gone[q.id]
		_, lost := c.gone[p.id]
		if f := e.Fence; f.Birth() != h.fence.Birth() && q.held() {
			continue // of a cluster that is no more
		}
		if q.alive && !((down || lost) && c.pairs.apart(p.id, q.id)) {
			c.violate(p, "allocation", "%s given to %s while it lives at %s", name, c.w.name(e.Home), c.w.name(q.id))
		}
	}
}

// write is an entity's conditional write to the ideal store, which remembers the highest fence it has seen.
func (c *checker) write(p *proc, typ route.TypeID, id string, f route.Fence) bool {
	key := storeKey{typ, id}
	row := c.store[key]
	switch f.Compare(row.fence) {
	case -1:
		c.Fenced++
		if _, down := c.gone[p.id]; !down || !c.pairs.apart(p.id, row.owner) {
			c.violate(p, "late-owner", "%s/%s writes under %s, the store has %s", c.w.typeName(typ), id, fenceName(f),
				fenceName(row.fence))
		}
		return false
	case 0:
		if row.owner != p.id {
			c.violate(p, "fence-shared", "%s/%s written under %s by %s and here", c.w.typeName(typ), id, fenceName(f),
				c.w.name(row.owner))
		}
	}
	c.store[key] = storeRow{f, p.id}
	return true
}

// excuse notes that a process is or will be down for a good reason.
func (c *checker) excuse(id peer.ID) { c.excused[id] = true }

// atMostOne lists shards of a type that live at two nodes, those that know nothing of their end counted apart.
func (c *checker) atMostOne(typ route.TypeID, shards uint32) (twice, notTold int) {
	for s := range shards {
		o := c.owners[shardKey{typ, route.ShardID(s)}]
		if o == nil {
			continue
		}
		live := 0
		for _, h := range o.hosting {
			if _, down := c.gone[h.p.id]; down {
				notTold++
			} else {
				live++
			}
		}
		if live > 1 {
			twice++
		}
	}
	return twice, notTold
}
