// Where shards may be given and moved to: none is given to a region that has said that it is not ready, and nothing
// moves for balance while that is paused (SHD-6). Both bind a coordinator from when it knows of it. But an heir gets
// its shard ready or not: it has what the last owner did not work off, or may have it, and nobody else can begin with
// that.

package check

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// words are what a member has said of itself: of the stream from it to itself what holds, of one to another what that
// one knows by the registrations that came.
type words struct {
	unready map[route.TypeID]time.Duration // since when
	coming  []word
	drains  bool // once: a process that drains, or has, gives its shards away whatever the balance
}

// word is what the registration says that is message number at of its stream.
type word struct {
	at      int
	typ     route.TypeID
	unready bool
}

// heard takes note that so many messages of the stream have come.
func (x *words) heard(now time.Duration, got int) {
	for len(x.coming) > 0 && x.coming[0].at <= got {
		x.set(now, x.coming[0].typ, x.coming[0].unready)
		x.coming = x.coming[1:]
	}
}

func (x *words) set(now time.Duration, t route.TypeID, unready bool) {
	if x.unready == nil {
		x.unready = map[route.TypeID]time.Duration{}
	}
	if _, is := x.unready[t]; !unready {
		delete(x.unready, t)
	} else if !is {
		x.unready[t] = now
	}
}

// bind reports whether they bind a process that knows of them, as to a region that is not ready. A word that came in
// the very step does not yet: what comes in one step is all heard before its events, and an event may be of an earlier
// message.
func (x *words) bind(now time.Duration, t route.TypeID) bool {
	since, is := x.unready[t]
	return is && since < now
}

// said takes a registration that a process sends as the last message of a stream.
func said(c *Checker, p *world.Process, s *sentMessages, body []byte) {
	r := wire.NewReader(wire.KindRegister, body)
	r.U64() // the birth of the cluster
	t := route.TypeID(r.U32())
	_, unready := c.stream(p.ID, p.ID).words.unready[t]
	s.words.coming = append(s.words.coming, word{len(s.sent), t, unready})
}

// Declares carries out a word of a process about its region of a type: what it sends from then on says so.
func Declares(c *Checker, p *world.Process, t route.TypeID, ready bool, carryOut func() error) {
	own := &c.stream(p.ID, p.ID).words
	_, was := own.unready[t]
	own.set(c.w.Now, t, !ready)
	if carryOut() != nil {
		own.set(c.w.Now, t, was)
	}
}

// Drains carries out the word that a process drains: one that coordinates begins moves in that step.
func Drains(c *Checker, p *world.Process, carryOut func() error) {
	own := &c.stream(p.ID, p.ID).words
	was := own.drains
	own.drains = true
	if carryOut() != nil {
		own.drains = was
	}
}

// MovedByHand notes that somebody wants a shard moved to a process, now or when the word comes to its coordinator.
func MovedByHand(c *Checker, key world.ShardKey, to peer.ID) {
	x := &c.owner(key).placing
	x.byHand = append(x.byHand, to)
}

// placing is where a shard goes.
type placing struct {
	byHand []peer.ID
	heirs  heirs
	last   lastMove
}

// lastMove is the last move that began of a shard.
type lastMove struct {
	began time.Duration
	end   shard.EventKind // MoveDone, MoveAborted or MoveReturned, zero while it goes on
}

// follow follows what a coordinator says of moves.
func (x *lastMove) follow(now time.Duration, e *shard.Event) {
	switch e.Kind {
	case shard.MoveBegan:
		*x = lastMove{began: now}
	case shard.MoveDone, shard.MoveAborted, shard.MoveReturned:
		x.end = e.Kind
	}
}

// LastMove returns when the last move of a shard began, and how it ended: zero while it goes on.
func LastMove(c *Checker, key world.ShardKey) (began time.Duration, end shard.EventKind) {
	x := &c.owner(key).placing.last
	return x.began, x.end
}

// given: a shard is given to no region of which its coordinator knows that it is not ready, unless what the last owner
// did not work off lies there: since it was handed over to it, or was not taken from it.
func given(c *Checker, p *world.Process, e *shard.Event) {
	x := &c.owner(world.ShardKey{Type: e.Type, Shard: e.Shard}).placing
	if !x.heirs.due(c, e) && c.stream(e.Home, p.ID).words.bind(c.w.Now, e.Type) {
		c.Violate(p, "readiness", "%s is given to %s, which has said that it is not ready",
			c.w.ShardName(e.Type, e.Shard), c.w.Name(e.Home))
	}
}

// moves: none begins to a region that is not ready, and for balance none while that is paused.
func moves(c *Checker, p *world.Process, e *shard.Event) {
	x := &c.owner(world.ShardKey{Type: e.Type, Shard: e.Shard}).placing
	name := c.w.ShardName(e.Type, e.Shard)
	if c.stream(e.To, p.ID).words.bind(c.w.Now, e.Type) {
		c.Violate(p, "readiness", "%s moves to %s, which has said that it is not ready", name, c.w.Name(e.To))
	}
	if word, _ := p.View.MetadataValue(shard.PauseKey); len(word) > 0 && !slices.Contains(x.byHand, e.To) &&
		!givesBack(c, e.Type, e.Home) {
		c.Violate(p, "paused", "%s moves from %s to %s though the balance is paused", name, c.w.Name(e.Home),
			c.w.Name(e.To))
	}
}

// givesBack reports whether a process gives its shards of a type away by itself.
func givesBack(c *Checker, t route.TypeID, id peer.ID) bool {
	q := c.w.ProcessOf(id)
	if q == nil || q.View == nil || q.Leaving || c.stream(id, id).words.drains {
		return true
	}
	r := q.Region(t)
	m, is := q.View.SelfMember()
	return r == nil || r.Refused != nil || !is || !m.HasRole(r.Role())
}

// heirs are those of one shard.
type heirs struct {
	from, to peer.ID // of the last move that began
	term     uint32  // of its coordinator; zero once the owner may hand over: then any later term may learn the holder
	list     []heir
	holder   peer.ID // the holder of what the owner under this fence did not work off, as that owner has said last
	gave     route.Fence
}

// heir has what an owner handed over, or could not hand over.
type heir struct {
	id    peer.ID
	maybe bool        // the last move is to it: it has that only if the owner was lost on the way
	spent uint32      // the latest term in which the shard was given to it for that, or began anywhere
	past  uint32      // likewise the latest of a coordinator that was too late: one of a later term had given it away
	began route.Fence // under which it has begun with it
}

// of returns what a process is to the shard, nil when it is none.
func (x *heirs) of(id peer.ID) *heir {
	if i := x.index(id); i >= 0 {
		return &x.list[i]
	}
	return nil
}

func (x *heirs) index(id peer.ID) int {
	return slices.IndexFunc(x.list, func(h heir) bool { return h.id == id })
}

func (x *heirs) drop(id peer.ID) {
	if i := x.index(id); i >= 0 {
		x.list = slices.Delete(x.list, i, i+1)
	}
}

// put makes a process an heir, of what is left now and nothing else.
func (x *heirs) put(h heir) {
	x.drop(h.id)
	x.list = append(x.list, h)
}

// follow follows what is said of a move.
func (x *heirs) follow(e *shard.Event) {
	h := x.of(e.To)
	switch e.Kind {
	case shard.MoveBegan:
		x.from, x.to, x.term = e.Home, e.To, e.Term
		x.list = slices.DeleteFunc(x.list, func(h heir) bool { return h.maybe })
		x.put(heir{id: e.To, maybe: true})
	case shard.MoveMarked:
		if e.Home == x.from && e.To == x.to {
			x.term = 0
		}
	case shard.MoveAborted:
		if h != nil && h.maybe {
			x.drop(e.To)
		}
	case shard.MoveHandedOver:
		x.drop(e.Home)
		if h = x.of(e.To); h == nil || h.began.Compare(e.Fence) < 0 { // else the acknowledgement came late
			x.put(heir{id: e.To})
		}
		if x.gave.Compare(e.Fence) < 0 {
			x.holder, x.gave = e.To, e.Fence
		}
	}
}

// RestLost reports whether what the owner of a shard under f did not work off need not come to p: that owner, or the
// holder as last reported, is lost for the side of p, or p for its side. When that began is all the same: an owner that
// has been lost hands over as long as it has not heard of it.
func RestLost(c *Checker, p, owner peer.ID, key world.ShardKey, f route.Fence) bool {
	x := &c.owner(key).placing.heirs
	return c.pairs.apart(p, owner) || x.gave.Compare(f) >= 0 && c.pairs.apart(p, x.holder)
}

// Keeps gets an owner with a shard that has stopped for a move with something left: it is the owner's until it has
// handed it over.
func (c *Checker) Keeps(p *world.Process, key world.ShardKey) {
	c.owner(key).placing.heirs.put(heir{id: p.ID})
}

// begins follows a shard that begins to live at a process: what others have is old now, for this coordinator term.
func (x *heirs) begins(p *world.Process, f route.Fence) {
	for i := range x.list {
		h := &x.list[i]
		if h.id == p.ID && h.began.IsZero() {
			h.began = f
		}
		h.spent = max(h.spent, f.Term())
	}
}

// due reports whether a shard that is given away goes to an heir, which is due once in a coordinator term: one that
// does not take it then gets it as anyone does. Where the coordinator runs on the heir, that has begun in the very
// step. A coordinator that has not heard of its successor yet knows nothing of what that has given away.
func (x *heirs) due(c *Checker, e *shard.Event) bool {
	h := x.of(e.Home)
	switch {
	case h == nil:
		return false
	case e.Term < h.spent && h.past < e.Term && (h.began.IsZero() || h.began.Term() > e.Term):
		h.past = e.Term
	case h.began != e.Fence && (!h.began.IsZero() || h.spent >= e.Term):
		return false
	default:
		h.spent = e.Term
	}
	return !h.maybe || (x.term == 0 || x.term == e.Term) && silenced(c, x.from)
}

// silenced reports whether a coordinator may give up to hear of a process: it is dead, has left, or somebody lost it.
func silenced(c *Checker, id peer.ID) bool {
	q := c.w.ProcessOf(id)
	_, lost := c.gone[id]
	return q == nil || !q.Alive || c.leaveNotices[id] || lost
}

// AtMostOne lists shards of a type that live at two nodes, those that know nothing of their end counted apart.
func (c *Checker) AtMostOne(typ route.TypeID, shards uint32) (twice, notTold int) {
	for s := range shards {
		o := c.owners[world.ShardKey{Type: typ, Shard: route.ShardID(s)}]
		if o == nil {
			continue
		}
		live := 0
		for _, h := range o.hosting {
			if _, down := c.gone[h.Process.ID]; down {
				notTold++
			} else {
				live++
			}
		}
		if live > 1 {
			twice++
		}
	}
	return twice, notTold
}
