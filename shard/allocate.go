// Allocation: which region gets a shard, and which shards move for balance and when, as the type's strategy says
// (SHD-6).
//
// While there is a gap a round of moves follows the last one as soon as its moves are over. It begins in parts, each
// behind a pause that grows with what the moves of the last one took: so a machine, or a network, that is slow is left
// more time. After a round in which moves came to nothing the pause is longer. When all is even the balance is looked
// at each RebalanceInterval, and soon after something has changed that may unbalance the regions: which of them may be
// given shards, or what held the balance. When several members come Up together it waits a moment, or shards would move
// to the first and on from there.

package shard

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/sparse"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// faultPause is how long further faults of a type's strategy are only counted after one was reported.
const faultPause = time.Second

// placing asks a type's strategy on behalf of its coordinator. Whatever the strategy answers passes the guard first.
// What is wrong is counted and reported, and disturbs nothing else: a shard gets its home by LeastShards then, and a
// round moves nothing.
type placing struct {
	c      *coordinator
	moved  time.Duration // when a move ended last; 0: none has
	untold int           // faults since the last that was reported
	quiet  time.Duration // until then none is reported
	plain  *strategy.Checked
}

// registered returns the strategy of the type as it is registered on this node, and false where the type is not, or
// not under the settings of this coordinator term.
func (p *placing) registered() (s strategy.Strategy, ok bool) {
	t := p.c.t
	if t.region.idle() || t.region.settings != p.c.settings {
		return nil, false
	}
	return t.strategy, true
}

// guard returns the strategy under guard.
func (p *placing) guard() *strategy.Checked {
	s, ok := p.registered()
	switch t := p.c.t; {
	case ok && t.guard == nil:
		t.guard = strategy.Check(s)
		return t.guard
	case ok:
		return t.guard
	case p.plain == nil:
		p.plain = strategy.Check(nil)
	}
	return p.plain
}

// regions is what a strategy is shown to allocate, but for moves: it costs nothing by the shard. Regions that own
// nothing, and may be given nothing by their own word, are left out. One that has not promised to this coordinator term
// may be given nothing either.
func (p *placing) regions() *strategy.View {
	c, m := p.c, p.c.m
	v := &strategy.View{Now: m.now, Shards: c.settings.Shards, Limit: m.cfg.MaxMoves, Moved: p.moved, Hold: p.hold()}
	for _, cl := range c.clients { // sorted by identity
		if mb, in := m.view.Member(cl.id); in && (cl.hosts || cl.owns.Len() > 0) {
			v.Regions = append(v.Regions, strategy.Region{ID: cl.id, Status: mb.Status, AppVersion: mb.AppVersion,
				UpNumber: mb.UpNumber, Unreachable: !m.view.Reachable(cl.id), NotReady: cl.unready, Count: cl.owns.Len(),
				Draining: cl.drains || !cl.hosts || !cl.full() || m.past.leaveNotices.Has(cl.id),
				Load:     cl.page.Sum, Measured: min(cl.page.Count, cl.owns.Len()), Node: cl.page.Node})
		}
	}
	return v
}

// hold returns why nothing may move for balance, as the members and the operator have it.
func (p *placing) hold() strategy.Hold {
	v := p.c.m.view
	h := strategy.HoldOf(v.Members, v.Unreachable)
	if word, ok := v.MetadataValue(PauseKey); ok && len(word) > 0 {
		h |= strategy.Paused
	}
	return h
}

// list completes a view with the shards of each region, in the order of their fences, which is that of allocation, and
// with their loads, if all regions that have shards have reported theirs: once over all shards, for a rebalance alone.
func (p *placing) list(v *strategy.View) *strategy.View {
	p.weigh(v)
	for _, cl := range p.c.clients {
		r := v.Region(cl.id)
		if r == nil {
			continue
		}
		owned := make([]held, 0, r.Count)
		for s := range cl.owns.All {
			owned = append(owned, held{s, p.c.records.Peek(s).fence})
		}
		slices.SortFunc(owned, func(a, b held) int {
			return cmp.Or(a.Fence.Compare(b.Fence), cmp.Compare(a.Shard, b.Shard))
		})
		r.Shards = make([]route.ShardID, len(owned))
		for i := range owned {
			r.Shards[i] = owned[i].Shard
		}
	}
	return v
}

// weigh completes a view with loads.
func (p *placing) weigh(v *strategy.View) {
	s, _ := p.registered()
	if !strategy.ReadsLoads(s) {
		return
	}
	weights := make([]strategy.Load, v.Shards)
	for _, cl := range p.c.clients {
		switch r := v.Region(cl.id); {
		case r == nil || r.Count == 0:
			continue
		case cl.page.Since == 0:
			return // nobody knows what its shards cost
		case v.Since == 0 || cl.page.Since < v.Since:
			v.Since = cl.page.Since
		}
		for s, l := range cl.page.Loads { // each goes to its place: the order does not show
			if cl.owns.Has(s) {
				weights[s] = l
			}
		}
	}
	v.Loads = weights
}

// even reports whether a round of LeastShards would move nothing because no region has that many shards more than
// another, which is seen without a list of the shards.
func (p *placing) even(v *strategy.View) bool {
	s, _ := p.registered()
	least, ok := s.(strategy.LeastShards)
	if s != nil && !ok {
		return false
	}
	few, many := 1<<31, 0
	for i := range v.Regions {
		if r := &v.Regions[i]; r.Eligible() {
			few, many = min(few, r.Count), max(many, r.Count)
		}
	}
	return least.Even(many, few)
}

// choose returns the region that a shard without a home, or one that leaves its home, is to get; nil when there is
// none. The caller notes in the view what becomes of it.
func (p *placing) choose(v *strategy.View, s route.ShardID) (*strategy.Region, *client) {
	id, err := p.guard().Allocate(v, s)
	if p.note(err) {
		p.c.m.placed.Fallbacks++
	}
	i, known := p.c.find(id)
	if !known {
		return nil, nil
	}
	return v.Region(id), p.c.clients[i]
}

// note counts a fault and reports it, and reports whether there was one.
func (p *placing) note(err error) bool {
	var fault *strategy.FaultError
	if !errors.As(err, &fault) {
		return false
	}
	c, m := p.c, p.c.m
	p.untold++
	m.placed.Faults++
	if m.now >= p.quiet {
		m.event(Event{Kind: StrategyFault, Type: c.t.id, Term: c.term, Home: m.self, Shards: p.untold, Err: err})
		p.untold, p.quiet = 0, m.now+faultPause
	}
	return true
}

func anyEligible(r strategy.Region) bool { return r.Eligible() }

// rounds are those of one coordinator term.
type rounds struct {
	at      time.Duration   // when balance is looked at next; 0: not yet
	plan    []strategy.Move // what is left of a round
	began   time.Duration   // when the round under way began; 0: none is
	part    time.Duration   // when the part of it under way began; 0: none is
	left    int             // moves that may begin in that part yet
	resume  time.Duration   // when the part behind it may begin, or the next round
	done    int             // moves that have ended meanwhile, and came about
	failed  int             // that did not
	fruit   int             // rounds in a row of which none came about
	follows bool            // the next look follows a round
	tried   sparse.Set      // shards that moved in the rounds that have followed each other: none moves again in them

	stirred time.Duration // when something changed first, of the changes that are waited for together
	calm    time.Duration // when they are waited for no longer
	rest    time.Duration // nothing moves for balance before
	held    bool          // the members hold the balance
}

// Parts of rounds.
const (
	leastPart = 8   // moves that begin together
	partShare = 125 // or one of so many shards where that is more
	// longPause is up to how long the pause behind a part is twice as long as its moves took.
	longPause = 50 * time.Millisecond
)

// partOf returns how many moves of a round begin together, of a type of so many shards. Their messages wait, and those
// of other shards for the processor that the moves take.
func partOf(shards uint32) int { return max(leastPart, int(shards/partShare)) }

// pauseBehind returns how long nothing begins behind moves that took so long together. On a loaded machine each of
// their steps waits for a core, and so does everything beside them: it is left two thirds of the time. What takes
// longer than that waits for a network.
func pauseBehind(took time.Duration) time.Duration { return max(took/2, min(2*took, longPause)) }

// watch follows what may unbalance the regions: which of them may be given shards, and what holds the balance. The look
// that follows waits until nothing has changed for a moment, but not for ever.
func (rs *rounds) watch(c *coordinator, held bool) {
	m := c.m
	changed := false
	for _, p := range c.clients {
		mb, _ := m.view.Member(p.id)
		may := mb.Status.Working() && p.hosts && !p.unready && !p.drains && p.full() && m.view.Reachable(p.id)
		changed = changed || may != p.may
		p.may = may
	}
	changed = changed || rs.held && !held
	if rs.held = held; !changed {
		return
	}
	wait := m.cfg.settles()
	if m.now >= rs.calm {
		rs.stirred = m.now
	}
	rs.calm = min(m.now+wait, rs.stirred+settleMost*wait)
	rs.follows = false
	if rs.at != 0 { // else this term is not ready yet, or has not looked
		rs.at = inStep(max(rs.calm, rs.rest), wait)
	}
}

// inStep puts off a look until the other types of a node are looked at, too: one that coordinates thousands wakes up
// for all of them a few times.
func inStep(at, wait time.Duration) time.Duration {
	step := max(wait/4, 1)
	return (at + step - 1) / step * step
}

// came counts a move that is over for the round under way. One that failed may be tried again in those that follow.
func (rs *rounds) came(s route.ShardID, about bool) {
	if about {
		rs.done++
		return
	}
	rs.failed++
	rs.tried.Remove(s)
}
