// memory: which members were lost lately, so that a new coordinator knows which shards may still be alive.
//
// A coordinator that starts after a member was removed never asks that member what it owned, and the member may be cut
// off and still serving. So every node remembers, from the differences of its views, each member that it saw Down or
// removed, until the takeover time has passed since it first saw that. A node that joined lately missed what came
// before its up-number: until the takeover time has passed since then it is blind, unless it formed the cluster itself
// or a member that is not blind sent it what it missed (recentlyLost in codec_register.go). A blind node's coordinator
// allocates nothing.
//
// What a member remembers comes in a report, to a blind coordinator that asked, and in a leave notice, unasked: the
// leaver may be the only one that is whole, and gone before its successor can ask. Why either may be believed, however
// late, often or out of order it comes, and whatever has become of the teller:
//
// Call a member with an up-number that is Up or Leaving a voter. The leader gives up-numbers and removes only in a
// state that every voter has seen (internal/core/members/rules.go), so a voter has had every member that may own
// something in a view of its own. The teller S speaks to the receiver R only if R had its up-number in a view in which
// S was a voter. Let V be the last such view of S. A member X that owned something, and that R never had in a view, is
//
//   - known to V: in it, or removed before. S tells of it: as a loss, on its roll, or not at all because its takeover
//     time has passed. For S has had X in a view, or X was removed before S voted, and S is whole about that time.
//   - or unknown to V: then it got its up-number in a later step. R has its own in every state after V, so that step
//     waited for R, and R has had X in a view: there is no such X.
//
// A receiver that is still joining is sent nothing. Lateness costs waiting, never safety: ages in an old message are
// too low, so its losses are waited for longer, and a member that left since is taken for lost. A repeated message
// teaches nothing more. Each sending of a leave notice tells what is remembered then. Names that did not fit into the
// memory of this node itself are brought back by nobody: that blindness is only waited out.

package shard

import (
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// maxLost bounds the losses remembered. When more fit not, the node is blind for a takeover time instead.
const maxLost = 4096

// memory holds the losses, sorted by identity, and the members that confirmed to host nothing ever again.
type memory struct {
	seen            bool   // a view with this node in it has come
	complete        bool   // it formed the cluster, or another member sent it: nothing before its up-number is missing
	number          uint32 // highest up-number in the views in which this node was a voter
	losses          []lostMember
	leaveNotices    peer.Set
	proofOnly       bool     // a loss is remembered until its end is proven
	dead            peer.Set // of these, with a process proven gone: they coordinate nothing either
	population      population
	incompleteUntil time.Duration // losses before the up-number may be missing
	forgotUntil     time.Duration // losses that did not fit are missing
}

type lostMember struct {
	id      peer.ID
	since   time.Duration // first seen Down or removed
	until   time.Duration // and a takeover time later, which was fixed then
	removed bool
	learnt  bool // reported by another node, which saw it before
}

func (p *memory) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(p.losses, id, func(l lostMember, id peer.ID) int { return l.id.Compare(id) })
}

func (p *memory) lost(id peer.ID) *lostMember {
	if i, ok := p.find(id); ok {
		return &p.losses[i]
	}
	return nil
}

// add remembers a loss for takeover from when it was first seen.
func (p *memory) add(l lostMember, takeover time.Duration) {
	l.until = l.since + takeover
	i, ok := p.find(l.id)
	switch {
	case ok:
		p.losses[i].removed = p.losses[i].removed || l.removed
	case len(p.losses) >= maxLost:
		p.forgotUntil = max(p.forgotUntil, l.until)
	default:
		p.losses = slices.Insert(p.losses, i, l)
	}
}

// note compares two views, of which this node is a member and not Down, and reports whether a member was lost between
// them.
func (p *memory) note(now, takeover, blind time.Duration, old, v *membership.View) (lost bool) {
	if !p.seen {
		p.seen, p.complete = true, len(v.Members) == 1
	}
	if p.number == 0 && !p.complete {
		p.incompleteUntil = now + blind
	}
	if self, _ := v.SelfMember(); self.UpNumber != 0 && self.Status != membership.Exiting {
		for i := range v.Members {
			p.number = max(p.number, v.Members[i].UpNumber)
		}
	}
	for _, mb := range v.Members {
		i, known := p.find(mb.ID)
		switch {
		case mb.Status == membership.Down && !known:
			lost = true
			p.add(lostMember{id: mb.ID, since: now}, takeover)
		case mb.Status == membership.Down && p.losses[i].learnt:
			lost = true
			p.losses[i].removed, p.losses[i].learnt = false, false
		case mb.Status != membership.Down && known:
			p.losses = slices.Delete(p.losses, i, i+1) // learnt of one before its join reached this node
		}
	}
	if old == nil {
		return lost
	}
	for _, mb := range old.Members {
		if _, still := v.Member(mb.ID); !still {
			lost = true
			p.add(lostMember{id: mb.ID, since: now, removed: true}, takeover)
		}
	}
	return lost
}

// inherit remembers those that were removed before this node's time, without proof of their end, where only proof frees
// shards: no time replaces what this node has not seen.
func (p *memory) inherit(now, takeover time.Duration, v *membership.View, ids []peer.ID) {
	if !p.proofOnly || p.number != 0 {
		return
	}
	for _, id := range ids {
		if _, in := v.Member(id); !in && p.lost(id) == nil {
			p.add(lostMember{id: id, since: now, removed: true, learnt: true}, takeover)
		}
	}
}

// prove notes that the process of id is gone for certain, and reports whether it is known here: a member of v, or one
// that was lost.
func (p *memory) prove(v *membership.View, id peer.ID) bool {
	if _, in := v.Member(id); id == v.Self || !in && p.lost(id) == nil {
		return false
	}
	p.leaveNotices.Add(id)
	p.dead.Add(id)
	return true
}

// age forgets removed members after their takeover time and reports whether anything that a coordinator may wait for
// has changed.
func (p *memory) age(now time.Duration) (changed bool) {
	n := len(p.losses)
	p.losses = slices.DeleteFunc(p.losses, func(l lostMember) bool {
		old := l.removed && now >= l.until && !p.waits(l)
		if old {
			p.leaveNotices.Remove(l.id)
			p.dead.Remove(l.id)
		}
		return old
	})
	for _, until := range []*time.Duration{&p.incompleteUntil, &p.forgotUntil} {
		if *until != 0 && now >= *until {
			*until = 0
			changed = true
		}
	}
	return changed || n != len(p.losses)
}

// waits reports whether no time ends a loss: only proof does, and there is none yet.
func (p *memory) waits(l lostMember) bool { return p.proofOnly && !p.leaveNotices.Has(l.id) }

func (p *memory) next() time.Duration {
	var d least
	d.add(p.incompleteUntil)
	d.add(p.forgotUntil)
	for i := range p.losses {
		if l := &p.losses[i]; l.removed && !p.waits(*l) {
			d.add(l.until)
		}
	}
	return d.at
}

// whole reports whether no loss within the takeover time can be missing.
func (p *memory) whole(now time.Duration) bool {
	return now >= p.incompleteUntil && now >= p.forgotUntil
}

// oldest returns the oldest member of a role in a view that may coordinate. A process that is proven dead never will
// again, whatever the view says of it.
func (p *memory) oldest(v *membership.View, role string) (oldest membership.Member, ok bool) {
	if len(p.dead) == 0 {
		return v.Oldest(role)
	}
	for _, mb := range v.Members {
		if mb.UpNumber == 0 || !mb.Status.Counts() || !mb.HasRole(role) || p.dead.Has(mb.ID) {
			continue
		}
		if !ok || mb.UpNumber < oldest.UpNumber {
			oldest, ok = mb, true
		}
	}
	return oldest, ok
}

// owes reports whether a member that this node no longer hears may still be hosting.
func (m *Machine) owes(id peer.ID) bool {
	if m.past.leaveNotices.Has(id) {
		return false
	}
	if _, in := m.view.Member(id); in || m.past.lost(id) != nil {
		return true
	}
	return !m.past.whole(m.now)
}

// tell writes down what this node remembers, for one that may be blind. It is empty when this node may miss something
// itself, or may not speak to the receiver (see above), or would have to name more members than limit: the other waits.
func (m *Machine) tell(to peer.ID, limit int) recentlyLost {
	mb, _ := m.view.Member(to)
	speaks := mb.UpNumber != 0 && mb.UpNumber <= m.past.number
	if !m.past.whole(m.now) || !speaks || len(m.past.losses)+len(m.view.Members) > limit {
		return recentlyLost{}
	}
	p := recentlyLost{Complete: true}
	for _, l := range m.past.losses {
		age := (m.now - l.since).Truncate(time.Millisecond)
		p.Lost = append(p.Lost, loss{ID: l.id, Age: age, Settled: m.past.leaveNotices.Has(l.id)})
	}
	for _, mb := range m.view.Members {
		if mb.Status != membership.Down {
			p.Roll = append(p.Roll, mb.ID)
		}
	}
	return p
}

// learn takes over what a member that is not blind remembers. A member on its roll that is none here was removed in a
// view that it had not seen yet: for this node it is lost from now on. One that joined so lately that this node's view
// lacks it is taken for lost until the view has it, which costs waiting, never safety.
func (m *Machine) learn(p recentlyLost) {
	if m.past.whole(m.now) || !p.Complete {
		return
	}
	m.past.complete = true
	m.past.incompleteUntil = 0
	m.learnCrowd(p)
	takeover := m.takeover()
	for _, l := range p.Lost {
		_, in := m.view.Member(l.ID)
		known := m.past.lost(l.ID) != nil
		if l.Settled && (in || known) {
			m.past.leaveNotices.Add(l.ID)
		}
		since := m.now - min(l.Age, m.now-1)
		if in || known || l.Settled || m.now >= since+takeover && !m.past.proofOnly {
			continue
		}
		m.past.add(lostMember{id: l.ID, since: since, removed: true, learnt: true}, takeover)
	}
	for _, id := range p.Roll {
		if _, in := m.view.Member(id); !in && m.past.lost(id) == nil {
			m.past.add(lostMember{id: id, since: m.now, removed: true, learnt: true}, takeover)
		}
	}
	m.reviewAll()
}

// learnCrowd counts named nodes that are no members here as gone lately. So no member of the time when the reported
// losses were seen is missing: all that have gone since are in the report, or are known here.
func (m *Machine) learnCrowd(p recentlyLost) {
	unknown := func(id peer.ID) bool {
		_, in := m.view.Member(id)
		return !in && m.past.lost(id) == nil
	}
	for _, l := range p.Lost {
		if unknown(l.ID) {
			m.past.population.left(l.ID.Addr)
		}
	}
	for _, id := range p.Roll {
		if unknown(id) {
			m.past.population.left(id.Addr)
		}
	}
}

// Population: how many members there have been lately, by which the takeover time is measured.
//
// A cut-off owner stops by the patience of its resolver, which goes by the number of members that it knew. Why the
// number here is never smaller is argued in docs/contributing/resolver.md ("Which number the other side can have
// used"). In short: every member counted there has its up-number in views of this node too, or was removed lately, and
// removed members count for ten more minutes. Addresses are counted, not incarnations: of two at one address one is
// Down before the other comes Up, so no owner has counted both, and a process that crashes and restarts for ever makes
// nobody wait longer. The sum is too high when members were replaced at other addresses, which costs waiting, never
// safety.

const (
	populationPart  = time.Minute // the removed are counted in parts of the window
	populationParts = 11          // ten whole parts, and the one that has begun
)

// population counts addresses of members with an up-number: those of the newest view and those that have gone in the
// last ten minutes.
type population struct {
	view    *membership.View
	present int                 // addresses of members of view with an up-number
	highest uint32              // highest up-number seen: there never were more members with one
	gone    map[peer.Addr]int64 // in which part the last one of an address went
	part    int64               // the newest part
}

// pass lets time pass: members that went too long ago no longer count.
func (c *population) pass(now time.Duration) {
	part := int64(now / populationPart)
	if part <= c.part {
		return
	}
	c.part = part
	for a, went := range c.gone { // deletes only: the order does not show
		if part-went >= populationParts {
			delete(c.gone, a)
		}
	}
}

// note takes over a new view; old may be nil.
func (c *population) note(old, v *membership.View) {
	c.view, c.present = v, 0
	var last peer.Addr
	for i := range v.Members {
		m := &v.Members[i]
		if m.UpNumber == 0 {
			continue
		}
		c.highest = max(c.highest, m.UpNumber)
		if m.ID.Addr != last { // members of one address stand side by side
			c.present++
			last = m.ID.Addr
		}
	}
	if old == nil {
		return
	}
	for i := range old.Members {
		if _, still := v.Member(old.Members[i].ID); !still && old.Members[i].UpNumber != 0 {
			c.left(old.Members[i].ID.Addr)
		}
	}
}

// left counts one that has gone now from an address.
func (c *population) left(from peer.Addr) {
	if c.gone == nil {
		c.gone = map[peer.Addr]int64{}
	}
	c.gone[from] = c.part
}

// members is how many there have been in the window, each address once.
func (c *population) members() int {
	n := c.present
	for a := range c.gone { // counts only: the order does not show
		if !c.has(a) {
			n++
		}
	}
	return n
}

// has reports whether the newest view has a member with an up-number at an address.
func (c *population) has(a peer.Addr) bool {
	if c.view == nil {
		return false
	}
	list := c.view.Members
	at, _ := slices.BinarySearchFunc(list, a, func(m membership.Member, a peer.Addr) int { return m.ID.Addr.Compare(a) })
	for ; at < len(list) && list[at].ID.Addr == a; at++ {
		if list[at].UpNumber != 0 {
			return true
		}
	}
	return false
}

// Takeover returns how long a shard must wait if its owner is seen lost now, by the number of members lately.
func (m *Machine) Takeover() time.Duration { return m.takeover() }

// takeover is how long a shard must wait if its owner is seen lost now.
func (m *Machine) takeover() time.Duration {
	if m.cfg.TakeoverFor == nil {
		return m.cfg.TakeoverTime
	}
	return m.cfg.TakeoverFor(max(m.past.population.members(), 1))
}

// blindTakeover is the same for losses that this node may have missed: nobody tells it how many members there were, but
// never more than there are up-numbers.
func (m *Machine) blindTakeover() time.Duration {
	if m.cfg.TakeoverFor == nil {
		return m.cfg.TakeoverTime
	}
	return max(m.takeover(), m.cfg.TakeoverFor(int(m.past.population.highest)))
}

// Loss is a member that was lost lately, as Losses tells it.
type Loss struct {
	ID     peer.ID
	Since  time.Duration // when this node first saw it Down or removed
	Until  time.Duration // when its shards may live elsewhere at the earliest
	Proven bool          // nothing lives there any more: it said so, or its process is proven dead
}

// Losses appends the members with a takeover time that is not over to dst, and with ProofOnly those without proof of
// their end.
func (m *Machine) Losses(dst []Loss) []Loss {
	for _, l := range m.past.losses {
		dst = append(dst, Loss{l.id, l.since, l.until, m.past.leaveNotices.Has(l.id)})
	}
	return dst
}
