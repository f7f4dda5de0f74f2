// Coordinator: decides where the shards of one type live, on the oldest member of the type's role.
//
// Owners hold the truth. A new coordinator knows nothing: it asks every member of the role what it owns and allocates
// nothing before each has answered, promising by its answer to refuse every fence below the floor of this coordinator
// term, or is known to own nothing (collect.go). From then on this node alone decides, because every order that another
// coordinator may still have under way is refused wherever it arrives. A shard is in one place at a time: it is given
// to another owner only when the last one confirmed its stop, refused to start it, sent its leave notice, or was
// removed and the takeover time has passed. No time limit alone ever frees it.

package shard

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/loads"
	"github.com/kith-io/kith/internal/core/sparse"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// coordinator is one coordinator term over one type: from the moment this node is the oldest until it is not.
type coordinator struct {
	m        *Machine
	t        *typ
	settings Settings
	term     uint32
	floor    uint32 // epoch of the term's floor; every fence given later is above it
	ready    bool   // every report is in
	records  sparse.Table[record]
	owned    int        // records with a home
	orphaned int        // of these in the phase orphan
	clients  []*client  // one for each member heard or waited for, by identity
	pending  sparse.Set // wanted by a member and not to be disclosed yet
	strays   []stray
	moves    *moves
	said     peer.Set // lost members already reported as waited for
}

// phase is where a shard stands with its home.
type phase uint8

const (
	free     phase = 0 // no home
	starting phase = 1 // ordered, not confirmed: not disclosed to anyone
	alive    phase = 2 // confirmed by its home, or reported by it
	halting  phase = 3 // ordered to stop, not confirmed
	orphan   phase = 4 // its home is lost; nobody gets it until the home cannot be serving any more
	moving   phase = 5 // ordered to be handed over, neither given up nor stopped
)

// record is one shard. A zero home is none.
type record struct {
	home      *client
	fence     route.Fence
	phase     phase
	inherited bool // from a report: anyone may know this home from an earlier coordinator
}

// client is one member as the coordinator deals with it: as owner, as asker, or both.
type client struct {
	id      peer.ID
	mask    uint64        // parts of the shard space that it has reported in this term
	hosts   bool          // may be given shards, as it says
	unready bool          // though not for now
	drains  bool          // gives back its shards, since it leaves
	may     bool          // may be given shards, as it was seen last
	since   time.Duration // when it said so first
	owns    sparse.Set    // shards it is the home of
	open    sparse.Set    // of these starting, halting or moving: an answer is due
	starts  int           // of these starting
	page    loads.Page    // what they cost
	told    sparse.Set    // homes disclosed to it in this term
	wants   sparse.Set    // homes it waits for
	gone    map[route.ShardID]route.Fence
	knows   bool     // has registered the type under this term's settings
	other   Settings // under which it has registered the type, while this term is not ready; zero when they are the same

	outHost, outStop, outHomes, outGone, outMove []route.ShardID
	asked                                        bool // a report is due
	retry                                        timer
}

func (p *client) full() bool { return p.mask == ^uint64(0) }

// stray is an ownership that lost against a higher fence of the same shard when reports met: it must stop.
type stray struct {
	owner *client
	held
}

// maxStrays bounds the list of strays; what does not fit is found by the next coordinator term.
const maxStrays = 1 << 16

// onRegister takes a registration or report. The first one about a type makes the coordinator, if this is its place.
func (m *Machine) onRegister(from peer.ID, g register) {
	t := m.typ(g.Type)
	if t == nil {
		m.full++ // a peer that has heard of as many types learns so by its own Register
		return
	}
	if t.coord == nil {
		m.beginCoordinator(t, from, g)
	}
	c := t.coord
	if c == nil || c.term != g.Term {
		if g.Term < t.promise.term {
			m.post(from, m.higher(t))
		}
		return
	}
	if g.HasPast {
		m.learn(g.Past)
	}
	c.onRegister(from, g)
}

// beginCoordinator makes this node coordinator if this node is the oldest of the role and has not promised a higher
// term away, nor anything to a coordinator term under other settings.
func (m *Machine) beginCoordinator(t *typ, from peer.ID, g register) {
	s := g.Settings
	if r := t.region; r != nil && r.refused == nil && m.presides(t, r.settings.Role, g.Term) {
		s = r.settings
	}
	have, how := m.bound(t, m.self)
	switch {
	case how == unbound || !g.Knows:
	case have == g.Settings:
		s = have
	case how == firmly:
		m.post(from, nak{head: m.head(t.id, g.Term), Reason: nakSettings, Have: have, Got: g.Settings})
		return
	default:
		return // it says so again, and by then a successor under the settings before has begun or there is none
	}
	if !g.Knows || !m.stays(from) || !m.presides(t, s.Role, g.Term) || t.promise.term > g.Term || m.now < t.rest {
		return // a leaver needs no new coordinator, and the settings of one that is the last go with it
	}
	m.beginTerm(t, s, g.Term)
}

func (m *Machine) presides(t *typ, role string, term uint32) bool {
	next, ok := m.follows(t, role)
	return ok && next.ID == m.self && next.UpNumber == term
}

// follows returns the oldest member of a role that can coordinate a type as far as this node knows: its number is no
// lower than the term that was promised here. That is the oldest of the role unless the type had a coordinator in
// another role, of younger members: its term binds all members that promised, so a lower one never gets ready.
func (m *Machine) follows(t *typ, role string) (next membership.Member, ok bool) {
	if next, ok = m.past.oldest(m.view, role); !ok || next.UpNumber >= t.promise.term {
		return next, ok
	}
	ok = false
	for _, mb := range m.view.Members {
		if mb.HasRole(role) && counts(mb) && mb.UpNumber >= t.promise.term && !m.past.dead.Has(mb.ID) &&
			(!ok || mb.UpNumber < next.UpNumber) {
			next, ok = mb, true
		}
	}
	return next, ok
}

func (m *Machine) beginTerm(t *typ, s Settings, term uint32) {
	t.epoch++
	if t.moves > 0 && t.moves < 1<<32-1 {
		t.moves++ // homes of this term are newer than moves of the one before
	}
	c := &coordinator{m: m, t: t, settings: s, term: term, floor: t.epoch, records: sparse.NewTable[record](s.Shards)}
	c.moves = newMoves(c)
	t.coord = c
	m.event(Event{Kind: CoordinatorStarted, Type: t.id, Term: term, Home: m.self})
	c.meet()
	c.review()
}

func (m *Machine) endCoordinator(t *typ) {
	m.event(Event{Kind: CoordinatorStopped, Type: t.id, Term: t.coord.term, Home: m.self})
	t.coord.moves.leave()
	t.coord = nil
}

// inOffice reports whether this node may coordinate and vouch for others: it has its up-number and has not left.
func (m *Machine) inOffice() bool {
	self, ok := m.view.SelfMember()
	return ok && counts(self)
}

// meet makes a client of each member that may speak.
func (c *coordinator) meet() {
	for _, mb := range c.m.view.Members {
		if mb.Status != membership.Down {
			c.client(mb.ID)
		}
	}
}

func (c *coordinator) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(c.clients, id, func(p *client, id peer.ID) int { return p.id.Compare(id) })
}

func (c *coordinator) client(id peer.ID) *client {
	i, ok := c.find(id)
	if !ok {
		c.clients = slices.Insert(c.clients, i, &client{id: id})
	}
	return c.clients[i]
}

// onView follows the members: a coordinator that has lost its office ends its term; shards of lost members wait. An
// older member that appears later is none that this coordinator term has to give way to: all that were older had gone
// when it began.
func (c *coordinator) onView() {
	if !c.m.inOffice() {
		c.m.endCoordinator(c.t)
		return
	}
	c.meet()
	for _, p := range c.clients {
		if c.m.live(p.id) {
			continue
		}
		p.told.Clear()
		p.wants.Clear()
		p.gone, p.outGone, p.outHomes = nil, nil, nil
		p.outHost, p.outStop, p.outMove, p.asked = nil, nil, nil, false
		p.retry.stop()
		c.orphans(p)
	}
	c.clients = slices.DeleteFunc(c.clients, func(p *client) bool {
		return p.owns.Len() == 0 && !c.m.live(p.id) && c.m.past.lost(p.id) == nil
	})
}

// review looks again at everything that may have come due: reports, orphans, shards that wait for an owner.
func (c *coordinator) review() {
	for _, p := range c.clients {
		if p.owns.Len() > 0 && (c.m.past.leaveNotices.Has(p.id) || (!c.m.live(p.id) && !c.m.owes(p.id))) {
			c.releaseAll(p)
		}
	}
	c.strays = slices.DeleteFunc(c.strays, func(s stray) bool { return !c.m.owes(s.owner.id) })
	tellWaits(c)
	c.collect()
	c.serve()
	if c.t.coord == c {
		c.moves.review()
	}
}

// haltShard orders the home of a shard to stop it. Regions that are notified park from now on.
func (c *coordinator) haltShard(s route.ShardID) {
	r := c.records.At(s)
	p := r.home
	if r.phase == alive {
		c.tellGone(s, r)
	}
	r.enter(c, s, halting)
	p.outStop = append(p.outStop, s)
}

// enter puts the record of a shard that has a home into a phase, and what is kept of the home's shards with it.
func (r *record) enter(c *coordinator, s route.ShardID, to phase) {
	p := r.home
	switch r.phase {
	case starting:
		p.starts--
	case orphan:
		c.orphaned--
	}
	p.open.Remove(s)
	r.phase = to
	switch to {
	case free:
		p.owns.Remove(s)
		return
	case starting:
		p.starts++
		p.open.Add(s)
	case halting, moving:
		p.open.Add(s)
	case orphan:
		c.orphaned++
	}
	p.owns.Add(s)
}

// onStarted discloses homes that the owner has confirmed.
func (c *coordinator) onStarted(from peer.ID, list []held) {
	for _, e := range list {
		if r := c.records.Peek(e.Shard); r.phase == starting && r.home.id == from && r.fence == e.Fence {
			r.home.retry.wait = c.m.cfg.RetryInterval
			c.confirm(e.Shard)
		}
	}
	c.moves.onward()
}

// confirm makes a shard's home known to all that wait for it.
func (c *coordinator) confirm(s route.ShardID) {
	c.records.At(s).enter(c, s, alive)
	c.moves.confirmed(s)
	c.pending.Remove(s)
	for _, p := range c.clients {
		if p.wants.Remove(s) {
			c.disclose(p, s)
		}
	}
}

func (c *coordinator) disclose(p *client, s route.ShardID) {
	p.told.Add(s)
	p.outHomes = append(p.outHomes, s)
}

// onStopped frees shards when the owner says, asked or not, that it does not serve them. A shard that was to start
// there was refused: that region gets no further shards.
func (c *coordinator) onStopped(from peer.ID, list []held) {
	p := c.client(from)
	for _, e := range list {
		if r := c.records.Peek(e.Shard); r.phase != free && r.home == p && r.fence == e.Fence {
			p.hosts = p.hosts && r.phase != starting
			p.retry.wait = c.m.cfg.RetryInterval
			c.moves.released(e.Shard, r, true)
			c.release(e.Shard)
		}
		c.strays = slices.DeleteFunc(c.strays, func(s stray) bool { return s.owner == p && s.held == e })
	}
	c.moves.onward()
	c.checkDrained(p)
	c.serve()
}

// orphans marks the shards of a lost client: they are neither disclosed nor allocated while it may still be serving.
func (c *coordinator) orphans(p *client) {
	for s := range p.owns.All {
		if r := c.records.At(s); r.phase != orphan {
			c.tellGone(s, r)
			r.enter(c, s, orphan)
		}
	}
}

func (c *coordinator) releaseAll(p *client) {
	for s := range p.owns.All {
		c.release(s)
	}
}

// release ends an ownership. Members that know of it learn that, and those that wait get a new home.
func (c *coordinator) release(s route.ShardID) {
	r := c.records.At(s)
	p := r.home
	c.moves.released(s, *r, false)
	c.tellGone(s, r)
	r.enter(c, s, free)
	c.owned--
	c.m.event(Event{Kind: ShardReleased, Type: c.t.id, Shard: s, Term: c.term, Home: p.id, Fence: r.fence})
	c.records.Drop(s)
	if slices.ContainsFunc(c.clients, func(w *client) bool { return w.wants.Has(s) }) {
		c.pending.Add(s)
	}
}

// tellGone notifies every member that may know the home that it does not hold any more. Members that have not asked
// under this term may know it from an earlier coordinator.
func (c *coordinator) tellGone(s route.ShardID, r *record) {
	for _, p := range c.clients {
		if (p.told.Remove(s) || r.inherited) && c.m.live(p.id) {
			if p.gone == nil {
				p.gone = map[route.ShardID]route.Fence{}
			}
			p.gone[s] = r.fence
			p.outGone = append(p.outGone, s)
		}
	}
	r.inherited = false
}

func (c *coordinator) onGoneAck(from peer.ID, list []held) {
	p := c.client(from)
	for _, e := range list {
		if p.gone[e.Shard] == e.Fence {
			delete(p.gone, e.Shard)
		}
	}
}
