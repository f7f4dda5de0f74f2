// Pass: what one data loop does with what it reads: Inline handlers run, Blocking mailboxes fill, and frames for
// workers are staged until the read pass ends.

package exec

import (
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/internal/runtime/transport"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// maxPassConns bounds the connections that a loop remembers; it starts anew above.
const maxPassConns = 4096

// pass is what belongs to one data loop: it runs Inline handlers and Blocking appends, and stages frames for workers.
type pass struct {
	x      *Exec
	loop   *loop.Loop
	local  execQueue // Inline: messages of this node, orders, and what loops keep of others
	conns  map[*transport.InConn]*Source
	staged []stage           // by worker
	kept   []stage           // by loop: Inline, while it reads on
	conn   *transport.InConn // the staged frames came on it
	from   *Source
	ready  []*Host // Blocking: with entities that became ready in the messages at hand
	ahead  ahead
	count  execCounters
	timed  Sampler
	marks  []mark // that have come in this pass

	readsOn  bool // what was looked at for Inline shards is kept
	keptSome bool // in kept
	goesOn   bool // with its queue, when it has looked at its sockets

	waits   atomic.Bool                     // something is to be done when the gate opens
	backlog batch                           // what came while it was closed
	behind  plane.Behind[*transport.InConn] // of the backlog

	called []byte // payload and headers of an ask by Call
}

// sit makes the loop wait for a caller that steps its Inline shards just now (Call), which is as short as handlers
// of these are, and keeps others from it until it rises. A mutex that nobody else has costs a few nanoseconds for all
// that was read at once.
func (p *pass) sit() { p.local.seat.Lock() }

func (p *pass) rise() { p.local.seat.Unlock() }

// stage gathers the frames of one read pass for one worker or loop.
type stage struct{ buf []byte }

// mark is the marker of a move, and its sender.
type mark struct {
	from peer.ID
	m    wire.Marker
}

func newPass(x *Exec, l *loop.Loop) *pass {
	p := &pass{x: x, loop: l, conns: map[*transport.InConn]*Source{}, staged: make([]stage, x.cfg.Workers),
		kept: make([]stage, len(x.cfg.Loops))}
	p.local.init(x.cfg.LocalBuffer, func() bool { return l.Execute(p) == nil })
	p.ahead.x, p.ahead.queue, p.local.callFrame = x, &p.local, &p.ahead.callFrame
	return p
}

// source returns the way back to the sender on a connection.
func (p *pass) source(c *transport.InConn) *Source {
	if r := p.conns[c]; r != nil {
		return r
	}
	if len(p.conns) >= maxPassConns {
		clear(p.conns)
	}
	r := p.x.needs.Source(c)
	p.conns[c] = r
	return r
}

// flush gives what is staged to the workers and what is kept to the loops, and starts the Blocking entities that became
// ready.
func (p *pass) flush() {
	for i := range p.staged {
		if s := &p.staged[i]; len(s.buf) > 0 {
			s.buf = p.x.workers[i].queue.appendRead(p.conn, p.from, s.buf)
		}
	}
	if p.keptSome {
		p.giveKept()
	}
	if len(p.ready) > 0 {
		p.x.pool.startAll(p.ready)
		clear(p.ready)
		p.ready = p.ready[:0]
	}
	for _, k := range p.marks {
		p.x.needs.Marked(k.from, k.m)
	}
	p.marks = p.marks[:0]
}

// read takes whole frames of the staged connection while the gate is open. What is left when it closes is kept. Without
// a connection, nil, nobody's credit is given back.
func (p *pass) read(now time.Duration, c *transport.InConn, from *Source, frames []byte) {
	consumed, stored, handled := p.frames(now, c, from, frames)
	if stored > 0 && c != nil {
		c.Stored(stored)
	}
	if consumed > 0 && c != nil {
		c.Consumed(consumed)
	}
	if handled > 0 {
		p.count.handled.Add(uint64(handled))
	}
}

// frames takes whole frames and returns how many bytes of credit are to be given back now, how many more lie in
// mailboxes, and how many envelopes were handled.
func (p *pass) frames(now time.Duration, c *transport.InConn, from *Source, frames []byte) (
	consumed, stored, handled int) {
	a, times := &p.ahead, timed(p.x)
	for len(frames) > 0 {
		if frames = p.stage(frames); len(frames) == 0 {
			break
		}
		frames = a.look(frames)
		p.x.Gate.look()
		p.readsOn = p.keptSome || p.x.readsOn.now()
		for at := 0; at < a.n; at++ {
			end := a.n
			if p.readsOn {
				end = at
			} else if times {
				end = min(end, at+p.timed.room())
			}
			if at < end && a.next[at].h != nil && p.backlog.size == 0 {
				to := a.run(now, from, at, end)
				p.timed.pass(to - at)
				for ; at < to; at++ {
					consumed += len(a.next[at].frame)
					handled++
				}
				if at == a.n {
					break
				}
			}
			x := &a.next[at]
			var done outcome
			if times && !p.readsOn && p.timed.Pick(p.x.cfg.LatencyEvery) {
				done = p.timeFrame(now, c, from, x)
			} else {
				done = p.frame(now, c, from, x)
			}
			switch done {
			case staged:
				continue // credit is given back when it has been handled
			case held:
				p.keepRest(c, from, at, frames)
				return consumed, stored, handled
			case inMailbox:
				stored += len(x.frame)
				handled++
				continue
			case taken:
				handled++
			}
			consumed += len(x.frame)
		}
	}
	return consumed, stored, handled
}

// outcome is what became of one frame.
type outcome uint8

const (
	noMessage outcome = iota // it is none, or it was not taken
	taken                    // its handler was called, or its sender got the reason
	inMailbox                // it lies in that of a Blocking entity
	staged                   // it waits for a worker, or for a loop
	held                     // it waits for the gate, and with it all that comes behind it
)

// keepRest keeps what the gate, which has closed, holds: of the frames that were looked at those from one on, and whole
// frames that were not.
func (p *pass) keepRest(c *transport.InConn, from *Source, first int, unseen []byte) {
	a := &p.ahead
	if a.fresh {
		wire.ArriveAll(unseen, a.arrived)
	}
	for i := range a.next[first:a.n] {
		p.keep(c, from, a.next[first+i].frame)
	}
	p.keep(c, from, unseen)
}

// frame takes one frame that is no prefetch hit.
func (p *pass) frame(now time.Duration, c *transport.InConn, from *Source, x *prefetched) outcome {
	e := p.x
	switch {
	case x.kind == wire.KindReply:
		e.needs.Reply(from, x.frame)
	case x.kind == wire.KindCancel:
		p.cancelled(c.From(), x.frame)
	case x.kind == wire.KindParcel:
		e.needs.Parcel(c, wire.Body(x.frame))
	case x.kind != wire.KindEnvelope && x.kind != wire.KindMarker:
		e.needs.InvalidFrames(c.From(), x.kind, errNotExpected)
	case e.Gate.Closed() || p.backlog.size > 0:
		return held
	case x.kind == wire.KindMarker:
		p.marker(c, x.frame)
	case x.bad != nil:
		e.needs.InvalidFrames(c.From(), wire.KindEnvelope, x.bad)
	case p.envelope(now, c, from, x):
		return staged
	case p.ahead.cache.last != nil && p.ahead.cache.last.typ.Mode == entity.Blocking:
		return inMailbox
	default:
		return taken
	}
	return noMessage
}

// marker takes the marker of a move. It is reported when the pass ends: by then all that came before it lies in the
// queues of workers and loops, and a stop that follows it does so there.
func (p *pass) marker(c *transport.InConn, f []byte) {
	m, err := wire.ParseMarker(f[wire.HeaderSize:])
	if err != nil {
		p.x.needs.InvalidFrames(c.From(), wire.KindMarker, err)
		return
	}
	p.marks = append(p.marks, mark{c.From(), m})
}

// stage copies frames for the workers that step their shards, as long as they are envelopes of the same type as the
// last one, and returns the rest. The workers parse them.
func (p *pass) stage(frames []byte) (rest []byte) {
	x, cache := p.x, &p.ahead.cache
	r := cache.last
	if r == nil || r.typ.Mode != entity.Worker || cache.table != x.types.Load() || x.Gate.Closed() ||
		p.backlog.size > 0 {
		return frames
	}
	id, shards, workers := cache.id, r.shards, uint32(len(p.staged))
	fresh, arrived := p.ahead.fresh, p.ahead.arrived
	at, begin, to := 0, 0, uint32(0) // one copy for neighbours that go to the same worker
	for at < len(frames) {
		size := wire.SizeOf(frames[at:])
		typ, shard, ok := wire.AddressOf(frames[at : at+size])
		if !ok || typ != id || shard >= shards {
			break
		}
		if w := shard % workers; w != to {
			p.staged[to].buf = append(p.staged[to].buf, frames[begin:at]...)
			begin, to = at, w
		}
		if fresh && frames[at+5]&wire.FlagLimit != 0 {
			wire.Arrive(frames[at:at+size], arrived)
		}
		at += size
	}
	p.staged[to].buf = append(p.staged[to].buf, frames[begin:at]...)
	return frames[at:]
}

// keeps stages a frame for the queue of the loop that has the orders of its Inline shard, until the pass ends.
func (p *pass) keeps(x *prefetched) {
	s := &p.kept[int(x.env.Shard)%len(p.kept)]
	s.buf = append(s.buf, x.frame...)
	p.keptSome = true
}

// giveKept gives what was kept in this pass to the queues.
func (p *pass) giveKept() {
	for i := range p.kept {
		if s := &p.kept[i]; len(s.buf) > 0 {
			p.x.readsOn.kept.Add(int64(len(s.buf)))
			s.buf = p.x.passes[i].local.appendRead(p.conn, p.from, s.buf)
		}
	}
	p.keptSome = false
}
