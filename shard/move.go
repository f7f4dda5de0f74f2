// Moves, as the coordinator of a type leads them: a shard leaves an owner that lives, and nothing of what is sent to it
// is lost or overtaken.
//
// It stops disclosing the home, tells all members that know it to park and to mark, and tells the owner which markers
// to wait for. The owner answers that it has given the move up (then the home is disclosed again), or that it has
// stopped, and which member has what was not worked off: that one gets the shard, else the move's target. Either gets
// it at once, not on demand. The rest is as for any shard: a new fence, a confirmation, and only then is the home
// disclosed. No time limit frees a shard here: while the owner's answer is missing, the coordinator waits for its
// removal and the takeover time, as for any other shard.

package shard

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// moves are those of one coordinator term.
type moves struct {
	c     *coordinator
	under map[route.ShardID]*move
	heirs map[route.ShardID]heir
	back  map[route.ShardID]comeback
	again time.Duration // when the first of them may move again for which a member that empties waits; 0: none does

	placing placing
	rounds  rounds
}

// move is one that is under way: its record is moving.
type move struct {
	seq   uint32
	to    peer.ID
	told  peer.Set
	began time.Duration
	bytes int // that it is expected to hand over, or has
	ahead int // those of it and of the moves that were under way when it began
}

// heir is the member that gets a shard at once when it is free.
type heir struct {
	id    peer.ID
	keeps bool        // it has what the last owner did not work off, or may have it
	fence route.Fence // of that owner
	given route.Fence // under which it was given the shard
	seq   uint32      // of the move, if this term began it
	from  peer.ID
	to    peer.ID       // likewise: its target
	began time.Duration // likewise
	ended time.Duration // when its owner had stopped
}

func newMoves(c *coordinator) *moves {
	return &moves{c: c, under: map[route.ShardID]*move{}, heirs: map[route.ShardID]heir{},
		back: map[route.ShardID]comeback{}, placing: placing{c: c}}
}

// allowed reports whether a move may begin now.
func (mv *moves) allowed() error {
	c := mv.c
	if !c.ready || c.t.coord != c {
		return ErrNotCoordinator
	}
	if c.m.confirm.held || c.early() {
		return ErrUnstable
	}
	for _, mb := range c.m.view.Members {
		switch {
		case mb.Status == membership.Down || mb.Status == membership.PreparingForShutdown ||
			mb.Status == membership.ReadyForShutdown || !c.m.view.Reachable(mb.ID):
			return fmt.Errorf("%w: %s", ErrUnstable, mb.ID)
		case !speaksMoves(c.m, mb.ID):
			return fmt.Errorf("%w: %s", ErrOldPeer, mb.ID)
		}
	}
	if len(mv.under) >= c.m.cfg.MaxMoves || c.t.moves == 1<<32-1 {
		return fmt.Errorf("%w: %d", ErrTooManyMoves, len(mv.under))
	}
	return nil
}

// begin begins a move that is allowed, of a shard that is alive.
func (mv *moves) begin(s route.ShardID, to peer.ID) {
	c, r := mv.c, mv.c.records.At(s)
	c.t.moves++
	r.enter(c, s, moving)
	r.home.outMove = append(r.home.outMove, s)
	n := &move{seq: c.t.moves, to: to, began: c.m.now, bytes: mv.expected()}
	c.m.pace.under += n.bytes
	n.ahead = c.m.pace.under
	for _, p := range c.clients {
		// Under a new coordinator term every member counts as notified, except one that had not registered the type when it
		// reported.
		knew := r.inherited && (p.knows || !p.full() || p.other != (Settings{}))
		if p != r.home && (!c.m.met(p.id) || !knew && !p.told.Has(s)) {
			continue
		}
		p.wants.Add(s) // what it parks meanwhile waits for the next home
		c.pending.Add(s)
		if p == r.home {
			continue
		}
		n.told.Add(p.id)
		p.told.Add(s)
		p.outMove = append(p.outMove, s)
	}
	mv.under[s] = n
	mv.event(MoveBegan, s, r.home.id, n)
}

func (mv *moves) event(k EventKind, s route.ShardID, from peer.ID, n *move) {
	c := mv.c
	switch k {
	case MoveBegan:
		c.m.moves.Begun++
	case MoveDone:
		c.m.moves.Done++
	case MoveAborted:
		c.m.moves.Aborted++
	case MoveReturned:
		c.m.moves.Returned++
	}
	c.m.event(Event{Kind: k, Type: c.t.id, Shard: s, Term: c.term, Home: from, Fence: c.records.Peek(s).fence, To: n.to,
		Number: Number{c.term, n.seq}})
}

// flush notifies the owner, and the members that know the home, of the moves that gathered for p.
func (mv *moves) flush(p *client) {
	c := mv.c
	slices.Sort(p.outMove)
	l := placement{Kind: wire.KindMoveShards, head: c.m.head(c.t.id, c.term)}
	var at, to []peer.ID
	for _, s := range slices.Compact(p.outMove) {
		n, r := mv.under[s], c.records.Peek(s)
		switch {
		case n == nil:
		case r.home == p:
			c.m.post(p.id, moveShard{head: l.head, held: held{s, r.fence}, Seq: n.seq, Target: n.to, Told: n.told.Clone()})
		case n.told.Has(p.id):
			l.Entries = append(l.Entries, placed{home: home{held: held{s, r.fence}}, Seq: n.seq})
			at, to = append(at, r.home.id), append(to, n.to)
		}
	}
	p.outMove = p.outMove[:0]
	if len(l.Entries) > 0 { // fewer than maxEntries: MaxMoves bounds them
		l.end(at, to)
		c.m.post(p.id, l)
	}
}

// aborted takes an owner's word that it has given moves up: members that parked are sent the home again. A leaver or
// draining member says again soon that it gives its shards back.
func (mv *moves) aborted(from peer.ID, list []placed) {
	c := mv.c
	for _, e := range list {
		r, n := c.records.Peek(e.Shard), mv.under[e.Shard]
		if n == nil || n.seq != e.Seq || r.home.id != from || r.fence != e.Fence {
			continue
		}
		mv.event(MoveAborted, e.Shard, from, n)
		mv.rounds.came(e.Shard, false)
		mv.over(e.Shard)
		c.confirm(e.Shard)
	}
	c.serve()
}

// moved takes the word of an owner that has stopped shards and names the holder of what was not worked off.
func (mv *moves) moved(from peer.ID, l placement) {
	list := make([]held, len(l.Entries))
	for i, e := range l.Entries {
		list[i] = e.held
		if r := mv.c.records.Peek(e.Shard); r.phase != free && r.home.id == from && r.fence == e.Fence {
			mv.inherit(r.home, e.Shard, heir{id: l.Peers[e.At], keeps: true, fence: e.Fence})
		}
	}
	mv.c.onStopped(from, list)
}

// inherit notes the holder of what an owner under a fence did not work off, as by says. Of two such words the one about
// the later fence counts, and none counts beside a later owner.
func (mv *moves) inherit(by *client, s route.ShardID, h heir) {
	if have, is := mv.heirs[s]; is && have.keeps && have.fence.Compare(h.fence) > 0 {
		return
	}
	if r := mv.c.records.Peek(s); r.phase != free && r.fence.Compare(h.fence) > 0 {
		mv.c.disclose(by, s) // it learns that the shard lives without that
		return
	}
	mv.heirs[s] = h
}

// rest returns the fence of the previous owner with a rest that the starting owner is to take up; zero when there is
// none.
func (mv *moves) rest(s route.ShardID) route.Fence {
	if h, is := mv.heirs[s]; is && h.given == mv.c.records.Peek(s).fence {
		return h.fence
	}
	return route.Fence{}
}

// released follows the end of an ownership: what was moving has stopped.
func (mv *moves) released(s route.ShardID, r record, stopped bool) {
	if h, is := mv.heirs[s]; is && h.given == r.fence {
		delete(mv.heirs, s) // it does not take it: the shard goes to a member that wants it
	}
	h, is := mv.heirs[s]
	n := mv.under[s]
	switch {
	case n == nil && !is:
		return
	case !is: // of one that is lost nobody may know that it has handed over
		h = heir{id: n.to, keeps: !stopped}
	}
	if n != nil {
		h.seq, h.from, h.to, h.began, h.ended = n.seq, r.home.id, n.to, n.began, mv.c.m.now
		mv.over(s)
	}
	h.fence = maxFence(h.fence, r.fence)
	mv.heirs[s] = h
}

// confirmed follows the confirmation of a home. A shard that is where it was has not moved.
func (mv *moves) confirmed(s route.ShardID) {
	h, is := mv.heirs[s]
	delete(mv.heirs, s)
	if !is || h.seq == 0 || mv.c.records.Peek(s).home.id != h.from {
		delete(mv.back, s)
	}
	if !is || h.seq == 0 {
		return
	}
	now, took, home := mv.c.m.now, &mv.c.m.moves, mv.c.records.Peek(s).home.id
	mv.placing.moved = now
	mv.rounds.came(s, home != h.from)
	if home == h.from {
		mv.cameBack(s)
		mv.event(MoveReturned, s, home, &move{seq: h.seq, to: h.to})
		return
	}
	took.Held.add(h.ended - h.began)
	took.Started.add(now - h.ended)
	mv.event(MoveDone, s, h.from, &move{seq: h.seq, to: home})
}

// serve gives free shards to their heirs; one that its heir cannot take goes to any other.
func (mv *moves) serve() {
	c := mv.c
	if len(mv.heirs) == 0 {
		return
	}
	v := mv.view()
	for _, s := range slices.Sorted(maps.Keys(mv.heirs)) {
		if c.records.Peek(s).phase != free {
			continue
		}
		h := mv.heirs[s]
		to := v.Region(h.id)
		switch i, known := c.find(h.id); {
		case h.keeps && known && c.m.live(h.id) && c.clients[i].full() && !c.m.past.leaveNotices.Has(h.id),
			known && to != nil && to.Eligible():
			c.moves.give(s, c.clients[i])
			if to != nil {
				to.Count++
				to.Coming--
			}
		case h.keeps && c.m.met(h.id): // it is Down, and gone in a moment
		default:
			if to != nil {
				to.Coming--
			}
			mv.settle(v, s)
		}
		if r := c.records.Peek(s); r.phase == starting {
			h.given = r.fence
			mv.heirs[s] = h
		}
	}
}

// settle gives a free shard to the region that the strategy chooses, if there is one.
func (mv *moves) settle(v *strategy.View, s route.ShardID) {
	if to, p := mv.placing.choose(v, s); p != nil {
		to.Count++
		mv.give(s, p)
	}
}

// view is what a strategy is shown to allocate.
func (mv *moves) view() *strategy.View {
	v := mv.placing.regions()
	if mv.c.m.confirm.held || mv.c.m.confirm.lapsed || mv.c.early() {
		v.Hold |= strategy.Unstable
	}
	for _, n := range mv.under { // counts only: the order does not show
		if to := v.Region(n.to); to != nil {
			to.Coming++
		}
	}
	for s, h := range mv.heirs { // those that are free count nowhere yet; counts only: the order does not show
		if to := v.Region(h.id); to != nil && mv.c.records.Peek(s).phase == free {
			to.Coming++
		}
	}
	return v
}

// over ends a move, however it ended.
func (mv *moves) over(s route.ShardID) {
	mv.c.m.pace.release(mv.under[s].bytes)
	delete(mv.under, s)
	mv.placing.moved = mv.c.m.now
}

// give orders a member to host a shard that is free.
func (mv *moves) give(s route.ShardID, p *client) {
	c := mv.c
	if c.t.epoch == 1<<32-1 {
		return // four thousand million ownerships in one term: the next coordinator continues
	}
	c.t.epoch++
	f := route.MakeFence(c.m.view.Birth, c.term, c.t.epoch)
	r := c.records.At(s)
	*r = record{home: p, fence: f}
	r.enter(c, s, starting)
	c.owned++
	p.outHost = append(p.outHost, s)
	c.m.event(Event{Kind: ShardAllocated, Type: c.t.id, Shard: s, Term: c.term, Home: p.id, Fence: f})
}

// review looks again at what may move: what could not before may now.
func (mv *moves) review() {
	mv.onward()
	mv.rounds.watch(mv.c, mv.placing.hold() != 0 || mv.c.m.confirm.lapsed)
}

// onward moves on what waited for other moves to end.
func (mv *moves) onward() {
	c := mv.c
	for _, p := range c.clients {
		if p.drains || p.stays() {
			c.moves.drain(p)
		}
	}
}

// drain moves away what a member has that gives it back, as far as moves are allowed. It keeps the rest until it says
// so again, or a move has ended; but what a leaver has, and nobody can be given, is stopped.
func (mv *moves) drain(p *client) {
	c := mv.c
	if !c.ready || p.owns.Len() == p.open.Len()-p.starts || !c.m.live(p.id) {
		return // nothing can move yet; or it has nothing but what stops or moves already, or is lost
	}
	halts := p.drains && mv.nobodyTakes(p)
	if !halts && mv.allowed() != nil {
		return
	}
	v := mv.view()
	takes := slices.ContainsFunc(v.Regions, anyEligible)
	if !halts && !takes {
		return
	}
	least := mv.hurry(p)
	for s := range p.owns.All {
		r := c.records.Peek(s)
		if r.phase != alive && r.phase != starting {
			continue
		}
		if h, is := mv.heirs[s]; is && h.given == r.fence {
			continue // it has what is left of the shard, and lets it go when it has begun
		}
		if !halts && mv.lingers(s) {
			continue
		}
		if mv.crowded(least) && r.phase == alive {
			return // this one and the rest when others are over
		}
		var to *strategy.Region
		if r.phase == alive && takes && mv.allowed() == nil {
			to, _ = mv.placing.choose(v, s) // none: the strategy wants it to wait
		}
		switch {
		case to == nil && halts:
			c.haltShard(s)
		case to == nil:
		default:
			mv.begin(s, to.ID)
			to.Coming++
		}
	}
}

// stays reports whether the member gives its shards back though it does not leave: it goes on serving what it has.
func (p *client) stays() bool { return p.knows && !p.hosts && !p.drains }
