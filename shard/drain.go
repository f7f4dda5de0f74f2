// Leaving: a node gives back what it hosts, and sends its leave notice. Draining: it gives it back and stays.
//
// The coordinators are asked to take the shards back, again and again, and move them away; what cannot move now stays
// and is served. What lives here when the time of the leave is over this node stops itself: that is always an owner's
// right, and its successor as owner comes only after a confirmation or a report. When nothing lives here any more the
// node sends its leave notice to every member: it hosts nothing and never will again. That is what lets a successor of
// a coordinator that has left start without waiting for the takeover time: the leaver itself is accounted for by it,
// and a successor that joined lately learns from it of losses before its time (memory.go). So the node goes when those
// that may succeed have heard it.
//
// A node that drains says to every coordinator, by its registration, that it hosts no more, and says so again while
// something lives here. That is all: a coordinator moves what such a region has as it may, and stops nothing where it
// may not, for the node goes on serving. So the next coordinator, which asks every region whether it hosts, knows of it
// too.

package shard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// leave is the state of a graceful leave of this node.
type leave struct {
	begun, done bool
	by          time.Duration // what lives here then is stopped without an order
	late        bool          // that was done
	homes       time.Duration // until then homes are waited for when nothing lives here any more; zero: none is
	unheard     peer.Set      // members that have not acknowledged the leave notice
	retry       timer
	heard       time.Duration // until then acknowledgements are waited for
	over        bool          // Effects.Drained has said so
}

func (l *leave) next(m *Machine) time.Duration {
	var d least
	if l.begun && !l.done && !l.late {
		d.add(l.by)
		if m.now < l.homes { // else it is over, though a shard may live here again that has come back from a move
			d.add(l.homes)
		}
	}
	if l.done && !l.over {
		d.add(l.heard)
	}
	d.add(l.retry.at)
	return d.at
}

func (m *Machine) beginLeave(c LeaveCommand) {
	l := &m.leave
	if c.Now && l.begun {
		l.by, l.heard = min(l.by, m.now), min(l.heard, m.now)
		stopLate(m)
	}
	if l.begun {
		return
	}
	l.begun, l.by = true, m.now+cmp.Or(c.Within, m.cfg.DrainPatience)
	if c.Now {
		l.by = m.now
		stopLate(m)
	}
	for t := range eachType(m) {
		m.drainRegion(t)
	}
}

// drainRegion asks the type's coordinator to take back what lives here.
func (m *Machine) drainRegion(t *typ) {
	g := t.region
	if m.away && g != nil && g.joined && g.hosted.Len() > 0 && g.lingers.until == 0 {
		g.drain.start(m) // says again that this node hosts no more
	}
	if !m.leave.begun || g == nil || !g.joined || g.drainDone {
		return
	}
	if g.hosted.Len() == 0 {
		m.announce(t) // says that it hosts no more; a shard on its way here is refused
		return
	}
	m.askDrain(t)
	g.drain.start(m)
}

func (m *Machine) askDrain(t *typ) {
	g := t.region
	if m.leave.done || g.drainDone || !g.joined || !m.leave.begun && (!m.away || g.hosted.Len() == 0) {
		g.drain.stop()
		return
	}
	if !m.leave.begun {
		return // its registration says it
	}
	m.post(g.to, signal{Kind: wire.KindDrainRegion, head: m.head(t.id, g.term)})
}

// onDrain stops giving shards to a region and moves away those it has.
func (c *coordinator) onDrain(from peer.ID) {
	p := c.client(from)
	if !p.drains {
		p.drains, p.since = true, c.m.now
	}
	c.moves.drain(p)
	c.checkDrained(p)
}

func (c *coordinator) checkDrained(p *client) {
	if p.drains && p.owns.Len() == 0 && p.full() {
		c.m.post(p.id, signal{Kind: wire.KindDrainDone, head: c.m.head(c.t.id, c.term)})
	}
}

// nobodyTakes reports whether what a leaver has cannot move before it goes, however long it waits: the whole cluster
// stops, or no other member may ever be given it, or one knows nothing of moves. A member that has not registered the
// type, or not reported its version, may do so within DrainPatience.
func (mv *moves) nobodyTakes(p *client) bool {
	c, m := mv.c, mv.c.m
	if closing(m) {
		return true
	}
	late, takes := m.now >= p.since+m.cfg.DrainPatience, false
	for _, mb := range m.view.Members {
		if mb.Status == membership.Down {
			continue
		}
		if late && !speaksMoves(m, mb.ID) {
			return true
		}
		i, known := c.find(mb.ID)
		stays := mb.Status == membership.Up || mb.Status == membership.WeaklyUp || mb.Status == membership.Joining
		if mb.ID == p.id || !stays || !mb.HasRole(c.settings.Role) || m.past.leaveNotices.Has(mb.ID) ||
			known && c.clients[i].drains {
			continue
		}
		takes = takes || !late || known && c.clients[i].hosts
	}
	return !takes
}

// comeback is a shard with a last move that ended where it began: nobody took what was left of it, say. The node that
// is to be emptied keeps it for a while, and serves it. The next move would end as this one did, most likely: moves
// that follow each other without a pause leave its messages no time, stop its entities each time, and keep all nodes
// busy.
type comeback struct{ until, pause time.Duration }

// cameBack makes a shard stay where it is for a while, twice as long each time.
func (mv *moves) cameBack(s route.ShardID) {
	cfg := &mv.c.m.cfg
	pause := min(max(2*mv.back[s].pause, cfg.RetryInterval), cfg.RetryMax)
	mv.back[s] = comeback{mv.c.m.now + pause, pause}
}

// lingers reports whether a shard that came back stays yet. It moves when that is over.
func (mv *moves) lingers(s route.ShardID) bool {
	b := mv.back[s]
	if mv.c.m.now >= b.until {
		return false
	}
	if mv.again == 0 || b.until < mv.again {
		mv.again = b.until
	}
	return true
}

// drainAgain moves on what has come back, when it is time.
func (mv *moves) drainAgain() {
	if mv.again != 0 && mv.c.m.now >= mv.again {
		mv.again = 0
		mv.onward()
	}
}

// drain carries out a DrainCommand.
func drain(m *Machine, c DrainCommand) error {
	if m.leave.begun || m.over {
		return ErrLeaving
	}
	if m.away == c.On {
		return nil
	}
	if c.On {
		if err := someoneTakes(m); err != nil {
			return err
		}
	}
	m.away = c.On
	for t := range eachType(m) {
		g := t.region
		if g != nil {
			g.lingers.until = 0
		}
		if g != nil && c.On && g.lingers.on {
			g.lingers.until = m.after(m.cfg.DrainPatience)
		}
		if g == nil || g.refused != nil || g.to.IsZero() || m.view == nil {
			continue // it has yet to register
		}
		g.retry.reset(m)
		m.announce(t)
		m.drainRegion(t)
	}
	return nil
}

// lingers says of a region what a LingerCommand does.
type lingers struct {
	on    bool
	until time.Duration // in a drain; 0: its shards go
}

// linger carries out a LingerCommand.
func linger(c LingerCommand, m *Machine) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region.idle() {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(c.Type))
	}
	switch l := &t.region.lingers; {
	case c.On:
		l.on = true
	case l.until != 0:
		goes(t, m)
	}
	return nil
}

// goes has the shards of a type go that lingered.
func goes(t *typ, m *Machine) {
	g := t.region
	g.lingers.until = 0
	if g.refused != nil || g.to.IsZero() || m.view == nil || m.over {
		return // it has yet to register
	}
	g.retry.reset(m)
	m.announce(t)
	m.drainRegion(t)
}

// someoneTakes returns an error unless each type that may live here may live on another member, as far as its status
// and roles say.
func someoneTakes(m *Machine) error {
	for _, id := range m.agenda.order {
		t := m.types[id]
		if m.view == nil || !m.hosts(t) {
			continue
		}
		role := t.region.settings.Role
		if !slices.ContainsFunc(m.view.Members, func(mb membership.Member) bool {
			return mb.ID != m.self && mb.Status.Working() && mb.HasRole(role) && m.view.Reachable(mb.ID)
		}) {
			return fmt.Errorf("%w: of type %q", ErrNobodyTakes, t.region.settings.Name)
		}
	}
	return nil
}

// Draining reports whether a node drains, and how many shards live on it.
func Draining(m *Machine) (on bool, hosted int) {
	for _, id := range m.agenda.order {
		if g := m.types[id].region; g != nil {
			hosted += g.hosted.Len()
		}
	}
	return m.away, hosted
}

// Over reports whether this incarnation was downed or removed, and has given up what lived on it.
func Over(m *Machine) bool { return m.over }

// DrainError says that a drain was not over when its time was. It goes on. It matches Err.
type DrainError struct {
	Shards int   // that lived on the node then
	Err    error // why nobody waits any more
}

// Error says both.
func (e *DrainError) Error() string {
	return fmt.Sprintf("%d shards live here yet, and the drain goes on: %v", e.Shards, e.Err)
}

// Unwrap returns Err.
func (e *DrainError) Unwrap() error { return e.Err }

// checkLeave ends the leave when nothing lives here and the coordinators know it, or the patience is over, and the
// leave notice is heard.
func (m *Machine) checkLeave() {
	l := &m.leave
	if !l.done && l.begun {
		l.finish(m)
	}
	if l.done && !l.over && !(m.now < l.heard && l.awaits(m)) {
		l.over = true
		m.out.Drained = true
	}
}

// awaits reports whether a member that may be the next coordinator has yet to acknowledge the leave notice. A node is
// removed soon after it has become Leaving, and then repeats nothing: a notice that was lost, or had no room, would
// cost the takeover time.
func (l *leave) awaits(m *Machine) bool {
	return m.view != nil && !m.over && slices.ContainsFunc(m.view.Members, func(mb membership.Member) bool {
		return counts(mb) && l.unheard.Has(mb.ID) && m.view.Reachable(mb.ID)
	})
}

// finish sends the leave notice when nothing lives here any more.
func (l *leave) finish(m *Machine) {
	for _, id := range m.agenda.order {
		g := m.types[id].region
		if g == nil {
			continue
		}
		waiting := g.drain.at != 0 && !g.drainDone && !l.late
		if g.hosted.Len() > 0 || waiting || len(g.hand.kept) > 0 && !l.late {
			return
		}
	}
	if !l.late && awaitsHomes(m) {
		return
	}
	l.done = true
	for t := range eachType(m) {
		if t.region != nil {
			t.region.hand.dropAll()
		}
	}
	if m.view == nil || m.over {
		return
	}
	for _, mb := range m.view.Members {
		if mb.ID != m.self && mb.Status != membership.Down {
			l.unheard.Add(mb.ID)
		}
	}
	l.retry.start(m)
	l.heard = m.now + m.cfg.RetryMax
	m.sendLeaveNotice(-1)
}

// awaitsHomes reports whether something is parked here for a shard that has moved and has no known next home: it would
// be abandoned with this node. It is waited for DrainPatience at most, and not where nobody stays.
func awaitsHomes(m *Machine) bool {
	l := &m.leave
	stays := func(mb membership.Member) bool { return mb.ID != m.self && mb.Status == membership.Up }
	if m.view == nil || m.over || !slices.ContainsFunc(m.view.Members, stays) {
		return false
	}
	for _, id := range m.agenda.order {
		g := m.types[id].region
		if g == nil || !g.joined {
			continue
		}
		for s := range g.wanted.All {
			if g.peek(s).moved != (Number{}) {
				if l.homes == 0 {
					l.homes = m.now + m.cfg.DrainPatience
				}
				return m.now < l.homes
			}
		}
	}
	return false
}

// sendLeaveNotice sends each time what is remembered then: an earlier message's word would cost its receiver waiting.
// It leaves out members to which the notice of since is still under way; a negative since leaves out none.
func (m *Machine) sendLeaveNotice(since time.Duration) {
	for _, id := range m.leave.unheard {
		if waits, _ := m.underWay(id, since); m.live(id) && !waits {
			m.post(id, leaveNotice{Kind: wire.KindLeaveNotice, Birth: m.view.Birth, Past: m.tell(id, maxTold)})
		}
	}
}

// stopLate stops what lives here when the time of the leave is over. What is being handed over goes on.
func stopLate(m *Machine) {
	l := &m.leave
	if !l.begun || l.done || l.late || m.now < l.by {
		return
	}
	l.late = true
	for t := range eachType(m) {
		if t.region != nil {
			for s := range t.region.hosted.All {
				m.stop(t, s)
			}
		}
	}
}

func (m *Machine) tickLeave() {
	l := &m.leave
	stopLate(m)
	if since := l.retry.set; l.retry.due(m, peer.ID{}) {
		for _, id := range l.unheard.Clone() {
			if !m.live(id) {
				l.unheard.Remove(id)
			}
		}
		if len(l.unheard) == 0 {
			l.retry.stop()
		}
		m.sendLeaveNotice(since)
	}
}

// onLeaveNotice remembers that a member hosts nothing and never will again, or that one has heard this of us.
func (m *Machine) onLeaveNotice(from peer.ID, f leaveNotice) {
	if f.Kind == wire.KindLeaveNoticeAck {
		m.leave.unheard.Remove(from)
		if len(m.leave.unheard) == 0 {
			m.leave.retry.stop()
		}
		return
	}
	m.past.leaveNotices.Add(from)
	m.post(from, leaveNotice{Kind: wire.KindLeaveNoticeAck, Birth: f.Birth})
	m.learn(f.Past)
	m.reviewAll()
}
