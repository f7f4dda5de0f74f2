// Large messages that other processes send, gathered under the bound that all of them share, and given to their hosts.

package world

import (
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/plane"
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
			err = in.r.Begin(p.clock(), b, flow.BulkEnd{Reason: p.judgeLarge(&b)})
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

// turns admits the large messages whose turn has come, and checks that room is never exceeded.
func (p *Process) turns() {
	for from, k, n, ok := p.bulk.room.Turn(); ok; from, k, n, ok = p.bulk.room.Turn() {
		i := slices.IndexFunc(p.bulk.ins, func(in *bulkIn) bool { return in.id == k.Conn })
		if i < 0 {
			p.bulk.room.Give(from, n)
			continue
		}
		p.bulk.ins[i].r.Admitted(p.clock(), k.Number, n)
		p.tellBulk(p.bulk.ins[i])
	}
	if used := p.bulk.room.Used(); used < 0 || used > p.bulk.room.Limit {
		p.World.Watcher.Violate(p, "bulk", "%d bytes of room are used, of %d", used, p.bulk.room.Limit)
	}
}

func (p *Process) judgeLarge(b *wire.BulkBegin) route.Reason {
	r := p.Region(route.TypeID(b.Type))
	if r == nil {
		return route.NotRegistered
	}
	if int(b.Shard) >= len(r.shards) {
		return route.NotOwner
	}
	h := r.shards[b.Shard]
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
		l := p.largeOf(e.Payload)
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
		free = func() { p.bulk.room.Give(from, len(payload)); p.Later(0, p.turns) }
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
	if why == route.OK {
		p.World.accepted(m.Payload)
		done()
	}
	return why
}

// refuseLarge tells the sender of a large message that it was not taken.
func (p *Process) refuseLarge(from peer.ID, e *wire.Envelope, why route.Reason) {
	p.dropped[why]++
	if from == p.ID {
		if l := p.largeOf(e.Payload); l != nil {
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
