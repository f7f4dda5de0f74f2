// Pairs: which process has lost which. A node that is Down for one side is a member like any other for those lost with
// it: what a cut-off side does among its own is held to the same rules.

package check

import (
	"slices"
	"time"

	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// pairs remembers the members that every process has held, and those that it holds for lost, since when.
type pairs struct {
	held   map[reportKey]bool          // a process, and one it has shown as a member
	lost   map[reportKey]time.Duration // a process, and one it shows Down or not any more
	shown  map[reportKey]time.Duration // the same, since when it shows that itself
	losers map[peer.ID][]peer.ID       // by lost member, those that have lost it, in the order of their words
	misses map[peer.ID][]peer.ID       // by process, the ones it has lost
	hosted map[ownKey]route.Fence      // by shard and process, the latest fence
	rivals []rival                     // coordinators that are ready, and lost for some process
}

func newPairs() pairs {
	return pairs{held: map[reportKey]bool{}, lost: map[reportKey]time.Duration{},
		shown: map[reportKey]time.Duration{}, losers: map[peer.ID][]peer.ID{}, misses: map[peer.ID][]peer.ID{},
		hosted: map[ownKey]route.Fence{}}
}

// shows notes that p shows m. One that a first view lacks may be lost or may not have come yet: it has come now. p will
// tell m since when others are lost.
func (r *pairs) shows(p *world.Process, m *membership.Member, now time.Duration) {
	key := reportKey{p.ID, m.ID}
	if m.Status == membership.Down {
		r.loses(p, m.ID, now)
		return
	}
	if r.held[key] {
		return
	}
	r.held[key] = true
	delete(r.lost, key)
	for _, id := range r.misses[p.ID] {
		theirs := reportKey{m.ID, id}
		at, mine := r.lost[reportKey{p.ID, id}]
		if since, also := r.lost[theirs]; mine && also && at < since {
			r.lost[theirs] = at
		}
	}
}

// loses notes that p shows id no more, or as Down, or that its first view lacks it. Members of p's view may have sent p
// since when it is lost.
func (r *pairs) loses(p *world.Process, id peer.ID, now time.Duration) {
	key := reportKey{p.ID, id}
	if _, known := r.lost[key]; known || id == p.ID {
		return
	}
	r.shown[key] = now
	if at, gone := r.goneFor(p.ID, id); gone {
		now = at
	}
	r.lost[key] = now
	r.losers[id] = append(r.losers[id], p.ID)
	r.misses[p.ID] = append(r.misses[p.ID], id)
}

// goneFor reports since when q is lost for the side of p: for p itself, or for one that has held p for a member after
// it had lost q, and so may have given p what was q's.
func (r *pairs) goneFor(p, q peer.ID) (since time.Duration, gone bool) {
	for _, by := range r.losers[q] {
		at, lost := r.lost[reportKey{by, q}]
		if !lost || gone && at >= since {
			continue
		}
		over, also := r.lost[reportKey{by, p}]
		if by == p || r.held[reportKey{by, p}] && (!also || over > at) {
			since, gone = at, true
		}
	}
	return since, gone
}

// apart reports whether two processes are on sides one of which has lost the other: then only fences hold between them.
func (r *pairs) apart(p, q peer.ID) bool {
	if _, gone := r.goneFor(p, q); gone {
		return true
	}
	_, gone := r.goneFor(q, p)
	return gone
}

// overslept reports whether q, which is lost for the side of p, has stood still for too long, until later than that, or
// does so still. It cannot have been confirmed since, for all that may do that know better. Not so where p held q for a
// member as it went on, though another one had lost it before: p may have confirmed it (storm 22000001005). Without a
// resolver nothing else stops one that was downed and has not heard of it, however long it hears nobody.
func (r *pairs) overslept(p, q *world.Process) bool {
	since, gone := r.goneFor(p.ID, q.ID)
	key := reportKey{p.ID, q.ID}
	confirmed := r.held[key] && r.shown[key] > q.Overslept
	return gone && (q.Overslept > since && !confirmed || q.StoodTooLong(q.World.Now, q.View))
}

// hasToStop reports whether something has to have stopped q, which is lost for the side of p, when a shard of its lives
// there. Where nobody remembers an owner with a session nobody ends that (session.md): then a resolver stops it, if
// there is one (storm 12100009824).
func (r *pairs) hasToStop(p, q *world.Process) bool {
	w := p.World
	switch {
	case w.Config.TenureVoters > 0, w.Resolves(), r.overslept(p, q) && !r.accompanied(p, q):
		return true
	}
	return w.Config.SessionTTL > 0 && !r.forgotten(p, q.ID)
}

// accompanied reports whether one that is lost for the side of p with q has q for a member: it confirms q when q has
// slept, for it knows no better.
func (r *pairs) accompanied(p, q *world.Process) bool {
	return slices.ContainsFunc(p.World.Running(), func(by *world.Process) bool {
		return by != q && by.View != nil && hasMember(by, q) && r.apart(p.ID, by.ID)
	})
}

// forgotten reports whether nobody on the side of p has seen that q was lost: no process that runs there has ever shown
// it as a member.
func (r *pairs) forgotten(p *world.Process, q peer.ID) bool {
	return !slices.ContainsFunc(p.World.Running(), func(by *world.Process) bool {
		return r.held[reportKey{by.ID, q}] && (by == p || hasMember(p, by))
	})
}

// hasMember reports whether the view of p has q for a member.
func hasMember(p, q *world.Process) bool {
	m, ok := p.View.Member(q.ID)
	return ok && m.Status != membership.Down
}

// loses notes that a view of p shows a member Down, or without it: it may not know of its end, which excuses it. The
// word of a lost process counts against no member of the side that has lost it: when two sides down each other, the one
// that did so first excuses nobody of its own.
func (c *Checker) loses(p *world.Process, id peer.ID, lost bool) {
	if _, known := c.gone[id]; known || lost && c.held(p, id) {
		return
	}
	c.gone[id] = c.w.Now
}

// held reports whether one that runs and is not lost holds a member in its view, and not p.
func (c *Checker) held(p *world.Process, id peer.ID) bool {
	for _, q := range c.w.Running() {
		if _, lost := c.gone[q.ID]; lost || q == p || q.View == nil {
			continue
		}
		m, member := q.View.Member(id)
		w, ours := q.View.Member(p.ID)
		if member && m.Status != membership.Down && (!ours || w.Status == membership.Down) {
			return true
		}
	}
	return false
}

// seatIn is a process in which a shard lives, and its fence there.
type seatIn struct {
	Process *world.Process
	fence   route.Fence
}

// livesIn returns where a shard lives in a process.
func (o *ownership) livesIn(p *world.Process) *seatIn {
	for i := range o.hosting {
		if o.hosting[i].Process == p {
			return &o.hosting[i]
		}
	}
	return nil
}

// hostsLost is a process that is lost for another, does not know it, and makes a shard live: nothing but fences can
// hold it against those that have lost it. Among its own it is alone with the shard, and its fences grow.
func (c *Checker) hostsLost(p *world.Process, key world.ShardKey, o *ownership, f route.Fence) {
	name := c.w.ShardName(key.Type, key.Shard)
	c.NotTold++
	if f.IsZero() || f == o.fence && o.p != p {
		c.Violate(p, "fence-shared", "%s starts here under %s, as at %s", name, world.FenceName(f), c.w.NameOf(o.p))
	}
	if o.livesIn(p) != nil {
		c.Violate(p, "hosted-twice", "%s is started here again", name)
	}
	for _, h := range o.hosting {
		if h.Process != p && h.Process.Alive && !c.pairs.apart(p.ID, h.Process.ID) {
			c.Violate(p, "two-owners", "%s starts here under %s while it lives at %s under %s, on one side", name,
				world.FenceName(f), c.w.Name(h.Process.ID), world.FenceName(h.fence))
		}
	}
	mine := ownKey{p.ID, key}
	if last := c.pairs.hosted[mine]; f.Compare(last) <= 0 && !f.IsZero() {
		c.Violate(p, "fence-order", "%s starts under %s here after %s", name, world.FenceName(f), world.FenceName(last))
	}
	c.pairs.hosted[mine] = f
	o.hosting = append(o.hosting, seatIn{p, f})
}

// ownKey is a shard at one process.
type ownKey struct {
	id  peer.ID
	key world.ShardKey
}

// rival is a coordinator that is ready on a side that is lost for another.
type rival struct {
	p    *world.Process
	typ  route32
	term uint32
}

// rival: a coordinator that is lost for some process is the only one that its side has not lost.
func (c *Checker) rival(p *world.Process, e *shard.Event) {
	beside := func(q *world.Process, term uint32) {
		if q != p && q.Alive && !c.leaveNotices[q.ID] && !c.leaveNotices[p.ID] && !c.pairs.apart(p.ID, q.ID) {
			c.Violate(p, "two-coordinators", "ready for %s in term %d beside %s in term %d, on one side",
				c.w.TypeName(e.Type), e.Term, c.w.Name(q.ID), term)
		}
	}
	if seat := c.leads[e.Type]; seat != nil {
		beside(seat.p, seat.term)
	}
	for _, r := range c.pairs.rivals {
		if r.typ == e.Type {
			beside(r.p, r.term)
		}
	}
	c.pairs.rivals = append(c.pairs.rivals, rival{p, e.Type, e.Term})
}

// leaves takes a coordinator that is one no more from its seat.
func (c *Checker) leaves(p *world.Process, typ route32) {
	if seat := c.leads[typ]; seat != nil && seat.p == p {
		delete(c.leads, typ)
	}
	c.pairs.rivals = slices.DeleteFunc(c.pairs.rivals, func(r rival) bool { return r.p == p && r.typ == typ })
}
