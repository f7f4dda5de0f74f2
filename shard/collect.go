// Collecting: how a new coordinator learns what is owned, and when it may begin to allocate.
//
// It waits for every member of its view, whatever its status, and for every member that it remembers as lost; not for
// those of the role alone, because a member may have registered the type with another role. Each is settled by one of:
// a complete report of this coordinator term; a leave notice; removal, and the takeover time since this node first saw
// the loss. A node that joined too lately to know of every loss, and got no leave notice that lists them, asks every
// member for what it remembers; if no answer is complete, it waits for the takeover time since its up-number
// (memory.go).
//
// Why no order of events gives two live owners: an owner X of shard s got it from some coordinator C. Either X is in
// this coordinator's view or memory, and reports s, or confirmed to have nothing, or is so long removed that it has
// stopped by itself; or X was lost before this node's time, and a member that saw the loss reports it. Afterwards no
// order of C reaches an owner: every member that may host has promised this coordinator term's floor, which is above
// every fence that C can give, since C has a lower term, or is this very node when it coordinated before, with lower
// epochs.
//
// The question is not sent while an older member of the role is Down and not removed yet: if this node fell before its
// view spread, the older one would stay the oldest and find everybody promised to a higher term. Removal needs
// convergence, so after it no surviving view lacks the loss. Nothing is lost by it: the reports are not what this
// coordinator has to wait for longest. An older one with a process proven dead (DeathCommand) is not waited for: it
// never coordinates again; and its report is not missed, since it owns nothing and every order of it that is still
// under way is refused by the members that promised.

package shard

import (
	"slices"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// collect asks for missing reports and begins to allocate when none is missing.
func (c *coordinator) collect() {
	if c.t.coord != c {
		return
	}
	if !c.ready && c.collected() {
		c.ready = true
		c.m.event(Event{Kind: CoordinatorReady, Type: c.t.id, Term: c.term, Home: c.m.self})
		c.refuseOthers()
		c.moves.onward() // a leaver has waited for this
	}
	c.questions()
}

// questions asks for missing reports: before a coordinator term is ready first the oldest member of all, and this node
// last. Of two coordinator terms under different settings, with different roles and so on different nodes, both would
// be promised to by some and refused by others; so the oldest member promises to one of them, and the other ends before
// it has a promise of anybody, its own node's included.
func (c *coordinator) questions() {
	if c.early() {
		return
	}
	if first := c.first(); first != nil {
		c.question(first)
		return
	}
	var own *client
	others := false
	for _, p := range c.clients {
		switch {
		case !c.needs(p):
		case p.id == c.m.self:
			own = p
		default:
			others = true
			c.question(p)
		}
	}
	if own != nil && (c.ready || !others) {
		c.question(own)
	}
}

// first returns the oldest member of all while its report is missing to a coordinator term that is not ready.
func (c *coordinator) first() *client {
	oldest, ok := c.m.past.oldest(c.m.view, "")
	if c.ready || !ok {
		return nil
	}
	if i, met := c.find(oldest.ID); met && c.needs(c.clients[i]) {
		return c.clients[i]
	}
	return nil
}

// needs reports whether a client's report is missing. Every client counts, also one that joins after the coordinator
// term began: the question brings it the settings.
func (c *coordinator) needs(p *client) bool {
	return !p.full() && c.m.live(p.id) && !c.m.past.dead.Has(p.id)
}

// question asks for a report once; the client's timer repeats it.
func (c *coordinator) question(p *client) {
	if p.asked {
		return
	}
	p.asked = true
	c.sendQuestion(p)
	p.retry.start(c.m)
}

func (c *coordinator) sendQuestion(p *client) {
	c.m.post(p.id, reportWanted{head: c.m.head(c.t.id, c.term), Settings: c.settings, Floor: c.floor,
		WantPast: !c.m.past.whole(c.m.now)})
}

// early reports whether an older member of the role is Down and not removed yet, and its process not proven dead.
func (c *coordinator) early() bool {
	for _, mb := range c.m.view.Members {
		if mb.Status == membership.Down && mb.UpNumber != 0 && mb.UpNumber < c.term && mb.HasRole(c.settings.Role) &&
			!c.m.past.dead.Has(mb.ID) {
			return true
		}
	}
	return false
}

// collected reports whether every member that may own something has been accounted for.
func (c *coordinator) collected() bool {
	if !c.m.past.whole(c.m.now) || c.early() {
		return false
	}
	for range c.unaccounted {
		return false
	}
	return true
}

// missing lists the members that this coordinator term still has to account for.
func (c *coordinator) missing() peer.Set {
	var ids peer.Set
	for id := range c.unaccounted {
		ids.Add(id)
	}
	return ids
}

// unaccounted yields the members, of the view and of the memory of losses, that have neither reported in full nor said
// leave notice. One that is Down comes twice.
func (c *coordinator) unaccounted(yield func(peer.ID) bool) {
	accounted := func(id peer.ID) bool {
		i, ok := c.find(id)
		return c.m.past.leaveNotices.Has(id) || (ok && c.clients[i].full())
	}
	for _, mb := range c.m.view.Members {
		if !accounted(mb.ID) && !yield(mb.ID) {
			return
		}
	}
	for i := range c.m.past.losses {
		if l := &c.m.past.losses[i]; !accounted(l.id) && !yield(l.id) {
			return
		}
	}
}

// onRegister takes a registration, which is acknowledged, and a report, which is believed.
func (c *coordinator) onRegister(from peer.ID, g register) {
	p := c.client(from)
	reports := g.Report && g.Floor == c.floor
	if g.Settings != c.settings && !c.reconcile(p, g, reports) {
		return
	}
	mb, _ := c.m.view.Member(from)
	if p.other = (Settings{}); g.Knows {
		p.knows = true
		p.hosts, p.unready = g.Hosts && mb.HasRole(c.settings.Role), g.NotReady
		p.drains = p.drains && !g.Hosts
	}
	if reports {
		c.believe(p, g)
	}
	p.asked = p.asked && g.Report // a part of a report may be missing: the timer asks for it
	if g.Knows && (p.full() || !mb.HasRole(c.settings.Role) || c.ready && (!p.hosts || c.early())) {
		c.m.post(from, signal{Kind: wire.KindRegisterAck, head: c.m.head(c.t.id, c.term)})
	}
	c.review()
	if c.t.coord == c && p.stays() {
		c.moves.drain(p)
	}
}

// reconcile deals with settings that differ from this coordinator term's and reports whether the message may be used at
// all. The coordinator's settings stand, except against an owner's while nothing is owned under this coordinator's:
// owners hold the truth, so it begins a new coordinator term under theirs, and refuses its own region if need be.
func (c *coordinator) reconcile(p *client, g register, reports bool) bool {
	if !g.Knows {
		return false // echoes the question of an earlier term
	}
	if reports && len(g.Owned) > 0 && c.owned == 0 && !c.ready {
		if c.m.endCoordinator(c.t); c.m.presides(c.t, g.Settings.Role, c.term) {
			c.m.beginTerm(c.t, g.Settings, c.term)
		}
		return false
	}
	if reports && len(g.Owned) == 0 {
		p.mask |= g.Mask
	}
	p.hosts, p.knows, p.other = false, false, g.Settings
	if c.forsaken() {
		c.m.giveWay(c.t, g.Settings)
		return false
	}
	if c.ready || c.owned > 0 {
		c.refuseOthers()
	}
	c.review() // asks: no settings are refused before it is known under which ones shards are owned
	return false
}

// refuseOthers refuses the members that registered the type under other settings, also those that follow the
// coordinator of another role.
func (c *coordinator) refuseOthers() {
	for _, p := range c.clients {
		if p.other != (Settings{}) {
			c.m.post(p.id, nak{head: c.m.head(c.t.id, c.term), Reason: nakSettings, Have: c.settings, Got: p.other})
			p.other = Settings{}
		}
	}
}

// believe takes over the parts of a report that are new.
func (c *coordinator) believe(p *client, g register) {
	fresh := g.Mask &^ p.mask
	p.mask |= g.Mask
	if p.full() {
		p.asked = false
	}
	for _, e := range g.Owned {
		if fresh&(1<<(e.Shard>>partShift)) != 0 {
			_, stops := slices.BinarySearch(g.Stopping, e.Shard)
			c.adopt(p, e, stops)
		}
	}
	for _, e := range g.Kept {
		if fresh&(1<<(e.Shard>>partShift)) != 0 {
			c.moves.inherit(p, e.Shard, heir{id: p.id, keeps: true, fence: e.Fence})
		}
	}
	for _, e := range g.Gave {
		if fresh&(1<<(e.Shard>>partShift)) != 0 {
			c.moves.inherit(p, e.Shard, heir{id: g.Holders[e.At], keeps: true, fence: e.Fence})
		}
	}
	if p.drains {
		c.moves.drain(p)
		c.checkDrained(p)
	}
}

// adopt records a reported ownership. Of two for one shard, which no run of this protocol gives, the higher fence
// stands and the other owner is ordered to stop.
func (c *coordinator) adopt(p *client, e held, stops bool) {
	if r := c.records.Peek(e.Shard); r.phase != free {
		if r.home == p && r.fence == e.Fence {
			return
		}
		if r.fence.Compare(e.Fence) >= 0 {
			c.astray(p, e)
			return
		}
		owner, lower := r.home, held{e.Shard, r.fence}
		c.release(e.Shard)
		c.astray(owner, lower)
	}
	r := c.records.At(e.Shard)
	*r = record{home: p, fence: e.Fence, inherited: true}
	r.enter(c, e.Shard, alive)
	c.owned++
	if stops { // the stop call has gone out: its home is not disclosed
		c.haltShard(e.Shard)
		return
	}
	c.confirm(e.Shard)
}

func (c *coordinator) astray(p *client, e held) {
	c.m.refuse(c.t.id, e.Fence.Term(), p.id, e.Shard, e.Fence)
	if len(c.strays) < maxStrays {
		c.strays = append(c.strays, stray{p, e})
		c.m.postHeld(p.id, wire.KindStopShards, c.m.head(c.t.id, c.term), []held{e})
		p.retry.start(c.m)
	}
}

// onAsk answers with the homes that are confirmed and remembers the rest. A home reported to this coordinator term is
// true before the others have reported.
func (c *coordinator) onAsk(from peer.ID, a ask) {
	p := c.client(from)
	for _, s := range a.Shards {
		if c.records.Peek(s).phase == alive {
			c.disclose(p, s)
			continue
		}
		p.wants.Add(s)
		c.pending.Add(s)
	}
	c.serve()
}

// serve gives the shards that are wanted and free to owners.
func (c *coordinator) serve() {
	if !c.ready || c.t.coord != c || c.m.confirm.held {
		return
	}
	c.moves.serve()
	var v *strategy.View // one for all of them
	for s := range c.pending.All {
		if c.records.Peek(s).phase != free {
			continue
		}
		if v == nil {
			if v = c.moves.view(); !slices.ContainsFunc(v.Regions, anyEligible) {
				return
			}
		}
		c.moves.settle(v, s)
	}
}

// tellWaits reports, once in a coordinator term, each lost member with shards, known or possible, that must wait for
// its takeover time.
func tellWaits(c *coordinator) {
	c.said = slices.DeleteFunc(c.said, func(id peer.ID) bool { return c.m.past.lost(id) == nil })
	for _, l := range c.m.past.losses {
		if c.said.Has(l.id) || c.m.past.leaveNotices.Has(l.id) || l.until <= c.m.now {
			continue
		}
		shards, reported := 0, false
		if i, known := c.find(l.id); known {
			shards, reported = c.clients[i].owns.Len(), c.clients[i].full()
		}
		if shards == 0 && (c.ready || reported) {
			continue
		}
		c.said.Add(l.id)
		c.m.event(Event{Kind: ShardsWait, Type: c.t.id, Term: c.term, Home: l.id, Shards: shards, Until: l.until})
	}
}
