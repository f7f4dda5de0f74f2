// Flights: tells that were on their way, or at a process, when their connection or the process was lost. It drives
// package flow.

package world

import (
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// over settles a data connection that is closed: both ends say what they know of it.
func (l *link) over() {
	c, p := l.conn, l.conn.from
	sent, unknown := l.flow.Flown()
	l.forgetFull()
	l.flow.Broken()
	if c.w.Config.Data.OldCredit {
		return // an earlier version says nothing of what it took
	}
	there := c.peer
	if sent > 0 && (p.Alive || p.closed) {
		flown := flow.Flown{Number: uint16(c.number), Generation: c.gen, Sent: sent, Unknown: unknown,
			Read: p.closed && there.Alive && there.reader(c).tells == sent}
		p.lostInFlight(p.flightsTo(c.to).Over(flown), false)
		lostAtEnd(p, c.to)
	}
	if there.Alive {
		in := there.reader(c)
		in.settled = true
		taken := flow.Taken{Number: uint16(c.number), Generation: c.gen, Tells: in.tells}
		there.Later(0, func() { there.gathered(p.ID).words.Add(taken) })
	}
}

// lostAtEnd tells what a process that has ended will never know of its tells to another.
func lostAtEnd(p *Process, to peer.ID) {
	if p.closed {
		p.lostInFlight(p.flightsTo(to).Close(), true)
	}
}

func (p *Process) flightsTo(to peer.ID) *flow.InFlight {
	f := p.flights[to]
	if f == nil {
		f = &flow.InFlight{}
		p.flights[to] = f
	}
	return f
}

// took takes a process's word on connections to it that are over.
func (p *Process) took(from peer.ID, body []byte) {
	list, err := flow.ParseTaken(body)
	if err != nil {
		p.World.Watcher.Violate(p, "frame", "words of %s: %v", p.World.Name(from), err)
		return
	}
	if p.forgotten[from] {
		return // everything has been reported as lost
	}
	for _, t := range list {
		p.lostInFlight(p.flightsTo(from).Says(t), false)
	}
}

// lostInFlight reports tells to the embedder that are lost, or may or may not have been handled.
func (p *Process) lostInFlight(n uint64, unsure bool) {
	if n == 0 {
		return
	}
	p.World.Plane.InFlight += n
	if unsure {
		p.World.Book.unsure(p, n)
		return
	}
	p.World.Book.undelivered(p, 0, route.NoShard, route.LostInFlight, n)
}
