// Parts: a transfer on its way. The owner sends the first part small, which asks for room, and the rest as the next
// owner says that it has what came before. So little is on its way at once, to one member and to all, that heartbeats
// on the same connection are not late behind it. The next owner takes a transfer as soon as it has room for all of it,
// and refuses only what it can never take.
//
// And the pace: how many bytes the moves that this node leads may hand over at once. Entities of a shard that waits for
// its turn are served where they are; those of one that has begun to move are not. So no more moves begin than the next
// owners have room for, and than the network carries within a short while: the owners tell what each move cost.

package shard

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// Bounds of what is on its way of all transfers of this node, of all types, in bytes.
const (
	sendPart     = 32 << 10  // in one part; receivers take up to maxPart
	firstPart    = 512       // in the first one of a transfer that needs several: it asks for room
	maxUnsure    = 256 << 10 // sent to one member that it has not said it has
	maxUnsureAll = 1 << 20   // to all
)

// parcel names a transfer that is under way.
type parcel struct {
	typ    route.TypeID
	shard  route.ShardID
	number Number
}

// under returns the transfer, nil when it is over.
func (p parcel) under(m *Machine) (*handoffs, *handoff) {
	t := typeOf(m, p.typ)
	if t == nil || t.region == nil {
		return nil, nil
	}
	if o := t.region.hand.out[p.shard]; o != nil && o.left != nil && o.number == p.number {
		return t.region.hand, o
	}
	return nil, nil
}

// sendOn sends what the bounds allow of all transfers. The one that began first goes first: two at once would both take
// twice as long, and so long their shards live nowhere.
func sendOn(m *Machine) {
	unsure, all := map[peer.ID]int{}, 0
	for _, p := range m.sends {
		if _, o := p.under(m); o != nil {
			unsure[o.to] += o.sent - o.have
			all += o.sent - o.have
		}
	}
	for _, p := range m.sends {
		if h, o := p.under(m); o != nil {
			n := h.sendParts(p.shard, min(maxUnsure-unsure[o.to], maxUnsureAll-all))
			unsure[o.to] += n
			all += n
		}
	}
	m.sends = slices.DeleteFunc(m.sends, func(p parcel) bool {
		_, o := p.under(m)
		return o == nil
	})
}

// sendParts sends up to room bytes of a transfer and returns how many, or keeps all here when the next owner is no
// longer a member.
func (h *handoffs) sendParts(s route.ShardID, room int) (sent int) {
	m, t, g := h.m, h.t, h.t.region
	o, e := h.out[s], g.peek(s)
	why := h.takesNothing(o.to)
	if why == "" && o.states && !takesStates(m, o.to) {
		why = "it speaks a version without states"
	}
	if why != "" {
		h.keepHere(s, why)
		return 0
	}
	if !m.live(o.to) {
		return 0 // it is removed in a moment: until then it may have it all
	}
	for o.sent < len(o.left) {
		n := min(len(o.left)-o.sent, sendPart)
		if o.have == 0 && len(o.left) > sendPart {
			if n = firstPart; o.sent > 0 {
				return sent // it has been asked for room
			}
		}
		if sent+n > room {
			return sent
		}
		m.post(o.to, transfer{head: m.head(t.id, o.number.Term), held: held{s, e.fence}, States: o.states,
			Seq: o.number.Seq, Total: uint32(len(o.left)), At: uint32(o.sent),
			Bytes: slices.Clone(o.left[o.sent : o.sent+n])})
		o.sent += n
		sent += n
	}
	return sent
}

// onPart takes a part of what the last owner of a shard did not work off.
func (h *handoffs) onPart(from peer.ID, p transfer) {
	m, g := h.m, h.t.region
	s := g.peek(p.Shard)
	a := transferAck{head: p.head, held: p.held, Seq: p.Seq}
	k, had := h.kept[p.Shard]
	switch {
	case had && k.fence == p.Fence:
		a.Have = p.Total
		m.post(from, a)
		return
	case s.host != notHosted || s.ending || p.Fence.Compare(s.ended) < 0 || had && k.fence.Compare(p.Fence) > 0,
		s.home != nil && p.Fence.Compare(s.fence) < 0:
		return // late, or before an end that this node has not reported: it is repeated
	}
	c := h.coming[p.Shard]
	if c != nil && c.fence.Compare(p.Fence) > 0 {
		return
	}
	if c == nil || c.fence != p.Fence || c.from != from || c.seq != p.Seq {
		h.dropParts(p.Shard)
		full := h.size+int(p.Total) > 4*m.cfg.MaxHandOver
		a.Refused = g.refused != nil || h.closed || int(p.Total) > m.cfg.MaxHandOver || full && !speaksCosts(m, from)
		if a.Refused || full {
			m.post(from, a) // without a refusal: later, nothing of it is here
			return
		}
		c = &coming{from: from, fence: p.Fence, seq: p.Seq, total: int(p.Total)}
		h.coming[p.Shard] = c
		h.size += c.total
	}
	if int(p.At) == len(c.bytes) && int(p.Total) == c.total {
		c.bytes = append(c.bytes, p.Bytes...)
	}
	if a.Have = uint32(len(c.bytes)); len(c.bytes) == c.total {
		h.dropParts(p.Shard)
		h.t.typical = learned(h.t.typical, c.total)
		h.put(p.Shard, kept{p.Fence, c.bytes})
	}
	m.post(from, a)
}

// onAck goes on with a transfer, or ends it.
func (h *handoffs) onAck(from peer.ID, a transferAck) {
	m, t, g := h.m, h.t, h.t.region
	o, s := h.out[a.Shard], g.peek(a.Shard)
	if o == nil || o.left == nil || o.to != from || s.fence != a.Fence || o.number != (Number{a.Term, a.Seq}) {
		return
	}
	switch {
	case a.Refused:
		h.keepHere(a.Shard, "it refused it")
	case int(a.Have) >= len(o.left):
		m.event(Event{Kind: MoveHandedOver, Type: t.id, Shard: a.Shard, Term: a.Term, Home: m.self, Fence: s.fence,
			To: o.to, Number: o.number})
		h.tellCost(a.Shard, len(o.left), o.began)
		h.give(a.Shard, o.to)
	case int(a.Have) > o.have:
		o.have, o.sent = int(a.Have), max(o.sent, int(a.Have))
		o.waiting.reset(m)
	case a.Have == 0 && o.have == 0:
		o.waiting.reset(m) // it has no room yet: it is asked again soon, for as long as that takes
		return
	}
	sendOn(m)
}

// Bounds of the pace.
const (
	firstPace    = 1 << 20   // bytes that moves may hand over at once, before it is known how long that takes
	leastPace    = 64 << 10  // the least of that; one move may always begin
	firstGuess   = 512 << 10 // what a move hands over, before the first one has shown it: two begin
	leastBytes   = 1 << 10   // what it counts for at least
	slowTransfer = time.Second
	fastTransfer = 250 * time.Millisecond
)

// pace is that of all moves that this node leads as a coordinator, of whatever type. The zero value is a first one.
type pace struct {
	window int           // bytes; zero: firstPace
	under  int           // that those under way are expected to hand over
	guess  int           // what a move of a type hands over of which nothing is known; zero: firstGuess
	shrunk time.Duration // when the window shrank last: moves from before tell nothing of the smaller one
	waits  bool
	freed  bool
}

func (p *pace) most() int {
	if p.window == 0 {
		return firstPace
	}
	return p.window
}

// release gives back the bytes of a move that is over.
func (p *pace) release(bytes int) {
	p.under -= bytes
	p.freed = true
}

// goOn makes all coordinators of this node begin what waited for moves that are over.
func (p *pace) goOn(m *Machine) {
	if !p.freed || !p.waits {
		return
	}
	p.freed, p.waits = false, false
	for t := range eachType(m) {
		if t.coord != nil {
			t.coord.moves.onward()
		}
	}
}

// follow takes note of how long the transfer of a move took. The window shrinks when it was slow, and had more to carry
// than one part: few bytes are slow for other reasons. It grows when it was fast behind moves that took up much of the
// window, to twice what was under way then and up to what a next owner surely has room for. A transfer that goes first
// is fast however much waits behind it.
func (p *pace) follow(n *move, now time.Duration, bytes int, took time.Duration, room int) {
	p.guess = learned(p.guess, bytes)
	switch {
	case took > slowTransfer:
		if bytes > sendPart && n.began >= p.shrunk {
			p.window, p.shrunk = max(p.most()/2, leastPace), now
		}
	case took < fastTransfer && 2*n.ahead > p.most():
		p.window = min(2*p.most(), 2*n.ahead, max(room, firstPace))
	}
}

// learned follows what moves hand over: up at once, down by and by.
func learned(typical, bytes int) int {
	bytes = max(bytes, leastBytes)
	if typical > bytes {
		return typical - (typical-bytes)/4
	}
	return bytes
}

// expected returns what a move of the type will hand over, as far as anybody can tell. A node that has given or taken
// shards of the type knows it when it becomes the coordinator: in a rolling restart that is a new one each time.
func (mv *moves) expected() int {
	switch {
	case mv.c.t.typical > 0:
		return mv.c.t.typical
	case mv.c.m.pace.guess > 0:
		return mv.c.m.pace.guess
	}
	return firstGuess
}

// crowded reports whether no more moves may begin before others are over. One may always be under way, and as many as
// hand over least bytes together.
func (mv *moves) crowded(least int) bool {
	p := &mv.c.m.pace
	if len(mv.under) >= mv.c.m.cfg.MaxMoves {
		return true
	}
	over := p.under > 0 && p.under+mv.expected() > max(p.most(), least)
	p.waits = p.waits || over
	return over
}

// hurry returns how many bytes the moves of a member may hand over at once however slow they are: of one that leaves
// half of the first pace, and twice as many after each DrainPatience. Its time ends, and states that have not moved are
// lost then.
func (mv *moves) hurry(p *client) int {
	m := mv.c.m
	if !p.drains {
		return 0
	}
	waited := (m.now - p.since) / m.cfg.DrainPatience
	return min(firstPace<<min(waited, 10)>>1, 2*m.cfg.MaxHandOver)
}

// cost takes the word of an owner on what a move handed over, before it says that the shard has stopped.
func (mv *moves) cost(from peer.ID, l moveCost) {
	n, r := mv.under[l.Shard], mv.c.records.Peek(l.Shard)
	if n == nil || n.seq != l.Seq || r.home.id != from || r.fence != l.Fence {
		return
	}
	m := mv.c.m
	mv.c.t.typical = learned(mv.c.t.typical, int(l.Bytes))
	m.pace.follow(n, m.now, int(l.Bytes), time.Duration(l.Took)*time.Millisecond, 2*m.cfg.MaxHandOver)
}

// leave gives back the bytes of all moves: this coordinator term is over.
func (mv *moves) leave() {
	for _, n := range mv.under { // a sum: the order does not show
		mv.c.m.pace.release(n.bytes)
	}
}

// tellCost tells the coordinator what the move of a shard handed over since that began; before its stop is confirmed.
func (h *handoffs) tellCost(s route.ShardID, bytes int, began time.Duration) {
	m, t, o := h.m, h.t, h.out[s]
	t.typical = learned(t.typical, bytes)
	if o.number.Term != t.promise.term || !m.live(t.promise.to) || !speaksCosts(m, t.promise.to) {
		return
	}
	took := min((m.now-began)/time.Millisecond, 1<<31)
	m.post(t.promise.to, moveCost{head: m.head(t.id, o.number.Term), held: held{s, h.t.region.peek(s).fence},
		Seq: o.number.Seq, Bytes: uint32(bytes), Took: uint32(took)})
}
