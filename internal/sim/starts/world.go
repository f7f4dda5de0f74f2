// World: hosts, processes, clusters, what discovery says, and what becomes of probes.

package starts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/bootstrap/formation"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

const (
	name       = "market"
	calmFor    = 4 * time.Minute  // after discovery gives the truth
	patience   = 90 * time.Second // after which a process that is in no cluster is restarted
	probeLimit = 3 * time.Second
	rejoinEach = time.Second
	foreign    = 1<<23 + 900 // the address of a node of another name, above those of all hosts
	hostBits   = 8           // of an incarnation, which say at which host it runs, from 1
)

// cluster is one that has formed.
type cluster struct {
	id      uint64
	members []*process
	voters  []peer.ID
}

func (c *cluster) lives() bool { return len(c.members) > 0 }

// host is where processes run, one after the other.
type host struct {
	index   int
	address int // of its process; it changes with some restarts
	process *process
	lie     []peer.Addr // what discovery says here, until then
	failing bool
	until   time.Duration
}

// process is one run of a node.
type process struct {
	world    *world
	host     *host
	id       peer.ID
	point    peer.Addr
	machine  *formation.Machine
	cluster  *cluster
	remember *cluster // that its predecessor was in, where nodes keep records
	seeds    []peer.Addr
	dead     bool
	wake     time.Duration // of the pending wake-up
	began    time.Duration
}

// world is one start.
type world struct {
	rng    *rand.Rand
	now    time.Duration
	queue  events
	hosts  []*host
	past   []peer.Addr // contact points that were there once
	other  []peer.Addr // those of a cluster of another name
	calmAt time.Duration
	config formation.Config
	lossy  int // one of so many probes is lost
	weak   bool
	keeps  bool          // nodes keep records of their clusters
	window int           // discovery gives each host so many neighbours for long; 0: all
	slow   time.Duration // the longest way of a message
	moves  bool          // addresses change with restarts
	last   int

	clusters []*cluster
	found    []string
	took     time.Duration
	readyAt  time.Duration

	formed, two, notOne, wrongName, forgotten, unsafe, restarts int
}

// newWorld draws the start of a seed.
func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{rng: r, calmAt: between(r, 0, 40*time.Second), lossy: 5 + r.IntN(60)}
	n := 1 + r.IntN(9)
	w.config = formation.Config{Cluster: name, Expected: n, Margin: between(r, time.Second, 6*time.Second)}
	if chance(r, 3) {
		w.config.Required = n
	}
	if chance(r, 8) && n > 1 { // a setting that is not safe, to see that it is not
		w.weak, w.config.Required = true, max(1, n/2)
	}
	w.config.SomeMayBeSilent = chance(r, 4)
	w.slow = 20 * time.Millisecond
	if chance(r, 4) {
		w.slow = time.Second
	}
	if chance(r, 3) {
		w.window = w.config.WithDefaults().Required
	}
	w.keeps, w.moves = chance(r, 2), chance(r, 2)
	if chance(r, 4) {
		w.other = []peer.Addr{contactAt(foreign), contactAt(foreign + 1)}
	}
	for i := range n {
		h := &host{index: i}
		w.hosts = append(w.hosts, h)
		w.readyAt = max(w.readyAt, w.startAt(h, between(r, 0, 15*time.Second)))
	}
	w.faults()
	w.readyAt = max(w.readyAt, w.calmAt)
	return w
}

// faults plans restarts while discovery does not tell the truth.
func (w *world) faults() {
	r := w.rng
	if chance(r, 2) {
		for range r.IntN(6) {
			h := w.hosts[r.IntN(len(w.hosts))]
			w.queue.push(between(r, 0, w.calmAt), func() { w.restart(h) })
		}
	}
	if chance(r, 4) { // all at once, as after a power cut: nobody remembers anything
		w.queue.push(between(r, 0, w.calmAt), func() {
			for _, h := range w.hosts {
				w.restart(h)
			}
			for _, h := range w.hosts {
				if h.process != nil {
					h.process.remember = nil
				}
			}
		})
	}
}

func memberAt(n int) peer.Addr {
	return peer.MustAddr(fmt.Sprintf("10.%d.%d.%d:7355", n>>16&255, n>>8&255, n&255))
}

func contactAt(n int) peer.Addr {
	return peer.MustAddr(fmt.Sprintf("10.%d.%d.%d:7627", n>>16&255, n>>8&255, n&255))
}

// startAt plans the first process of a host.
func (w *world) startAt(h *host, at time.Duration) time.Duration {
	w.queue.push(at, func() {
		if h.process == nil {
			w.start(h)
		}
	})
	return at
}

// start runs a new process at a host, at another address where they move.
func (w *world) start(h *host) {
	if h.address == 0 || w.moves && chance(w.rng, 2) {
		h.address = 1 + w.rng.IntN(1<<16)<<7 + h.index
	}
	w.last++
	id := peer.ID{Addr: memberAt(h.address), Inc: uint64(w.last)<<hostBits | uint64(h.index+1)}
	p := &process{world: w, host: h, id: id, point: contactAt(h.address), began: w.now, wake: -1}
	if old := h.process; old != nil && w.keeps {
		p.remember = old.remember
	}
	cfg := w.config
	cfg.Self, cfg.Point = p.id, p.point
	if p.remember != nil {
		cfg.Remembered = p.remember.id
	}
	p.machine = formation.New(cfg, rand.New(rand.NewPCG(w.rng.Uint64(), p.id.Inc)))
	h.process = p
	w.past = append(w.past, p.point)
	p.step(func(now time.Duration) { p.machine.Tick(now) })
	w.queue.push(w.now+patience, func() {
		if !p.dead && p.cluster == nil {
			w.restart(h)
		}
	})
}

// restart ends the process of a host and starts another one.
func (w *world) restart(h *host) {
	p := h.process
	if p == nil || p.dead {
		return
	}
	w.restarts++
	p.dead = true
	if c := p.cluster; c != nil {
		c.members = slices.DeleteFunc(c.members, func(o *process) bool { return o == p })
		if p.remember, p.cluster = c, nil; !c.lives() {
			p.remember = nil // it was alone, and a record of nobody says nothing
		}
		c.tell()
	}
	w.readyAt = max(w.readyAt, w.now)
	w.start(h)
}

// tell makes all members name those that may be joined.
func (c *cluster) tell() {
	var seeds []peer.Addr
	for _, p := range c.members {
		seeds = append(seeds, p.id.Addr)
	}
	slices.SortFunc(seeds, peer.Addr.Compare)
	for _, p := range c.members {
		p.machine.Joined(p.world.now, c.id, seeds[:min(len(seeds), formation.MaxSeeds)])
	}
}

// step does something with a process's machine and carries out what comes of it.
func (p *process) step(do func(now time.Duration)) {
	if p.dead {
		return
	}
	w := p.world
	do(w.now)
	var out formation.Effects
	p.machine.Drain(&out)
	if out.LookUp {
		p.lookUp()
	}
	for _, at := range out.Probes {
		p.probe(at)
	}
	for _, a := range out.Asks {
		p.ask(a)
	}
	if out.Join != nil {
		p.join(*out.Join)
	}
	if at, ok := p.machine.Next(); ok && (p.wake < w.now || at < p.wake) {
		at = max(at, w.now+time.Millisecond)
		p.wake = at
		w.queue.push(at, func() {
			if p.wake == at {
				p.wake = -1
				p.step(func(now time.Duration) { p.machine.Tick(now) })
			}
		})
	}
}

// at returns the living process with that contact point.
func (w *world) at(point peer.Addr) *process {
	for _, h := range w.hosts {
		if p := h.process; p != nil && !p.dead && p.point == point {
			return p
		}
	}
	return nil
}

// probe asks a contact point; the answer, or that there is none, comes later.
func (p *process) probe(point peer.Addr) {
	w := p.world
	there, back := w.way(), w.way()
	fail := func(after time.Duration) {
		w.queue.push(w.now+after, func() {
			p.step(func(now time.Duration) { p.machine.Probed(now, point, formation.Reply{}, "no answer") })
		})
	}
	if w.lost() {
		fail(between(w.rng, 0, probeLimit))
		return
	}
	w.queue.push(w.now+there, func() {
		var reply formation.Reply
		switch to := w.at(point); {
		case to != nil:
			reply = to.machine.Reply()
		case slices.Contains(w.other, point):
			id := peer.ID{Addr: memberAt(foreign), Inc: 3}
			reply = formation.Reply{Cluster: "another", Node: id, Wire: wire.Spoken(), ClusterID: 1 << 60,
				Seeds: []peer.Addr{id.Addr}}
		default:
			fail(back)
			return
		}
		if w.lost() {
			fail(between(w.rng, 0, probeLimit))
			return
		}
		w.queue.push(w.now+back, func() {
			p.step(func(now time.Duration) { p.machine.Probed(now, point, reply, "") })
		})
	})
}

// way draws how long a message is under way.
func (w *world) way() time.Duration {
	if w.now >= w.calmAt {
		return between(w.rng, 0, 20*time.Millisecond)
	}
	return between(w.rng, 0, w.slow)
}

// lost draws whether a message is, which none is once discovery tells the truth.
func (w *world) lost() bool { return w.now < w.calmAt && chance(w.rng, w.lossy) }

// ask asks for a promise; request and answer may each be lost.
func (p *process) ask(a formation.AskTo) {
	w := p.world
	there, back := w.way(), w.way()
	if w.lost() {
		return
	}
	w.queue.push(w.now+there, func() {
		to := w.at(a.Point)
		if to == nil {
			return
		}
		var answer formation.Answer
		to.step(func(now time.Duration) { answer = to.machine.Asked(now, a.Ask) })
		if w.lost() {
			return
		}
		w.queue.push(w.now+back, func() {
			p.step(func(now time.Duration) { p.machine.Answered(now, a.Point, answer) })
		})
	})
}
