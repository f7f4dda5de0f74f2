// Shards that live on a process: entity.Shard ridden bare, Blocking handlers as coroutines.

package world

import (
	"context"
	"fmt"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// hosted is one shard that lives here.
type hosted struct {
	r       *Region
	shard   *entity.Shard
	life    lifetime.Shard
	planned time.Duration // tick that is planned, negative for none
	nth     uint64
	ticking bool   // a tick is on its way
	cut     bool   // at the deadline of its move: no handler is called for what waits
	room    int    // of its move, for what it hands over
	ends    bool   // its stop was ordered
	moving  bool   // the loop reads on meanwhile
	over    bool   // stopped or abandoned
	silent  bool   // abandoned: no entity stopped in order, and no handler is called any more
	permit  permit // of the entity that is kept alive; a caller of one looks first

	attended bool // Type.Hosted is being called: the shard has not stopped before that returns
}

// register makes a type known to the process's node.
func register(p *Process, t *EntityType) {
	placing := t.Strategy
	if t.Placing != nil {
		placing = t.Placing(p)
	}
	p.Do(shard.RegisterCommand{Settings: shard.Settings{Name: t.Name, Shards: t.Shards, Role: t.role(p),
		ShardBy: t.ShardBy.Name}, Strategy: placing})
}

func (w *World) newBudget() *entity.Pool { return &entity.Pool{Limit: w.Config.Data.MailboxBudget} }

// host carries out one order: make a shard live here, or stop it.
func (p *Process) host(o shard.HostOrder) {
	r := p.Region(o.Type)
	if r == nil || uint32(o.Shard) >= r.Type.Shards {
		p.World.Watcher.Violate(p, "host", "order for %s, which is not registered here", p.World.ShardName(o.Type, o.Shard))
		return
	}
	key := ShardKey{o.Type, o.Shard}
	h := r.shards.Peek(o.Shard)
	switch {
	case !o.Stop && h == nil:
		p.World.Watcher.Hosts(p, key, o.Fence)
		noteHosted(r, o)
		h = &hosted{r: r, planned: -1}
		h.shard = entity.NewShard(r.Type, o.Shard, o.Fence, shardRuntime{p, r, h}, p.mailbox)
		entity.PoisonContexts(h.shard)
		*r.shards.At(o.Shard) = h
		h.begins(o)
	case !o.Stop:
		p.World.Watcher.Hosts(p, key, o.Fence)
		noteHosted(r, o)
	case h == nil && r.lease != nil && r.lease.stopped[o.Fence] != nil:
		// The confirmation follows.
	case h == nil:
		// Stopped already, and the confirmation got lost: confirm again.
		p.post(shard.StoppedCommand{Type: o.Type, Shard: o.Shard, Fence: o.Fence})
	case o.Abandon:
		r.Slot(o.Shard).Reset()
		h.silent = true
		h.life.Lose()
		p.World.Watcher.Stopped(p, key, false)
		h.order(func() { h.step(func(time.Duration) { h.drop() }) })
	default:
		if s := r.Slot(o.Shard); s.IsLocal() {
			s.Reset()
		}
		if q := r.queueOf(o.Shard); q != nil && len(q.at.frames)+len(q.frames) > 0 {
			p.World.Plane.StopsBehind++
		}
		why, by := entity.StopMoved, time.Duration(0)
		if o.Leaving {
			why, by = entity.StopLeaving, p.leaveBy
		}
		h.life.Stop(by)
		h.ends = true
		h.order(func() {
			if !h.silent {
				h.step(func(now time.Duration) { h.stop(now, why, &o) })
			}
		})
		if o.Within > 0 {
			p.Later(o.Within, func() { p.pass(func() { h.overdue(by) }) })
		}
	}
}

// noteHosted notes under which fence a shard lives here.
func noteHosted(r *Region, o shard.HostOrder) {
	if r.lastHosted == nil {
		r.lastHosted = map[route.ShardID]route.Fence{}
	}
	r.lastHosted[o.Shard] = o.Fence
}

// begins makes a shard that is to live here begin: with what its last owner left, and with the entity that is kept
// alive.
func (h *hosted) begins(o shard.HostOrder) {
	r := h.r
	if r.lease != nil {
		h.withhold()
		entity.Withhold(h.shard, r.Process.clock(), r.decl.Keep)
	}
	h.takesUp(o.Left)
	if k := r.decl.Keep; k != nil {
		serving := func() context.Context { return h.life.Serving(r.Process.Held) }
		h.order(func() { h.step(func(now time.Duration) { entity.KeepAlive(h.shard, now, k, serving) }) })
	}
	if r.lease != nil {
		r.lease.begins(o.Fence)
	}
	if r.Type.Remembered != nil {
		h.recall(0)
	}
	if r.Type.Hosted != nil {
		h.attend(0)
	}
}

const (
	recallSoon = 5 * time.Millisecond // after which a list of remembered entities is read
	recallRest = time.Second          // after which it is again, when that has failed
)

// recall reads which entities of the shard are remembered, and begins them.
func (h *hosted) recall(after time.Duration) {
	p := h.r.Process
	p.Later(recallSoon+after, func() {
		p.pass(func() {
			if ctx := h.life.Serving(p.Held); h.over || h.silent || ctx.Err() != nil {
				return // the next owner reads it
			}
			before := p.World.Acting
			p.World.Acting = p
			ids, err := readList(h)
			p.World.Acting = before
			if err != nil {
				h.recall(recallRest)
				return
			}
			h.order(func() {
				if !h.over && !h.silent {
					h.step(func(now time.Duration) { entity.Recall(h.shard, now, ids, func() {}) })
				}
			})
		})
	})
}

// readList reads the whole list of a shard.
func readList(h *hosted) (ids []string, err error) {
	for id, err := range h.r.Type.Remembered(h.life.Serving(h.r.Process.Held), h.shard.ID(), h.shard.Fence()) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// measure reports to the node what the shards of a type cost that live here.
func measure(p *Process, id route.TypeID) {
	r := p.Region(id)
	if r == nil {
		return
	}
	cmd := shard.LoadsCommand{Type: id}
	for s, at := range r.shards.All {
		if h := *at; h != nil {
			st := h.shard.Stats()
			cmd.Readings = append(cmd.Readings, strategy.Reading{Shard: s, Fence: h.shard.Fence(),
				Entities: uint32(max(st.Live, 0)), Handled: st.Delivered, Queued: uint32(max(st.QueuedBytes, 0))})
		}
	}
	p.post(cmd)
}

// order carries an order out where the host's messages are ordered: behind those that wait for its worker or loop.
func (h *hosted) order(run func()) {
	if q := h.r.queueOf(h.shard.ID()); q != nil {
		q.order(h, run)
		return
	}
	run()
}

// step runs one verb of the shard and what follows from it.
func (h *hosted) step(verb func(now time.Duration)) {
	w := h.r.Process.World
	before := w.Acting
	w.Acting = h.r.Process
	verb(h.r.Process.clock())
	w.Acting = before
	h.follow()
}

// follow starts coroutines for entities that became ready, plans the next tick, and confirms a stop that is over.
func (h *hosted) follow() {
	p := h.r.Process
	if !p.Alive || h.over {
		return
	}
	p.relieve()
	for e := h.shard.Ready(); e != nil; e = h.shard.Ready() {
		p.spawn(h, e)
	}
	if h.shard.Stopped() && !h.attended {
		h.over = true
		h.moves(false)
		n := h.shard.ID()
		h.r.shards.Drop(n)
		p.World.Watcher.Stopped(p, ShardKey{h.r.ID, n}, !h.silent)
		h.stopped()
		return
	}
	at, ok := h.shard.Next()
	if !ok || h.ticking || h.planned >= 0 && h.planned <= at {
		return
	}
	h.planned = at
	h.nth++
	nth := h.nth
	p.Later(max(at-p.clock(), 0), func() {
		if nth == h.nth && !h.over {
			h.planned, h.ticking = -1, true
			p.pass(func() { h.order(h.tick) })
		}
	})
}

func (h *hosted) tick() {
	h.ticking = false
	if !h.over && !h.silent {
		h.bar()
		h.step(h.shard.Tick)
	}
}

// goesOn reports whether a run of an entity makes its next call: other says that it is not the one that is kept alive.
func (h *hosted) goesOn(last, other bool) bool {
	return !h.silent && (last || !h.cut) && (other || !h.barred())
}

// endRun ends a run of an entity and reports whether the next one follows.
func (h *hosted) endRun(e *entity.Entity) bool {
	h.bar()
	more := e.End(h.r.Process.clock())
	h.permitted()
	return more
}

// accept takes one envelope for an entity of this node, or refuses it.
func (p *Process) accept(from peer.ID, e *wire.Envelope) {
	p.acceptOf(from, e, nil)
}

// acceptOf is accept of an envelope with a sender that waits for room, if b is not nil.
func (p *Process) acceptOf(from peer.ID, e *wire.Envelope, b *backTalk) {
	if why := p.deliver(from, e, b); why != route.OK {
		p.refuse(from, e, why)
	}
}

// deliver gives one envelope to its host, or says why not.
func (p *Process) deliver(from peer.ID, e *wire.Envelope, b *backTalk) route.Reason {
	r := p.Region(route.TypeID(e.Type))
	if r == nil {
		return route.NotRegistered
	}
	if uint32(e.Shard) >= r.Type.Shards || r.shards.Peek(route.ShardID(e.Shard)) == nil {
		return route.NotOwner
	}
	h := r.shards.Peek(route.ShardID(e.Shard))
	f := h.shard.Fence()
	if why := plane.Accept(e, f.Term(), f.Epoch(), p.World.Config.Data.MaxPayload); why != route.OK {
		return why
	}
	if h.silent {
		p.World.Plane.AfterAbandon++
		return plane.Abandoned(p.Ended != nil)
	}
	m := entity.Message{ID: e.ID, Payload: e.Payload, Parked: e.Flags&wire.FlagParked != 0}
	if e.Flags&wire.FlagAsk != 0 {
		m.From, m.Corr = origin{p, from}, e.Corr
	}
	if e.Flags&wire.FlagLimit != 0 {
		m.Limit = plane.LimitAt(e.Limit, p.clock())
	}
	if e.Flags&wire.FlagHeaders != 0 {
		m.Headers = e.Headers
	}
	if waitsHere := e.Flags&wire.FlagWait != 0 && e.Flags&wire.FlagParked == 0; from == p.ID && waitsHere {
		m.Sender, m.Here = (*here)(p), true
	}
	if b != nil && r.Type.Mode == entity.Blocking && e.Flags&wire.FlagBulk == 0 {
		if why := p.strains(e, b); why != route.OK {
			return why
		}
		m.Sender = b
		defer p.strainBound(m.Parked)
	}
	p.gate.oversleeps(p)
	p.gate.outlives(p)
	p.World.Watcher.Delivers(p, ShardKey{r.ID, h.shard.ID()}, e)
	h.bar() // a large message calls the handler as well
	if e.Flags&wire.FlagBulk != 0 {
		return p.acceptLarge(h, from, e, &m)
	}
	p.World.place(e.Payload, p)
	why := route.OK
	h.step(func(now time.Duration) { why = h.shard.Deliver(now, &m) })
	switch why {
	case route.OK:
		p.World.accepted(e.Payload)
	case route.Crashed:
		p.World.Plane.CrashedThen++
	}
	return why
}

// shardRuntime is what handlers reach of their process.
type shardRuntime struct {
	p *Process
	r *Region // of the handlers' own type
	h *hosted
}

// Context implements entity.Runtime.
func (r shardRuntime) Context(limit time.Duration, from entity.Origin, corr uint64) context.Context {
	now := r.p.clock()
	parent := func() context.Context { return r.h.life.Context(now, limit, r.p.Held, r.inTime) }
	if from == nil {
		return parent()
	}
	return r.p.asks.cancels.Context(lifetime.Asked{From: from.(origin).to, Number: corr}, now, limit, nil, parent)
}

// Answered implements entity.Runtime.
func (r shardRuntime) Answered(from entity.Origin, corr uint64) {
	r.p.asks.cancels.Answered(lifetime.Asked{From: from.(origin).to, Number: corr})
}

// Tell implements entity.Runtime.
func (r shardRuntime) Tell(headers []byte, typ, id string, payload []byte) error {
	reg := r.p.Region(route.TypeOf(typ))
	if reg == nil {
		return route.ErrNotRegistered
	}
	if id == "" && reg.Pooled() {
		return TellAny(headers, reg, payload)
	}
	_, err := reg.SendWith(headers, id, payload, 0)
	return err
}

// Ask implements entity.Runtime: the handler's coroutine is put aside until the answer comes.
func (r shardRuntime) Ask(headers []byte, d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	if n := r.h.shard.ID(); route.TypeOf(typ) == r.r.ID && r.r.shardOf(id) == n {
		if why := plane.AsksItself(r.r.Slot(n)); why != route.OK {
			return nil, why.Err()
		}
	}
	if r.h.cut {
		return nil, route.NotRun(route.ReplyError(route.ShardStopping, []byte(plane.LetGo)))
	}
	if reg := r.p.Region(route.TypeOf(typ)); id == "" && reg != nil && reg.Pooled() {
		if reg == r.r {
			return nil, fmt.Errorf("%w: a worker asks its own pool, which may be itself", entity.ErrWouldBlock)
		}
		return reg.AskAny(d, func(d time.Duration, id string) ([]byte, error) {
			return r.p.askInside(&r.h.life, headers, d, typ, id, payload)
		})
	}
	return r.p.askInside(&r.h.life, headers, d, typ, id, payload)
}

// Report implements entity.Runtime.
func (r shardRuntime) Report(i entity.Incident) {
	switch {
	case i.Kind == entity.StateLost:
		stateLost(r.p, r.r, i.ID, i.Err)
	case !r.p.Alive:
	case i.Kind == entity.Panicked:
		r.p.World.trace.note(r.p.World.Now, r.p.Index, opNote, "handler of "+i.Type+"/"+i.ID+" panicked")
	case i.Kind == entity.NewFailed:
		r.p.World.trace.note(r.p.World.Now, r.p.Index, opNote, "no "+i.Type+"/"+i.ID+": "+i.Text)
	case i.Kind == entity.GaveUp:
		r.p.World.Plane.GaveUp++
		r.p.World.trace.note(r.p.World.Now, r.p.Index, opNote, "gave up "+i.Type+"/"+i.ID)
	}
}

// Unhandled implements entity.Runtime.
func (r shardRuntime) Unhandled(_ *entity.Entity, why route.Reason, ask bool, payload []byte) {
	if why == route.Abandoned {
		r.p.World.Plane.Abandoned++
		if e := r.p.Ended; e != nil && e.Kind == membership.EndLeft && !r.p.forced {
			r.p.World.Watcher.Violate(r.p, "lost", "a message lay in a mailbox of a node that left gracefully")
		}
	}
	if why == route.Crashed {
		r.p.World.Plane.GaveUpWith++
	}
	r.p.dropped[why]++
	r.p.World.Fate(payload, FateRefused, why, why.String())
	if !ask {
		r.p.World.Book.toldHere(payload) // this node's embedder gets a report, as by Config.Undelivered
	}
}

// Calling and Returned implement entity.Runtime. A handler that does not return stops the one thread there is; slow
// calls are reported when they have returned.
func (shardRuntime) Calling(*entity.Entity, entity.Call)  {}
func (shardRuntime) Returned(*entity.Entity, entity.Call) {}

// Wall implements entity.Runtime.
func (r shardRuntime) Wall() time.Time {
	w := r.p.World
	return time.UnixMilli(WallBase).UTC().Add(w.Now + w.Hosts[r.p.Index].Wall + r.p.skew)
}
