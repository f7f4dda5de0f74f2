// The network between the nodes: which can reach which, how long it takes, and what is wrong with it just now.

package world

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/internal/core/hello"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sim/setup"
	"github.com/kith-io/kith/wire"
)

const (
	firstRetransmit = 200 * time.Millisecond
	lastRetransmit  = 5 * time.Second
)

// Net is the state of the wires: a matrix of one-way cuts by node index, and slow pairs.
type Net struct {
	setup.Network
	rng   *rand.Rand
	terms []hello.Term // that all processes say and compare
	Cuts  [][]bool
	Slow  [][]time.Duration
	busy  [][]time.Duration // until then what was sent before leaves; of a network with a rate
	// swallows, when it is set, says which mail from one host to another never arrives though the connections stand.
	Swallows func(from, to int, kind wire.Kind) bool
	// counters
	Sent, lost, duplicated, broken, dropped uint64
	Largest                                 int // bytes of the largest body of the membership's mail
}

func newNetwork(n int, cfg setup.Network, seed uint64) *Net {
	net := &Net{Network: cfg.WithDefaults(), rng: rand.New(rand.NewPCG(seed, purposeNetwork))}
	for range n {
		net.Cuts = append(net.Cuts, make([]bool, n))
		net.Slow = append(net.Slow, make([]time.Duration, n))
		net.busy = append(net.busy, make([]time.Duration, n))
	}
	return net
}

// delay draws how long a packet travels, its retransmissions included.
func (n *Net) delay(from, to int) time.Duration {
	d := n.Delay + time.Duration(n.rng.Int64N(int64(n.Jitter)+1)) + n.Slow[from][to]
	if n.Loss > 0 {
		for again := firstRetransmit; again <= lastRetransmit && n.rng.Float64() < n.Loss; again *= 2 {
			n.lost++
			d += again
		}
	}
	return d
}

// packetExtra is what a packet has beside its body on the wire: headers of the frame and of the network, bytes.
const packetExtra = wire.HeaderSize + 66

// leaves returns when the last byte of a packet that is given to the network now has left the sender's host. All
// connections from one host to another share one queue before the wire, as they do at a router that holds megabytes:
// whatever one of them sends, the heartbeats of another wait behind it.
func (n *Net) leaves(now time.Duration, from, to int, body []byte) time.Duration {
	if n.Rate <= 0 {
		return now
	}
	takes := time.Duration(int64(len(body)+packetExtra) * int64(time.Second) / int64(n.Rate))
	n.busy[from][to] = max(now, n.busy[from][to]) + takes
	return n.busy[from][to]
}

// Heal ends all cuts.
func (n *Net) Heal() {
	for i := range n.Cuts {
		clear(n.Cuts[i])
		clear(n.Slow[i])
	}
}

// packet is one frame, or a run of data frames, on its way.
type packet struct {
	at   time.Duration
	kind wire.Kind
	body []byte
}

// pipe is one direction of one connection while it lives: first in, first out.
type pipe struct {
	conn    *conn
	src     *Process // the sender of these packets
	dst     *Process
	flight  []packet
	head    int
	last    time.Duration // arrival of the latest packet, none may overtake it
	planned bool
	closed  bool
	stalled time.Duration // since when nothing gets through; negative: it flows
	unacked time.Duration // since when the way back is cut
	retry   time.Duration
}

func newPipe(c *conn, src, dst *Process) *pipe {
	return &pipe{conn: c, src: src, dst: dst, stalled: -1, unacked: -1}
}

func (p *pipe) send(kind wire.Kind, body []byte) {
	w := p.conn.w
	left := w.Net.leaves(w.Now, p.src.Index, p.dst.Index, body)
	at := max(p.last, left+w.Net.delay(p.src.Index, p.dst.Index))
	p.last = at
	p.flight = append(p.flight, packet{at, kind, body})
	w.Net.Sent++
	if !p.planned {
		p.plan(at)
	}
}

func (p *pipe) plan(at time.Duration) {
	p.planned = true
	p.conn.w.queue.push(at, p.fire)
}

// fire is a try to get the head of the line through.
func (p *pipe) fire() {
	p.planned = false
	if p.closed || p.head == len(p.flight) {
		return
	}
	w := p.conn.w
	switch {
	case !p.dst.Alive && p.dst.resets():
		// The host answers for a process that is gone: reset.
		p.conn.broke("reset by the host")
		return
	case !p.dst.Alive || w.Net.Cuts[p.src.Index][p.dst.Index]:
		p.stall()
		return
	case w.Net.Cuts[p.dst.Index][p.src.Index]:
		// Packets arrive, acknowledgements do not: the sender gives up in the end.
		if p.unacked < 0 {
			p.unacked = w.Now
		} else if w.Now-p.unacked > w.Net.Break {
			p.conn.broke("no acknowledgement")
			return
		}
	default:
		p.unacked = -1
	}
	p.stalled = -1
	for !p.closed && p.head < len(p.flight) && p.flight[p.head].at <= w.Now {
		k := p.flight[p.head]
		p.flight[p.head] = packet{}
		p.head++
		p.conn.arrived(p, k)
	}
	if p.head == len(p.flight) {
		p.flight, p.head = p.flight[:0], 0
	} else if !p.closed && !p.planned {
		p.plan(p.flight[p.head].at)
	}
}

func (p *pipe) stall() {
	w := p.conn.w
	if p.stalled < 0 {
		p.stalled, p.retry = w.Now, firstRetransmit
	} else if w.Now-p.stalled > w.Net.Break {
		p.conn.broke("silence")
		return
	} else {
		p.retry = min(2*p.retry, lastRetransmit)
	}
	p.plan(w.Now + p.retry)
}

// raw sends one piece of machine mail without a connection: it may be lost, doubled, overtaken.
func (w *World) raw(src *Process, to peer.ID, kind wire.Kind, body []byte) {
	idx, ok := w.IndexOf(to.Addr)
	if !ok {
		return
	}
	copies := 1
	if w.Net.rng.Float64() < w.Net.Raw.Duplicate {
		copies, w.Net.duplicated = 2, w.Net.duplicated+1
	}
	for range copies {
		if w.Net.rng.Float64() < w.Net.Raw.Loss {
			w.Net.lost++
			continue
		}
		at := w.Net.leaves(w.Now, src.Index, idx, body) + w.Net.delay(src.Index, idx)
		if w.Net.Raw.Spread > 0 {
			at += time.Duration(w.Net.rng.Int64N(int64(w.Net.Raw.Spread)))
		}
		w.Net.Sent++
		w.queue.push(at, func() {
			dst := w.Hosts[idx].Process
			if dst == nil || !dst.Alive || to.Inc != 0 && dst.ID != to || w.Net.Cuts[src.Index][idx] {
				w.Net.dropped++
				return
			}
			dst.Live(func() {
				if kind == wire.KindHeartbeat {
					dst.probed(body, func(ack []byte) { w.raw(dst, src.ID, wire.KindHeartbeatAck, ack) })
				}
				dst.control(src.ID, kind, body)
			})
		})
	}
}
