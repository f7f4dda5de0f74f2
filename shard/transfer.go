// Transfers: what the owner of a shard that moves did not work off goes to the next one, in parts, and is kept there
// until the shard comes. The owner's confirmation names the holder, and a report does so to a new coordinator. Beside
// that, moves that pass by: of shards that a region has nothing to do with, and for which it makes no place.

package shard

import (
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// handoffs is what a region knows of moves.
type handoffs struct {
	m         *Machine
	t         *typ
	closed    bool                        // nothing is to be hosted here any more
	out       map[route.ShardID]*handoff  // shards that leave
	early     map[route.ShardID]*marks    // of shards that live here: markers of a move that is not heard of yet
	coming    map[route.ShardID]*coming   // parts that have come
	kept      map[route.ShardID]kept      // what is to be handled here when the shard comes
	size      int                         // bytes of coming and kept
	handedOff map[route.ShardID]handedOff // of what was handed over last: the answer to an order that is repeated

	observed map[route.ShardID]observedMove // moves of shards that are none of this region's; at most 4 * MaxMoves
	newest   Number                         // of those, and of the homes that were passed over: an older home is late
}

// observedMove is a move of a shard that this region has no place for: it has marked, and not heard that the move is
// over.
type observedMove struct {
	number   Number
	fence    route.Fence // of the home that the shard leaves
	at, next *peer.ID
}

// marks are markers of one move.
type marks struct {
	number Number
	got    peer.Set
}

// handoff is a shard that leaves this node.
type handoff struct {
	marks
	to      peer.ID
	need    peer.Set
	due     time.Duration // when it is given up, unless all have marked
	stops   bool          // all have: the stop is ordered, and it cannot be given up any more
	left    []byte        // what is handed over; nil before the stop
	states  bool          // some are in left
	sent    int
	have    int // bytes that the next owner has
	waiting timer
	began   time.Duration // of the transfer
}

// coming is a transfer of which parts have come.
type coming struct {
	from  peer.ID
	fence route.Fence
	seq   uint32
	total int
	bytes []byte
}

// kept is what is handled first when its shard comes to live here.
type kept struct {
	fence route.Fence // of the owner that handed it over
	bytes []byte
}

// handedOff names the receiver of what was left of an ownership. It is remembered until a later home is known: the next
// coordinator may have no other source.
type handedOff struct {
	held
	seq uint32
	to  peer.ID
}

func newHandoffs(m *Machine, t *typ) *handoffs {
	return &handoffs{m: m, t: t, out: map[route.ShardID]*handoff{}, early: map[route.ShardID]*marks{},
		coming: map[route.ShardID]*coming{}, kept: map[route.ShardID]kept{}, handedOff: map[route.ShardID]handedOff{},
		observed: map[route.ShardID]observedMove{}}
}

// next returns the earliest deadline of a move.
func (h *handoffs) next() time.Duration {
	var d least
	for _, o := range h.out { // the least of all: the order does not show
		if !o.stops {
			d.add(o.due)
		}
		d.add(o.waiting.at)
	}
	return d.at
}

// leaving returns the shards that leave, rising.
func (h *handoffs) leaving() []route.ShardID {
	if len(h.out) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(h.out))
}

// lose gives up what has not been handed over of a shard that is lost. Once all of it was sent nobody here knows
// whether the next owner has it.
func (h *handoffs) lose(s route.ShardID) {
	if o := h.out[s]; o != nil && o.left != nil {
		h.m.out.Untaken = append(h.m.out.Untaken, Untaken{Type: h.t.id, Shard: s, Left: o.left,
			Unsure: o.sent == len(o.left)})
	}
	h.forget(s)
}

// endHanding gives up everything that is under way: this node ends.
func endHanding(m *Machine) {
	for t := range eachType(m) {
		if g := t.region; g != nil {
			for _, s := range g.hand.leaving() {
				g.hand.lose(s)
			}
			g.hand.dropAll()
		}
	}
}

// forget ends what is known of a shard's leaving: it is stopped in another way, or lost.
func (h *handoffs) forget(s route.ShardID) {
	delete(h.out, s)
	delete(h.early, s)
}

// put keeps a transfer until the shard comes.
func (h *handoffs) put(s route.ShardID, k kept) {
	h.drop(s)
	h.size += len(k.bytes)
	h.kept[s] = k
}

// drop gives up what is kept of a shard: it is not handled here. Its sender may have handled it, if the acknowledgement
// did not reach it.
func (h *handoffs) drop(s route.ShardID) {
	m, t := h.m, h.t
	if k, is := h.kept[s]; is {
		m.out.Untaken = append(m.out.Untaken, Untaken{Type: t.id, Shard: s, Left: k.bytes, Unsure: true})
		h.size -= len(k.bytes)
		delete(h.kept, s)
	}
	h.dropParts(s)
}

// dropAll has everything refused that is kept: nothing is to be hosted here any more.
func (h *handoffs) dropAll() {
	h.closed = true
	for _, s := range slices.Sorted(maps.Keys(h.kept)) {
		h.drop(s)
	}
	for s := range h.coming { // deletes only: the order does not show
		h.dropParts(s)
	}
}

// dropParts forgets the parts that have come of a transfer.
func (h *handoffs) dropParts(s route.ShardID) {
	if c := h.coming[s]; c != nil {
		h.size -= c.total
		delete(h.coming, s)
	}
}

// elsewhere follows the news that a shard lives elsewhere under a fence: what is kept for it comes too late.
func (h *handoffs) elsewhere(s route.ShardID, f route.Fence) {
	if k, is := h.kept[s]; is && k.fence.Compare(f) < 0 {
		h.drop(s)
	}
	if c := h.coming[s]; c != nil && c.fence.Compare(f) < 0 {
		h.dropParts(s)
	}
	if o, is := h.handedOff[s]; is && o.Fence.Compare(f) < 0 {
		delete(h.handedOff, s)
	}
}

// parkAt parks what is sent to a shard until its move is over. An eager region asks for the home at once: the word that
// the move is over may be lost, and nobody sends there.
func (h *handoffs) parkAt(s route.ShardID, o observedMove) {
	e := h.t.region.slot(s)
	e.state, e.home, e.fence, e.moved = RouteMoving, o.at, o.fence, o.number
	h.m.out.Routes = append(h.m.out.Routes, RouteChange{Type: h.t.id, Shard: s, State: RouteMoving, Home: *o.at,
		Fence: o.fence, Next: *o.next})
	if g := h.t.region; g.eager.begun && !closing(h.m) {
		g.want(s)
	}
}

// isBystander reports whether a shard is none of this region's: nothing is known of it, its home is not wanted, and
// this node may not host it. A node that may host keeps what it hears of homes: so it tells a late transfer from the
// last rest.
func (h *handoffs) isBystander(s route.ShardID) bool {
	g := h.t.region
	self, in := h.m.view.SelfMember()
	return in && !self.HasRole(g.settings.Role) && !g.wanted.Has(s) && g.peek(s) == slot{ended: g.late}
}

// recordMove takes a move of a shard that is none of this region's without a place for it, if there is room: its marker
// is true already, for nothing was ever sent there.
func (h *handoffs) recordMove(s route.ShardID, o observedMove) bool {
	h.heard(o.number)
	if _, is := h.observed[s]; !is && len(h.observed) >= 4*h.m.cfg.MaxMoves {
		return false
	}
	h.observed[s] = o
	return true
}

// passes reports whether a home, of a shard of which nothing is known here, is to be passed over: it is none of this
// region's, or older than a move that this region has marked for one like it.
func (h *handoffs) passes(s route.ShardID, f route.Fence, since Number) bool {
	g := h.t.region
	if g.peek(s) != (slot{ended: g.late}) {
		return false
	}
	if !h.isBystander(s) {
		return since.Compare(h.newest) < 0
	}
	h.heard(since)
	if o, is := h.observed[s]; is && (since.Compare(o.number) >= 0 || f.Compare(o.fence) > 0) {
		delete(h.observed, s)
	}
	return true
}

// passesGone is passes for a home that no longer holds.
func (h *handoffs) passesGone(s route.ShardID, f route.Fence, term uint32) bool {
	if !h.isBystander(s) {
		return false
	}
	h.heard(Number{term, 0})
	if o, is := h.observed[s]; is && f.Compare(o.fence) >= 0 {
		delete(h.observed, s)
	}
	return true
}

// heard notes the newest number. Moves of an earlier coordinator term are over, or their owner gives them up when it
// promises.
func (h *handoffs) heard(n Number) {
	if n.Term > h.newest.Term {
		clear(h.observed)
	}
	if n.Compare(h.newest) > 0 {
		h.newest = n
	}
}

// joins gives a shard that is wanted from now on its place in a move that would have passed by.
func (h *handoffs) joins(s route.ShardID) {
	if o, is := h.observed[s]; is {
		delete(h.observed, s)
		h.parkAt(s, o)
	}
}

// take hands over what is kept for a shard that begins to live here, if it is the rest that its order names. Another
// lies here since the shard went on without it.
func (h *handoffs) take(e resumed) (left []byte) {
	if h.keeps(e) {
		left = h.kept[e.Shard].bytes
		h.size -= len(left)
		delete(h.kept, e.Shard)
	}
	h.drop(e.Shard)
	delete(h.handedOff, e.Shard)
	return left
}

// keeps reports whether the rest is kept here that an order to host names.
func (h *handoffs) keeps(e resumed) bool {
	k, is := h.kept[e.Shard]
	return is && k.fence == e.Rest
}

// outdates reports whether an order to host is late: what is kept here is of a later owner.
func (h *handoffs) outdates(e held) bool {
	k, is := h.kept[e.Shard]
	return is && k.fence.Compare(e.Fence) >= 0
}

// rests is what a report says of one part of the shard space: what is kept here, and the receivers of what was handed
// over.
type rests struct {
	kept []held
	gave []handedOff
}

// restsOf lists it, rising.
func (h *handoffs) restsOf(part int) (r rests) {
	for _, s := range slices.Sorted(maps.Keys(h.kept)) {
		if int(s)>>partShift == part {
			r.kept = append(r.kept, held{s, h.kept[s].fence})
		}
	}
	for _, s := range slices.Sorted(maps.Keys(h.handedOff)) {
		if int(s)>>partShift == part && h.handedOff[s].to != h.m.self {
			r.gave = append(r.gave, h.handedOff[s])
		}
	}
	return r
}

// add adds the next part to a report.
func (g *register) add(r rests) {
	g.Kept = append(g.Kept, r.kept...)
	if len(r.gave) == 0 {
		return
	}
	at := make([]peer.ID, 0, len(g.Gave)+len(r.gave))
	for _, e := range g.Gave {
		at = append(at, g.Holders[e.At])
	}
	for _, e := range r.gave {
		g.Gave, at = append(g.Gave, home{held: e.held}), append(at, e.to)
	}
	g.Holders = peer.SetOf(at...)
	for i := range g.Gave {
		g.Gave[i].At = uint32(g.Holders.Index(at[i]))
	}
}

// halting appends those of a list of owned shards that are stopping: in moves, which no member begins that knows of one
// without moves, and other stops if all is set: the receiver understands them.
func (g *region) halting(owned []held, list []route.ShardID, all bool) []route.ShardID {
	for _, e := range owned {
		if g.peek(e.Shard).host == stopping && (all || g.hand.out[e.Shard] != nil) {
			list = append(list, e.Shard)
		}
	}
	return list
}
