// History: what discovery says when it does not tell the truth, how membership takes part, and the laws.

package starts

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/peer"
)

// truth is the contact points of all living processes.
func (w *world) truth() (list []peer.Addr) {
	for _, h := range w.hosts {
		if p := h.process; p != nil && !p.dead {
			list = append(list, p.point)
		}
	}
	return list
}

// lookUp answers a look-up: the truth once discovery gives it, else what this host gets for a while.
func (p *process) lookUp() {
	w, h, r := p.world, p.host, p.world.rng
	list, failed := w.truth(), ""
	if w.now < w.calmAt {
		if w.now >= h.until {
			h.until = w.now + between(r, 500*time.Millisecond, 15*time.Second)
			h.lie, h.failing = w.draw(list), chance(r, 6)
			if w.window > 0 && !chance(r, 4) {
				h.lie, h.until = w.neighbours(h), w.now+between(r, 5*time.Second, 30*time.Second)
			}
		}
		if list = h.lie; h.failing || chance(r, 12) {
			list, failed = nil, "no answer"
		}
	}
	w.queue.push(w.now+between(r, 0, 200*time.Millisecond), func() {
		p.step(func(now time.Duration) { p.machine.LookedUp(now, list, failed) })
	})
}

// neighbours returns a host itself and those after it, so that each host sees enough and no two the same.
func (w *world) neighbours(h *host) (list []peer.Addr) {
	for i := range w.window {
		if p := w.hosts[(h.index+i)%len(w.hosts)].process; p != nil && !p.dead {
			list = append(list, p.point)
		}
	}
	return list
}

// draw returns what discovery gives a host: a part, one side of a split, what was there once, the truth, or nobody.
func (w *world) draw(truth []peer.Addr) []peer.Addr {
	r := w.rng
	keep := func(list []peer.Addr, one int) (some []peer.Addr) {
		for _, a := range list {
			if !chance(r, one) {
				some = append(some, a)
			}
		}
		return some
	}
	var list []peer.Addr
	switch r.IntN(6) {
	case 0:
		list = keep(truth, 3)
	case 1:
		half := r.IntN(2) // the same two sides for all that get one
		for i, a := range truth {
			if i%2 == half || i == 0 {
				list = append(list, a)
			}
		}
	case 2:
		list = keep(append(slices.Clone(w.past), w.other...), 2)
	case 3:
		list = append(keep(truth, 5), w.other...)
	case 4:
		list = slices.Clone(truth)
	}
	if len(list) > formation.MaxPoints {
		list = list[:formation.MaxPoints]
	}
	return list
}

// join makes the membership of a process do what its machine says. A process ordered to form a cluster does so a little
// later, unless its record says that the one that it was in may live.
func (p *process) join(j formation.Join) {
	w := p.world
	if j.Form {
		w.queue.push(w.now+between(w.rng, time.Millisecond, 300*time.Millisecond), func() { p.form(j) })
		return
	}
	first := p.seeds == nil
	p.seeds = j.Seeds
	for _, a := range j.Seeds {
		if slices.Contains([]peer.Addr{memberAt(foreign), memberAt(foreign + 1)}, a) {
			w.violate(&w.wrongName, "%s joins a cluster of another name", p.id)
		}
	}
	if first {
		w.queue.push(w.now+between(w.rng, 5*time.Millisecond, 400*time.Millisecond), p.tryJoin)
	}
}

// tryJoin joins through a seed that is a member; when none is, it is tried again.
func (p *process) tryJoin() {
	w := p.world
	if p.dead || p.cluster != nil {
		return
	}
	for _, c := range w.clusters {
		for _, m := range c.members {
			if slices.Contains(p.seeds, m.id.Addr) {
				w.admit(c, p)
				return
			}
		}
	}
	w.queue.push(w.now+rejoinEach, p.tryJoin)
}

func (w *world) admit(c *cluster, p *process) {
	p.cluster = c
	c.members = append(c.members, p)
	c.tell()
}

// form makes a cluster, and holds it against all that live.
func (p *process) form(j formation.Join) {
	w := p.world
	if p.dead || p.cluster != nil {
		return
	}
	if p.remember != nil && p.remember.lives() {
		return
	}
	for _, c := range w.clusters {
		if !c.lives() {
			continue
		}
		switch again := voted(c.voters, j.Voters); {
		case w.weak:
			w.unsafe++
		case again == forgot:
			w.forgotten++
		default:
			w.violate(&w.two, "%s forms a cluster with %v while that of %v lives: %s", p.id, j.Voters, c.voters, again)
		}
	}
	w.formed++
	c := &cluster{id: uint64(len(w.clusters)) + 1, voters: j.Voters}
	w.clusters = append(w.clusters, c)
	w.admit(c, p)
}

// What two lists of promised processes have in common.
const (
	forgot = "a process that promised itself has a successor that knows nothing of it"
	twice  = "a process has promised itself to both"
	apart  = "nobody is in both"
)

// voted says how both could come about: of a majority each, some host is in both.
func voted(a, b []peer.ID) string {
	for _, x := range a {
		if slices.Contains(b, x) {
			return twice
		}
	}
	for _, x := range a {
		for _, y := range b {
			if x.Inc&(1<<hostBits-1) == y.Inc&(1<<hostBits-1) {
				return forgot
			}
		}
	}
	return apart
}

// run runs the start until discovery has given the truth for long.
func (w *world) run() {
	end := w.calmAt + calmFor
	for len(w.queue.list) > 0 && w.queue.list[0].at <= end {
		e := w.queue.pop()
		w.now = e.at
		e.run()
		if w.now > w.readyAt && w.one() {
			w.took = w.now - w.readyAt
			return
		}
	}
	if w.now = end; w.forgotten+w.unsafe+w.two == 0 && !w.one() {
		w.violate(&w.notOne, "%s", w.state())
	}
}

// one reports whether all processes are in one cluster.
func (w *world) one() bool {
	var c *cluster
	for _, h := range w.hosts {
		switch p := h.process; {
		case p == nil || p.cluster == nil || c != nil && p.cluster != c:
			return false
		default:
			c = p.cluster
		}
	}
	return true
}

// state tells where all processes are.
func (w *world) state() string {
	text := "discovery tells the truth, and this is not one cluster:"
	for _, h := range w.hosts {
		p := h.process
		if p == nil {
			continue
		}
		if p.cluster != nil {
			text += fmt.Sprintf(" %s in %d,", p.id, p.cluster.id)
			continue
		}
		e := p.machine.Explain(w.now)
		text += fmt.Sprintf(" %s %s %s %q,", p.id, e.Action, e.Hold, e.Detail)
	}
	return text
}
