// Outbox: what a coordinator sends gathers during a verb and leaves in a few messages per member; what is not answered
// is repeated by one timer per member. Rounds of moves for balance begin on the same ticks (allocate.go says when).

package shard

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// flush sends what has gathered.
func (c *coordinator) flush() {
	c.moves.proceed()
	for _, p := range c.clients {
		c.sendGone(p, p.outGone)
		c.sendHomes(p, p.outHomes)
		c.sendOrders(p, wire.KindStopShards, p.outStop)
		c.sendOrders(p, wire.KindHostShards, p.outHost)
		if len(p.outGone)+len(p.outStop)+len(p.outHost)+len(p.outMove) > 0 {
			p.retry.start(c.m)
		}
		c.moves.flush(p)
		p.outGone, p.outHomes, p.outStop, p.outHost = p.outGone[:0], p.outHomes[:0], p.outStop[:0], p.outHost[:0]
	}
}

// tick repeats what is due.
func (c *coordinator) tick() {
	c.moves.balance()
	c.moves.drainAgain()
	for _, p := range c.clients {
		if p.retry.at == 0 || c.m.now < p.retry.at {
			continue
		}
		if !c.owed(p) {
			p.retry.stop()
			continue
		}
		if p.retry.due(c.m, p.id) {
			c.repeat(p)
		}
	}
}

// next returns the earliest repetition that is due.
func (c *coordinator) next() time.Duration {
	var d least
	d.add(c.moves.next())
	d.add(c.moves.again)
	for _, p := range c.clients {
		d.add(p.retry.at)
	}
	return d.at
}

// owed reports whether a client has something to answer.
func (c *coordinator) owed(p *client) bool {
	p.asked = p.asked && c.needs(p)
	return p.asked || p.open.Len() > 0 || len(p.gone) > 0 || c.moves.marking(p) ||
		slices.ContainsFunc(c.strays, func(s stray) bool { return s.owner == p })
}

func (c *coordinator) repeat(p *client) {
	if p.asked && !c.early() {
		c.sendQuestion(p)
	}
	for _, s := range c.strays {
		if s.owner == p {
			c.m.postHeld(p.id, wire.KindStopShards, c.m.head(c.t.id, c.term), []held{s.held})
		}
	}
	c.sendGone(p, slices.Sorted(maps.Keys(p.gone)))
	c.moves.repeat(p)
	if p.open.Len() == 0 {
		return
	}
	var host, stop []route.ShardID
	for s := range p.open.All {
		switch c.records.Peek(s).phase {
		case starting:
			host = append(host, s)
		case halting:
			stop = append(stop, s)
		}
	}
	c.sendOrders(p, wire.KindStopShards, stop)
	c.sendOrders(p, wire.KindHostShards, host)
}

// repeat sends the moves again that an owner has not answered, and those that a sender may not have marked: mail for
// which the courier had no room is lost, and the owner would wait in vain.
func (mv *moves) repeat(p *client) {
	for _, s := range slices.Sorted(maps.Keys(mv.under)) {
		if mv.c.records.Peek(s).home == p || mv.marks(p, s) {
			p.outMove = append(p.outMove, s)
		}
	}
}

// marks reports whether p was notified of the move of a shard and its marker may still be missing.
func (mv *moves) marks(p *client, s route.ShardID) bool {
	n := mv.under[s]
	return n.told.Has(p.id) && mv.c.m.now < n.began+mv.c.m.cfg.MarkTime
}

// marking reports whether p has such a marker to write.
func (mv *moves) marking(p *client) bool {
	for s := range mv.under { // any will do: the order does not show
		if mv.marks(p, s) {
			return true
		}
	}
	return false
}

// sendOrders sends orders that still hold: a shard that was given and taken within one verb is not given.
func (c *coordinator) sendOrders(p *client, k wire.Kind, shards []route.ShardID) {
	want := starting
	if k == wire.KindStopShards {
		want = halting
	}
	var list []held
	var kept []resumed
	for _, s := range shards {
		r := c.records.Peek(s)
		if r.home != p || r.phase != want {
			continue
		}
		e := resumed{held: held{s, r.fence}}
		if want == starting && speaksMoves(c.m, p.id) {
			e.Rest = c.moves.rest(s)
		}
		if e.Rest.IsZero() {
			list = append(list, e.held)
		} else {
			kept = append(kept, e)
		}
	}
	if len(list) > 0 {
		c.m.postHeld(p.id, k, c.m.head(c.t.id, c.term), list)
	}
	slices.SortFunc(kept, func(a, b resumed) int { return cmp.Compare(a.Shard, b.Shard) })
	for part := range slices.Chunk(slices.Compact(kept), maxEntries) {
		c.m.post(p.id, hostKept{c.m.head(c.t.id, c.term), slices.Clone(part)})
	}
}

func (c *coordinator) sendGone(p *client, shards []route.ShardID) {
	var list []held
	for _, s := range shards {
		if f, ok := p.gone[s]; ok {
			list = append(list, held{s, f})
		}
	}
	if len(list) > 0 {
		c.m.postHeld(p.id, wire.KindHomesGone, c.m.head(c.t.id, c.term), list)
	}
}

// sendHomes discloses homes in rising order, in as many messages as it takes. It sorts the list that it is given.
func (c *coordinator) sendHomes(p *client, shards []route.ShardID) {
	slices.Sort(shards)
	shards = slices.Compact(shards)
	for len(shards) > 0 {
		n := min(len(shards), maxEntries)
		l := homes{head: c.m.head(c.t.id, c.term)}
		if speaksMoves(c.m, p.id) {
			l.Since = c.t.moves
		}
		for _, s := range shards[:n] {
			if r := c.records.Peek(s); r.phase == alive {
				l.Peers = append(l.Peers, r.home.id)
				l.Entries = append(l.Entries, home{held: held{s, r.fence}})
			}
		}
		shards = shards[n:]
		if len(l.Entries) == 0 {
			continue
		}
		l.Peers = peer.SetOf(l.Peers...)
		for i := range l.Entries {
			l.Entries[i].At = uint32(l.Peers.Index(c.records.Peek(l.Entries[i].Shard).home.id))
		}
		c.m.post(p.id, l)
	}
}

// next returns when balance is looked at next, zero for never.
func (mv *moves) next() time.Duration {
	if !mv.c.ready || mv.c.m.cfg.RebalanceInterval < 0 {
		return 0
	}
	at := max(mv.rounds.at, 1) // at once the first time
	if rs := &mv.rounds; len(rs.plan) > 0 && rs.resume > mv.c.m.now {
		at = min(at, rs.resume)
	}
	return at
}

// balance begins a round of moves when it is time. Nothing moves for the sake of balance while moves are not allowed
// for another reason.
func (mv *moves) balance() {
	c, m, rs := mv.c, mv.c.m, &mv.rounds
	wait := m.cfg.RebalanceInterval
	if wait < 0 || !c.ready || rs.at != 0 && m.now < rs.at {
		return
	}
	if rs.at == 0 {
		rs.at = inStep(max(m.now+m.cfg.settles(), rs.calm), m.cfg.settles())
		return
	}
	follows := rs.follows
	rs.at, rs.follows = inStep(m.now+wait, wait), false
	if len(rs.plan) > 0 { // the last round is not over
		mv.proceed()
		return
	}
	if !follows && rs.began == 0 {
		rs.tried.Clear()
	}
	if mv.allowed() != nil {
		if soon := m.cfg.settles(); m.now < rs.calm+settleMost*soon {
			rs.at = inStep(m.now+soon, soon) // the version of a new member may not be known yet
		}
		return
	}
	v := mv.view()
	if v.Holds() != 0 || mv.placing.even(v) {
		return
	}
	v.Limit = mv.longest(v)
	list, err := mv.placing.guard().Rebalance(mv.full(v))
	mv.placing.note(err)
	rs.plan = slices.DeleteFunc(list, func(n strategy.Move) bool { return rs.tried.Has(n.Shard) })
	if len(rs.plan) > 0 {
		rs.began, rs.done, rs.failed = m.now, 0, 0
	}
	mv.proceed()
}

// longest returns how many moves one round may have: as many as may be under way at once, or a fiftieth of the shards,
// for a round looks at all of them, and a type of very many must not be looked at for every few. A strategy that reads
// loads waits behind each round until they are measured anew: in one it may fill regions that have nothing yet, for
// their share is plain.
func (mv *moves) longest(v *strategy.View) int {
	most := max(mv.c.m.cfg.MaxMoves, int(v.Shards/50))
	if s, _ := mv.placing.registered(); !strategy.ReadsLoads(s) {
		return most
	}
	owned, empty := 0, 0
	for i := range v.Regions {
		if r := &v.Regions[i]; r.Eligible() {
			if owned += r.Count; r.Count == 0 {
				empty++
			}
		}
	}
	return max(most, min(owned*empty/max(len(v.Regions), 1), maxFill))
}

// maxFill bounds what those that have nothing are given in one round: a plan of so many moves is made in one step.
const maxFill = 1000

// proceed begins what is left of a round, a part at a time, as far as there is room. What may not move any more is left
// out, and all of it when nothing may.
func (mv *moves) proceed() {
	c, rs := mv.c, &mv.rounds
	if len(rs.plan) == 0 {
		rs.left = 0
	}
	if rs.part != 0 && rs.left == 0 {
		if len(mv.heirs) > 0 || !mv.idle() {
			return
		}
		rs.resume, rs.part = c.m.now+max(pauseBehind(c.m.now-rs.part), c.m.cfg.BatchDelay), 0
		if rs.failed > 0 && rs.done == 0 {
			rs.plan = nil // the rest would fare no better
		}
	}
	if len(rs.plan) == 0 {
		mv.ended()
		return
	}
	if c.m.now < rs.resume || mv.crowded(0) {
		return
	}
	if rs.part == 0 {
		rs.part, rs.left = c.m.now, partOf(c.settings.Shards)
	}
	v := mv.view()
	if v.Holds() != 0 {
		rs.plan = nil
	}
	for len(rs.plan) > 0 && rs.left > 0 {
		err := mv.allowed()
		if errors.Is(err, ErrTooManyMoves) || err == nil && mv.crowded(0) {
			return
		}
		if err != nil {
			rs.plan = nil
			return
		}
		n := rs.plan[0]
		rs.plan = rs.plan[1:]
		r, to := c.records.Peek(n.Shard), v.Region(n.To)
		if r.phase == alive && r.home.id == n.From && to != nil && to.Eligible() {
			rs.tried.Add(n.Shard)
			rs.left--
			mv.begin(n.Shard, n.To)
		}
	}
}

// ended plans the look that follows a round when all of its moves are over, those included that have stopped and not
// begun elsewhere. A strategy that reads loads is asked at its interval alone: what it would see is from before.
func (mv *moves) ended() {
	m, rs := mv.c.m, &mv.rounds
	if rs.began == 0 || len(mv.heirs) > 0 || !mv.idle() {
		return
	}
	rs.began = 0
	pause := max(rs.resume-m.now, m.cfg.BatchDelay)
	switch {
	case rs.failed == 0:
		rs.fruit = 0
	case rs.done > 0:
		rs.fruit, pause = 0, max(pause, failPause)
	default:
		pause = max(pause, failPause<<min(rs.fruit, 10))
		rs.fruit++
	}
	pause = min(pause, m.cfg.RebalanceInterval)
	if rs.failed > 0 {
		rs.rest = m.now + pause
	}
	if s, _ := mv.placing.registered(); strategy.ReadsLoads(s) {
		return
	}
	rs.at, rs.follows = max(m.now+pause, rs.calm), m.now >= rs.calm
}

// idle reports whether nothing moves but what is stuck.
func (mv *moves) idle() bool {
	for s := range mv.under { // a question: the order does not show
		if !mv.stuck(s) {
			return false
		}
	}
	return true
}

// round returns how many shards a round would move now, and why none does. It counts nothing.
func (mv *moves) round() (moves int, held strategy.Hold) {
	v := mv.view()
	if held = v.Holds(); held != 0 {
		return 0, held
	}
	v.Limit = mv.longest(v)
	s, _ := mv.placing.registered()
	list, _ := strategy.Check(s).Rebalance(mv.full(v))
	return len(list), 0
}

// stuckAfter is how long a move may take before the balance goes on without its shard.
const stuckAfter = time.Minute

// stuck reports whether a shard moves and will not have moved soon: its stop call hangs, say. Strategies wait for moves
// that are under way, so the others of the type would wait as long as that one.
func (mv *moves) stuck(s route.ShardID) bool {
	n := mv.under[s]
	return n != nil && mv.c.m.now >= n.began+stuckAfter
}

// full completes a view for a rebalance: with the shards of each region, their loads, and the moves under way, but for
// those that are stuck: their shards are no region's then.
func (mv *moves) full(v *strategy.View) *strategy.View {
	for _, s := range slices.Sorted(maps.Keys(mv.under)) {
		if !mv.stuck(s) {
			v.Moving = append(v.Moving, strategy.Move{Shard: s, From: mv.c.records.Peek(s).home.id, To: mv.under[s].to})
		}
	}
	mv.placing.list(v)
	if len(v.Moving) < len(mv.under) {
		for i := range v.Regions {
			r := &v.Regions[i]
			r.Shards = slices.DeleteFunc(r.Shards, mv.stuck)
			r.Count = len(r.Shards)
		}
	}
	return v
}
