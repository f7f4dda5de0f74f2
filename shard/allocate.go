// Allocation: which region gets a shard, and which shards move for balance, as the type's strategy says (SHD-6).

package shard

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// faultPause is how long nothing is told of further faults of a type's strategy after one was: they are counted.
const faultPause = time.Second

// placing asks a type's strategy on behalf of its coordinator. Whatever the strategy answers passes the guard first.
// What is wrong is counted and told of, and disturbs nothing else: a shard gets its home by LeastShards then, and a
// round moves nothing.
type placing struct {
	c      *coordinator
	at     time.Duration   // when balance is looked at next; 0: not yet
	plan   []strategy.Move // what is left of a round
	again  bool            // it was longer than what may be under way at once: the next one follows at once
	moved  time.Duration   // when a move ended last; 0: none has
	untold int             // faults since the last that was told
	quiet  time.Duration   // until then none is told
	plain  *strategy.Checked
}

// registered returns the strategy of the type as it is registered on this node, and false where the type is not, or
// not under the settings of this reign.
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
// nothing, and may be given nothing by their own word, are left out. One that has not promised to this reign may be
// given nothing either.
func (p *placing) regions() *strategy.View {
	c, m := p.c, p.c.m
	v := &strategy.View{Now: m.now, Shards: c.settings.Shards, Limit: m.cfg.MaxMoves, Moved: p.moved,
		Hold: strategy.HoldOf(m.view.Members, m.view.Unreachable)}
	if word, ok := m.view.MetadataValue(PauseKey); ok && len(word) > 0 {
		v.Hold |= strategy.Paused
	}
	for _, cl := range c.clients { // sorted by identity
		if mb, in := m.view.Member(cl.id); in && (cl.hosts || cl.owns.Len() > 0) {
			v.Regions = append(v.Regions, strategy.Region{ID: cl.id, Status: mb.Status, AppVersion: mb.AppVersion,
				UpNumber: mb.UpNumber, Unreachable: !m.view.Reachable(cl.id), NotReady: cl.unready, Count: cl.owns.Len(),
				Draining: cl.drains || !cl.hosts || !cl.full() || m.past.leaveNotices.Has(cl.id),
				Load:     cl.page.Sum, Measured: min(cl.page.Count, cl.owns.Len())})
		}
	}
	return v
}

// list completes a view with the shards of each region, in the order of their fences, which is that of allocation, and
// with their loads, if all regions that have some have told them: once over all shards, for a rebalance alone.
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

// even reports whether a round of the default strategy would move nothing because no region has two shards more than
// another, which is seen without a list of the shards.
func (p *placing) even(v *strategy.View) bool {
	s, _ := p.registered()
	if _, least := s.(strategy.LeastShards); s != nil && !least {
		return false
	}
	few, many := 1<<31, 0
	for i := range v.Regions {
		if r := &v.Regions[i]; r.Eligible() {
			few, many = min(few, r.Count), max(many, r.Count)
		}
	}
	return many-few < 2
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

// note counts a fault and tells of it, and reports whether there was one.
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
