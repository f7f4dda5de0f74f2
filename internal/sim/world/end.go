// The end of a process's data plane, and of a shard there: what it has accepted and not handled is abandoned, and said
// to be, or handed over to the next owner; and of what it has for another that was removed.

package world

import (
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// abandon gives up what a process holds that ends by itself, while it can still say so: what waits in mailboxes, before
// workers and loop, in slots and links; and tells what it has refused of others. What its gate keeps of others it
// leaves as it is: it does not count as taken, and they know it as lost, unless their connection is over.
func (p *Process) abandon() {
	for id, ok := p.removed.Lost(); ok; id, ok = p.removed.Lost() {
		p.forgetPeer(id)
	}
	failTo := func(to peer.ID, frame []byte) { p.failed(to, frame, plane.WhyUnsent(true), "its node ended") }
	fail := func(frame []byte) { failTo(peer.ID{}, frame) }
	var e node.Effects
	_ = p.Node.Do(p.clock(), shard.EndCommand{}) // a node that has ended has reported all
	p.Node.Drain(&e)
	untaken(p, e.Untaken)
	for _, r := range p.Regions {
		for i := range r.slots.All {
			p.World.Plane.AbandonedParked += r.Slot(i).FailAll(fail)
		}
		for _, h := range r.stopped {
			h.abandon()
		}
		for _, at := range r.shards.All {
			h := *at
			if h != nil {
				h.silent = true
				h.abandon()
			}
		}
	}
	for _, q := range append(p.workers, p.loop) {
		q.abandon(fail)
	}
	for _, c := range p.links.list {
		c.link.flow.FailAll(func(frame []byte) { failTo(c.to, frame) })
	}
	loseAllLarge(p)
	leaveKept(p)
	sayTaken(p)
	p.lastReport()
}

// loseAllLarge ends the large messages that a process has sent and not heard of, as a driver does: nobody knows whether
// they were taken. Nothing else is left of its large messages, since their envelopes were given up.
func loseAllLarge(p *Process) {
	for _, l := range slices.Clone(p.bulk.out) {
		p.endLarge(l, route.Stopped, FateInFlight, "its node ended")
	}
}

// leaveKept refuses the tells at the gate of a closed connection: their sender counts them as taken.
func leaveKept(p *Process) {
	for i := range p.gate.waiting {
		h := &p.gate.waiting[i]
		var e wire.Envelope
		if h.frame == nil || !wire.IsTell(h.frame) || h.in.gen == h.gen && !h.in.settled {
			continue
		}
		if wire.ParseEnvelope(h.frame, &e) == nil { // as it did when it came
			p.refuse(h.in.from, &e, plane.Abandoned(true))
		}
	}
}

// sayTaken says what was taken on the data connections that stand: what their gate keeps was not.
func sayTaken(p *Process) {
	for _, c := range p.accepted {
		if c.link == nil || c.peer != p || c.state != connUp || p.World.Config.Data.OldCredit {
			continue
		}
		in := p.reader(c)
		taken := flow.Taken{Number: uint16(c.number), Generation: c.gen, Tells: in.tells}
		for _, h := range p.gate.waiting {
			if h.in == in && h.gen == in.gen && wire.IsTell(h.frame) {
				taken.Tells--
			}
		}
		p.gathered(c.from.ID).words.Add(taken)
	}
}

// abandon drops what the host holds. Handlers that wait for an answer never get one: what stands behind them goes too.
func (h *hosted) abandon() {
	w := h.r.Process.World
	before := w.Acting
	w.Acting = h.r.Process
	h.drop()
	w.Plane.LeftBehind += h.shard.LeaveBehind()
	w.Acting = before
}

// drop abandons the shard. States that were to be given up by then are reported as lost.
func (h *hosted) drop() {
	if h.ends {
		entity.LoseStates(h.shard)
	}
	h.shard.Abandon()
}

// abandon gives the process's own messages that wait to fail, in order, and refuses those of others.
func (q *workQueue) abandon(fail func(frame []byte)) {
	frames := q.frames
	q.pile = pile{}
	if q.busy { // else it goes on with what it is at
		frames, q.at = append(q.at.frames, frames...), pile{}
	}
	for _, f := range frames {
		if f.from == q.p.ID {
			fail(f.frame)
			q.p.World.Plane.AbandonedQueued++
			continue
		}
		var e wire.Envelope
		if err := wire.ParseEnvelope(f.frame, &e); err != nil {
			q.p.World.Watcher.Violate(q.p, "frame", "a frame that waited does not parse: %v", err)
			continue
		}
		q.p.refuse(f.from, &e, plane.Abandoned(true))
		f.done()
	}
}

// shut ends what a process has under way.
func (p *Process) shut() {
	p.failAsks(func(*ask) bool { return true }, route.Stopped)
	eachHosted(p, func(h *hosted) { h.life.Lose() })
	p.killTasks()
}

// giveUp fails what waits for a connection to a process that is known to be gone.
func (p *Process) giveUp(id peer.ID) {
	for _, c := range p.links.list {
		if c.to == id && c.state != connUp {
			c.link.flow.FailAll(func(frame []byte) { p.failed(id, frame, plane.WhyUnsent(false), "peer given up") })
		}
	}
}

// forgetPeer drops everything about a member that was removed: what waits for it is failed.
func (p *Process) forgetPeer(id peer.ID) {
	p.forgotten[id] = true
	for _, c := range p.links.list {
		if c.to == id {
			c.close()
			p.lostInFlight(p.flightsTo(id).End(), true)
			c.state, c.forgotten = connRefused, true
			c.link.flow.FailAll(func(frame []byte) { p.failed(id, frame, plane.WhyUnsent(false), "peer removed") })
		}
	}
	for _, c := range p.bulk.links.list {
		if c.to == id {
			c.close()
			c.state, c.forgotten = connRefused, true
			c.bulk.pump()
		}
	}
	for _, c := range p.conns.list {
		if c.to == id {
			c.waiting = nil
		}
	}
	p.lostPeer(id)
}

// untaken reports what was handed over and is handled by nobody, as far as that is certain.
func untaken(p *Process, list []shard.Untaken) {
	for _, u := range list {
		r := p.Region(u.Type)
		list, states := reads(r, u.Shard, u.Left)
		for _, st := range states {
			stateLost(p, r, st.ID, entity.ErrStateLeftBehind)
		}
		for _, m := range list {
			e, ask := &m.Envelope, m.Envelope.Flags&wire.FlagAsk != 0
			p.World.Plane.Untaken++
			if u.Unsure {
				mayBeLost(p.World, e.Payload)
				continue
			}
			p.World.Book.handed(e.Payload, p)
			if ask {
				_ = origin{p, m.Asker}.Reply(e.Corr, route.Abandoned, nil)
			}
			shardRuntime{p: p, r: r}.Unhandled(nil, route.Abandoned, ask, e.Payload)
		}
	}
}

// stop begins the end of the shard. In a move its entities are asked for their states.
func (h *hosted) stop(now time.Duration, why entity.StopReason, o *shard.HostOrder) {
	if o.Moves {
		h.room = o.Room
		entity.AskForState(h.shard, o.Room)
	} else {
		entity.LoseStates(h.shard)
	}
	h.shard.Stop(now, why)
}

// stateLost reports a state that nobody takes up from here.
func stateLost(p *Process, r *Region, id string, why error) {
	w := p.World
	w.Plane.StatesLost++
	if r.decl.OnLost != nil {
		r.decl.OnLost(p, id, why)
	}
	w.trace.note(w.Now, p.Index, opNote, "state of "+r.Type.Name+"/"+id+" is lost: "+why.Error())
}

// overdue is the deadline of a shard's move: its handlers wait for no answer any more, and what nobody has begun is
// handed over.
func (h *hosted) overdue(by time.Duration) {
	p := h.r.Process
	if h.over || h.silent || h.cut {
		return
	}
	h.cut = true
	h.life.Stop(by)
	for _, a := range p.asks.all {
		if a.state.Waits() && a.by == &h.life {
			p.answered(a.Corr(), route.ShardStopping, []byte(plane.LetGo))
		}
	}
	h.step(func(now time.Duration) { entity.Cut(h.shard, now) })
	if q := h.r.queueOf(h.shard.ID()); q != nil && q.busy {
		q.skim(h, func(e *wire.Envelope) bool {
			return route.TypeID(e.Type) == h.r.ID && route.ShardID(e.Shard) == h.shard.ID()
		})
	}
}

// stopped tells the node in its next step that the shard has stopped, with what was not worked off. Until the control
// loop takes that, the process still has it, and reports it if it ends.
func (h *hosted) stopped() {
	r := h.r
	r.stopped = append(r.stopped, h)
	takes := func() {
		r.stopped = slices.DeleteFunc(r.stopped, func(o *hosted) bool { return o == h })
		cmd := shard.StoppedCommand{Type: r.ID, Shard: h.shard.ID(), Fence: h.shard.Fence()}
		if left, states := h.handsOver(); len(left) > 0 {
			if r.left == nil {
				r.left = map[route.ShardID][]byte{}
			}
			r.left[cmd.Shard] = left
			r.Process.World.Watcher.Keeps(r.Process, ShardKey{r.ID, cmd.Shard})
			r.Process.Do(shard.HandOverCommand{StoppedCommand: cmd, Left: left, States: states})
			return
		}
		r.Process.Do(cmd)
	}
	tell := func() { r.Process.put(job{run: takes}) }
	if r.lease != nil {
		r.lease.ends(h.shard.Fence(), tell)
		return
	}
	r.Process.Later(0, tell)
}

// handsOver returns what the shard hands over, as the next owner reads it: what was not worked off, and states.
func (h *hosted) handsOver() (left []byte, states bool) {
	f := h.shard.Fence()
	for _, m := range entity.TakeLeft(h.shard) {
		e := wire.Envelope{Type: uint32(h.r.ID), Shard: uint32(h.shard.ID()), Term: f.Term(), Epoch: f.Epoch(), ID: m.ID,
			Payload: m.Payload, Headers: m.Headers}
		asker := peer.ID{}
		if m.From != nil {
			asker, e.Corr = m.From.(origin).to, m.Corr
		}
		plane.FlagUnhandled(&e, m.From != nil, m.Limit)
		left = plane.AppendUnhandled(left, asker, &e, h.r.Process.clock())
		h.r.Process.World.Plane.HandedOver++
	}
	for _, st := range entity.TakeStates(h.shard, plane.StateRoom(h.room, len(left))) {
		left, states = plane.AppendState(left, st.ID, st.Bytes), true
	}
	return left, states
}

// takesUp makes the shard begin with what its last owner handed over.
func (h *hosted) takesUp(left []byte) {
	p := h.r.Process
	var all []entity.Message
	list, handed := reads(h.r, h.shard.ID(), left)
	for _, u := range list {
		e := &u.Envelope
		m := entity.Message{ID: e.ID, Payload: e.Payload, Corr: e.Corr}
		if e.Flags&wire.FlagAsk != 0 {
			m.From = origin{p, u.Asker}
		}
		if e.Flags&wire.FlagLimit != 0 {
			m.Limit = plane.LimitAt(e.Limit, p.clock())
		}
		if e.Flags&wire.FlagHeaders != 0 {
			m.Headers = e.Headers
		}
		p.World.Book.handed(e.Payload, p)
		all = append(all, m)
	}
	states := make([]entity.State, len(handed))
	for i, st := range handed {
		states[i] = entity.State{ID: st.ID, Bytes: st.State}
	}
	if len(all)+len(states) > 0 {
		h.step(func(now time.Duration) { entity.Resume(h.shard, now, all, states) })
	}
}
