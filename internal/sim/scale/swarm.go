// Swarm: many membership machines on one fast queue and a plain network, for figures that need size or days.

package scale

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// basePort is the port of every node of a swarm.
const basePort = 7355

// wallBase is the wall clock, in milliseconds since 1970, at which every swarm begins.
const wallBase = 1_800_000_000_000

// swarm is a simulated cluster of membership machines and nothing else: no data plane, no checkers, no trace. What it
// shares with the simulator's world is what counts for figures: real machines, real codecs, virtual time, one seed.
// Nothing in it is safe for concurrent use.
type swarm struct {
	now    time.Duration
	queue  moments
	nodes  []*swarmNode // by index; the latest incarnation at that address
	byAddr map[peer.Addr]int32
	letter []letter
	free   []int32
	bodies bodies
	lines  lines
	rng    *rand.Rand
	cfg    membership.Config
	eff    membership.Effects
	steps  uint64
	sent   traffic
	want   int // how many Up members every live node should have published
	full   int // live nodes that have
	// onEvent, when it is set, hears every event that a node publishes, once it is published.
	onEvent func(i int, e *membership.Event)
}

// swarmNode is one node of a swarm.
type swarmNode struct {
	id      peer.ID
	m       *membership.Machine
	origin  time.Duration // when its clock began
	stepped time.Duration // its last step, in the swarm's time
	wake    time.Duration // its planned tick; negative: none
	alive   bool
	frozen  bool
	held    []int32 // messages that arrived while it was frozen
	view    *membership.View
	ups     int // members that it has published as Up and not yet as anything else
	ended   *membership.Ended
	counted bool // ups is what the swarm wants
}

// letter is a control frame on its way.
type letter struct {
	from, to int32
	sender   uint64 // incarnation of the sender
	inc      uint64 // the incarnation meant; zero: any that is there
	kind     wire.Kind
	body     body
}

// traffic counts frames and bytes, headers included, by kind.
type traffic struct {
	frames, bytes [64]uint64
	largest       [64]int
}

// gossip returns the bytes of all gossip: status, versions, seen sets, states.
func (t *traffic) gossip() uint64 {
	var n uint64
	for k := wire.KindStatus; int(k) < len(t.bytes); k++ {
		if k != wire.KindExitDone && k != wire.KindRemovedNote {
			n += t.bytes[k]
		}
	}
	return n
}

func newSwarm(seed uint64, cfg membership.Config, net Lines) *swarm {
	cfg.Intern = members.NewIntern()
	cfg.Roles, cfg.AppVersion = []string{"worker"}, "1.0.0"
	return &swarm{byAddr: map[peer.Addr]int32{}, cfg: cfg, lines: newLines(net, seed),
		rng: rand.New(rand.NewPCG(seed, drawsOfNodes))}
}

// swarmAddr returns the address of the node with that index: 10.0.0.1, 10.0.0.2 and so on.
func swarmAddr(i int) peer.Addr {
	i++
	return peer.MustAddr(fmt.Sprintf("10.%d.%d.%d:%d", i>>16&255, i>>8&255, i&255, basePort))
}

// start begins a node at the next address. It does nothing yet: join it.
func (c *swarm) start() int {
	i := c.place()
	c.begin(i, peer.ID{Addr: swarmAddr(i), Inc: c.rng.Uint64() | 1})
	return i
}

// join lets node i join through the seeds.
func (c *swarm) join(i int, seeds []peer.Addr) {
	c.do(i, membership.JoinCommand{Seeds: seeds, WallMillis: wallBase + uint64(c.now/time.Millisecond)})
}

func (c *swarm) do(i int, cmd membership.Command) {
	s := c.nodes[i]
	if err := s.m.Do(c.now-s.origin, cmd); err != nil {
		panic(fmt.Sprintf("scale: %T at node %d: %v", cmd, i, err)) // the measurement itself is wrong
	}
	c.after(int32(i), s)
}

// crash ends a host: from now on it is silent.
func (c *swarm) crash(i int) {
	s := c.nodes[i]
	s.alive = false
	c.count(s)
	for _, slot := range s.held {
		c.drop(slot)
	}
	s.held = nil
}

// kill ends a process on a host that lives on: all connections to it are reset, and a peer that dials again at once is
// refused. That is a packet each way and one more.
func (c *swarm) kill(i int) {
	id := c.nodes[i].id
	c.crash(i)
	for k := range c.nodes {
		if c.nodes[k].alive {
			c.put(c.now+3*c.lines.Delay, letter{from: int32(i), to: int32(k), sender: id.Inc, kind: kindRefusal})
		}
	}
}

// kindRefusal is what a host that refuses a connection says; no frame has this kind.
const kindRefusal wire.Kind = 0

// freeze stops a process; thaw lets it go on: first its clock, then what had arrived, which is read only now.
func (c *swarm) freeze(i int) { c.nodes[i].frozen = true }

func (c *swarm) thaw(i int) {
	s := c.nodes[i]
	s.frozen = false
	if !s.alive {
		return
	}
	c.tick(int32(i), s)
	held := s.held
	s.held = nil
	for _, slot := range held {
		c.deliver(slot)
	}
}

// step runs the next event at or before limit, and reports whether there was one.
func (c *swarm) step(limit time.Duration) bool {
	if len(c.queue.heap) == 0 || c.queue.heap[0].at > limit {
		return false
	}
	m := c.queue.pop()
	c.now = m.at
	c.steps++
	if m.slot >= 0 {
		c.deliver(m.slot)
		return true
	}
	if s := c.nodes[m.node]; s.wake == m.at {
		s.wake = -1
		if s.alive && !s.frozen {
			c.tick(m.node, s)
		}
	}
	return true
}

// advance runs everything up to and at now + d.
func (c *swarm) advance(d time.Duration) {
	end := c.now + d
	for c.step(end) {
	}
	c.now = end
}

// until runs until done says true, at most for d. It asks after every event.
func (c *swarm) until(d time.Duration, done func() bool) bool {
	end := c.now + d
	for !done() {
		if !c.step(end) {
			c.now = end
			return done()
		}
	}
	return true
}

func (c *swarm) tick(i int32, s *swarmNode) {
	if next, ok := s.m.Next(); ok && s.origin+next <= c.now {
		s.m.Tick(c.now - s.origin)
		s.stepped = c.now
	}
	c.after(i, s)
}

// after carries out the effects of a step and plans the next tick.
func (c *swarm) after(i int32, s *swarmNode) {
	s.m.Drain(&c.eff)
	if c.eff.View != nil {
		s.view = c.eff.View
	}
	for k := range c.eff.Events {
		e := &c.eff.Events[k]
		switch up := e.Member.Status == membership.Up; {
		case e.Kind == membership.MemberUp && (e.Previous != membership.Up):
			s.ups++
		case e.Kind < membership.UnreachableMember && e.Previous == membership.Up && !up:
			s.ups--
		}
		if c.onEvent != nil {
			c.onEvent(int(i), e)
		}
	}
	c.count(s)
	for k := range c.eff.Mail {
		m := &c.eff.Mail[k]
		if to, ok := c.byAddr[m.To.Addr]; ok {
			w := wayThere
			if m.To.Inc == 0 {
				w = wayDoor
			}
			c.send(i, to, m.To.Inc, m.Kind, m.Body, w)
		}
	}
	if c.eff.Ended != nil {
		s.ended, s.alive = c.eff.Ended, false
		c.count(s)
	}
	c.plan(i, s)
}

// count keeps full in line with one node.
func (c *swarm) count(s *swarmNode) {
	if is := s.alive && s.ups == c.want; is != s.counted {
		s.counted = is
		if is {
			c.full++
		} else {
			c.full--
		}
	}
}

// expect sets how many Up members every live node should publish.
func (c *swarm) expect(n int) {
	c.want = n
	for _, s := range c.nodes {
		c.count(s)
	}
}

// plan makes sure that a tick comes at the next deadline. One that is planned too early only looks again.
func (c *swarm) plan(i int32, s *swarmNode) {
	next, ok := s.m.Next()
	if !ok || !s.alive || s.frozen {
		return
	}
	at := max(c.now, s.origin+next)
	if s.wake >= 0 && s.wake <= at {
		return
	}
	s.wake = at
	c.queue.push(at, i, -1)
}

func (c *swarm) send(from, to int32, inc uint64, kind wire.Kind, body []byte, w way) {
	size := len(body) + wire.HeaderSize
	c.sent.frames[kind]++
	c.sent.bytes[kind] += uint64(size)
	c.sent.largest[kind] = max(c.sent.largest[kind], size)
	at, lost := c.lines.arrival(c.now, from, to, w)
	if lost {
		return
	}
	c.put(at, letter{from, to, c.nodes[from].id.Inc, inc, kind, c.bodies.copy(body)})
}

// put plans the arrival of a letter.
func (c *swarm) put(at time.Duration, l letter) {
	var slot int32
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
	} else {
		slot = int32(len(c.letter))
		c.letter = append(c.letter, letter{})
	}
	c.letter[slot] = l
	c.queue.push(at, l.to, slot)
}

func (c *swarm) drop(slot int32) {
	c.bodies.done(c.letter[slot].body)
	c.letter[slot] = letter{}
	c.free = append(c.free, slot)
}

// deliver hands a letter to its node, or keeps it while that is frozen.
func (c *swarm) deliver(slot int32) {
	l := c.letter[slot]
	s := c.nodes[l.to]
	if s.alive && s.frozen {
		s.held = append(s.held, slot)
		return
	}
	if s.alive && (l.inc == 0 || l.inc == s.id.Inc) {
		if l.kind == kindRefusal {
			c.drop(slot)
			c.do(int(l.to), membership.LinkLostCommand{ID: peer.ID{Addr: c.nodes[l.from].id.Addr, Inc: l.sender}})
			return
		}
		text := c.bodies.whole(l.body)
		if l.kind == wire.KindHeartbeat {
			// What the transport's loop does beside the control loop.
			var buf [32]byte
			if ack, err := wire.AnswerHeartbeat(buf[:0], text, uint64(c.now-s.stepped)); err == nil {
				w := wayBack
				if l.inc == 0 {
					w = wayAnswer
				}
				c.send(l.to, l.from, l.sender, wire.KindHeartbeatAck, ack, w)
			}
		}
		now, from := c.now-s.origin, peer.ID{Addr: c.nodes[l.from].id.Addr, Inc: l.sender}
		if err := s.m.Handle(now, now, from, l.kind, text); err != nil {
			panic(fmt.Sprintf("scale: %s from node %d at node %d: %v", l.kind, l.from, l.to, err))
		}
		s.stepped = c.now
		c.after(l.to, s)
	}
	c.drop(slot)
}
