// The network between the nodes: who can reach whom, how long it takes, and what is wrong with it just now.

package sim

import (
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// Network says how good the simulated network is. The zero value of a field takes its default.
type Network struct {
	Delay  time.Duration // one way, at least; default 500 us
	Jitter time.Duration // added at random, up to this; default 1 ms
	// Loss is the chance from 0 to 1 that a packet is lost. A lost packet comes after a retransmission delay (200 ms,
	// doubling), and holds up what is behind it, as TCP does.
	Loss float64
	// Break is how long a connection bears silence of the network before it breaks; default 10 s.
	Break time.Duration
	// Raw lets the mail of the machines travel without connections: lost, duplicated and reordered for good.
	Raw RawNetwork
}

// RawNetwork is a network without TCP's repairs, for the mail of the machines (not for credit and user messages, which
// never travel without a connection). The zero value is off.
type RawNetwork struct {
	Loss, Duplicate float64       // chances from 0 to 1
	Spread          time.Duration // extra delay at random, up to this: reorders
}

func (r RawNetwork) on() bool { return r != RawNetwork{} }

func (n Network) withDefaults() Network {
	if n.Delay == 0 {
		n.Delay = 500 * time.Microsecond
	}
	if n.Jitter == 0 {
		n.Jitter = time.Millisecond
	}
	if n.Break == 0 {
		n.Break = 10 * time.Second
	}
	return n
}

const (
	firstRetransmit = 200 * time.Millisecond
	lastRetransmit  = 5 * time.Second
)

// network is the state of the wires: a matrix of one-way cuts by node index, and slow pairs.
type network struct {
	Network
	rng  *rand.Rand
	cuts [][]bool
	slow [][]time.Duration
	// swallows, when it is set, says which mail from one host to another never arrives though the connections stand.
	swallows func(from, to int, kind wire.Kind) bool
	// counters
	sent, lost, duplicated, broken, dropped uint64
	largest                                 int // bytes of the largest body of the membership's mail
}

func newNetwork(n int, cfg Network, seed uint64) *network {
	net := &network{Network: cfg.withDefaults(), rng: rand.New(rand.NewPCG(seed, purposeNetwork))}
	for range n {
		net.cuts = append(net.cuts, make([]bool, n))
		net.slow = append(net.slow, make([]time.Duration, n))
	}
	return net
}

// delay draws how long a packet travels, its retransmissions included.
func (n *network) delay(from, to int) time.Duration {
	d := n.Delay + time.Duration(n.rng.Int64N(int64(n.Jitter)+1)) + n.slow[from][to]
	if n.Loss > 0 {
		for again := firstRetransmit; again <= lastRetransmit && n.rng.Float64() < n.Loss; again *= 2 {
			n.lost++
			d += again
		}
	}
	return d
}

func (n *network) heal() {
	for i := range n.cuts {
		clear(n.cuts[i])
		clear(n.slow[i])
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
	src     *proc // whose packets these are
	dst     *proc
	flight  []packet
	head    int
	last    time.Duration // arrival of the latest packet, none may overtake it
	planned bool
	closed  bool
	stalled time.Duration // since when nothing gets through; negative: it flows
	unacked time.Duration // since when the way back is cut
	retry   time.Duration
}

func newPipe(c *conn, src, dst *proc) *pipe {
	return &pipe{conn: c, src: src, dst: dst, stalled: -1, unacked: -1}
}

func (p *pipe) send(kind wire.Kind, body []byte) {
	w := p.conn.w
	at := max(p.last, w.now+w.net.delay(p.src.idx, p.dst.idx))
	p.last = at
	p.flight = append(p.flight, packet{at, kind, body})
	w.net.sent++
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
	case !p.dst.alive && p.dst.resets():
		// The host answers for a process that is gone: reset.
		p.conn.broke("reset by the host")
		return
	case !p.dst.alive || w.net.cuts[p.src.idx][p.dst.idx]:
		p.stall()
		return
	case w.net.cuts[p.dst.idx][p.src.idx]:
		// Packets arrive, acknowledgements do not: the sender gives up in the end.
		if p.unacked < 0 {
			p.unacked = w.now
		} else if w.now-p.unacked > w.net.Break {
			p.conn.broke("no acknowledgement")
			return
		}
	default:
		p.unacked = -1
	}
	p.stalled = -1
	for !p.closed && p.head < len(p.flight) && p.flight[p.head].at <= w.now {
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
		p.stalled, p.retry = w.now, firstRetransmit
	} else if w.now-p.stalled > w.net.Break {
		p.conn.broke("silence")
		return
	} else {
		p.retry = min(2*p.retry, lastRetransmit)
	}
	p.plan(w.now + p.retry)
}

// raw sends one piece of machine mail without a connection: it may be lost, doubled, overtaken.
func (w *world) raw(src *proc, to peer.ID, kind wire.Kind, body []byte) {
	idx, ok := w.indexOf(to.Addr)
	if !ok {
		return
	}
	copies := 1
	if w.net.rng.Float64() < w.net.Raw.Duplicate {
		copies, w.net.duplicated = 2, w.net.duplicated+1
	}
	for range copies {
		if w.net.rng.Float64() < w.net.Raw.Loss {
			w.net.lost++
			continue
		}
		at := w.now + w.net.delay(src.idx, idx)
		if w.net.Raw.Spread > 0 {
			at += time.Duration(w.net.rng.Int64N(int64(w.net.Raw.Spread)))
		}
		w.net.sent++
		w.queue.push(at, func() {
			dst := w.hosts[idx].proc
			if dst == nil || !dst.alive || to.Inc != 0 && dst.id != to || w.net.cuts[src.idx][idx] {
				w.net.dropped++
				return
			}
			dst.live(func() {
				if kind == wire.KindHeartbeat {
					dst.probed(body, func(ack []byte) { w.raw(dst, src.id, wire.KindHeartbeatAck, ack) })
				}
				dst.control(src.id, kind, body)
			})
		})
	}
}
