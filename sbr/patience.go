// Patience: when the picture has stood still for long enough, what puts a decision off, and when it has gone on
// changing for too long (MEM-10).

package sbr

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// lateBy is how late a step may be before what was due counts as overslept.
const lateBy = time.Second

// due is when something is to be decided, a warning aside.
func (m *Machine) due() time.Duration {
	at := max(m.decideAt(), m.againAt)
	if end, ok := m.endsAt(); ok {
		at = min(at, end)
	}
	return max(at, m.lookAt)
}

// overslept notices that this node slept through a decision. What it knows is as old as its sleep: it stops at once, as
// if it lost, and looks again when its peers have had the time to tell it what has happened.
func (m *Machine) overslept() {
	if m.now > m.due()+lateBy {
		m.listen()
		m.first, m.flapped, m.unsure = m.now, false, false // what changed while it slept it did not see
		if m.heldAt >= 0 {
			m.heldAt = m.now
		}
		m.suspend("it overslept a decision")
	}
}

// listen puts every decision off until the members that speak to this node have sent it what it missed, whatever
// arrives meanwhile. A member that confirmed something before confirms it again. With detectors that bear little that
// takes less: else a node that sleeps briefly each two seconds would never decide (storm 13100003591).
func (m *Machine) listen() {
	m.contact = m.contact[:0]
	m.lookAt = m.now + min(settle, m.cfg.Silence*2/5)
}

// keepLate keeps which of these count and are not accused, or are in contact: what they confirmed they confirmed before
// they fell silent. A peer that is no longer late may have slept; give it time to withdraw its accusations. A member
// that this node accuses has not been heard: its silence has become a verdict. A peer that does not count any more has
// not been heard either.
func (m *Machine) keepLate(ids []peer.ID) {
	for _, id := range m.silent {
		if !slices.Contains(ids, id) && !m.accuses(id) && countsIn(m.view, id) {
			m.contactAt = m.now
		}
	}
	m.silent = append(m.silent[:0], ids...)
	was := m.late
	m.late = nil
	for _, list := range [...][]peer.ID{ids, m.unheard} {
		for _, id := range list {
			if countsIn(m.view, id) && (!m.accused.Has(id) || m.contact.Has(id) && !m.accuses(id)) {
				m.late.Add(id)
				if !was.Has(id) {
					m.lateAt = m.now
				}
			}
		}
	}
}

// countsIn reports whether id is a member that counts in a view, which may be nil.
func countsIn(v *membership.View, id peer.ID) bool {
	if v == nil {
		return false
	}
	x, ok := v.Member(id)
	return ok && counts(x.Status)
}

// accuses reports whether this node itself holds a member unreachable.
func (m *Machine) accuses(id peer.ID) bool {
	return m.view != nil && slices.ContainsFunc(m.view.Accusations, func(a membership.Accusation) bool {
		return a.Observer == m.self && a.Subject == id
	})
}

const (
	lookEvery = 250 * time.Millisecond // how often a decision that waits for late members is looked at
	lateMost  = 7 * time.Second        // how long it waits at most: a silence is a verdict by then
)

// most is how long after the patience a decision is put off at most while this node goes on.
func (m *Machine) most() time.Duration { return min(lateMost, m.stable*3/4) }

// waits reports whether a decision that is due is put off because the picture may be about to change: a member that
// counts is late, or it hangs on whether a member that is back for a moment, or late, is gone. A cut that nobody has
// noticed yet would have its two sides decide on different pictures. A node goes on meanwhile for no longer than the
// takeover time covers, and not until all would have to go, unless it lives whatever becomes of them. If it would not
// live with the late members on the other side, it stops then. It waits for as long as a silence takes to be a verdict.
func (m *Machine) waits() bool {
	lives, hangs := m.hangs()
	if len(m.late) == 0 && !hangs {
		return false
	}
	if m.waitEnd == 0 {
		m.waitEnd = m.quietAt + m.most()
		if limit, ok := m.cfg.unstableFor(m.stable); ok && m.changes > 0 {
			m.waitEnd = min(m.waitEnd, m.first+limit)
		}
		m.waitEnd -= lookEvery
	}
	m.againAt = m.now + lookEvery
	if m.now < m.waitEnd {
		m.againAt = min(m.againAt, m.waitEnd)
		return true
	}
	// A detector that has learned patience may be slower than the longest silence of others.
	end := max(m.waitEnd, m.heldAt, m.movedAt) + m.Bound()
	switch {
	case len(m.late) > 0 && !m.livesWithout(m.late):
		m.hold("somebody is late, and without them it would not live")
		end = max(m.heldAt, m.movedAt, m.lateAt) + m.cfg.Silence
	case !hangs:
		return false
	case !lives && m.now >= m.waitEnd+lookEvery:
		m.hold("whether it goes hangs on somebody who was back for a moment")
	}
	m.sure = hangs && (lives || m.heldAt >= 0) && m.now < end
	m.againAt = min(m.againAt, end)
	return m.now < end
}

// livesWithout reports whether this node would live if these were lost, too.
func (m *Machine) livesWithout(ids peer.Set) bool {
	d := m.cfg.Decide(m.without(ids))
	return d.Lives
}

// without is the situation in which these are lost, too.
func (m *Machine) without(ids peer.Set) Situation {
	s := m.situation()
	s.Contact, s.Accusations = s.Contact.Clone(), slices.Clone(s.Accusations)
	for _, id := range ids {
		s.Contact.Remove(id)
		s.Accusations = append(s.Accusations, membership.Accusation{Observer: m.self, Subject: id})
	}
	return s
}

// hold stops this node before it has decided: it must not go on for longer, and does not know enough to end.
func (m *Machine) hold(why string) {
	if m.heldAt < 0 {
		m.heldAt = m.now
		m.suspend(why)
	}
}

// anew begins the patience anew. A member that a decision waited for has had the silence that others are given, so when
// it does turn out to be lost, what is left is that all on this side get to know it.
func (m *Machine) anew(onlyLost bool) {
	if d := m.spread(); onlyLost && (m.now+d <= m.waitEnd || (m.heldAt >= 0 || m.sure) && m.waitEnd > 0) {
		m.quietAt = m.now + d
		return
	}
	m.quietAt, m.waitEnd, m.movedAt = m.now+m.stable, 0, m.now
}

// calm is how long a picture must have stood still to be decided when there is no time left for the patience: then all
// that was cut off before has been noticed, and by all in a cluster in which everybody watches everybody.
func (m *Machine) calm() time.Duration {
	d := m.cfg.Silence
	if !m.cfg.watchesAll(max(len(m.settled), len(m.view.Members))) {
		d += m.spread()
	}
	return min(d, m.stable)
}

// pressed returns since when there is no time left for the patience; ok is false while there is.
func (m *Machine) pressed() (since time.Duration, ok bool) {
	if m.heldAt >= 0 {
		return m.heldAt, true
	}
	limit, ok := m.cfg.unstableFor(m.stable)
	since = m.first + limit
	return since, ok && m.changes > 0 && m.now >= since
}

// endsAt is when a picture that does not come to rest stops this node, or ends all. It need not come to rest when some
// came back in between; of members that are only lost, one after the other, there is an end. One in which nothing but
// members that came back has changed for half the time that it needs is given all of it, and then the time in which a
// word may be taken back: of these there is an end, too. And when a member on our side was downed, another has decided
// by a picture that is gone: what it would have had us do is not known any more.
func (m *Machine) endsAt() (at time.Duration, ok bool) {
	limit, ok := m.cfg.unstableFor(m.stable)
	ok = ok && m.changes > 0 && !m.sure
	if m.heldAt >= 0 {
		return lastAt(m, m.heldAt), ok && (m.flapped || m.unsure)
	}
	return m.first + limit, ok
}

// lastAt is until when a picture may come to rest for which there has been no time left since.
func lastAt(m *Machine, since time.Duration) time.Duration {
	limit, _ := m.cfg.unstableFor(m.stable)
	at := since + limit
	if calm := m.calm(); m.worseAt+calm/2 <= at {
		at = max(at, m.movedAt+calm)
		if len(m.contact) > 0 {
			at = max(at, min(m.contactAt+m.takeBack(), heardUntil(m, m.movedAt+calm)))
		}
	}
	if m.unsure {
		at = max(m.first+limit, m.lookAt)
	}
	return max(at, m.lookAt)
}

// tooLong stops this node when what is reachable has been changing for too long, after having warned of it. It decides
// as soon as the picture has stood still for long enough; when it goes on changing, back and forth, all go.
func (m *Machine) tooLong() {
	limit, ok := m.cfg.unstableFor(m.stable)
	if ok && m.changes > 0 && !m.warned && m.now >= m.warnAt() {
		m.warned = true
		m.tell(Unstable, fmt.Sprintf("what is reachable has changed %d times in %v: this node stops at %v unless it "+
			"stands still", m.changes, m.now-m.first, limit))
	}
	at, ok := m.endsAt()
	if !ok || m.now < at {
		return
	}
	if m.heldAt < 0 && !m.unsure || m.now < m.lookAt {
		m.hold("what is reachable has not stood still for long enough")
		return
	}
	if m.flaps.beside {
		return
	}
	s := m.situation()
	v := look(m.cfg.Role, &s)
	d := m.cfg.Decide(s)
	d.Outcome, d.Mark, d.Down, d.Lives = DownEverybody, peer.ID{}, v.goers(DownEverybody), false
	d.Cause = membership.CauseUnstable
	d.Why = fmt.Sprintf("what is reachable changed %d times in %v: nobody can be sure", m.changes, m.now-m.first)
	if m.blamed && m.others(accusedByOthers(m.view)) > 0 || m.flaps.who.Has(m.self) && m.others(m.flaps.who) > 0 {
		d.Down = peer.SetOf(m.self) // they may be well without it: each of them counts for itself
	}
	m.act(d, true)
}

// accusedByOthers returns the members that another member than the view's own node holds unreachable: the word of a
// node that is at fault itself, as one that comes back from behind a cut may be, says nothing about the others.
func accusedByOthers(v *membership.View) (s peer.Set) {
	for _, a := range v.Accusations {
		if o, ok := v.Member(a.Observer); ok && a.Observer != v.Self && o.Status != membership.Down {
			s.Add(a.Subject)
		}
	}
	return s
}

// others returns how many more of the members that count are not accused than are.
func (m *Machine) others(accused peer.Set) (more int) {
	for i := range m.view.Members {
		x := &m.view.Members[i]
		switch {
		case !counts(x.Status):
		case accused.Has(x.ID):
			more--
		default:
			more++
		}
	}
	return more
}

// warnAt is when an instability is reported: when others would have been decided some time ago.
func (m *Machine) warnAt() time.Duration { return m.first + m.stable*5/4 }

// settle is how long accusations must have stood still beyond what changes the picture: three gossip rounds, in which
// the members that can hear us confirm them. It never delays a decision by more than that.
const settle = 2 * time.Second

// spread is how long all on one side take to get to know and to confirm an accusation.
func (m *Machine) spread() time.Duration { return min(settle, m.stable/4) }

// takeBack is how long the accusers of a member that has come into contact, or members that slept until now, have to
// take their word back: a sleep that is not noticed, a probe and its answer, and the gossip about it.
func (m *Machine) takeBack() time.Duration { return min(2*settle, m.stable*7/10) }

// restAt is when the picture will have stood still for long enough.
func restAt(m *Machine) time.Duration {
	if since, pressed := m.pressed(); pressed && !m.unsure {
		return min(m.quietAt, max(m.movedAt+m.calm(), since))
	}
	return m.quietAt
}

// heardUntil is until when a picture that came to rest then, with no time left, waits for what is said of those in
// contact. A latecomer is given the time for its accusers to take their word back, for a node that has stopped is in no
// hurry; but not for ever: one may go and come without end.
func heardUntil(m *Machine, rest time.Duration) time.Duration {
	return max(rest+m.most(), min(m.metAt+m.takeBack(), rest+m.Bound()))
}

// given is until when members have the time to confirm or withdraw a change: most, or as much of it as unrest leaves,
// but least in any case.
func given(m *Machine, change, least, most time.Duration) time.Duration {
	if limit, ok := m.cfg.unstableFor(m.stable); ok && m.changes > 0 {
		return max(change+least, min(change+most, m.first+limit-lookEvery))
	}
	return change + most
}

// decideAt is when the picture will have stood still for long enough. What is said of accused members, and which of
// them are in contact, does not begin the patience anew: it puts the decision off for as long as others take to confirm
// it, or to take it back. With a short patience spread and takeBack are short as well, and it is put off for longer
// where unrest leaves the time: a decision before a word is taken back may end a healthy member.
func (m *Machine) decideAt() time.Duration {
	quiet, rows := restAt(m), given(m, m.rowsAt, m.spread(), settle)
	if len(m.contact) > 0 {
		rows = max(rows, given(m, m.contactAt, m.takeBack(), 2*settle))
	}
	since, pressed := m.pressed()
	switch _, ends := m.endsAt(); {
	case pressed:
		rows = min(rows, heardUntil(m, max(since, quiet)))
	case !ends:
		rows = min(rows, quiet+m.most())
	}
	return max(quiet, rows, m.lookAt)
}

// anyway reports whether there is no time left, all that a decision waits for is that the accused and their accusers
// have their say, and this node lives whatever that is. Then it goes on meanwhile, as if it had decided: the picture
// has stood still for long enough. A member in contact counts with its side, or is gone; that its accusers stand by
// their word costs this node nothing, unless it is one of them. Those that it accuses itself have had the time to
// confirm that.
func anyway(m *Machine) bool {
	limit, ok := m.cfg.unstableFor(m.stable)
	if !ok || m.changes == 0 || m.heldAt >= 0 || m.unsure || !indirectly(m) ||
		m.now < max(m.first+limit, restAt(m), m.saidAt+m.spread(), m.lookAt) {
		return false
	}
	s := m.situation()
	s.Late = m.late
	d := m.cfg.Decide(s)
	return d.Lives && !d.next.IsZero() && m.livesWithout(peer.SetOf(append(m.contact.Clone(), m.late...)...))
}

// flapping returns what this node decides when there is no time left and the picture has not come to rest because
// members went and came back: without all of these its side lives. It is not one of them, and nobody on our side was
// downed by a decision that it does not know.
func flapping(m *Machine) (d Decision, ok bool) {
	_, ends := m.cfg.unstableFor(m.stable)
	if !ends || m.changes == 0 || !m.flapped || m.unsure || !indirectly(m) {
		return Decision{}, false
	}
	m.flaps.settle(m.view, m.now, m.stable)
	if len(m.flaps.who) == 0 || m.flaps.who.Has(m.self) {
		return Decision{}, false
	}
	d = m.cfg.Decide(m.without(m.flaps.who))
	return d, d.Lives && d.Outcome == DownUnreachable
}

// looksAt is when this node stops, goes, or looks what becomes of the flappers.
func looksAt(m *Machine) (at time.Duration, ok bool) {
	at, ok = m.endsAt()
	if look := max(knownAt(m), m.flaps.againAt); m.flaps.beside && (!ok || look < at || at <= m.lookedAt) {
		return look, true
	}
	return at, ok
}

// knownAt is when there is no time left, and nobody has become a flapper for so long that all on this side know of
// each, and each that could be reached would have shown it.
func knownAt(m *Machine) time.Duration {
	limit, _ := m.cfg.unstableFor(m.stable)
	return max(m.first+limit, m.flaps.grownAt+m.calm(), m.lookAt)
}

// rides reports whether this node goes on beside flappers: its side lives without them, and without the late members,
// and may down them. They are given the time in which the picture may come to rest; then end is true, and they go.
func rides(m *Machine) (d Decision, goesOn, end bool) {
	d, ok := flapping(m)
	m.flaps.beside, m.flaps.againAt = ok, m.now+lookEvery
	if !ok || m.now < knownAt(m) ||
		len(m.late) > 0 && !m.livesWithout(peer.SetOf(append(m.late.Clone(), m.flaps.who...)...)) {
		return d, false, false
	}
	since, _ := m.pressed()
	return d, m.heldAt < 0, m.now >= lastAt(m, since)
}

// endFlaps downs the flappers.
func endFlaps(m *Machine, d Decision) {
	d.Cause = membership.CauseUnstable
	d.Why = fmt.Sprintf("what is reachable changed %d times in %v: who went and came back goes; without them %s",
		m.changes, m.now-m.first, d.Why)
	m.act(d, true)
}
