// Handing over: what a region does in a move, as one that sends to the shard, as its owner, and as the next owner.
//
// A sending region parks messages and writes a marker behind its last envelope. It un-parks when it learns a home that
// takes account of the move. The owner parks its own callers at once, and waits for the markers of all notified
// members; the removal of a member counts as its marker. Markers come on data connections and may be there before the
// order, so those of a number that is not heard of yet are kept. Up to here it may give the move up: when a sender has
// not marked in time, and whenever a higher term is promised. Then it stops: mailboxes are worked off, the entities get
// their stop call, and what is left goes to the next owner in parts. Its copy is dropped when all of it is there,
// before the stop is confirmed, and the confirmation names its holder. If the next owner does not take it, or is
// removed, it stays here, and so does the shard.

package shard

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// ended ends an ownership when all its handlers have stopped.
func (h *handoffs) ended(s route.ShardID) {
	m, t, e := h.m, h.t, h.t.region.slot(s)
	h.forget(s)
	t.region.hosted.Remove(s)
	e.host, e.ended = notHosted, maxFence(e.ended, e.fence)
	e.fence = route.Fence{}
	m.forget(t, s)
}

// park parks, and marks.
func (h *handoffs) park(l placement) {
	m, t, g := h.m, h.t, h.t.region
	for _, e := range l.Entries {
		if uint32(e.Shard) >= g.slots.Shards() {
			continue
		}
		at, s, n := l.Peers[e.At], g.peek(e.Shard), Number{l.Term, e.Seq}
		h.elsewhere(e.Shard, e.Fence)
		if s.host != notHosted || at == m.self || !m.met(at) || m.gone(at) || e.Fence.Compare(s.ended) <= 0 ||
			(s.state == RouteRemote || s.state == RouteMoving) && e.Fence.Compare(s.fence) < 0 || n.Compare(s.moved) <= 0 {
			continue
		}
		o := observedMove{number: n, fence: e.Fence, at: g.homeAt(at), next: g.homeAt(l.Peers[e.To])}
		switch stands := h.isBystander(e.Shard); {
		case stands && n.Compare(h.observed[e.Shard].number) <= 0:
			continue
		case stands && h.recordMove(e.Shard, o):
		default:
			h.parkAt(e.Shard, o)
		}
		m.out.Marks = append(m.out.Marks, Mark{Type: t.id, Shard: e.Shard, Number: n, To: at})
	}
}

// markUnused marks moves of a type that this node does not use. A coordinator that has no report of it yet waits for
// its marker, and nothing was sent from here.
func markUnused(l placement, m *Machine) {
	for _, e := range l.Entries {
		if at := l.Peers[e.At]; at != m.self && m.met(at) && !m.gone(at) {
			m.out.Marks = append(m.out.Marks, Mark{Type: l.Type, Shard: e.Shard, Number: Number{l.Term, e.Seq}, To: at})
		}
	}
}

// markAgain repeats the markers that may be lost with a connection.
func markAgain(m *Machine, to peer.ID) {
	for _, id := range m.agenda.order {
		g := m.types[id].region
		if g == nil {
			continue
		}
		for i, s := range g.slots.All {
			if s.state == RouteMoving && s.home != nil && *s.home == to {
				m.out.Marks = append(m.out.Marks, Mark{Type: id, Shard: i, Number: s.moved, To: to})
			}
		}
		for _, i := range slices.Sorted(maps.Keys(g.hand.observed)) {
			if o := g.hand.observed[i]; *o.at == to {
				m.out.Marks = append(m.out.Marks, Mark{Type: id, Shard: i, Number: o.number, To: to})
			}
		}
	}
}

// begin begins to hand a shard over. Every way out is safe to repeat.
func (h *handoffs) begin(from peer.ID, l moveShard) {
	m, t, g := h.m, h.t, h.t.region
	if !m.obeys(t, from, l.head) {
		return
	}
	n := Number{l.Term, l.Seq}
	s, o := g.slot(l.Shard), h.out[l.Shard]
	switch {
	case s.host == notHosted || s.fence != l.Fence:
		if f, is := h.handedOff[l.Shard]; is && f.held == l.held {
			h.tellMoved(f)
		} else if s.host == notHosted || s.fence.Compare(l.Fence) > 0 {
			s.ended = maxFence(s.ended, l.Fence)
			g.stopped = append(g.stopped, l.held)
		}
	case s.host == stopping || o != nil && o.number == n:
		// It is under way: the answer follows.
	case n.Compare(s.moved) <= 0:
		h.tellAborted(l.held, n)
	default:
		o := &handoff{marks: marks{number: n}, to: l.Target, need: l.Told, due: m.now + m.cfg.MarkTime}
		if e := h.early[l.Shard]; e != nil && e.number == n {
			o.got = e.got
		}
		h.out[l.Shard] = o
		delete(h.early, l.Shard)
		s.state, s.moved = RouteMoving, n
		m.out.Routes = append(m.out.Routes, RouteChange{Type: t.id, Shard: l.Shard, State: RouteMoving, Home: m.self,
			Fence: s.fence, Next: l.Target})
		h.check(l.Shard)
	}
}

// marked takes a marker. One that means nothing here changes nothing: it comes from another node's data connection.
func marked(m *Machine, c MarkedCommand) {
	t := typeOf(m, c.Type)
	if m.over || t == nil || t.region == nil || uint32(c.Shard) >= t.region.slots.Shards() || c.From == m.self {
		return
	}
	g := t.region
	s, o := g.peek(c.Shard), g.hand.out[c.Shard]
	switch {
	case s.host != hosted:
	case o != nil && o.number == c.Number:
		o.got.Add(c.From)
		g.hand.check(c.Shard)
	case c.Number.Compare(s.moved) > 0 && m.met(c.From):
		e := g.hand.early[c.Shard]
		if e == nil || e.number.Compare(c.Number) < 0 {
			e = &marks{number: c.Number}
			g.hand.early[c.Shard] = e
		}
		if e.number == c.Number {
			e.got.Add(c.From)
		}
	}
}

// check orders the stop when nobody sends to a shard any more.
func (h *handoffs) check(s route.ShardID) {
	m, t, g := h.m, h.t, h.t.region
	o, e := h.out[s], g.slot(s)
	if o == nil || o.stops || m.confirm.held {
		return
	}
	for _, id := range o.need {
		if !o.got.Has(id) && m.met(id) {
			return
		}
	}
	o.stops, e.host = true, stopping
	order := HostOrder{Type: t.id, Shard: s, Fence: e.fence, Stop: true, Moves: true, Within: m.cfg.DrainTime,
		Leaving: m.leave.begun}
	if takesStates(m, o.to) {
		order.Room = m.cfg.MaxHandOver
	}
	m.out.Hosts = append(m.out.Hosts, order)
	m.event(Event{Kind: MoveMarked, Type: t.id, Shard: s, Term: o.number.Term, Home: m.self, Fence: e.fence, To: o.to,
		Number: o.number})
}

// stay gives up the leaving of a shard before its stop is ordered: its own callers go on.
func (h *handoffs) stay(s route.ShardID) {
	m, t, g := h.m, h.t, h.t.region
	o, e := h.out[s], g.slot(s)
	if o == nil || o.stops {
		return
	}
	delete(h.out, s)
	e.state = RouteLocal
	g.unwant(s)
	m.out.Routes = append(m.out.Routes, RouteChange{Type: t.id, Shard: s, State: RouteLocal, Home: m.self,
		Fence: e.fence})
}

// stayAll gives up every move that has not reached its stop call: another coordinator term begins.
func stayAll(t *typ) {
	if t.region == nil {
		return
	}
	for _, s := range t.region.hand.leaving() {
		t.region.hand.stay(s)
	}
}

func (h *handoffs) tellAborted(e held, n Number) {
	m, t := h.m, h.t
	l := placement{Kind: wire.KindMoveAborted, head: m.head(t.id, n.Term),
		Entries: []placed{{home: home{held: e}, Seq: n.Seq}}}
	l.end([]peer.ID{m.self}, nil)
	h.tell(l)
}

func (h *handoffs) tellMoved(f handedOff) {
	m, t := h.m, h.t
	l := placement{Kind: wire.KindShardsMoved, head: m.head(t.id, t.promise.term),
		Entries: []placed{{home: home{held: f.held}, Seq: f.seq}}}
	l.end([]peer.ID{f.to}, nil)
	h.tell(l)
}

// tell sends to the coordinator that holds the promise.
func (h *handoffs) tell(l placement) {
	m, t := h.m, h.t
	if l.Term == t.promise.term && m.live(t.promise.to) {
		m.post(t.promise.to, l)
	}
}

// tick gives up moves with late markers, and repeats what was not acknowledged.
func (h *handoffs) tick() {
	m, g, again := h.m, h.t.region, false
	for _, s := range h.leaving() {
		o := h.out[s]
		if !o.stops && m.now >= o.due {
			h.stay(s)
			h.tellAborted(held{s, g.peek(s).fence}, o.number)
		}
		if o.left != nil && o.waiting.due(m, o.to) {
			o.sent = o.have
			again = true
		}
	}
	if again {
		sendOn(m)
	}
}

// review follows a view: a removed member writes no marker, takes nothing, and sends no further parts.
func (h *handoffs) review() {
	for s, c := range h.coming { // deletes only: the order does not show
		if h.takesNothing(c.from) != "" {
			h.dropParts(s)
		}
	}
	for _, s := range h.leaving() {
		h.check(s)
		if o := h.out[s]; o.left != nil {
			if why := h.takesNothing(o.to); why != "" {
				h.keepHere(s, why)
			}
		}
	}
}

// takesNothing says why the next owner of a shard will never have what is handed over to it; nothing where it may.
func (h *handoffs) takesNothing(to peer.ID) string {
	switch {
	case to == h.m.self:
		return "it is this node"
	case !h.m.met(to):
		return "it is a member no more"
	case h.m.past.dead.Has(to):
		return "its process is dead"
	}
	return ""
}

// reviewHands looks again at everything that is handed over: a process is proven dead, or this node goes on.
func reviewHands(m *Machine) {
	for t := range eachType(m) {
		if t.region != nil {
			t.region.hand.review()
		}
	}
}

// handedOver takes the runtime's word that a shard which moves has stopped, and what was not worked off.
func handedOver(m *Machine, c HandOverCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region == nil || uint32(c.Shard) >= t.region.settings.Shards {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(c.Type))
	}
	g := t.region
	o, s := g.hand.out[c.Shard], g.peek(c.Shard)
	if s.host != stopping || s.fence != c.Fence || o == nil || !o.stops || o.left != nil || len(c.Left) == 0 {
		if len(c.Left) > 0 {
			m.out.Untaken = append(m.out.Untaken, Untaken{Type: c.Type, Shard: c.Shard, Left: c.Left})
		}
		return m.stopped(c.StoppedCommand)
	}
	o.left, o.states = c.Left, c.States
	if len(o.left) > m.cfg.MaxHandOver {
		g.hand.keepHere(c.Shard, fmt.Sprintf("%d bytes, at most %d", len(o.left), m.cfg.MaxHandOver))
		return nil
	}
	o.began = m.now
	o.waiting.start(m)
	m.sends = append(m.sends, parcel{t.id, c.Shard, o.number})
	sendOn(m)
	return nil
}

// keepHere makes the shard come back to this node, with what was left, and says why.
func (h *handoffs) keepHere(s route.ShardID, why string) {
	m, g := h.m, h.t.region
	o, f := h.out[s], g.peek(s).fence
	m.event(Event{Kind: MoveUntaken, Type: h.t.id, Shard: s, Term: o.number.Term, Home: m.self, Fence: f, To: o.to,
		Number: o.number, Err: fmt.Errorf("%w: %s", ErrNotTaken, why)})
	h.put(s, kept{f, o.left})
	h.give(s, m.self)
}

// give ends an ownership when the member to has its rest, and says so.
func (h *handoffs) give(s route.ShardID, to peer.ID) {
	g := h.t.region
	e := g.peek(s)
	f := handedOff{held: held{s, e.fence}, seq: h.out[s].number.Seq, to: to}
	h.handedOff[s] = f
	h.ended(s)
	h.tellMoved(f)
}
