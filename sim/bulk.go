// Large messages between processes: flow.BulkSender and flow.BulkReceiver over a simulated connection of their own.

package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// largeKey marks the payload of an envelope that stands for a large message of this process; a reference has it zero.
const largeKey = 1 << 63

// bulkTick is how often stalled large messages are looked for, while there are any.
const bulkTick = time.Second

// large is one large message at its sender.
type large struct {
	key      uint64
	r        *region
	shard    route.ShardID
	corr     uint64
	payload  []byte
	x        *flow.BulkTransfer // nil while it waits in its slot
	link     *bulkLink
	fence    route.Fence // under which x goes
	ref      wire.BulkRef
	whole    bool // its envelope may go
	sent     bool // it has gone
	refusals int  // times that its home was wrong
}

// bulkLink is the sending side of the bulk connection to one peer.
type bulkLink struct {
	conn *conn
	s    *flow.BulkSender
}

// bulkIn is the receiving side of one peer's bulk connection.
type bulkIn struct {
	conn *conn
	gen  uint32
	id   uint64
	r    *flow.BulkReceiver
}

// bulks is what a process has of large messages, both ways.
type bulks struct {
	links   connTable
	ins     []*bulkIn
	room    flow.BulkRoom
	out     []*large // under way, oldest first
	last    uint64
	lastIn  uint64
	ticking bool
}

func (p *proc) bulkLink(to peer.ID) *bulkLink {
	return p.bulk.links.get(to, 0, func() *conn {
		c := &conn{w: p.w, from: p, to: to}
		c.bulk = &bulkLink{conn: c, s: flow.NewBulkSender(to, p.w.cfg.Data.BulkChunk, p.w.cfg.Data.BulkStall)}
		return c
	}).bulk
}

// sendLarge is send for a payload over DataConfig.MaxPayload.
func (r *region) sendLarge(id string, payload []byte, corr uint64) error {
	p := r.p
	l := &large{r: r, shard: route.ShardOf(id, r.typ.Shards), corr: corr, payload: slices.Clone(payload)}
	p.bulk.last++
	l.key = largeKey | p.bulk.last
	s := &r.slots[l.shard]
	e := wire.Envelope{Type: uint32(r.id), Shard: uint32(l.shard), Term: s.Fence().Term(), Epoch: s.Fence().Epoch(),
		Corr: corr, Flags: wire.FlagBulk, Payload: wire.AppendU64(nil, l.key)}
	if corr != 0 {
		e.Flags |= wire.FlagAsk
	}
	if s.State() == flow.Local {
		frame := make([]byte, wire.SizeEnvelope(len(id), len(e.Payload)))
		wire.PutEnvelope(frame, &e, id)
		p.bulk.out = append(p.bulk.out, l)
		p.local(frame)
		return nil
	}
	if r.refused != nil {
		return r.refused
	}
	next, err := plane.Hold(s, p.clock(), &e, id)
	if err != nil {
		return err
	}
	p.bulk.out = append(p.bulk.out, l)
	if next == plane.Flush {
		p.drainSoon(flowSlot{r, l.shard})
		return nil
	}
	r.follow(l.shard, next)
	return nil
}

// largeOf returns the large message that an envelope of this process stands for, nil when it is over.
func (p *proc) largeOf(payload []byte) *large {
	if len(payload) != wire.BulkRefSize {
		return nil
	}
	key := binary.LittleEndian.Uint64(payload)
	for _, l := range p.bulk.out {
		if key&largeKey != 0 && l.key == key {
			return l
		}
		if ref, err := wire.ParseBulkRef(payload); err == nil && key&largeKey == 0 && l.sent && l.ref == ref {
			return l
		}
	}
	return nil
}

// forwardLarge sends the large message whose envelope is at the head of a slot that leads to another process: first its
// payload, then the envelope.
func (r *region) forwardLarge(n route.ShardID, e *wire.Envelope) plane.Step {
	p, s := r.p, &r.slots[n]
	l := p.largeOf(e.Payload)
	if l == nil {
		return plane.Sent
	}
	if l.x != nil && (l.link.conn.to != s.Home() || l.fence != s.Fence()) {
		l.link.s.Cancel(l.x)
		l.link.pump()
		l.x, l.whole = nil, false
	}
	switch {
	case l.x == nil:
		l.link, l.fence = p.bulkLink(s.Home()), s.Fence()
		l.x = &flow.BulkTransfer{Payload: l.payload, Owner: l, Begin: wire.BulkBegin{Type: e.Type, Shard: e.Shard,
			Term: e.Term, Epoch: e.Epoch, Corr: e.Corr}}
		if l.link.s.Add(p.clock(), l.x) != nil {
			l.x = nil
			return plane.NoRoom
		}
		l.link.pump()
		p.bulkTick()
		return plane.Moving
	case !l.whole:
		return plane.Moving
	}
	out := *e
	out.Payload = wire.AppendBulkRef(nil, l.ref)
	data := p.linkOf(s.Home(), uint32(n))
	room, err := data.flow.Reserve(wire.SizeEnvelope(len(e.ID), len(out.Payload)))
	if err != nil {
		return plane.NoRoom
	}
	wire.PutEnvelope(room, &out, string(e.ID))
	p.goes(l.corr, s.Home(), s.Fence())
	l.sent = true
	data.wake()
	return plane.Sent
}

// again reports whether a message whose transfer has ended waits for the next home; moved says that its shard lives
// elsewhere by now.
func (l *large) again(why route.Reason, moved bool) bool {
	if !plane.Again(why, l.sent, moved, l.refusals) {
		return false
	}
	l.refusals++
	l.whole = false
	return true
}

// endLarge ends a large message of this process; whoever waits for its place goes on.
func (p *proc) endLarge(l *large, why route.Reason, f fate, words string) {
	i := slices.Index(p.bulk.out, l)
	if i < 0 {
		return
	}
	p.bulk.out = slices.Delete(p.bulk.out, i, i+1)
	if l.x != nil && l.link.s.Cancel(l.x) {
		l.link.pump()
	}
	if why != route.OK {
		p.dropped[why]++
		if e, ok := p.w.book.find(l.payload); ok && e.fate == fateOpen {
			p.w.fate(l.payload, f, words)
			e.unsure = f == fateInFlight
		}
		if l.corr != 0 {
			p.answered(l.corr, why, nil)
		}
	}
	p.drainSoon(flowSlot{l.r, l.shard})
}

// loseLarge ends the large messages whose envelope went to a peer whose data connection broke.
func (p *proc) loseLarge(to peer.ID) {
	for _, l := range slices.Clone(p.bulk.out) {
		if l.sent && l.link.conn.to == to {
			p.endLarge(l, route.PeerLost, fateInFlight, "data connection broke")
		}
	}
}

// pump writes what the sender has to say.
func (b *bulkLink) pump() {
	c := b.conn
	if c.state == connRefused {
		b.lost(b.s.FailAll(nil), "peer is gone for good")
		return
	}
	if c.state == connIdle && !b.s.Idle() {
		c.dial()
	}
	if c.state != connUp {
		return
	}
	for out := b.s.Append(c.from.clock(), nil); len(out) > 0; out = b.s.Append(c.from.clock(), nil) {
		eachBulk(out, c.fore.send)
	}
}

func eachBulk(b []byte, do func(wire.Kind, []byte)) {
	for len(b) > 0 {
		h := wire.ParseHeader(b)
		do(h.Kind, slices.Clone(b[wire.HeaderSize:h.Size]))
		b = b[h.Size:]
	}
}

func (b *bulkLink) connected() {
	b.s.Connected(b.conn.from.clock(), b.conn.gen)
	b.pump()
}

func (b *bulkLink) disconnected() {
	b.lost(b.s.Broken(nil), "bulk connection broke")
	if peer := b.conn.peer; peer.alive {
		gen := b.conn.gen
		peer.live(func() { peer.bulkOver(b.conn, gen) })
	}
}

func (b *bulkLink) lost(over []*flow.BulkTransfer, words string) {
	p := b.conn.from
	for _, x := range over {
		l := x.Owner.(*large)
		if l.x != x {
			continue
		}
		l.x = nil
		s := &l.r.slots[l.shard]
		if l.again(route.PeerLost, s.Home() != b.conn.to || s.Fence() != l.fence) {
			continue // its shard lives elsewhere by now, and nobody has taken it
		}
		f := fateFailed
		if l.sent {
			f = fateInFlight
		}
		p.endLarge(l, route.PeerLost, f, words)
	}
}

// answer takes what the receiver says.
func (b *bulkLink) answer(k packet) {
	p := b.conn.from
	x, event, end, err := b.s.Handle(p.clock(), k.kind, k.body)
	if err != nil {
		p.w.check.violate(p, "bulk", "answer of %s: %v", p.w.name(b.conn.to), err)
		return
	}
	switch event {
	case flow.BulkIsWhole:
		l := x.Owner.(*large)
		l.whole, l.ref = true, x.Ref()
		l.r.drain(l.shard)
	case flow.BulkHasEnded:
		l, why := x.Owner.(*large), end.Reason
		if l.x != x {
			break
		}
		l.x = nil
		if plane.WrongHome(why) {
			p.forgetHome(l.r.id, l.shard, l.fence)
		}
		if l.again(why, false) {
			break // it waits for the home that is right
		}
		p.endLarge(l, why, fateRefused, "large: "+why.String())
	}
	b.pump()
}

// bulkTick looks for stalled large messages, as long as there are any.
func (p *proc) bulkTick() {
	if p.bulk.ticking {
		return
	}
	p.bulk.ticking = true
	p.later(bulkTick, func() {
		p.bulk.ticking = false
		for _, c := range p.bulk.links.list {
			for _, x := range c.bulk.s.Tick(p.clock(), nil) {
				if l := x.Owner.(*large); l.x == x {
					l.x = nil
					p.endLarge(l, route.TimedOut, fateFailed, "stalled")
				}
			}
			c.bulk.pump()
		}
		for _, in := range p.bulk.ins {
			in.r.Tick(p.clock())
			p.tellBulk(in)
		}
		p.turns()
		if len(p.bulk.out) > 0 || p.bulk.room.Used() > 0 {
			p.bulkTick()
		}
	})
}
