// Routes: what the node says of homes becomes routes; what was parked goes first. Control goroutine only.

package driver

import (
	"errors"
	"time"

	"github.com/kith-io/kith/internal/invariant"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/internal/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// want notes a home to be asked for.
func (d *Driver) want(ref slotRef) {
	c := &d.control
	c.wanted[ref.r] = append(c.wanted[ref.r], ref.shard)
	d.watch(ref)
}

// watch looks at the slot for parked messages whose time is over.
func (d *Driver) watch(ref slotRef) {
	c := &d.control
	if len(c.waiting) == 0 {
		c.scanAt = d.now() + parkScan
	}
	c.waiting[ref] = struct{}{}
}

// routeChanged carries out what the node says of one shard's home.
func (d *Driver) routeChanged(ch *shard.RouteChange) {
	r := d.regions.Load().byID[ch.Type]
	if r == nil || uint32(ch.Shard) >= r.shards {
		return
	}
	ref := slotRef{r, ch.Shard}
	e := &routeEntry{term: ch.Fence.Term(), epoch: ch.Fence.Epoch()}
	home := ch.Home
	switch ch.State {
	case shard.RouteLocal:
		e.host = ref.host().Load()
		home = d.self
		if e.host == nil || e.host.fence != ch.Fence || e.host.closing {
			return // it has been told to stop since
		}
	case shard.RouteRemote:
		e.remote = d.remote(ch.Home, ch.Shard)
		e.link = e.remote.link
		if isForgotten(e.link.Err()) {
			// Late news of a member removed long ago, which the node itself may remember no more.
			d.closeRoute(ref)
			d.rehome(ref, e)
			return
		}
	default:
		d.closeRoute(ref)
		return
	}
	d.openRoute(ref, e, home, ch.Fence)
}

// openRoute leads the slot to a home: parked messages first, then the fast path opens.
func (d *Driver) openRoute(ref slotRef, e *routeEntry, home peer.ID, fence route.Fence) {
	s := ref.slot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.slot.Resolve(e.host != nil, home, fence) {
		return // it leads there already
	}
	s.route.Store(nil)
	s.next = e
	d.drain(ref, s)
}

// closeRoute makes the home unknown: senders park, and ask for it again.
func (d *Driver) closeRoute(ref slotRef) {
	s := ref.slot()
	s.mu.Lock()
	s.route.Store(nil)
	s.next = nil
	s.slot.Reset()
	want := s.slot.Want()
	s.mu.Unlock()
	if want {
		d.want(ref)
	}
}

// drain sends parked messages to the slot's home until none is left, which opens the fast path, or the home has no
// room. Senders keep parking meanwhile. The slot's lock is held.
func (d *Driver) drain(ref slotRef, s *regionSlot) {
	d.drains.Store(true) // before anything can find a link full: what room there is from then on is told
	e := s.next
	send := func(env *wire.Envelope, f []byte) plane.Step { return d.forward(ref, e, env, f) }
	switch plane.Drain(&s.slot, send) {
	case plane.NoHome:
		s.next = nil
		d.rehome(ref, e)
	case plane.NoRoom:
		d.stall(ref)
	case plane.Sent:
		invariant.Check(s.slot.State().Open(), "driver: a drained slot is not open")
		s.route.Store(e)
		d.room.ringAll()
	case plane.Moving: // drainSlot goes on when it is there
	}
}

// stall has the drain tried again.
func (d *Driver) stall(ref slotRef) {
	c := &d.control
	c.stalled = append(c.stalled, ref)
	c.retryAt = d.now() + stallRetry
	d.watch(ref)
}

// forward sends one parked message, a whole envelope stamped with its fence.
func (d *Driver) forward(ref slotRef, e *routeEntry, env *wire.Envelope, f []byte) plane.Step {
	if env.Flags&wire.FlagBulk != 0 {
		if e.host == nil {
			return stepOf(d.forwardLarge(e, env))
		}
		d.keepLarge(env)
	}
	if env.Flags&wire.FlagAsk != 0 {
		d.asks.goes(env.Corr, e)
	}
	if e.host != nil {
		if !e.host.forwardHere(f, env) {
			return plane.NoRoom
		}
		return plane.Sent
	}
	l := e.link
	l.Lock()
	b, err := l.Reserve(len(f))
	if err != nil {
		l.Unlock()
		return stepOf(err)
	}
	copy(b, f)
	l.Hurry()
	wake := l.Commit()
	l.Unlock()
	if wake {
		l.Wake(nil)
	}
	return plane.Sent
}

// stepOf returns what an attempt to send a parked message has come to, by its error.
func stepOf(err error) plane.Step {
	switch {
	case err == nil:
		return plane.Sent
	case err == errMoving:
		return plane.Moving
	case isForgotten(err):
		return plane.NoHome
	}
	return plane.NoRoom
}

// retryDrains goes on with drains that met a full link.
func (d *Driver) retryDrains() {
	c := &d.control
	stalled := c.stalled
	c.stalled = nil
	for _, ref := range stalled {
		s := ref.slot()
		s.mu.Lock()
		if s.next != nil && s.route.Load() == nil {
			d.drain(ref, s)
		}
		s.mu.Unlock()
	}
}

// expireParked fails messages that waited too long for a home.
func (d *Driver) expireParked(now time.Duration) {
	c := &d.control
	for ref := range c.waiting {
		s := ref.slot()
		s.mu.Lock()
		s.slot.Expire(now, func(f []byte) { d.dropParked(ref, f, route.TimedOut) })
		if n, _ := s.slot.Parked(); n == 0 {
			delete(c.waiting, ref)
			if s.next != nil && s.route.Load() == nil {
				d.drain(ref, s)
			}
		}
		s.mu.Unlock()
	}
}

// failParked fails everything that waits in a slot.
func (d *Driver) failParked(ref slotRef, reason route.Reason) {
	s := ref.slot()
	s.mu.Lock()
	s.slot.FailAll(func(f []byte) { d.dropParked(ref, f, reason) })
	s.mu.Unlock()
	d.settleParked()
}

// dropParked notes one parked message that is not delivered. The slot's lock is held, so an ask is settled later.
func (d *Driver) dropParked(ref slotRef, f []byte, reason route.Reason) {
	var env wire.Envelope
	if wire.ParseEnvelope(f, &env) != nil {
		return
	}
	ref.r.count.parkedLost.Add(1)
	if env.Flags&wire.FlagBulk != 0 {
		if l := d.large.get(&env); l != nil {
			d.endLarge(l, reason, nil, d.settleSoon)
		}
		return
	}
	if env.Flags&wire.FlagAsk != 0 {
		d.control.settling = append(d.control.settling, settledAsk{env.Corr, reason, nil})
		return
	}
	d.failed.add(ref.r, ref.shard, cause{reason: reason}, 1, env.ID)
}

// settleParked answers asks that were dropped while a slot's lock was held.
func (d *Driver) settleParked() {
	c := &d.control
	for len(c.settling) > 0 {
		list := c.settling
		c.settling = nil
		for _, a := range list {
			d.asks.settleWhy(a.corr, a.reason, a.why)
		}
	}
}

// doubt has the home asked for again because its receiver refused an ask. Any goroutine.
func (d *Driver) doubt(ref slotRef, e *routeEntry) {
	if ref.slot().route.Load() == e && e.doubted.CompareAndSwap(false, true) {
		d.inbox.post(func() { d.forgetHome(ref, e.term, e.epoch) })
	}
}

// deadEnd has the home asked for again when a send met the dead link of a forgotten peer. Any goroutine.
func (r *Region) deadEnd(sh route.ShardID, e *routeEntry, err error) {
	if isForgotten(err) && e.doubted.CompareAndSwap(false, true) {
		r.d.rehome(slotRef{r, sh}, e)
	}
}

func isForgotten(err error) bool { return errors.Is(err, transport.ErrForgotten) }

// rehome has the node forget a home on a peer that is forgotten, closes the slot if it is open to it, and asks again
// for what waits. It is done in a turn of its own: this one may be carrying out what the node said. Any goroutine; a
// slot's lock may be held.
func (d *Driver) rehome(ref slotRef, e *routeEntry) {
	d.log.Debug("home on a removed member", "type", ref.r.typ.Name, "shard", ref.shard, "home", e.remote.id)
	d.inbox.post(func() {
		d.forgetHome(ref, e.term, e.epoch)
		s := ref.slot()
		s.mu.Lock()
		if s.route.CompareAndSwap(e, nil) {
			s.slot.Reset()
		}
		want := s.slot.Want()
		s.mu.Unlock()
		if want {
			d.want(ref)
		}
		d.watch(ref)
	})
}

func (d *Driver) forgetHome(ref slotRef, term, epoch uint32) {
	cmd := shard.RefusedCommand{Type: ref.r.id, Shard: ref.shard, Term: term, Epoch: epoch}
	if err := d.command(cmd); err != nil {
		d.log.Warn("refused route not forgotten", "type", ref.r.typ.Name, "shard", ref.shard, "error", err)
	}
}

// refusedThere takes a peer's word on what it refused of this node's.
func (d *Driver) refusedThere(from peer.ID, kind wire.Kind, body []byte) {
	list, err := plane.ParseRefusals(kind, body)
	if err != nil {
		d.nonsense(from, kind, err)
		return
	}
	regions := d.regions.Load()
	for _, e := range list {
		r := regions.byID[e.Type]
		if r == nil || uint32(e.Shard) >= r.shards {
			continue
		}
		ref := slotRef{r, e.Shard}
		now := ref.slot().route.Load()
		if now != nil && now.remote != nil && e.Doubts(from, now.remote.id, now.term, now.epoch) {
			d.forgetHome(ref, e.Term, e.Epoch)
		}
		r.count.refusedThere.Add(e.Count)
		d.failed.addAll(r, e.Shard, cause{from, e.Reason, e.Limit}, e.Count, e.Samples)
	}
}
