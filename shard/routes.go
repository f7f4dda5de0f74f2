// Routes: what a region believes about homes elsewhere, and how it stops believing it.

package shard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// regionView follows a new view: routes to lost members are forgotten, and the coordinator may be another.
func (m *Machine) regionView(t *typ, lost bool) {
	g := t.region
	if lost {
		for s, e := range g.slots.All {
			if e.home != nil && m.gone(*e.home) {
				m.forget(t, s)
			}
		}
		for id := range g.homes { // deletes only: the order does not show
			if m.gone(id) {
				delete(g.homes, id)
			}
		}
		for s, o := range g.hand.observed { // deletes only: the order does not show
			if m.gone(*o.at) {
				delete(g.hand.observed, s)
			}
		}
	}
	m.retarget(t)
}

// died takes proof that a member's process is gone. It counts as its leave notice, and beyond that: routes to it end,
// and it coordinates nothing any more, so the next oldest begins without waiting for the members to decide that it is
// Down. A stranger's is nothing to this node.
func (m *Machine) died(id peer.ID) {
	if m.view == nil || m.over || !m.past.prove(m.view, id) {
		return
	}
	for t := range eachType(m) {
		if t.region != nil {
			m.regionView(t, true)
		}
	}
	m.reviewAll()
}

// met reports whether id is a member of this node's view.
func (m *Machine) met(id peer.ID) bool {
	_, ok := m.view.Member(id)
	return ok
}

// gone reports whether id was a member and is Down, removed or proven dead. One that this node has not met yet is not
// gone.
func (m *Machine) gone(id peer.ID) bool {
	if mb, ok := m.view.Member(id); ok {
		return mb.Status == membership.Down || m.past.dead.Has(id)
	}
	l := m.past.lost(id)
	return l != nil && !l.learnt
}

// forget turns a route to unknown.
func (m *Machine) forget(t *typ, s route.ShardID) {
	if t.region.peek(s).state == RouteUnknown {
		return
	}
	e := t.region.slot(s)
	e.state, e.home = RouteUnknown, nil
	if e.host == notHosted {
		e.fence = route.Fence{}
	}
	m.out.Routes = append(m.out.Routes, RouteChange{Type: t.id, Shard: s, State: RouteUnknown})
	if t.region.eager.begun && !closing(m) {
		t.region.want(s)
	}
}

// Where returns where a shard lives and under which fence, as far as this node knows. One that moves counts as unknown.
func Where(m *Machine, id route.TypeID, s route.ShardID) (at peer.ID, f route.Fence, known bool) {
	t := typeOf(m, id)
	if t == nil || t.region == nil {
		return at, f, false
	}
	switch e := t.region.peek(s); {
	case e.state == RouteLocal:
		return m.self, e.fence, true
	case e.state == RouteRemote && e.home != nil:
		return *e.home, e.fence, true
	}
	return at, f, false
}

// NextHome returns the member that a shard is about to go to that lives here, else the one where it lives; zero where
// this node does not know.
func NextHome(m *Machine, id route.TypeID, s route.ShardID) peer.ID {
	if t := typeOf(m, id); t != nil && t.region != nil {
		if o := t.region.hand.out[s]; o != nil {
			return o.to
		}
	}
	if at, _, known := Where(m, id, s); known && at != m.self {
		return at
	}
	return peer.ID{}
}

// refused forgets a route that a receiver does not stand by.
func (m *Machine) refused(c RefusedCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region == nil || uint32(c.Shard) >= t.region.settings.Shards {
		return fmt.Errorf("%w: refusal of type %08x shard %d", ErrUnknownType, uint32(c.Type), c.Shard)
	}
	e := t.region.peek(c.Shard)
	if e.state == RouteRemote && e.fence.Term() == c.Term && e.fence.Epoch() == c.Epoch {
		m.forget(t, c.Shard)
	}
	return nil
}

// onHomes takes over homes. Its own shards are not taken from here: they are local once they are hosted. Homes under
// an ended or lower fence arrive late; homes on a member that this node saw lost, or has not met yet, are asked for
// again: nobody would tell this node of the end of one that it never knew, and what it had for it would wait for ever.
func (m *Machine) onHomes(t *typ, l homes) {
	g := t.region
	if g.refused != nil {
		return
	}
	since := Number{l.Term, l.Since}
	for _, e := range l.Entries {
		at, s := l.Peers[e.At], g.peek(e.Shard)
		g.hand.elsewhere(e.Shard, e.Fence)
		if g.hand.passes(e.Shard, e.Fence, since) || s.host != notHosted || at == m.self || !m.met(at) || m.gone(at) ||
			e.Fence.Compare(s.ended) <= 0 ||
			(s.state == RouteRemote || s.state == RouteMoving) && e.Fence.Compare(s.fence) < 0 ||
			s.state == RouteMoving && e.Fence == s.fence && since.Compare(s.moved) < 0 {
			continue
		}
		g.unwant(e.Shard)
		to := g.slot(e.Shard)
		if since.Compare(s.moved) > 0 {
			to.moved = since
		}
		if s.state == RouteRemote && s.fence == e.Fence {
			continue
		}
		to.state, to.home, to.fence = RouteRemote, g.homeAt(at), e.Fence
		m.out.Routes = append(m.out.Routes, RouteChange{Type: t.id, Shard: e.Shard, State: RouteRemote, Home: at,
			Fence: e.Fence})
	}
}

// onGone forgets homes that no longer hold, and acknowledges all.
func (m *Machine) onGone(t *typ, from peer.ID, l ownership) {
	for _, e := range l.Entries {
		if t.region.hand.passesGone(e.Shard, e.Fence, l.Term) {
			continue
		}
		s := t.region.slot(e.Shard)
		if s.host == notHosted {
			s.ended = maxFence(s.ended, e.Fence)
			if s.home != nil && s.fence.Compare(e.Fence) <= 0 {
				m.forget(t, e.Shard)
			}
		}
	}
	m.post(from, ownership{Kind: wire.KindHomesGoneAck, head: l.head, Entries: l.Entries})
}

func maxFence(a, b route.Fence) route.Fence {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// homeAt returns the region's one copy of an identity.
func (g *region) homeAt(at peer.ID) *peer.ID {
	id := g.homes[at]
	if id == nil {
		id = &at
		g.homes[at] = id
	}
	return id
}

// offers completes a registration with whether this node may be given shards. A coordinator that does not know of nodes
// which are not ready reads that this one does not host.
func offers(m *Machine, t *typ, to peer.ID, l register) register {
	if l.Hosts = m.hosts(t); l.Hosts && (t.region.unready || t.region.lingers.until != 0) {
		l.NotReady = speaksMoves(m, to)
		l.Hosts = l.NotReady
	}
	return l
}

// unanswered ends what was asked of a coordinator that is none any more, or began anew.
func unanswered(m *Machine, t *typ) {
	g := t.region
	for _, nonce := range slices.Sorted(maps.Keys(g.asked)) {
		m.out.Answers = append(m.out.Answers, MoveAnswer{t.id, nonce, fmt.Errorf(
			"%w: another coordinator begins, and nobody knows whether the move has begun", ErrNotCoordinator)})
	}
	g.asked = nil
}

// measureAt returns when the shards that live here are to be read next: at the pace of rounds, where the strategy reads
// loads, something lives here, and the coordinator understands. Zero is never.
func measureAt(m *Machine, t *typ) time.Duration {
	g, wait := t.region, m.cfg.RebalanceInterval
	if wait < 0 || !g.joined || g.hosted.Len() == 0 || !strategy.ReadsLoads(t.strategy) || !speaksMoves(m, g.to) {
		return 0
	}
	return max(t.measured+wait, 1)
}

func tickLoads(m *Machine, t *typ) {
	if at := measureAt(m, t); at > 0 && m.now >= at {
		t.measured = m.now
		m.out.Measure = append(m.out.Measure, t.id)
	}
}

// tellLoads carries out a LoadsCommand.
func tellLoads(m *Machine, c LoadsCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region.idle() {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(c.Type))
	}
	list, window := t.meter.Measure(m.now, c.Readings)
	g := t.region
	if window == 0 || !g.joined || !speaksMoves(m, g.to) {
		return nil
	}
	l := shardLoads{head: m.head(t.id, g.term), Window: uint32(min(window.Milliseconds()+1, math.MaxUint32)), First: true,
		Strains: g.to == m.self || m.cfg.Strains != nil && m.cfg.Strains(g.to)}
	if l.Strains {
		l.Node = c.Node
	}
	for ; len(list) > maxEntries; list = list[maxEntries:] {
		l.Entries = list[:maxEntries:maxEntries]
		m.post(g.to, l)
		l.First = false
	}
	l.Entries, l.Last = list, true
	m.post(g.to, l)
	return nil
}

// beEager wants all homes of a type from now on whenever they are unknown.
func beEager(m *Machine, id route.TypeID) error {
	t := typeOf(m, id)
	if t == nil || t.region == nil {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(id))
	}
	if g := t.region; g.refused == nil && g.eager.since == 0 {
		g.eager.since = m.now
		wantUnasked(m, g)
	}
	return nil
}

// wantUnasked wants what an eager region that has joined does not know. On a fresh start members that come Up together
// are waited for, a moment and not for ever: the first of them would be given all that is kept alive otherwise. A
// sender waits for nobody; nor does a type of one shard, nor a region of a running cluster.
func wantUnasked(m *Machine, g *region) {
	e := &g.eager
	e.at = 0
	if e.since == 0 || !g.joined || closing(m) {
		return
	}
	if !e.begun && g.settings.Shards > 1 {
		if at := m.comers.until(e.since, m.cfg.settles()); m.now < at {
			e.at = min(at, m.now+m.cfg.settles())
			return
		}
	}
	e.begun = true
	for s := range route.ShardID(g.settings.Shards) {
		g.want(s)
	}
}
