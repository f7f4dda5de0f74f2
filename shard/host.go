// Hosting: a region carries out the orders of the coordinator that it gave its promise to, and reports what it owns.

package shard

import (
	"cmp"
	"slices"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// onReportWanted promises to refuse everything below the floor and reports what lives here. It is answered by every
// member, registered or not: one that knows nothing of the type owns nothing of it, and its promise counts as much.
// One that goes by other settings promises nothing.
func (m *Machine) onReportWanted(t *typ, from peer.ID, w reportWanted) {
	if !m.agrees(t, from, w) {
		return
	}
	before := t.promise
	m.raise(t, w.Term, from, w.Floor)
	t.promise.settings = w.Settings
	g := t.region
	if g != nil && g.refused == nil && (before.term != t.promise.term || before.floor != t.promise.floor) {
		// A new coordinator term: what was registered and asked before is not known to it. The report registers again.
		m.retarget(t)
		if g.to == from {
			g.joined = false
			unanswered(m, t)
			g.asking.stop()
			g.retry.reset(m)
		}
	}
	m.report(t, from, w)
}

// reportNothing answers for a type that this node has no room to remember. It promises what it cannot break: types are
// never forgotten, so this one can neither be registered nor coordinated here.
func (m *Machine) reportNothing(to peer.ID, w reportWanted) {
	m.full++
	l := register{head: m.head(w.Type, w.Term), Settings: w.Settings, Report: true, Floor: w.Floor, Mask: ^uint64(0)}
	if w.WantPast {
		l.HasPast, l.Past = true, m.tell(to, maxPeers)
	}
	m.post(to, l)
}

// report sends what lives here, packed so that each message is complete for the parts of the shard space that its mask
// names. Parts may be answered at different times: under the promise a set of owned shards only shrinks.
func (m *Machine) report(t *typ, to peer.ID, w reportWanted) {
	l := register{head: m.head(t.id, w.Term), Settings: w.Settings, Report: true, Floor: w.Floor}
	if w.WantPast {
		l.HasPast, l.Past = true, m.tell(to, maxPeers)
	}
	if t.region == nil {
		l.Mask = ^uint64(0)
		m.post(to, l)
		return
	}
	g := t.region
	l.Settings, l.Knows = g.settings, true
	l = offers(m, t, to, l)
	first := 0
	for part := 0; uint32(part)<<partShift < g.slots.Shards(); part++ {
		owned, all := g.owned(part), speaksMoves(m, to)
		var rest rests
		if all {
			rest = g.hand.restsOf(part)
		}
		if max(len(l.Owned)+len(owned), len(l.Kept)+len(rest.kept), len(l.Gave)+len(rest.gave)) > maxEntries {
			l.Mask = parts(first, part)
			m.post(to, l)
			l.Owned, l.Stopping, l.Kept, l.Holders, l.Gave = nil, nil, nil, nil, nil
			l.HasPast, l.Past, first = false, recentlyLost{}, part
		}
		l.Owned, l.Stopping = append(l.Owned, owned...), g.halting(owned, l.Stopping, all)
		l.add(rest)
	}
	l.Mask = parts(first, 64)
	m.post(to, l)
}

// parts returns the mask of the parts from first to the one before end.
func parts(first, end int) uint64 {
	mask := ^uint64(0) << first
	if end < 64 {
		mask &= 1<<end - 1
	}
	return mask
}

// owned lists the shards of one part that live here, stopping ones included.
func (g *region) owned(part int) []held {
	var list []held
	for s := range g.hosted.From(route.ShardID(part) << partShift) {
		if int(s)>>partShift != part {
			break
		}
		list = append(list, held{s, g.peek(s).fence})
	}
	return list
}

// obeys reports whether an order is under the very promise that this node gave in its report. An order of a term that
// was never promised cannot be true to what this node owns.
func (m *Machine) obeys(t *typ, from peer.ID, h head) bool {
	if t.promise.term == h.Term && t.promise.to == from && !t.promise.floor.IsZero() {
		return true
	}
	m.refuse(t.id, h.Term, from, 0, route.Fence{})
	return false
}

// onHost makes shards live here. Every way out is safe to repeat: a shard that lives under the fence is confirmed
// again, one that may not live here under it is answered as stopped, and never will.
// On a suspended node nothing starts: the order is repeated.
func (m *Machine) onHost(t *typ, from peer.ID, h head, list []resumed) {
	if m.confirm.held || !m.obeys(t, from, h) {
		return
	}
	g, hosts := t.region, m.hosts(t)
	for _, e := range list {
		s := g.slot(e.Shard)
		switch {
		case s.host == hosted && s.fence == e.Fence:
			g.started = append(g.started, e.held)
		case e.Fence.Compare(t.promise.floor) < 0, s.host != notHosted && e.Fence != s.fence:
			m.refuse(t.id, h.Term, from, e.Shard, e.Fence)
		case s.host == stopping, s.ending:
			// The answer follows when the runtime has stopped it; of what was given up the order is repeated until then.
		case e.Fence.Compare(s.ended) <= 0, g.hand.outdates(e.held), !hosts && (m.leave.done || !g.hand.keeps(e)):
			s.ended = maxFence(s.ended, e.Fence)
			g.stopped = append(g.stopped, e.held)
		default:
			m.host(t, e)
			m.drainRegion(t) // it has what is left of the shard, and nobody else could begin with it
			g.started = append(g.started, e.held)
		}
	}
}

func (m *Machine) host(t *typ, e resumed) {
	s := t.region.slot(e.Shard)
	s.state, s.host, s.home, s.fence = RouteLocal, hosted, nil, e.Fence
	t.region.hosted.Add(e.Shard)
	t.region.unwant(e.Shard)
	m.out.Hosts = append(m.out.Hosts, HostOrder{Type: t.id, Shard: e.Shard, Fence: e.Fence,
		Left: t.region.hand.take(e)})
	m.out.Routes = append(m.out.Routes, RouteChange{Type: t.id, Shard: e.Shard, State: RouteLocal, Home: m.self,
		Fence: e.Fence})
}

// onStop stops shards. What does not live here under that fence never will: it is answered at once.
func (m *Machine) onStop(t *typ, from peer.ID, l ownership) {
	if !m.obeys(t, from, l.head) {
		return
	}
	g := t.region
	for _, e := range l.Entries {
		s := g.slot(e.Shard)
		switch {
		case s.host != notHosted && s.fence == e.Fence:
			m.stop(t, e.Shard)
		default:
			if s.host == notHosted {
				s.ended = maxFence(s.ended, e.Fence)
				if s.home != nil && s.fence.Compare(s.ended) <= 0 {
					m.forget(t, e.Shard)
				}
			}
			if f, is := g.hand.handedOff[e.Shard]; is && f.held == e {
				t.region.hand.tellMoved(f)
			} else if s.host == notHosted || s.fence.Compare(e.Fence) > 0 {
				g.stopped = append(g.stopped, e)
			}
		}
	}
}

// stop tells the runtime to stop a shard that lives here. From now on messages for it are parked.
func (m *Machine) stop(t *typ, s route.ShardID) {
	if t.region.peek(s).host != hosted {
		return
	}
	e := t.region.slot(s)
	e.host = stopping
	t.region.hand.forget(s)
	m.out.Hosts = append(m.out.Hosts, HostOrder{Type: t.id, Shard: s, Fence: e.fence, Stop: true, Leaving: m.leave.begun})
	m.forget(t, s)
}

// stopped takes the runtime's word that a shard has stopped. Repetitions and shards that were abandoned are ignored.
func (m *Machine) stopped(c StoppedCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region == nil || uint32(c.Shard) >= t.region.settings.Shards {
		return ErrUnknownType
	}
	e := t.region.slot(c.Shard)
	if e.ending && c.Fence.Compare(e.ended) <= 0 {
		e.ending = false
		return nil
	}
	if e.host != stopping || e.fence != c.Fence {
		return nil
	}
	if o := t.region.hand.out[c.Shard]; o != nil && o.stops && o.left == nil {
		t.region.hand.tellCost(c.Shard, 0, m.now)
	}
	t.region.stopped = append(t.region.stopped, held{c.Shard, e.fence})
	t.region.hand.ended(c.Shard)
	return nil
}

// abandon gives everything up: this incarnation was downed or removed. The runtime stops without waiting.
func (m *Machine) abandon() {
	m.over = true
	for t := range eachType(m) {
		if t.coord != nil {
			m.endCoordinator(t)
		}
		g := t.region
		if g == nil {
			continue
		}
		for s, e := range g.slots.All {
			if e.host != notHosted {
				m.abandonShard(HostOrder{Type: t.id, Shard: s, Fence: e.fence, Stop: true, Abandon: true})
				e.host = notHosted
			}
			m.forget(t, s)
		}
		for _, s := range g.hand.leaving() {
			g.hand.lose(s)
		}
		g.hand.dropAll()
		*g = region{settings: g.settings, refused: g.refused, slots: g.slots, late: g.late, homes: map[peer.ID]*peer.ID{},
			hand: newHandoffs(m, t)}
	}
	m.local = nil
}

// abandonShard orders a shard's end. One with a start ordered in this step does not begin to live: the view that the
// runtime is shown before it carries the orders out says already that this node is Down.
func (m *Machine) abandonShard(o HostOrder) {
	starts := func(h HostOrder) bool { return !h.Stop && h.Type == o.Type && h.Shard == o.Shard }
	if slices.ContainsFunc(m.out.Hosts, starts) {
		m.out.Hosts = slices.DeleteFunc(m.out.Hosts, starts)
		m.out.Routes = slices.DeleteFunc(m.out.Routes, func(r RouteChange) bool {
			return r.State == RouteLocal && r.Type == o.Type && r.Shard == o.Shard
		})
		return
	}
	m.out.Hosts = append(m.out.Hosts, o)
}

// rising sorts a list by shard, keeping one entry, the one of the highest fence, for each.
func rising(list []held) []held {
	slices.SortFunc(list, func(a, b held) int { return cmp.Or(cmp.Compare(a.Shard, b.Shard), b.Fence.Compare(a.Fence)) })
	return slices.CompactFunc(list, func(a, b held) bool { return a.Shard == b.Shard })
}
