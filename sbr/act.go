// Act: from a decision to orders: suspend this node, down members, ask for the lease.

package sbr

import (
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// decide makes the decision that is due. Every node makes it from its own view and stops itself when it loses; the
// leader of a side carries it out for all.
func (m *Machine) decide() {
	m.waitEnd = 0
	s := m.situation()
	s.Late = m.late
	d := m.cfg.Decide(s)
	if d.Lives && len(m.late) > 0 {
		// Late members may be cut off already, and count us as lost.
		if x := m.cfg.Decide(m.without(m.late)); !x.Lives {
			x.Why = "with those who are late on the other side: " + x.Why
			x.Down = peer.SetOf(m.self) // the others may have heard them
			m.act(x, true)
			return
		}
	}
	// Most are lost by the word of this node alone, in a cluster in which not everybody watches everybody. Members that it
	// does not watch look as if they were on its side, and may be well on the other. Members on its side go by themselves.
	if d.Outcome == DownReachable && !m.cfg.watchesAll(max(len(m.settled), len(m.view.Members))) &&
		m.others(m.accused) < 0 && m.others(accusedByOthers(m.view)) > 0 {
		d.Down = peer.SetOf(m.self)
		m.act(d, true)
		return
	}
	if d.Outcome != AskLease {
		if d.first.IsZero() && !d.Lives { // each for itself: a suspected member, or one that never came Up, downs no other
			d.Down = peer.SetOf(m.self)
			m.act(d, true)
			return
		}
		// More than one may take itself for the leader: they decide the same, and downing twice is harmless. So when nobody
		// has carried it out by the time at which it would be decided again, everybody does. A leader that is
		// indirectly connected does not: it does not hear the member that it accuses, so it cannot know whether that one has
		// been cut off meanwhile and lives over there. It leaves the others to those above suspicion.
		n := len(m.log)
		again := n > 0 && d.Lives && m.log[n-1].Lives && slices.Equal(m.log[n-1].Down, d.Down)
		leads := m.view.Leader == m.self && !d.Indirect.Has(m.self)
		m.act(d, d.first == m.self || d.next == m.self || leads || again)
		return
	}
	if d.Indirect.Has(m.self) || d.Lost.Has(m.self) {
		// It goes with the lease and without: it must not ask, for a second asker on one side would be refused and take
		// its own side down. A member lost in its own eyes is under quarantine.
		d.Down, d.Lives = peer.SetOf(append(d.Indirect.Clone(), m.self)...), false
		m.act(d, m.view.Leader == m.self)
		return
	}
	// Also when it was acquired before: it may have ended meanwhile, and another side have it.
	carrier := d.first == m.self
	d.Lease = LeasePending
	m.note(&d, carrier)
	m.waitedAt = m.waitFor()
	m.quietAt = m.now + m.stable
	m.calmed()
	if carrier {
		m.askLease(d)
	}
}

// calmed forgets the changes that came before a decision, or before all was well.
func (m *Machine) calmed() {
	m.changes, m.heldAt = 0, -1
	m.warned, m.flapped, m.unsure, m.blamed, m.flaps.beside = false, false, false, false, false
}

// waitFor is until when a node waits for what the lease decides before it stops itself. It is no later than all would
// have gone for instability, so that the takeover time covers it, but for a second that is always given.
func (m *Machine) waitFor() time.Duration {
	at := m.now + m.cfg.LeaseDelay + m.cfg.LeaseTimeout + settle
	limit := m.now + m.stable*3/4
	if m.changes > 0 {
		limit = m.first + m.stable*7/4
	}
	return max(m.now+leastWait, min(at, limit))
}

// leastWait is how long an answer about the lease is waited for in any case.
const leastWait = time.Second

// act takes a decision as final.
func (m *Machine) act(d Decision, carryOut bool) {
	m.note(&d, carryOut)
	m.quietAt = m.now + m.stable
	m.calmed()
	if !d.Lives {
		m.suspend(d.Why)
		if m.lostAt < 0 {
			m.lostAt, m.cause = m.now+settle, d.Cause
		}
	} else if m.stopped && !m.bound {
		m.stopped = false
		m.out.Suspend = &Suspend{}
	}
	if !carryOut {
		return
	}
	for _, id := range d.Down {
		if id != m.self {
			m.out.Down = append(m.out.Down, membership.DownCommand{ID: id, Cause: d.Cause})
		}
	}
	if !d.Lives {
		m.out.Down = append(m.out.Down, membership.DownCommand{ID: m.self, Cause: d.Cause})
	}
}

// note keeps and reports a decision, unless it only repeats the last one.
func (m *Machine) note(d *Decision, leader bool) {
	d.At, d.Leader, d.StableAfter = m.now, leader, m.stable
	if n := len(m.log); n > 0 && m.log[n-1].same(*d) {
		return
	}
	if len(m.log) == MaxDecisions {
		m.log = append(m.log[:0], m.log[1:]...)
	}
	m.log = append(m.log, *d)
	m.out.Decisions = append(m.out.Decisions, *d)
}

func (m *Machine) suspend(why string) {
	if !m.stopped {
		m.stopped = true
		m.out.Suspend = &Suspend{On: true, Why: why}
	}
}

// LeaseOp is one thing to do with the lease: acquire it for this node, or give it back. The answer is a LeaseResult
// with the same Op; after Deadline (on this node's clock) it comes too late.
type LeaseOp struct {
	Op       uint64
	Release  bool
	Deadline time.Duration
}

// lease is where this node stands with the lease.
type lease struct {
	held     bool
	delayed  bool          // will ask at at
	asking   bool          // waits for the answer to op until at
	giving   bool          // waits for the release of op until at
	at       time.Duration // of what is waited for
	decision Decision      // what was decided when it was asked
	op       uint64
	gone     peer.Set      // held until these are removed, then for LeaseHold
	until    time.Duration // when to give it back; negative: not known yet
	stray    bool          // an answer never came: it may be held without our knowing
}

// busy reports whether a decision waits for the lease; nothing else is decided until then.
func (l *lease) busy() bool { return l.delayed || l.asking }

func (l *lease) next() (time.Duration, bool) {
	switch {
	case l.busy() || l.giving:
		return l.at, true
	case l.held && l.until >= 0, l.stray:
		return l.until, true
	}
	return 0, false
}

// askLease begins to ask, at once or, for the smaller side, after the delay. Indirectly connected ones do not make a
// side smaller.
func (m *Machine) askLease(d Decision) {
	m.lease.decision = d
	if d.later && len(d.Indirect) == 0 {
		m.lease.delayed, m.lease.at = true, m.now+m.cfg.LeaseDelay
		return
	}
	m.acquire()
}

func (m *Machine) acquire() {
	l := &m.lease
	l.delayed, l.asking, l.giving, l.at = false, true, false, m.now+m.cfg.LeaseTimeout
	l.op++
	m.out.Lease = append(m.out.Lease, LeaseOp{Op: l.op, Deadline: l.at})
}

// leaseTick does what is due about the lease.
func (m *Machine) leaseTick() {
	l := &m.lease
	at, ok := l.next()
	if !ok || m.now < at {
		return
	}
	switch {
	case l.delayed && !m.open():
		l.delayed = false // healed while we waited
	case l.delayed:
		m.acquire()
	case l.asking:
		l.stray = true
		m.refused("no answer about the lease in time")
	default: // give it back, again and again until it is confirmed
		l.giving, l.at = true, m.now+m.cfg.LeaseTimeout
		l.op++
		m.out.Lease = append(m.out.Lease, LeaseOp{Op: l.op, Release: true, Deadline: l.at})
	}
}

// leaseView counts down to the release once all members downed under the lease are removed.
func (m *Machine) leaseView() {
	here := func(id peer.ID) bool {
		_, ok := m.view.Member(id)
		return ok
	}
	if l := &m.lease; l.held && l.until < 0 && !slices.ContainsFunc(l.gone, here) {
		l.until = m.now + m.cfg.LeaseHold
	}
}

// leaseAnswer takes the answer to the operation that is under way; others are too late.
func (m *Machine) leaseAnswer(r LeaseResult) {
	l := &m.lease
	switch {
	case r.Op != l.op:
	case l.giving:
		if l.giving = false; r.OK {
			l.held, l.stray = false, false
			m.tell(LeaseChanged, "the lease was given back")
			return
		}
		l.until = m.now + m.cfg.LeaseTimeout
	case !l.asking:
	case r.Stale:
		l.held, l.stray = false, true
		m.refused("this node slept for so long that another side may have had the lease and given it back")
	case !r.OK:
		l.held = false
		m.refused("another side has the lease")
	default:
		d := l.decision
		if !l.held {
			l.gone = nil
		}
		l.asking, l.held, l.stray, l.until = false, true, false, -1
		l.gone = peer.SetOf(append(l.gone.Clone(), d.Down...)...)
		d.Lease = LeaseAcquired
		m.tell(LeaseChanged, "the lease was acquired")
		m.act(d, true)
		m.leaseView()
	}
}

// refused turns the decision that waited for the lease around: our side goes.
func (m *Machine) refused(why string) {
	l := &m.lease
	d := l.decision
	l.asking, l.delayed, l.until = false, false, m.now
	d.Lease, d.Outcome, d.Why, d.Down = LeaseRefused, DownReachable, why, d.refused
	d.Cause, d.Lives = membership.CauseLease, !d.Down.Has(m.self)
	m.tell(LeaseChanged, why)
	m.act(d, true)
}
