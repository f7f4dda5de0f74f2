// Routes: what the node says of homes becomes routes; what was parked goes first. Control goroutine only.

package driver

import (
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// want notes a home to be asked for.
func (d *dispatch) want(ref slotRef) { d.control.agenda.Want(d.now(), ref) }

// watch looks at the slot for parked messages that are overdue.
func (d *dispatch) watch(ref slotRef) { d.control.agenda.Watch(d.now(), ref) }

// follow does what a verb on a slot has called for. The slot's lock is held.
func (d *dispatch) follow(ref slotRef, s *regionSlot, next plane.Next) {
	switch next {
	case plane.Flush:
		d.drain(ref, s)
	case plane.LookUp:
		d.want(ref)
	}
}

// routeChanged carries out what the node says of one shard's home.
func (d *dispatch) routeChanged(ch *shard.RouteChange) {
	r := d.regions.Load().byID.At(ch.Type)
	if r == nil || uint32(ch.Shard) >= r.shards {
		return
	}
	ref := slotRef{r, ch.Shard}
	e := &routeEntry{term: ch.Fence.Term(), epoch: ch.Fence.Epoch(), of: ref, fence: ch.Fence,
		since: d.now()}
	if ch.State == shard.RouteMoving {
		r.heirs.add(ch.Shard, ch.Fence, ch.Next)
	}
	if h := ref.host(); h != nil && ch.Home == d.self && h.Fence() == ch.Fence {
		exec.Moves(ch.State == shard.RouteMoving, h)
	}
	home := plane.Home{At: ch.Home, Fence: ch.Fence}
	switch ch.State {
	case shard.RouteLocal:
		e.host = ref.host()
		home.At, home.Local = d.self, true
		home.Gone = e.host == nil || e.host.Fence() != ch.Fence || e.host.Ending()
	case shard.RouteRemote:
		e.remote = d.peers.remote(ch.Home, ch.Shard)
		e.link = e.remote.link
		home.Gone = isForgotten(e.link.Err())
	default:
		if known(r, ch.Shard) == nil {
			return // nobody here has sent there
		}
		home = plane.Home{Moving: ch.State == shard.RouteMoving}
	}
	d.moveRoute(ref, e, home)
	d.asks.lookAgain()
}

// moveRoute leads the slot to a home, or to none: parked messages first, then the fast path opens.
func (d *dispatch) moveRoute(ref slotRef, e *routeEntry, home plane.Home) {
	s := ref.slot()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := plane.Move(&s.slot, home)
	switch {
	case next == plane.Flush:
		s.route.Store(nil)
		s.lead(e)
	case next == plane.Forget:
		d.rehome(ref, e)
	}
	s.shut()
	d.follow(ref, s, next)
}

// shut closes the fast path of a slot with a home that is not known any more. The lock is held.
func (s *regionSlot) shut() {
	if s.slot.State() < flow.Local {
		s.route.Store(nil)
		s.lead(nil)
	}
}

// closeRoute makes the home unknown: senders park, and ask for it again.
func (d *dispatch) closeRoute(ref slotRef) { d.moveRoute(ref, nil, plane.Home{}) }

// drain sends parked messages to the slot's home until none is left, which opens the fast path, or the home has no
// room. Senders keep parking meanwhile. The slot's lock is held.
func (d *dispatch) drain(ref slotRef, s *regionSlot) {
	d.drains.Store(true) // before anything can find a link full: room is signalled from then on
	e := s.next
	send := func(env *wire.Envelope, f []byte) plane.Step { return d.forward(ref, e, env, f) }
	switch plane.Drain(&s.slot, send) {
	case plane.NoHome:
		s.shut()
		d.rehome(ref, e)
	case plane.NoRoom:
		d.control.agenda.Stall(d.now(), ref)
	case plane.Sent:
		invariant.Check(s.slot.State().Open(), "driver: a drained slot is not open")
		s.open(e)
		d.room.ringAll()
	case plane.Moving: // drainSlot goes on when it is there
	}
}

// forward sends one parked message, a whole envelope stamped with its fence.
func (d *dispatch) forward(ref slotRef, e *routeEntry, env *wire.Envelope, f []byte) plane.Step {
	if env.Flags&wire.FlagBulk != 0 {
		if e.host == nil {
			return stepOf(d.large.forward(e, env))
		}
		d.large.keep(env)
	}
	if env.Flags&wire.FlagAsk != 0 && !d.asks.goes(env.Corr, e) {
		d.dropParked(ref, f, route.Expired)
		return plane.Stale
	}
	if e.host != nil {
		reason, ok := e.host.Forward(env, f)
		if !ok {
			return plane.NoRoom
		}
		if reason != route.OK {
			d.dropParked(ref, f, reason) // the slot's lock is held: an ask is settled later
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
	if !l.Waits() {
		wire.Unflag(b, wire.FlagWait)
	}
	l.Count(b)
	l.Hurry()
	if env.More() > 0 {
		l.Timed()
	}
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
func (d *dispatch) retryDrains(now time.Duration) {
	for _, ref := range d.control.agenda.Stalled(now) {
		s := ref.slot()
		s.mu.Lock()
		if s.next != nil && s.route.Load() == nil {
			d.drain(ref, s)
		}
		s.mu.Unlock()
	}
}

// expireParked fails messages that waited too long for a home.
func (d *dispatch) expireParked(now time.Duration) {
	for _, ref := range d.control.agenda.Waiting(now) {
		s := ref.slot()
		s.mu.Lock()
		next, watch := plane.Expire(&s.slot, now, func(f []byte) { d.dropParked(ref, f, route.TimedOut) })
		d.follow(ref, s, next)
		s.mu.Unlock()
		if watch {
			d.watch(ref)
		}
	}
}

// failParked fails everything that waits in a slot.
func (d *dispatch) failParked(ref slotRef, reason route.Reason) {
	s := ref.slot()
	s.mu.Lock()
	s.slot.FailAll(func(f []byte) { d.dropParked(ref, f, reason) })
	s.mu.Unlock()
	d.failDropped()
}

// dropParked notes one parked message that is not delivered. The slot's lock is held, so an ask is settled later.
func (d *dispatch) dropParked(ref slotRef, f []byte, reason route.Reason) {
	var env wire.Envelope
	what := plane.ClassifyUnsent(f, &env)
	invariant.Check(what >= plane.UnsentLarge, "driver: no envelope was parked")
	if reason == route.Abandoned && what != plane.UnsentLarge {
		d.abandon(ref.r, ref.shard, peer.ID{}, env.ID, what == plane.UnsentAsk)
	} else {
		ref.r.count.parkedLost.Add(1)
	}
	switch what {
	case plane.UnsentLarge:
		if l := d.large.get(&env); l != nil {
			d.large.end(l, reason, nil, d.failSoon)
		}
	case plane.UnsentAsk:
		d.control.failing = append(d.control.failing, failedAsk{env.Corr, reason, nil})
	default:
		if reason != route.Abandoned {
			d.failed.add(ref.r, ref.shard, cause{reason: reason}, 1, env.ID)
		}
	}
}

// failDropped answers asks that were dropped while a slot's lock was held.
func (d *dispatch) failDropped() {
	c := &d.control
	for len(c.failing) > 0 {
		list := c.failing
		c.failing = nil
		for _, a := range list {
			d.asks.failWith(a.corr, a.reason, a.why)
		}
	}
}

// doubt asks for the home again because its receiver refused an ask. Any goroutine.
func (d *dispatch) doubt(ref slotRef, e *routeEntry) {
	if ref.slot().route.Load() == e && e.remote != nil && e.doubted.CompareAndSwap(false, true) {
		d.inbox.post(func() { d.doubted(ref, e) })
	}
}

// doubted asks again for a home that a receiver refused, unless the slot leads elsewhere by now.
func (d *dispatch) doubted(ref slotRef, e *routeEntry) {
	s := ref.slot()
	s.mu.Lock()
	leads := plane.Leads(&s.slot, e.remote.id, e.term, e.epoch)
	s.mu.Unlock()
	if leads {
		d.nextHome(ref, e.remote.id, e.term, e.epoch)
	}
}

// deadEnd returns err, and asks for the home again when a send met the dead link of a forgotten peer. Any goroutine.
func (r *Region) deadEnd(sh route.ShardID, e *routeEntry, err error) error {
	if isForgotten(err) && e.doubted.CompareAndSwap(false, true) {
		r.d.rehome(slotRef{r, sh}, e)
	}
	return err
}

// isForgotten reports whether a link refused because its peer was removed, or its process is gone.
func isForgotten(err error) bool {
	return errors.Is(err, transport.ErrForgotten) || errors.Is(err, transport.ErrGone)
}

// rehome looks for the next home when one is on a peer that is forgotten. It is done in a turn of its own: this
// one may be carrying out what the node said. Any goroutine; a slot's lock may be held.
func (d *dispatch) rehome(ref slotRef, e *routeEntry) {
	d.log.Debug("home on a removed member", "type", ref.r.typ.Name, "shard", ref.shard, "home", e.remote.id)
	d.inbox.post(func() { d.nextHome(ref, e.remote.id, e.term, e.epoch) })
}

// nextHome makes the node forget a home, closes the slot if it leads there still, and asks again for what waits.
func (d *dispatch) nextHome(ref slotRef, at peer.ID, term, epoch uint32) {
	d.forgetHome(ref, term, epoch)
	s := ref.slot()
	s.mu.Lock()
	next := plane.Rehome(&s.slot, at, term, epoch)
	s.shut()
	d.follow(ref, s, next)
	s.mu.Unlock()
	d.watch(ref)
}

func (d *dispatch) forgetHome(ref slotRef, term, epoch uint32) {
	cmd := shard.RefusedCommand{Type: ref.r.id, Shard: ref.shard, Term: term, Epoch: epoch}
	if err := d.command(cmd); err != nil {
		d.log.Warn("refused route not forgotten", "type", ref.r.typ.Name, "shard", ref.shard, "error", err)
	}
}

// refusedThere takes a peer's word on what it refused of this node's.
func (d *dispatch) refusedThere(from peer.ID, kind wire.Kind, body []byte) {
	list, err := plane.ParseRefusals(kind, body)
	if err != nil {
		d.invalid.note(from, kind, err)
		return
	}
	regions := d.regions.Load()
	for _, e := range list {
		r, why := regions.byID.At(e.Type), cause{from, e.Reason, e.Limit}
		if r == nil || uint32(e.Shard) >= r.shards {
			d.failed.addAll(r, route.NoShard, why, e.Count, e.Samples)
			continue
		}
		if r.doubts(from, &e.RefusalKey) {
			d.nextHome(slotRef{r, e.Shard}, from, e.Term, e.Epoch)
		}
		r.count.refusedThere.Add(e.Count)
		if r.crew != nil {
			r.crew.refused(from, why.reason)
		}
		d.failed.addAll(r, e.Shard, why, e.Count, e.Samples)
	}
}

// doubts reports whether a refusal puts the route of its shard in doubt. What was never sent to has none.
func (r *Region) doubts(from peer.ID, k *plane.RefusalKey) bool {
	s := known(r, k.Shard)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return plane.Doubts(&s.slot, from, k)
}

// routesChanged carries out what the node says of homes, and then of markers.
func (d *dispatch) routesChanged(routes []shard.RouteChange, marks []shard.Mark) {
	for i := range routes {
		d.routeChanged(&routes[i])
	}
	if len(routes) > 0 {
		d.regions.Load().muster(func(r *Region) bool {
			return slices.ContainsFunc(routes, func(c shard.RouteChange) bool { return c.Type == r.id })
		})
	}
	for i := range marks {
		d.writeMarker(&marks[i])
	}
}

// writeMarker sends the marker of a move to the owner of its shard; its route is closed by now (plane.Mark). Without
// room for it the move is given up for want of it; one to a peer that is forgotten is not waited for.
func (d *dispatch) writeMarker(m *shard.Mark) {
	l := d.peers.remote(m.To, m.Shard).link
	ref, slot := slotRef{d.regions.Load().byID.At(m.Type), m.Shard}, (*flow.Slot)(nil)
	if ref.r != nil && uint32(m.Shard) < ref.r.shards && known(ref.r, m.Shard) != nil {
		s := ref.slot()
		s.mu.Lock()
		defer s.mu.Unlock()
		slot = &s.slot
	}
	var asks []uint64
	var next plane.Next
	l.Lock()
	err := l.Mark(func(q *flow.Link) (err error) {
		asks, next, err = plane.Mark(slot, q, d.now(), wire.Marker{Type: uint32(m.Type), Shard: uint32(m.Shard),
			Term: m.Number.Term, Seq: m.Number.Seq})
		return err
	})
	l.Unlock()
	for _, corr := range asks {
		d.asks.stays(corr)
	}
	if next == plane.LookUp {
		d.want(ref)
	}
	if err != nil {
		d.log.Debug("no room for the marker of a move", "peer", m.To, "shard", m.Shard, "error", err)
		return
	}
	l.Wake(nil)
}

// marked tells the node of a marker that has come.
func (d *dispatch) marked(from peer.ID, m wire.Marker) {
	// One that means nothing changes nothing.
	_ = d.command(shard.MarkedCommand{Type: route.TypeID(m.Type), Shard: route.ShardID(m.Shard),
		Number: shard.Number{Term: m.Term, Seq: m.Seq}, From: from})
}
