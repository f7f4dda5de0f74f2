// Large messages that other processes send, gathered under the bound that all of them share, and given to their hosts;
// and the rules of large messages both ways.

package world

import (
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// bulkFrame takes one frame of a peer's bulk connection.
func (p *Process) bulkFrame(c *conn, k packet) {
	in := p.bulkReader(c)
	var err error
	switch k.kind {
	case wire.KindBulkBegin:
		var b wire.BulkBegin
		if b, err = wire.ParseBulkBegin(k.body); err == nil {
			before := p.bulk.room.Held(c.from.ID)
			err = in.r.Begin(p.clock(), b, flow.BulkEnd{Reason: p.judgeLarge(&b)})
			p.bulk.share(p, c.from.ID, before)
		}
		p.bulkTick()
	case wire.KindBulkAbort:
		var n uint32
		if n, err = wire.ParseBulkNumber(k.kind, k.body); err == nil {
			err = in.r.Abort(n)
		}
	case wire.KindBulkChunk:
		var n uint32
		var part, dst []byte
		if n, part, err = wire.SplitBulkChunk(k.body); err == nil {
			dst, err = in.r.Chunk(n, len(part))
		}
		if err == nil && dst != nil {
			copy(dst, part)
			in.r.Filled(p.clock(), n, len(part))
		}
	}
	if err != nil {
		p.World.Watcher.Violate(p, "bulk", "%s of %s: %v", k.kind, p.World.Name(c.from.ID), err)
	}
	p.tellBulk(in)
	p.turns()
}

func (p *Process) bulkReader(c *conn) *bulkIn {
	for _, in := range p.bulk.ins {
		if in.conn == c && in.gen == c.gen {
			return in
		}
	}
	p.bulkOver(c, c.gen-1)
	p.bulk.lastIn++
	in := &bulkIn{conn: c, gen: c.gen, id: p.bulk.lastIn,
		r: flow.NewBulkReceiver(c.from.ID, p.bulk.lastIn, 4*p.World.Config.Data.BulkChunk, 0,
			p.World.Config.Data.BulkStall, &p.bulk.room)}
	p.bulk.ins = append(p.bulk.ins, in)
	return in
}

// bulkOver forgets a peer's bulk connection up to a generation.
func (p *Process) bulkOver(c *conn, gen uint32) {
	p.bulk.ins = slices.DeleteFunc(p.bulk.ins, func(in *bulkIn) bool {
		if in.conn != c || in.gen > gen {
			return false
		}
		in.r.Broken()
		return true
	})
	p.turns()
}

// tellBulk sends what a receiver has to say back.
func (p *Process) tellBulk(in *bulkIn) {
	if c := in.conn; c.state == connUp && c.gen == in.gen && !c.back.closed {
		eachBulk(in.r.AppendAnswers(nil), c.back.send)
	}
}

// turns admits the large messages that are due, and checks that room is never exceeded.
func (p *Process) turns() {
	for from, k, n, ok := p.bulk.room.Turn(); ok; from, k, n, ok = p.bulk.room.Turn() {
		p.bulk.share(p, from, p.bulk.room.Held(from)-n)
		i := slices.IndexFunc(p.bulk.ins, func(in *bulkIn) bool { return in.id == k.Conn })
		if i < 0 {
			p.bulk.room.Give(from, n)
			continue
		}
		p.bulk.ins[i].r.Admitted(p.clock(), k.Number, n)
		p.tellBulk(p.bulk.ins[i])
	}
	p.bulk.bounds(p)
}

func (p *Process) judgeLarge(b *wire.BulkBegin) route.Reason {
	r := p.Region(route.TypeID(b.Type))
	if r == nil {
		return route.NotRegistered
	}
	if uint32(b.Shard) >= r.Type.Shards {
		return route.NotOwner
	}
	h := r.shards.Peek(route.ShardID(b.Shard))
	if h == nil || h.silent {
		return route.NotOwner
	}
	f := h.shard.Fence()
	return plane.AcceptLarge(b, f.Term(), f.Epoch(), h.shard.Stopping())
}

// acceptLarge gives a large message to its host when the envelope comes that stands for it.
func (p *Process) acceptLarge(h *hosted, from peer.ID, e *wire.Envelope, m *entity.Message) route.Reason {
	var free, done func()
	if from == p.ID {
		l := p.largeOf(peer.ID{}, e.Payload)
		if l == nil {
			return route.PeerLost
		}
		m.Payload = l.payload
		free, done = func() {}, func() { p.endLarge(l, route.OK, 0, "") }
	} else {
		ref, err := wire.ParseBulkRef(e.Payload)
		i := slices.IndexFunc(p.bulk.ins, func(in *bulkIn) bool {
			return in.conn.from.ID == from && in.gen == ref.Generation
		})
		if err != nil || i < 0 {
			return route.PeerLost
		}
		in := p.bulk.ins[i]
		_, payload, ok := in.r.Take(ref.Number)
		if !ok {
			return route.PeerLost
		}
		m.Payload = payload
		p.bulk.lent += len(payload)
		free = func() {
			p.bulk.lent -= len(payload)
			p.bulk.room.Give(from, len(payload))
			p.Later(0, p.turns)
		}
		done = func() { in.r.End(ref.Number, flow.BulkEnd{}); p.tellBulk(in) }
	}
	if h.r.Type.Mode == entity.Blocking {
		m.Loan = &entity.Loan{Release: free}
	}
	p.World.place(m.Payload, p)
	why := route.OK
	h.step(func(now time.Duration) { why = h.shard.Deliver(now, m) })
	if why != route.OK || m.Loan == nil {
		free()
	}
	if why != route.OK {
		p.World.place(m.Payload, p.World.ProcessOf(from)) // the sender has it until it hears the refusal
		return why
	}
	p.World.accepted(m.Payload)
	done()
	return why
}

// refuseLarge tells the sender of a large message that it was not taken.
func (p *Process) refuseLarge(from peer.ID, e *wire.Envelope, why route.Reason) {
	p.dropped[why]++
	if from == p.ID {
		if l := p.largeOf(peer.ID{}, e.Payload); l != nil {
			p.endLarge(l, why, FateRefused, why.String())
		}
		return
	}
	ref, err := wire.ParseBulkRef(e.Payload)
	for _, in := range p.bulk.ins {
		if err == nil && in.conn.from.ID == from && in.gen == ref.Generation {
			in.r.End(ref.Number, flow.BulkEnd{Reason: why, Limit: p.LimitOf(route.TypeID(e.Type), why)})
			p.tellBulk(in)
		}
	}
	p.turns()
}

// bounds: the room of large messages is never exceeded, and what is claimed of it, and waited for, is what its
// receivers say and what was taken and is not given back.
func (b *bulks) bounds(p *Process) {
	used, held, waiting := b.room.Used(), b.lent, 0
	for _, in := range b.ins {
		n, w := in.r.Claims()
		held, waiting = held+n, waiting+w
	}
	if used < 0 || used > b.room.Limit || used != held {
		p.World.Watcher.Violate(p, "bulk", "%d bytes of room are used, of %d, for %d bytes of messages", used, b.room.Limit,
			held)
	}
	if n := b.room.Waiting(); n != waiting {
		p.World.Watcher.Violate(p, "bulk", "%d messages wait for room, %d are under way that do", n, waiting)
	}
}

// share: a peer that held room before has no more than its share with what it got now.
func (b *bulks) share(p *Process, from peer.ID, before int) {
	r := &b.room
	if n := r.Held(from); before > 0 && n > before && n > r.Share() {
		p.World.Watcher.Violate(p, "bulk", "%s holds %d bytes of room, its share is %d", p.World.Name(from), n, r.Share())
	}
}

// ends: a message is under way at its receiver only while its sender knows it, or its end is on the way.
func (in *bulkIn) ends(p *Process) {
	c := in.conn
	if c.state != connUp || c.gen != in.gen || !c.bulk.s.Idle() || c.fore.head < len(c.fore.flight) ||
		in.r.Underway() == 0 {
		in.idle = 0
		return
	}
	if in.idle++; in.idle == 3 {
		p.World.Watcher.Violate(p, "bulk", "%d large messages of %s are under way for ever", in.r.Underway(),
			p.World.Name(c.from.ID))
	}
}

// follows: the payload of a large message is where its envelope goes.
func (l *large) follows(s *flow.Slot) {
	at, term, epoch := l.life.Home()
	if f := s.Fence(); at != s.Home() || term != f.Term() || epoch != f.Epoch() {
		p := l.r.Process
		p.World.Watcher.Violate(p, "bulk", "an envelope goes to %s, its payload is at %s under %d.%d",
			p.World.Name(s.Home()), p.World.Name(at), term, epoch)
	}
}

// fails: a large message that nobody can have taken does not fail because its home was wrong, but the last of so many.
func (l *large) fails(why route.Reason) {
	wrong := why == route.NotOwner || why == route.NotRegistered || why == route.ShardStopping
	if p := l.r.Process; wrong && l.tries <= plane.MaxLargeRefusals {
		p.World.Watcher.Violate(p, "bulk", "a large message failed as %v at home %d", why, l.tries)
	}
}
