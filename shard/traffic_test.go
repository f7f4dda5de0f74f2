// Traffic for the small world: a data plane as simple as can be, with slots that park, connections that keep the order,
// mailboxes, and a checker at the entities. Payloads are numbers.

package shard

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// letter is one message of a sender to a shard.
type letter struct {
	from *testNode
	to   string // key of the shard
	seq  int
}

// dataFrame is a message under a fence, or a marker.
type dataFrame struct {
	letter
	fence route.Fence
	mark  *Mark
}

type wirePair struct{ from, to peer.ID }

type traffic struct {
	w      *world
	typ    Settings
	wires  map[wirePair][]dataFrame
	order  []wirePair // the keys of wires, as they came
	parked map[*testNode]map[string][]letter
	boxes  map[*testNode]map[string][]letter
	moves  map[*testNode]map[string]bool // stops that are part of a move
	wants  map[*testNode][]route.ShardID
	left   map[byte]letter // what a hand-over's byte stands for
	sent   map[*testNode]map[string]int
	last   map[*testNode]map[string]int // handled last, by sender and shard
	count  struct{ sent, handled, excused, handedOver, untaken int }
	faulty bool // a node has crashed: what is lost is not checked, what is doubled or overtaken is
	over   map[letter]bool
	done   map[letter]bool      // handled
	plain  map[route.Fence]bool // ownerships that ended by a plain stop, which loses what comes later
	states stateBook
	stalls peer.ID // data to this node and from it waits
}

func newTraffic(w *world, s Settings) *traffic {
	return &traffic{w: w, typ: s, wires: map[wirePair][]dataFrame{}, parked: map[*testNode]map[string][]letter{},
		boxes: map[*testNode]map[string][]letter{}, moves: map[*testNode]map[string]bool{}, left: map[byte]letter{},
		wants: map[*testNode][]route.ShardID{}, sent: map[*testNode]map[string]int{}, over: map[letter]bool{},
		plain: map[route.Fence]bool{}, done: map[letter]bool{}, states: newStateBook(),
		last: map[*testNode]map[string]int{}}
}

func at2[V any](m map[*testNode]map[string]V, n *testNode) map[string]V {
	if m[n] == nil {
		m[n] = map[string]V{}
	}
	return m[n]
}

// send is a message of the application at a node.
func (x *traffic) send(n *testNode, s route.ShardID) {
	k := key(x.typ.ID(), s)
	at2(x.sent, n)[k]++
	x.count.sent++
	x.route(n, s, letter{n, k, at2(x.sent, n)[k]})
	x.flush(n)
}

func (x *traffic) route(n *testNode, s route.ShardID, l letter) {
	r := n.route(x.typ, s)
	switch r.State {
	case RouteLocal:
		at2(x.boxes, n)[l.to] = append(at2(x.boxes, n)[l.to], l)
	case RouteRemote:
		x.put(wirePair{n.id, r.Home}, dataFrame{letter: l, fence: r.Fence})
	default:
		at2(x.parked, n)[l.to] = append(at2(x.parked, n)[l.to], l)
		x.wants[n] = append(x.wants[n], s)
	}
}

func (x *traffic) put(p wirePair, f dataFrame) {
	if !slices.Contains(x.order, p) {
		x.order = append(x.order, p)
	}
	x.wires[p] = append(x.wires[p], f)
}

// collect carries out what concerns messages, after the hosts and the routes were noted.
func (x *traffic) collect(n *testNode, e *Effects) {
	for _, h := range e.Hosts {
		k := key(h.Type, h.Shard)
		switch {
		case h.Abandon:
			x.lose(at2(x.boxes, n)[k])
			delete(at2(x.boxes, n), k)
			x.states.broken[k] = true
		case h.Stop:
			at2(x.moves, n)[k] = h.Moves
			x.plain[h.Fence] = x.plain[h.Fence] || !h.Moves
		default:
			require.Empty(x.w.t, at2(x.boxes, n)[k])
			x.begins(n, k, h.Left)
			at2(x.boxes, n)[k] = append(at2(x.boxes, n)[k], x.letters(h.Left)...)
		}
	}
	for _, r := range e.Routes {
		if waits := at2(x.parked, n)[key(r.Type, r.Shard)]; len(waits) > 0 {
			delete(at2(x.parked, n), key(r.Type, r.Shard))
			for _, l := range waits {
				x.route(n, r.Shard, l)
			}
		}
	}
	for _, k := range e.Marks {
		x.put(wirePair{n.id, k.To}, dataFrame{mark: &k})
	}
	for _, u := range e.Untaken {
		x.count.untaken++
		x.loseRest(u.Left)
	}
}

// flush asks for the homes of what has parked.
func (x *traffic) flush(n *testNode) {
	list := x.wants[n]
	if delete(x.wants, n); len(list) > 0 && !n.dead && !n.left {
		n.do(WantCommand{x.typ.ID(), list})
	}
}

// carry delivers the first frame of a connection.
func (x *traffic) carry(p wirePair) {
	f := x.wires[p][0]
	x.wires[p] = x.wires[p][1:]
	to, from := x.w.node(p.to), x.w.node(p.from)
	if to.dead || to.deaf || to.left || from.deaf {
		if f.mark == nil {
			x.lose([]letter{f.letter})
		}
		return
	}
	if f.mark != nil {
		to.do(MarkedCommand{f.mark.Type, f.mark.Shard, f.mark.Number, p.from})
		return
	}
	if h, ok := to.hosted[f.to]; ok && h == f.fence && (!x.stops(to, f.to) || at2(x.moves, to)[f.to]) {
		at2(x.boxes, to)[f.to] = append(at2(x.boxes, to)[f.to], f.letter)
		return
	}
	x.refused(f, to)
	for s := range x.typ.Shards {
		if k := key(x.typ.ID(), route.ShardID(s)); k == f.to && !from.dead && !from.left {
			from.do(RefusedCommand{x.typ.ID(), route.ShardID(s), f.fence.Term(), f.fence.Epoch()})
		}
	}
}

// stops reports whether a shard was ordered to stop.
func (x *traffic) stops(n *testNode, k string) bool {
	return slices.ContainsFunc(n.stops, func(s StoppedCommand) bool { return key(s.Type, s.Shard) == k })
}

// refused is a message that came to one that is not its owner: nothing but a plain stop or a crash may lead there.
func (x *traffic) refused(f dataFrame, at *testNode) {
	if !x.faulty && !x.plain[f.fence] {
		require.Fail(x.w.t, "lost", "message %d of %s to %s is refused by %s", f.seq, f.from.id, f.to, at.id)
	}
	x.lose([]letter{f.letter})
}

// lose takes messages off the account.
func (x *traffic) lose(list []letter) {
	for _, l := range list {
		x.over[l] = true
		x.count.excused++
	}
}

// handle works off the first message of a mailbox.
func (x *traffic) handle(n *testNode, k string) {
	box := at2(x.boxes, n)[k]
	if len(box) == 0 {
		return
	}
	l := box[0]
	at2(x.boxes, n)[k] = box[1:]
	last := at2(x.last, l.from)
	require.Greater(x.w.t, l.seq, last[k], "message %d of %s to %s is doubled or overtaken", l.seq, l.from.id, k)
	last[k] = l.seq
	x.done[l] = true
	x.count.handled++
	at2(x.states.has, n)[k]++
	x.states.handled[k]++
}

// stopped ends a shard. In a move what the mailbox holds is handed over; else it is lost, and so is what parks nowhere.
func (x *traffic) stopped(n *testNode, s StoppedCommand) {
	k := key(s.Type, s.Shard)
	box := at2(x.boxes, n)[k]
	delete(at2(x.boxes, n), k)
	if !at2(x.moves, n)[k] {
		x.lose(box)
		x.states.broken[k] = true
		n.do(s)
		return
	}
	if len(box) == 0 && !x.states.on {
		n.do(s)
		return
	}
	x.count.handedOver++
	var left []byte
	for _, l := range box {
		b := byte(len(x.left))
		for at, have := range x.left {
			if have == l {
				b = at
			}
		}
		require.Less(x.w.t, len(x.left), stateMark)
		x.left[b] = l
		left = append(left, b)
	}
	n.do(HandOverCommand{s, x.gives(n, k, left), x.states.on})
}

// breaks ends a connection: what is in flight is lost, and markers go again.
func (x *traffic) breaks(p wirePair) {
	for _, f := range x.wires[p] {
		if f.mark == nil {
			x.lose([]letter{f.letter})
		}
	}
	x.wires[p] = nil
	if n := x.w.node(p.from); n.well() {
		n.do(MarkAgainCommand{p.to})
	}
}

// busy lists the connections on which something travels.
func (x *traffic) busy() []wirePair {
	var list []wirePair
	for _, p := range x.order {
		if len(x.wires[p]) > 0 && (x.stalls.IsZero() || x.stalls != p.from && x.stalls != p.to) {
			list = append(list, p)
		}
	}
	return list
}

// pump carries and handles until nothing is left.
func (x *traffic) pump() {
	for moved := true; moved; {
		moved = false
		for _, p := range x.busy() {
			x.carry(p)
			moved = true
		}
		for _, n := range x.w.nodes {
			for s := range x.typ.Shards {
				k := key(x.typ.ID(), route.ShardID(s))
				if n.well() && len(at2(x.boxes, n)[k]) > 0 && n.hosted[k] != (route.Fence{}) {
					x.handle(n, k)
					moved = true
				}
			}
		}
	}
}

// settled demands that everything was handled, and that nothing waits.
func (x *traffic) settled() {
	for _, n := range x.w.nodes {
		if !n.well() || !x.w.hosts(x.typ) {
			continue
		}
		for k, list := range at2(x.parked, n) {
			require.Empty(x.w.t, list, "%s parks for %s for ever: %v", n.id, k, n.routes[k])
		}
		for k, sent := range at2(x.sent, n) {
			if x.faulty {
				continue
			}
			for q := 1; q <= sent; q++ {
				l := letter{n, k, q}
				require.True(x.w.t, x.done[l] || x.over[l], "message %d of %s to %s was never handled", q, n.id, k)
			}
		}
	}
}
