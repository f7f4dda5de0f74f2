// Large messages between processes: flow.BulkSender and flow.BulkReceiver over a simulated connection of their own.

package world

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// largeKey marks the payload of an envelope that stands for a large message of this process; a reference has it zero.
const largeKey = 1 << 63

// bulkTick is how often stalled large messages are looked for, while there are any.
const bulkTick = time.Second

// large is one large message at its sender: a plane.Large with its payload.
type large struct {
	key     uint64
	r       *Region
	shard   route.ShardID
	corr    uint64
	life    plane.Large
	payload []byte
	x       *flow.BulkTransfer // while it is moving, whole or sent
	link    *bulkLink          // by which x goes
	tries   int                // homes to which it has begun to go
	ref     wire.BulkRef       // once it is whole
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
	idle int // ticks in a row at which nothing was on the way here and something under way
}

// bulks is what a process has of large messages, both ways.
type bulks struct {
	links   connTable
	ins     []*bulkIn
	room    flow.BulkRoom
	lent    int      // bytes of room that messages hold which were taken
	out     []*large // under way, oldest first
	last    uint64
	lastIn  uint64
	ticking bool
}

func (p *Process) bulkLink(to peer.ID) *bulkLink {
	return p.bulk.links.get(to, 0, func() *conn {
		c := &conn{w: p.World, from: p, to: to}
		c.bulk = &bulkLink{conn: c, s: flow.NewBulkSender(to, p.World.Config.Data.BulkChunk, p.World.Config.Data.BulkStall)}
		if c.forgotten = p.forgotten[to]; c.forgotten {
			c.state = connRefused
		}
		return c
	}).bulk
}

// sendLarge is send for a payload over DataConfig.MaxPayload.
func (r *Region) sendLarge(headers []byte, id string, payload []byte, corr uint64) error {
	p := r.Process
	n, err := r.Type.ShardOf(id)
	if err != nil {
		return err
	}
	l := &large{r: r, shard: n, corr: corr, payload: slices.Clone(payload)}
	if err := p.bulk.full(len(payload), p.World.Config.Data.BulkRoom); err != nil {
		return err
	}
	p.World.Plane.Large++
	p.World.Book.sends(payload, l.shard, corr != 0, true)
	p.bulk.last++
	l.key = largeKey | p.bulk.last
	s := r.Slot(l.shard)
	e := wire.Envelope{Type: uint32(r.ID), Shard: uint32(l.shard), Term: s.Fence().Term(), Epoch: s.Fence().Epoch(),
		Corr: corr, Flags: wire.FlagBulk, Payload: wire.AppendU64(nil, l.key)}
	if corr != 0 {
		e.Flags |= wire.FlagAsk
	}
	p.more(&e, headers)
	if s.State() == flow.Local {
		frame := make([]byte, wire.SizeEnvelope(len(id), len(e.Payload))+e.More())
		wire.PutEnvelope(frame, &e, id)
		p.goes(corr, p.ID, s.Fence())
		p.bulk.out = append(p.bulk.out, l)
		p.local(frame)
		return nil
	}
	if err := r.closedTo(corr != 0); err != nil {
		return err
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

// full returns why one more message of n bytes is not taken, nil when there is room.
func (b *bulks) full(n, limit int) error {
	for _, l := range b.out {
		n += len(l.payload)
	}
	switch {
	case n > limit:
		return &route.BulkFullError{Bound: "bytes of large messages", Limit: limit}
	case len(b.out) >= plane.MaxLarge:
		return &route.BulkFullError{Bound: "large messages", Limit: plane.MaxLarge}
	}
	return nil
}

// largeOf returns the large message that an envelope of this process stands for, nil when it is over. to
// is where the link leads that held it, zero for what no link held: to others its reference may stand for other ones.
func (p *Process) largeOf(to peer.ID, payload []byte) *large {
	if len(payload) != wire.BulkRefSize {
		return nil
	}
	key := binary.LittleEndian.Uint64(payload)
	for _, l := range p.bulk.out {
		if key&largeKey != 0 && l.key == key {
			return l
		}
		if ref, err := wire.ParseBulkRef(payload); err == nil && key&largeKey == 0 && l.life.LostWith(to) && l.ref == ref {
			return l
		}
	}
	return nil
}

// forwardLarge sends the large message with its envelope at the head of a slot that leads to another process: first its
// payload, then the envelope.
func (r *Region) forwardLarge(n route.ShardID, e *wire.Envelope) plane.Step {
	p, s := r.Process, r.Slot(n)
	l := p.largeOf(peer.ID{}, e.Payload)
	if l == nil {
		return plane.Sent
	}
	step, recall := l.life.Forward(s.Home(), e.Term, e.Epoch)
	if recall {
		l.cancel()
	}
	switch step {
	case plane.LargeSkip:
		return plane.Sent
	case plane.LargeAwait:
		return plane.Moving
	case plane.LargeRefer:
		return r.refer(l, n, e)
	}
	link := p.bulkLink(s.Home())
	if link.conn.forgotten {
		return plane.NoHome
	}
	x := &flow.BulkTransfer{Payload: l.payload, Owner: l, Begin: wire.BulkBegin{Type: e.Type, Shard: e.Shard,
		Term: e.Term, Epoch: e.Epoch, Corr: e.Corr}}
	if link.s.Add(p.clock(), x) != nil {
		return plane.NoRoom
	}
	l.life.Began(s.Home(), e.Term, e.Epoch)
	l.tries++
	l.x, l.link = x, link
	p.Later(0, link.pump)
	p.bulkTick()
	return plane.Moving
}

// refer sends the envelope that stands for a message which its home has whole.
func (r *Region) refer(l *large, n route.ShardID, e *wire.Envelope) plane.Step {
	p, s := r.Process, r.Slot(n)
	l.follows(s)
	out := *e
	out.Payload = wire.AppendBulkRef(nil, l.ref)
	data := p.linkOf(s.Home(), uint32(n))
	if data.conn.forgotten {
		return plane.NoHome
	}
	if l.corr != 0 && !p.waitsFor(l.corr) {
		return plane.Sent // sweepLarge ends it
	}
	room, err := data.flow.Reserve(wire.SizeEnvelope(len(e.ID), len(out.Payload)) + out.More())
	if err != nil {
		return plane.NoRoom
	}
	wire.PutEnvelope(room, &out, string(e.ID))
	data.flow.Timed()
	p.goes(l.corr, s.Home(), s.Fence())
	l.life.Referred()
	data.wake()
	return plane.Sent
}

// cancel takes the payload back from where it is going.
func (l *large) cancel() {
	if l.x != nil && l.link.s.Cancel(l.x) {
		l.link.pump()
	}
	l.x, l.link = nil, nil
}

// endLarge ends a large message of this process; the waiter for its place goes on.
func (p *Process) endLarge(l *large, why route.Reason, f Fate, words string) {
	i := slices.Index(p.bulk.out, l)
	if i < 0 {
		return
	}
	p.bulk.out = slices.Delete(p.bulk.out, i, i+1)
	l.life.End()
	l.cancel()
	if why != route.OK {
		p.dropped[why]++
		if e, ok := p.World.Book.find(l.payload); ok {
			if e.fate == fateOpen {
				p.World.Fate(l.payload, f, why, words)
			}
			e.unsure = f == FateInFlight
		}
		if l.corr != 0 {
			p.answered(l.corr, why, nil)
		} else {
			p.World.Book.undelivered(p, l.r.ID, l.shard, why, 1)
		}
	}
	p.drainSoon(flowSlot{l.r, l.shard})
}

// loseLarge ends the large messages with an envelope that went over a data connection that broke.
func (p *Process) loseLarge(c *conn) {
	for _, l := range slices.Clone(p.bulk.out) {
		if l.life.LostWith(c.to) && int(uint32(l.shard)%uint32(p.World.Config.Data.Connections)) == c.number {
			p.endLarge(l, route.PeerLost, FateInFlight, "data connection broke")
		}
	}
}

// sweepLarge gives up large asks that nobody waits for any more.
func (p *Process) sweepLarge() {
	for _, l := range slices.Clone(p.bulk.out) {
		if l.corr == 0 || p.waitsFor(l.corr) {
			continue
		}
		f := FateFailed
		if l.life.State() == flow.LargeSent {
			f = FateInFlight // its entity may have it
		}
		p.World.Plane.LargeGivenUp++
		p.endLarge(l, route.TimedOut, f, "nobody waits for the answer")
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
	if peer := b.conn.peer; peer.Alive {
		gen := b.conn.gen
		peer.Live(func() { peer.bulkOver(b.conn, gen) })
	}
}

func (b *bulkLink) lost(over []*flow.BulkTransfer, words string) {
	for _, x := range over {
		b.conn.from.transferOver(x, route.PeerLost, words)
	}
}

// transferOver takes the end of a transfer: its message goes to the next home, or is over.
func (p *Process) transferOver(x *flow.BulkTransfer, why route.Reason, words string) {
	l := x.Owner.(*large)
	if l.x != x {
		return // it was recalled, or is over
	}
	at, term, epoch := l.life.Home()
	sent := l.life.State() == flow.LargeSent
	again := l.life.Ended(why, plane.Leads(l.r.Slot(l.shard), at, term, epoch))
	l.x, l.link = nil, nil
	if !again && !sent {
		l.fails(why)
	}
	if plane.WrongHome(why) {
		l.r.nextHome(l.shard, at, term, epoch)
	}
	switch f := FateFailed; {
	case again:
		if plane.WrongHome(why) {
			p.World.Plane.LargeRefused++
		} else {
			p.World.Plane.LargeMoved++
		}
		p.drainSoon(flowSlot{l.r, l.shard})
	case why == route.PeerLost && sent:
		p.endLarge(l, why, FateInFlight, words)
	default:
		if sent {
			f = FateRefused
		}
		if why != route.OK {
			p.World.Plane.LargeFailed++
		}
		p.endLarge(l, why, f, words)
	}
}

// answer takes what the receiver says.
func (b *bulkLink) answer(k packet) {
	p := b.conn.from
	x, event, end, err := b.s.Handle(p.clock(), k.kind, k.body)
	if err != nil {
		p.World.Watcher.Violate(p, "bulk", "answer of %s: %v", p.World.Name(b.conn.to), err)
		return
	}
	switch event {
	case flow.BulkIsWhole:
		if l := x.Owner.(*large); l.x == x && l.life.Arrived() {
			l.ref = x.Ref()
			p.drainSoon(flowSlot{l.r, l.shard})
		}
	case flow.BulkHasEnded:
		p.transferOver(x, end.Reason, "large: "+end.Reason.String())
	}
	b.pump()
}

// bulkTick looks for stalled large messages, as long as there are any.
func (p *Process) bulkTick() {
	if p.bulk.ticking {
		return
	}
	p.bulk.ticking = true
	p.Later(bulkTick, func() {
		p.bulk.ticking = false
		for _, c := range p.bulk.links.list {
			for _, x := range c.bulk.s.Tick(p.clock(), nil) {
				p.transferOver(x, route.TimedOut, "stalled")
			}
			c.bulk.pump()
		}
		p.sweepLarge()
		for _, in := range p.bulk.ins {
			in.r.Tick(p.clock())
			in.ends(p)
			p.tellBulk(in)
		}
		p.turns()
		if len(p.bulk.out) > 0 || p.bulk.room.Used() > 0 {
			p.bulkTick()
		}
	})
}
