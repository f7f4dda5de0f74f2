// The state of the cluster: a flat value, so that a copy is an assignment.

package model

import (
	"fmt"

	"github.com/kith-io/kith/internal/base/invariant"
)

const (
	maxNodes  = 4
	maxShards = 2
	entity    = maxNodes // the sender's place of what entities send
	senders   = maxNodes + 1
	none      = 255 // no node
)

// set is a set of nodes.
type set uint8

func only(i int) set          { return 1 << i }
func (s set) has(i int) bool  { return s>>i&1 == 1 }
func (s set) and(i int) set   { return s | only(i) }
func (s set) minus(i int) set { return s &^ only(i) }

// all returns how many nodes there are.
func (c *Config) all() int { return int(c.Nodes) }

// everybody returns all nodes.
func (c *Config) everybody() set { return 1<<c.Nodes - 1 }

// msg is a message: its sender, its number there, and whether it has waited for its home.
type msg uint8

const (
	parkedFlag msg = 8
	tick       msg = entity<<4 | 7 // the message of a loop
)

func newMsg(from, seq int) msg { return msg(from<<4 | seq) }
func (m msg) from() int        { return int(m >> 4) }
func (m msg) seq() int         { return int(m & 7) }
func (m msg) bare() msg        { return m &^ parkedFlag }

// String is the sender and the number; entities are senders too.
func (m msg) String() string {
	switch {
	case m.bare() == tick:
		return "of the loop"
	case m.from() == entity:
		return fmt.Sprintf("of an entity of shard %d", m.seq())
	}
	return fmt.Sprintf("%d.%d", m.from(), m.seq())
}

// fenceText is the term and the epoch; numbers of moves look the same.
func fenceText(f uint8) string { return fmt.Sprintf("%d.%d", f>>4, f&15) }

// String lists the nodes.
func (s set) String() string {
	text := ""
	for i := range maxNodes {
		if s.has(i) {
			text += fmt.Sprintf(" n%d", i)
		}
	}
	if text == "" {
		return "nobody"
	}
	return text[1:]
}

// count is the state of an entity: its shard, how many states of its entity were lost before, and one more than the
// messages that it has had since; zero: no state.
type count uint8

const (
	firstCount  count = 1
	nextLine    count = 1 << 5
	secondShard count = 1 << 7
)

func newCount(shard int) count { return firstCount + count(shard)*secondShard }
func (n count) shard() int     { return int(n / secondShard) }

// anew is what begins when the state is lost.
func (n count) anew() count {
	return n&secondShard | (n+nextLine)&^secondShard&^(nextLine-1) | firstCount
}

// String is what it counts.
func (n count) String() string {
	if n == 0 {
		return "no state"
	}
	return fmt.Sprintf("the state %d.%d", n&^secondShard/nextLine, n&(nextLine-1)-firstCount)
}

// list is a short queue of messages, of an instance or of what is left of one, with its state.
type list struct {
	n     uint8
	at    [8]msg
	count count
}

func (l *list) push(m msg) {
	invariant.Check(int(l.n) < len(l.at), "a queue of the model holds its messages")
	l.at[l.n] = m
	l.n++
}

func (l *list) pop() msg {
	m := l.at[0]
	copy(l.at[:], l.at[1:l.n])
	l.n--
	return m
}

func (l *list) all() []msg { return l.at[:l.n] }

// letter is a control message. The courier gives them over once and in order while both ends live.
type letter struct {
	kind, shard, term  uint8
	at                 uint8 // a node: the home, the target, the holder of what is left
	fence, move, state uint8
	who                set
	left               list // what was not worked off
}

// letters is the queue of control messages from one node to another.
type letters struct {
	n  uint8
	at [14]letter
}

func (q *letters) push(l letter) {
	invariant.Check(int(q.n) < len(q.at), "a control connection of the model holds its letters")
	q.at[q.n] = l
	q.n++
}

func (q *letters) pop() letter {
	l := q.at[0]
	copy(q.at[:], q.at[1:q.n])
	q.n--
	return l
}

// frame is what travels on a data connection: an envelope under its fence, a marker of a move, an answer.
type frame struct {
	kind, by, shard uint8
	m               msg
	mark            uint8 // the fence, or the number of the move
}

const (
	envelope uint8 = iota
	marker
	answer
)

// frames is the queue of one data connection, or of a worker.
type frames struct {
	n  uint8
	at [14]frame
}

func (q *frames) push(f frame) {
	invariant.Check(int(q.n) < len(q.at), "a data connection of the model holds its frames")
	q.at[q.n] = f
	q.n++
}

func (q *frames) pop() frame {
	f := q.at[0]
	copy(q.at[:], q.at[1:q.n])
	q.n--
	return f
}

// envelopes returns how many envelopes wait.
func (q *frames) envelopes() (n uint8) {
	for _, f := range q.at[:q.n] {
		if f.kind == envelope {
			n++
		}
	}
	return n
}

// States of a slot.
const (
	unknown uint8 = iota // parks
	remote
	moving // parks
	local
)

// Phases of the large message at the head of what is parked.
const (
	waits uint8 = iota
	begun       // on its way
	whole       // its receiver has all of it
)

// slot is what a node's region knows of a shard.
type slot struct {
	state, home, fence uint8
	move               uint8 // in which it parks
	asked              uint8 // the term of the coordinator that was asked for the home, 0: none
	ended              uint8 // fences up to this one are over
	large              uint8 // phase of the large message at the head
	owes               bool  // a marker that waits behind the large message
	parked             list
}

// States of a host.
const (
	idle uint8 = iota
	live
	draining
	stopping // the stop call has gone to the entities
	handing  // stopped; what was left is on its way to the new owner
)

// host is a shard at its owner, and what a node holds of it before and after.
type host struct {
	state, fence uint8
	move         uint8 // by which it drains
	need, got    set   // markers
	target       uint8
	earlyMove    uint8 // a move that it has not heard of, and the nodes that marked it
	early        set
	busy         bool // a handler waits for the answer to what it asked
	asker        msg  // the ask that its handler works on
	box          list
	hold         list // what came for the next instance
	holdFence    uint8
	keep         list // what this one could not hand over
	keepFence    uint8
	gave         uint8 // the fence of what it handed over last, and the receiver
	gaveTo       uint8
}

// there reports whether entities of the shard are there.
func (h *host) there() bool { return h.state == live || h.state == draining || h.state == stopping }

// place is one shard at one node.
type place struct {
	slot slot
	host host
}

// States of a record.
const (
	free uint8 = iota
	starting
	alive
	inMove
	ending // reported as stopping: its confirmation comes
)

// record is what a coordinator knows of a shard.
type record struct {
	state, home, fence, move uint8
	target                   uint8 // where it goes next, or none
	left                     uint8 // the fence of what is left of the shard
	aborting                 bool
	told, wants              set
	keepers                  set // nodes that said to have what is left of the shard
}

// Phases of an office.
const (
	outOfOffice uint8 = iota
	collects
	reigns
)

// office is the coordinator of a node.
type office struct {
	phase, term, epoch, moves uint8
	reported, drains          set // nodes that have reported, and that leave
	of                        [maxShards]record
}

// node is one process.
type node struct {
	up      uint8 // its up-number: the term under which it coordinates
	alive   bool
	asleep  bool
	leaves  bool  // it gives back what it hosts
	gated   bool  // it has slept, and calls no handler before others confirm what it owns
	nonce   uint8 // of its question
	doubts  set   // nodes with an answer that it waits for
	knows   set   // nodes removed in its view
	over    set   // of these, with a takeover time that is over
	promise uint8
	sent    uint8
	places  [maxShards]place
	office  office
}

// world is a state: nodes, channels, what the checks remember, and what may still happen.
type world struct {
	nodes    [maxNodes]node
	ctl      [maxNodes][maxNodes]letters
	dat      [maxNodes][maxNodes]frames
	work     [maxNodes]frames
	asker    [maxShards]uint8          // the node of the entity that asked
	handled  [senders]uint8            // bits of messages
	lossy    [senders]uint8            // may be lost: a fault hit them, or their sender was notified
	answered [senders]uint8            // asks that ended with an answer or a typed error
	silent   [senders]uint8            // asks with a forgotten asker
	last     [senders][maxShards]uint8 // number of the last message handled, plus one
	fence    [maxShards]uint8          // the highest so far
	had      [maxShards]count          // the state of the last instance that there was
	unsure   set                       // shards with a state that may be lost: a fault hit it
	removed  set                       // nodes that live and were removed
	faults   bool                      // something crashed, broke or slept
	nextUp   uint8

	crashes, restarts, moves, aborts, breaks, sleeps, reigns uint8

	leaver struct {
		told  uint8 // how many may yet be ordered to leave
		tries uint8 // see leaverTries
	}
}

// coordinator returns the node that coordinates under a term, or -1.
func (w *world) coordinator(term uint8) int {
	for i := range w.nodes {
		if w.nodes[i].up == term {
			return i
		}
	}
	return -1
}

// gone reports whether a node that a letter names is no member in the view of n, or an earlier process there.
func (n *node) gone(at uint8) bool { return at == none || n.knows.has(int(at)) }

// awake reports whether a node does anything at all.
func (n *node) awake() bool { return n.alive && !n.asleep }

// acts reports whether a node calls handlers.
func (n *node) acts() bool { return n.awake() && !n.gated }

// leaverTries is how often what a leaver has is tried to be moved though a member sleeps, or is dead or removed and
// the coordinator does not know.
const leaverTries = 1

const firstFence = 1<<4 | 1 // of term 1; the epoch is below

// begin returns the first state of a run: node 0 coordinates, Owner owns, all others know it.
func (c *Config) begin() *world {
	w := &world{crashes: c.Crashes, restarts: c.Restarts, moves: c.Moves, aborts: c.Aborts, breaks: c.Breaks,
		sleeps: c.Sleeps, reigns: c.Reigns, nextUp: c.Nodes + 1}
	if c.Leaves > 0 {
		w.leaver.told, w.leaver.tries = c.Leaves, leaverTries
	}
	for i := range c.all() {
		n := &w.nodes[i]
		n.up, n.alive, n.promise = uint8(i+1), true, 1
		for s := range c.Shards {
			f := firstFence + s
			n.places[s].slot = slot{state: remote, home: c.Owner, fence: f}
			n.office.of[s].target = none
			w.fence[s] = f
		}
	}
	o := &w.nodes[0].office
	o.phase, o.term, o.epoch = reigns, 1, c.Shards
	for s := range c.Shards {
		owner := &w.nodes[c.Owner].places[s]
		owner.slot.state = local
		owner.host = host{state: live, fence: firstFence + s}
		if c.State {
			w.had[s] = newCount(int(s))
			owner.host.box.count = w.had[s]
		}
		if c.Loop != NoLoop && s == 0 {
			owner.host.box.push(tick)
		}
		o.of[s] = record{state: alive, home: c.Owner, fence: firstFence + s, target: none,
			told: c.everybody().minus(int(c.Owner))}
	}
	return w
}
