// See: what a new view changes about the patience of the resolver, and which members a member that never came Up has
// lost.

package sbr

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// see takes a new view. The picture has moved when a member became unreachable or reachable again, was downed, came Up
// or became Exiting: patience begins anew. Joining, leaving, removals, and further accusations against someone accused
// do not move it.
func (m *Machine) see(v *membership.View) {
	old := m.view
	m.view = v
	was := m.accused
	m.accused = accusedIn(v)
	m.parting.look(old, v, m.accused)
	if v.Converged {
		m.stable = m.cfg.StableFor(v.CountUp())
		m.settled = m.settled[:0]
		for i := range v.Members {
			if counts(v.Members[i].Status) {
				m.settled = append(m.settled, v.Members[i].ID)
			}
		}
	} else if s := m.cfg.StableFor(numbered(v)); s < m.stable {
		m.stable = s // all had seen the removed ones going, whether or not this node got to know that they had
	}
	near := m.nearDowned(old, was)
	m.forgetContact(was, old, v)
	m.stray.look(m, old, was)
	more, fewer := m.moves(was, m.accused)
	weighty := 0
	for _, id := range was {
		weighty += m.weighs(id, !m.accused.Has(id))
	}
	m.flapped, m.unsure = m.flapped || weighty > 0, m.unsure || near
	for _, id := range m.accused {
		weighty += m.weighs(id, !was.Has(id))
	}
	status, downs := changed(old, v)
	if more || status {
		m.worseAt = m.now
	}
	if more || fewer || status {
		m.anew(!fewer && !status)
	}
	m.flaps.look(v, m.now, m.stable)
	m.count(weighty + downs)
	m.blamed = m.changes > 0 && (m.blamed || m.accused.Has(m.self) || m.others(m.accused) < 0)
	_, m.flaps.beside = flapping(m)
	m.heal()
	m.leaseView()
	m.warnQuorum(old, v)
}

// numbered returns how many members have an up-number, whatever has become of them since.
func numbered(v *membership.View) int {
	n := 0
	for i := range v.Members {
		if v.Members[i].UpNumber != 0 {
			n++
		}
	}
	return n
}

// accusedIn returns the members that one that is not Down holds unreachable; this node may be one.
func accusedIn(v *membership.View) peer.Set {
	s := v.Unreachable.Clone()
	for _, a := range v.Accusations {
		if o, ok := v.Member(a.Observer); ok && a.Subject == v.Self && o.Status != membership.Down {
			s.Add(v.Self)
			break
		}
	}
	return s
}

// moves reports whether a member entered the accused, and whether one that is still a member left them.
func (m *Machine) moves(was, now peer.Set) (more, fewer bool) {
	if was.Equal(now) {
		return false, false
	}
	for _, id := range now {
		more = more || !was.Has(id)
	}
	for _, id := range was {
		_, ok := m.view.Member(id)
		fewer = fewer || ok && !now.Has(id)
	}
	return more, fewer
}

// weighs is 1 when a change in the reachability of id counts as instability: only of Up and Leaving members, and those
// on the way to a full shutdown.
func (m *Machine) weighs(id peer.ID, changed bool) int {
	if x, ok := m.view.Member(id); changed && ok && counts(x.Status) {
		return 1
	}
	return 0
}

// changed compares statuses: moved says that a member came Up, became Exiting or Down; downs is how many that counted
// were downed.
func changed(old, v *membership.View) (moved bool, downs int) {
	if old == nil {
		return true, 0
	}
	for i := range v.Members {
		x := &v.Members[i]
		was, ok := old.Member(x.ID)
		if ok && was.Status == x.Status {
			continue
		}
		switch x.Status {
		case membership.Up, membership.Exiting:
			moved = true
		case membership.Down:
			moved = true
			if ok && counts(was.Status) {
				downs++
			}
		}
	}
	return moved, downs
}

// nearDowned reports whether a member has been downed that counted and was on our side. That a process has been started
// anew at its address is a fact, and nobody's decision; and a member that has gone for instability by its own word has
// decided about itself: nobody lives by that, and the members that it downs beside itself were downed by another.
func (m *Machine) nearDowned(old *membership.View, accused peer.Set) bool {
	if old == nil {
		return false
	}
	for i := range m.view.Members {
		x := &m.view.Members[i]
		if x.Status == membership.Down && !anew(x.Cause) && !m.flaps.known(x) && !goneAlone(x) &&
			(!accused.Has(x.ID) || m.contact.Has(x.ID)) {
			if was, ok := old.Member(x.ID); ok && counts(was.Status) {
				return true
			}
		}
	}
	return false
}

// anew reports whether a member was downed because a new process started at its address.
func anew(c membership.Cause) bool {
	return c == membership.CauseReplaced || c == membership.CauseProvenDead
}

// goneAlone reports whether a member has downed itself for instability.
func goneAlone(x *membership.Member) bool { return x.Cause == membership.CauseUnstable && x.By == x.ID }

// count notes changes that weigh, and forgets them when no member that counts is accused any more. Time alone does not
// make it forget: what stands still is decided after the patience anyway, and a decision ends the count too.
func (m *Machine) count(changes int) {
	if changes > 0 {
		if m.changes == 0 {
			m.first, m.warned = m.now, false
		}
		m.changes += changes
	}
	for _, id := range m.accused {
		if x, ok := m.view.Member(id); ok && counts(x.Status) {
			return
		}
	}
	m.calmed()
}

// forgetContact removes from the contacts the members that are no longer accused, and those with a new accuser: they
// must confirm that state first. One more accuser of a member that could confirm all accusations so far, and has not,
// changes nothing: nobody could hear it before, and one fewer can now.
func (m *Machine) forgetContact(was peer.Set, old, v *membership.View) {
	var before []membership.Accusation
	if old != nil {
		before = old.Accusations
	}
	rows, came := false, false
	for _, a := range v.Accusations {
		for len(before) > 0 && compare(before[0], a) < 0 {
			before, rows = before[1:], true
		}
		if len(before) > 0 && before[0] == a {
			before = before[1:]
			continue
		}
		fresh := !was.Has(a.Subject) || m.contact.Has(a.Subject)
		rows = rows || fresh || m.now < m.rowsAt+m.spread()
		came = came || a.Observer == m.self && (fresh || m.now < m.saidAt+m.spread())
		m.contact.Remove(a.Subject)
		m.met.Remove(a.Subject)
	}
	if rows || len(before) > 0 {
		m.rowsAt = m.now
	}
	if came {
		m.saidAt = m.now
	}
	past := func(id peer.ID) bool { return !m.accused.Has(id) }
	m.contact, m.met = slices.DeleteFunc(m.contact, past), slices.DeleteFunc(m.met, past)
}

// meets notes that an accused member has come into contact. When this node has slept it comes again: that is no news
// of it.
func meets(m *Machine, id peer.ID) {
	m.contact.Add(id)
	m.contactAt = m.now
	if !m.met.Has(id) {
		m.met.Add(id)
		m.metAt = m.now
	}
}

// heal says that the reason of a suspension has gone: nobody is accused any more.
func (m *Machine) heal() {
	if m.open() {
		return
	}
	m.waitedAt, m.lostAt = -1, -1
	if self, ok := m.view.SelfMember(); m.stopped && !m.bound && ok && decides(self.Status) {
		m.stopped = false
		m.out.Suspend = &Suspend{On: false, Why: "all members are reachable again"}
	}
}

// warnQuorum reports when a member came Up beyond what the quorum is made for.
func (m *Machine) warnQuorum(old, v *membership.View) {
	if m.cfg.Strategy != StaticQuorum {
		return
	}
	n, new := 0, false
	for i := range v.Members {
		x := &v.Members[i]
		if !counts(x.Status) || !x.HasRole(m.cfg.Role) {
			continue
		}
		n++
		if was, ok := old.Member(x.ID); x.Status == membership.Up && (!ok || was.Status != membership.Up) {
			new = true
		}
	}
	if most := 2*m.cfg.QuorumSize - 1; new && n > most {
		m.tell(QuorumExceeded, fmt.Sprintf("%d members, the quorum of %d is made for at most %d: when one is lost, all go",
			n, m.cfg.QuorumSize, most))
	}
}

// stray is what a member that never came Up knows of those that did. Nobody counts it and it hosts nothing, so when it
// has lost them all it goes alone, and harms no side. What others like it do must not keep it: each that ends is a
// change of the picture, and takes with it what it said of lost members.
//
// Where nobody ever came Up, as while a cluster waits for its least number of members, it waits with the others, and
// lets more of them in. But one that has slept lets nobody in before all others have confirmed it, and one of them that
// is out of reach may never do so: a new process at its address cannot take its place, for nobody lets that in. So
// while it waits for that, those out of reach are the missing ones, and the others change nothing.
type stray struct {
	since   time.Duration // since when none of them is in reach; where nobody came Up: one that joins is not
	missing peer.Set      // they all, while none is, or these; the accusers of some may have ended
	saidAt  time.Duration // when one of them was accused last, or an accuser took that back
	until   time.Duration // until when members with ended accusers are missing; zero: all are accused
	brief   bool          // some of these had not had the time to show that they hear this node
	dozed   bool          // this node has slept, and others have not confirmed since then that it is a member
}

// look finds the members in reach: after a new view, with old the one before it and was the accused there, or after one
// has come into contact, with old nil.
func (s *stray) look(m *Machine, old *membership.View, was peer.Set) {
	self, ok := m.view.SelfMember()
	if !ok || !joins(self.Status) || m.cfg.Strategy == Off {
		*s = stray{dozed: s.dozed}
		return
	}
	if !s.is(m.now) {
		*s = stray{dozed: s.dozed}
	}
	var missing peer.Set
	gone, forms := false, s.dozed && !slices.ContainsFunc(m.view.Members, func(x membership.Member) bool {
		return counts(x.Status)
	})
	for i := range m.view.Members {
		x := &m.view.Members[i]
		if x.ID == m.self || !counts(x.Status) && (!forms || !joins(x.Status)) {
			continue
		}
		accused := m.accused.Has(x.ID)
		switch back := tookBack(old, m.view, x.ID); {
		case accused && !m.contact.Has(x.ID):
			if back || old != nil && !was.Has(x.ID) {
				s.saidAt = m.now
			}
		case !accused && !back && s.missing.Has(x.ID) && (s.until == 0 || m.now < s.until):
			if gone = true; was.Has(x.ID) {
				s.brief = s.brief || m.now < max(s.since, s.saidAt)+m.stable/2
			}
			if s.until == 0 {
				s.until = m.now + m.cfg.Silence + m.stable
			}
		case forms:
			continue
		default:
			*s = stray{dozed: s.dozed}
			return
		}
		missing.Add(x.ID)
	}
	if len(s.missing) == 0 {
		s.since = m.now
	}
	if s.missing = missing; !gone {
		s.until, s.brief = 0, false
	}
}

// tookBack reports whether a member that accused id before, and is no more lost than before, has withdrawn that.
func tookBack(old, v *membership.View, id peer.ID) bool {
	return old != nil && slices.ContainsFunc(old.Accusations, func(a membership.Accusation) bool {
		before, _ := old.Member(a.Observer)
		o, ok := v.Member(a.Observer)
		return a.Subject == id && ok && before.Status != membership.Down && o.Status != membership.Down &&
			!slices.Contains(v.Accusations, a)
	})
}

// is reports whether none of those that came Up is in reach. One with ended accusers is accused again by another member
// within a silence, or it is in reach.
func (s *stray) is(now time.Duration) bool {
	return len(s.missing) > 0 && (s.until == 0 || now < s.until)
}

// due is when a stray member goes: all that count have been out of reach for the patience, and any that can hear this
// node have had the time to show it since the last word about them.
func (s *stray) due(m *Machine) (at time.Duration, ok bool) {
	return max(s.since+m.stable, s.saidAt+m.spread(), m.lookAt), s.is(m.now) && !s.brief && m.lostAt < 0
}

// goes lets a stray member go when that is due: alone, for others like it may reach members that it does not.
func (s *stray) goes(m *Machine) bool {
	at, ok := s.due(m)
	if !ok || m.now < at {
		return false
	}
	d := m.cfg.Decide(m.without(s.missing))
	d.Down, d.Lives = peer.SetOf(m.self), false
	m.act(d, true)
	return true
}
