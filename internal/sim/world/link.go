// Links: flow.Link over a simulated data connection; credit; the reading side with its meter.

package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/lifetime"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

const (
	creditFlush = 20 * time.Millisecond // how long consumed bytes may go untold
)

// link is the data link to one peer.
type link struct {
	conn    *conn
	flow    *flow.Link
	pressed flow.FullByPeer // at the peer
	awake   bool
	owed    int // bytes sent on this connection and not said to be consumed
	heard   uint64
}

// linkOf returns the data link to a peer over which a shard's messages go.
func (p *Process) linkOf(to peer.ID, shard uint32) *link {
	return p.link(to, int(shard%uint32(p.World.Config.Data.Connections)))
}

// link returns a data link to a peer by the number of its connection, made on first use.
func (p *Process) link(to peer.ID, number int) *link {
	c := p.links.get(to, number, func() *conn {
		c := &conn{w: p.World, from: p, to: to, number: number}
		c.link = &link{conn: c, flow: flow.NewLink(p.World.Config.Data.LinkBuffer, p.World.Config.Data.Window)}
		c.link.flow.Ready = func(frames []byte) []byte {
			return wire.Depart(frames, plane.Moment(p.clock()), p.World.version())
		}
		if c.forgotten = p.forgotten[to]; c.forgotten {
			c.state = connRefused
		}
		return c
	})
	return c.link
}

// version is the wire version that all processes speak.
func (w *World) version() uint16 {
	if w.Config.Data.OldCredit {
		return 1
	}
	return wire.Version
}

func (l *link) pending() bool { return l.flow.Pending() > 0 }

// wake makes sure that what was appended is written, together with what else is appended at this moment.
func (l *link) wake() {
	if l.awake {
		return
	}
	l.awake = true
	l.conn.from.Later(0, func() {
		l.awake = false
		l.pump()
	})
}

// pump writes what credit allows.
func (l *link) pump() {
	c := l.conn
	if c.state == connRefused {
		l.flow.FailAll(func(frame []byte) { c.from.failed(c.to, frame, plane.WhyUnsent(false), "peer is gone for good") })
		return
	}
	if c.state == connIdle && l.pending() {
		c.dial()
		return
	}
	if c.state != connUp {
		return
	}
	for b := l.flow.Take(); b != nil; b = l.flow.Take() {
		l.count(b)
		c.w.departed(b)
		c.fore.send(wire.KindEnvelope, c.w.keep(b))
	}
	l.flow.Trim()
	if l.flow.Roomy() {
		c.from.roomy()
	}
}

// count keeps the books of what this connection owes, apart from the link's own, and checks that its window is kept.
func (l *link) count(b []byte) {
	w := l.conn.w
	for rest := b; len(rest) > 0; {
		_, n, err := wire.Split(rest, wire.LaneData, wire.DefaultMaxFrame)
		if err != nil || n == 0 {
			w.Watcher.Violate(l.conn.from, "frame", "the link to %s cuts a frame", w.Name(l.conn.to))
			return
		}
		if l.owed >= w.window() && (wire.KindOf(rest) != wire.KindMarker || l.owed > w.window()+wire.DefaultMaxFrame) {
			w.Watcher.Violate(l.conn.from, "credit", "%d bytes outstanding to %s, and one more frame", l.owed, w.Name(l.conn.to))
		}
		l.owed += n
		rest = rest[n:]
	}
}

func (l *link) connected() {
	l.owed, l.heard = 0, 0
	l.forgetFull()
	l.flow.Reconnected(l.conn.gen)
	l.conn.from.post(shard.MarkAgainCommand{To: l.conn.to})
	l.pump()
}

// loseUnread writes off what came on the connection, which is over, and was not read.
func (l *link) loseUnread() { l.conn.peer.loop.reset(l.conn) }

// credit is a peer's word on how much of a data connection it has consumed.
func (p *Process) credit(from peer.ID, body []byte) {
	k, err := wire.ParseCredit(body)
	if err != nil {
		p.World.Watcher.Violate(p, "credit", "credit of %s does not parse: %v", p.World.Name(from), err)
		return
	}
	l := p.link(from, int(k.Lane))
	if k.Generation == l.conn.gen && k.Consumed > l.heard {
		l.owed -= int(k.Consumed - l.heard)
		l.heard = k.Consumed
	}
	wake, err := l.flow.Granted(k.Generation, k.Consumed)
	if err != nil {
		p.World.Watcher.Violate(p, "credit", "credit of %s: %v", p.World.Name(from), err)
	}
	if wake {
		l.wake()
	}
}

// inbound is the reading side of one peer's data connection.
type inbound struct {
	from     peer.ID
	conn     *conn
	number   int
	gen      uint32
	meter    flow.Meter
	tells    uint64 // that came on it
	settled  bool   // it is over: what was taken on it is reported
	flushing bool
	back     *backTalk // of this generation, once something was full
}

func (in *inbound) credit(total uint64) wire.Credit {
	return wire.Credit{Lane: uint16(in.number), Generation: in.gen, Consumed: total}
}

func (p *Process) reader(c *conn) *inbound {
	i := slices.IndexFunc(p.inbound, func(in *inbound) bool { return in.from == c.from.ID && in.number == c.number })
	if i < 0 {
		p.inbound = append(p.inbound, &inbound{from: c.from.ID, number: c.number})
		i = len(p.inbound) - 1
	}
	in := p.inbound[i]
	in.conn = c
	if in.gen != c.gen {
		in.gen, in.meter, in.tells, in.settled = c.gen, flow.MakeMeter(p.World.Config.Data.Window), 0, false
	}
	return in
}

// data takes a run of whole frames off a data connection.
func (p *Process) data(c *conn, b []byte) {
	in := p.reader(c)
	for len(b) > 0 {
		if p.loop.busy {
			p.loop.later(c, b)
			return
		}
		frame, n, err := wire.Split(b, wire.LaneData, wire.DefaultMaxFrame)
		if err != nil || n == 0 {
			p.World.Watcher.Violate(p, "frame", "data of %s does not split: %v", p.World.Name(c.from.ID), err)
			return
		}
		b = b[n:]
		if wire.IsTell(frame) {
			in.tells++
		}
		wire.Arrive(frame, plane.MomentAfter(p.clock()))
		p.World.arrived(frame)
		consumed := false
		p.loop.call(func() { consumed = p.arrives(in, c.from.ID, frame) })
		if gen := in.gen; p.loop.rests(func() { p.consume(in, gen, n) }) || !consumed {
			continue
		}
		if total, due := in.meter.Consume(n); due {
			p.grant(in, total)
		}
		if !p.Alive {
			return
		}
	}
	p.flushCredit(in)
}

// flushCredit reports consumed bytes soon, however few they are.
func (p *Process) flushCredit(in *inbound) {
	if in.flushing {
		return
	}
	in.flushing = true
	p.Later(creditFlush, func() {
		in.flushing = false
		if total, due := in.meter.Flush(); due {
			p.grant(in, total)
		}
	})
}

// grant sends a total on the data connection itself or, as nodes of wire version 1 do, on the own control connection.
func (p *Process) grant(in *inbound, total uint64) {
	body := wire.AppendCredit(nil, in.credit(total))
	switch {
	case p.World.Config.Data.OldCredit:
		p.mail(in.from, wire.KindCredit, body)
	case in.conn.gen == in.gen && !in.conn.back.closed: // else it ended with the connection
		in.conn.back.send(wire.KindCredit, body)
	}
}

// repeatCredit sends the totals again on a new control connection: what was sent on the old one may be lost.
func (p *Process) repeatCredit(c *conn) {
	if !p.World.Config.Data.OldCredit {
		return
	}
	for _, in := range p.inbound {
		if in.from == c.peer.ID {
			body := wire.AppendCredit(nil, in.credit(in.meter.Total()))
			c.fore.send(wire.KindCredit, body)
		}
	}
}

// frame takes one frame that came on a generation of a data connection, and reports whether its credit is to be given
// back now.
func (p *Process) frame(in *inbound, gen uint32, from peer.ID, frame []byte) (consumed bool) {
	w := p.World
	w.trace.begin(w.Now, p.Index, opData)
	w.trace.id(from)
	w.trace.bytes(frame)
	w.trace.end()
	switch wire.ParseHeader(frame).Kind {
	case wire.KindEnvelope:
		var e wire.Envelope
		if err := wire.ParseEnvelope(frame, &e); err != nil {
			w.Watcher.Violate(p, "frame", "envelope of %s: %v", w.Name(from), err)
			return true
		}
		if w.trace.text {
			w.trace.line(w.Now, p.Index, "< message from %s to %s/%s", w.Name(from),
				w.ShardName(route.TypeID(e.Type), route.ShardID(e.Shard)), e.ID)
		}
		return p.envelope(in, gen, from, frame, &e)
	case wire.KindReply:
		status, corr, payload, err := wire.ParseReply(frame)
		if err != nil {
			w.Watcher.Violate(p, "frame", "reply of %s: %v", w.Name(from), err)
			return true
		}
		p.replied(from, corr, route.Reason(status), payload)
	case wire.KindMarker:
		marked(p, from, frame)
	case wire.KindCancel:
		corr, err := wire.ParseCancel(wire.Body(frame))
		if err != nil {
			w.Watcher.Violate(p, "frame", "cancel of %s: %v", w.Name(from), err)
			return true
		}
		p.asks.cancels.Cancel(lifetime.Asked{From: from, Number: corr})
	}
	return true
}

// Ask sends a question; done is called once, with the answer or why there is none, never on the caller's stack.
func (p *Process) Ask(d time.Duration, typ, id string, payload []byte, done func([]byte, error)) error {
	return p.AskWith(nil, d, typ, id, payload, done)
}

// AskWith is Ask with headers.
func (p *Process) AskWith(headers []byte, d time.Duration, typ, id string, payload []byte,
	done func([]byte, error)) error {
	r := p.Region(route.TypeOf(typ))
	if r == nil {
		return route.ErrNotRegistered
	}
	_, err := r.AskWith(headers, d, id, payload, done)
	return err
}

// AskWith is Process.AskWith. By giveUp the asker waits no longer, as one with an ended context: it gets the error at
// once, and the process that has the ask as soon as may be.
func (r *Region) AskWith(headers []byte, d time.Duration, id string, payload []byte,
	done func([]byte, error)) (giveUp func(), err error) {
	if !entity.SendsAround(r.Type) {
		return r.leaves(r.ask(headers, d, id, payload, done))
	}
	m := &entity.Sending{ID: id, Payload: payload, Headers: headers, Asks: true, Within: d}
	after, err := r.enterSend(m)
	if err != nil {
		return nil, err
	}
	giveUp, err = r.leaves(r.ask(m.Headers, d, id, m.Payload, func(b []byte, err error) {
		after(b, err)
		done(b, err)
	}))
	if err != nil {
		after(nil, err)
	}
	return giveUp, err
}

// leaves returns how the asker of an ask that has begun gives up.
func (r *Region) leaves(a *ask, err error) (giveUp func(), _ error) {
	if err != nil {
		return nil, err
	}
	corr := a.Corr()
	return func() { r.giveUp(a, corr) }, nil
}

// giveUp ends an ask when its asker waits no longer, and notifies the process that has it.
func (r *Region) giveUp(a *ask, corr uint64) {
	p := r.Process
	if a.state != plane.Waiting(corr) || !p.Alive {
		return
	}
	to, went := a.to, a.to != peer.ID{}
	if s := r.Slot(a.shard); plane.HasMoved(s, a.fence) {
		to = s.Home() // the ask has gone on with its shard
	}
	if went && plane.TellsCancel(false, a.limited) {
		r.cancel(to, a.shard, corr)
	}
	a.state = a.state.Settled()
	p.Later(0, func() {
		done := a.done
		p.asks.end(a)
		err := fmt.Errorf("kith: ask given up: %w", context.Canceled)
		if !went {
			err = route.NotRun(err)
		}
		done(nil, err)
	})
}

// cancel notifies a process that nobody waits for the answer to an ask that it has.
func (r *Region) cancel(to peer.ID, n route.ShardID, corr uint64) {
	p := r.Process
	switch {
	case to == p.ID:
		p.asks.cancels.Cancel(lifetime.Asked{From: p.ID, Number: corr})
	case to == peer.ID{} || p.World.version() < wire.KindCancel.Since():
	default:
		l := p.linkOf(to, uint32(n))
		if l.conn.forgotten {
			return
		}
		room, err := l.flow.Reserve(wire.CancelSize)
		if err != nil {
			return
		}
		wire.PutCancel(room, corr)
		l.wake()
	}
}
