// Outbox: what a coordinator sends gathers during a verb and leaves in a few messages per member; what is not answered
// is repeated by one timer per member. The balance of shards is looked at on the same ticks.

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
	for _, p := range c.clients {
		d.add(p.retry.at)
	}
	return d.at
}

// owed reports whether a client has something to answer.
func (c *coordinator) owed(p *client) bool {
	p.asked = p.asked && c.needs(p)
	return p.asked || p.open.Len() > 0 || len(p.gone) > 0 ||
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
	c.moves.repeat(p)
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

// balance begins a round of moves, at most once in an interval, or at once behind a long round. Nothing moves for the
// sake of balance while moves are not allowed for another reason.
func (mv *moves) balance() {
	c, m, p := mv.c, mv.c.m, &mv.placing
	wait := m.cfg.RebalanceInterval
	if wait < 0 || !c.ready || p.at != 0 && m.now < p.at {
		return
	}
	first := p.at == 0
	// In step with other types, so that a node that coordinates thousands wakes up for all of them a few times.
	step := max(wait/4, 1)
	p.at = (m.now + wait + step - 1) / step * step
	if len(p.plan) > 0 { // the last round is not over
		mv.proceed()
		return
	}
	if first || mv.allowed() != nil {
		return
	}
	v := mv.view()
	if v.Holds() != 0 || p.even(v) {
		return
	}
	v.Limit = mv.longest()
	list, err := p.guard().Rebalance(mv.full(v))
	p.note(err)
	p.plan, p.again = list, false
	mv.proceed()
}

// longest returns how many moves one round may have: as many as may be under way at once, or a fiftieth of the shards,
// for a round looks at all of them, and a type of very many must not be looked at for every few.
func (mv *moves) longest() int { return max(mv.c.m.cfg.MaxMoves, int(mv.c.settings.Shards/50)) }

// proceed begins what is left of a round, as far as there is room. What may not move any more is left out, and all of
// it when nothing may. Behind a round that was longer than there was room for, balance is looked at at once: such a
// type would have its interval again and again otherwise.
func (mv *moves) proceed() {
	c, p := mv.c, &mv.placing
	if len(p.plan) == 0 {
		if p.again && len(mv.under) == 0 {
			p.again, p.at = false, c.m.now
		}
		return
	}
	if mv.crowded(0) {
		p.again = true
		return
	}
	v := mv.view()
	if v.Holds() != 0 {
		p.plan = nil
	}
	for len(p.plan) > 0 {
		err := mv.allowed()
		if errors.Is(err, ErrTooManyMoves) || err == nil && mv.crowded(0) {
			p.again = true
			return
		}
		if err != nil {
			p.plan = nil
			return
		}
		n := p.plan[0]
		p.plan = p.plan[1:]
		r, to := c.records.Peek(n.Shard), v.Region(n.To)
		if r.phase == alive && r.home.id == n.From && to != nil && to.Eligible() {
			mv.begin(n.Shard, n.To)
		}
	}
}

// round returns how many shards a round would move now, and why none does. It counts nothing.
func (mv *moves) round() (moves int, held strategy.Hold) {
	v := mv.view()
	if held = v.Holds(); held != 0 {
		return 0, held
	}
	v.Limit = mv.longest()
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
// those that are stuck, whose shards are nobody's then.
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
