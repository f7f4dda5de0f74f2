// The end of a process's data plane, and of a shard there: what it has accepted and not handled is abandoned, and said
// to be, or handed over to the next owner; and of what it has for another that was removed.

package world

import (
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// abandon gives up what a process holds that ends by itself, while it can still say so: what waits in mailboxes, before
// workers and loop, in slots and links; and tells what it has refused of others. What its gate keeps of others it
// leaves as it is: it does not count as taken, and they know it as lost, unless their connection is over.
func (p *Process) abandon() {
	failTo := func(to peer.ID, frame []byte) { p.failed(to, frame, plane.WhyUnsent(true), "its node ended") }
	fail := func(frame []byte) { failTo(peer.ID{}, frame) }
	var e node.Effects
	_ = p.Node.Do(p.clock(), shard.EndCommand{}) // a node that has ended has told all
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
	leaveKept(p)
	sayTaken(p)
	p.lastReport()
}

// leaveKept refuses the tells at the gate whose connection is over: their sender is told that they were taken.
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
	h.shard.Abandon()
	w.Plane.LeftBehind += h.shard.LeaveBehind()
	w.Acting = before
}

// abandon gives the process's own messages that wait to fail, in order, and refuses those of others.
func (q *workQueue) abandon(fail func(frame []byte)) {
	frames := q.frames
	q.frames, q.orders = nil, nil
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

// untaken tells of what was handed over and is handled by nobody, as far as that is certain.
func untaken(p *Process, list []shard.Untaken) {
	for _, u := range list {
		r := p.Region(u.Type)
		for _, m := range reads(r, u.Shard, u.Left) {
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
