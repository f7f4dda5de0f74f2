// Verdicts: which peers are unavailable, when that will be so, and broken links as evidence of it.

package fd

import (
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

const (
	// lossWindow is the time within which a second lost link makes both suspect of being this node's own fault.
	lossWindow = time.Second
	// lossHold is how long a lost link waits for a second one before it counts.
	lossHold = 100 * time.Millisecond
	// maxLosses bounds the losses that are remembered, those of targets and those of others; more change nothing.
	maxLosses = 64
)

// loss is one link that was lost.
type loss struct {
	id peer.ID
	at time.Duration
}

// evidence is what is known of a lost link to a target.
type evidence struct {
	at     time.Duration
	lost   bool
	proof  bool // another incarnation answered at the address: nothing takes that back
	acted  bool // it counts
	judged bool // it was looked at when its hold was over
}

// cleared takes the evidence back: something newer arrived from that incarnation.
func (e *evidence) cleared(arrived time.Duration) {
	if e.lost && !e.proof && arrived > e.at {
		*e = evidence{}
	}
}

// Lost records that the link to id broke and its host refused a new one, at now; proof says that another incarnation
// answered there. It returns whether id is a target: others are not ours to judge, and are remembered for Vanished.
func (m *Monitor) Lost(id peer.ID, now time.Duration, proof bool) bool {
	w := m.get(id)
	if w == nil || !w.target {
		m.lostStranger(id, now)
		return false
	}
	m.verdict.valid = false
	for len(m.losses) > 0 && now-m.losses[0].at >= lossWindow {
		m.losses = m.losses[1:]
	}
	if len(m.losses) < maxLosses {
		m.losses = append(m.losses, loss{id, now})
	}
	if !w.broken.proof {
		w.broken = evidence{at: now, lost: true, proof: proof, acted: w.broken.acted}
	}
	return true
}

// alone reports whether no link to another target was lost close to that to id.
func (m *Monitor) alone(id peer.ID, at time.Duration) bool {
	for _, l := range m.losses {
		if d := l.at - at; l.id != id && d < lossWindow && d > -lossWindow {
			return false
		}
	}
	return true
}

// vouched reports whether links that were lost together are not this node's own fault: since the last of them, as many
// other targets have answered as were lost.
func (m *Monitor) vouched(at time.Duration) bool {
	last, lost := at, 0
	for _, l := range m.losses {
		if d := l.at - at; d < lossWindow && d > -lossWindow {
			last = max(last, l.at)
			lost++
		}
	}
	return m.answered(last) >= lost
}

// lostStranger remembers a member that is no target and lost its link at now.
func (m *Monitor) lostStranger(id peer.ID, now time.Duration) {
	m.strangers = slices.DeleteFunc(m.strangers, func(l loss) bool { return l.id == id })
	if m.members.Has(id) && len(m.strangers) < maxLosses {
		m.strangers = append(m.strangers, loss{id, now})
	}
}

// heardFrom notes that something arrived from id, and forgets that the link to it was lost before.
func (m *Monitor) heardFrom(id peer.ID, arrived time.Duration) {
	m.strangers = slices.DeleteFunc(m.strangers, func(l loss) bool { return l.id == id && arrived > l.at })
	m.asked.heard(id, arrived)
}

// Vanished appends the members that were no targets when Lost reported them, and sent nothing newer since, to into: at
// most maxLosses, those that this node accuses left out, in no order. Members that probe such a member say whether it
// is gone; this node knows only that it may be. Links that were lost together count when as many targets have answered
// since, as with targets.
func (m *Monitor) Vanished(now time.Duration, into []peer.ID) []peer.ID {
	for _, l := range m.strangers {
		w := m.get(l.id)
		if accused := w != nil && (w.answers.told || w.probes.told || w.broken.acted); accused || now < l.at+lossHold {
			continue
		}
		if m.lostAlone(l) {
			into = append(into, l.id)
		}
	}
	return into
}

// lostAlone reports whether no link was lost close to that of a stranger, or as many targets have answered since the
// last of these as links were lost: then the fault is not this node's own.
func (m *Monitor) lostAlone(l loss) bool {
	last, lost := l.at, 1
	for _, list := range [...][]loss{m.losses, m.strangers} {
		for _, o := range list {
			if d := o.at - l.at; o.id != l.id && d < lossWindow && d > -lossWindow {
				last = max(last, o.at)
				lost++
			}
		}
	}
	return lost == 1 || m.answered(last) >= lost
}

// answered returns how many targets with a link have answered since at.
func (m *Monitor) answered(at time.Duration) (n int) {
	for i := range m.watched {
		if w := &m.watched[i]; w.target && !w.broken.lost && w.answers.last > at {
			n++
		}
	}
	return n
}

// Others appends the targets that can vouch for this node, because links to several were lost together just now, to
// into: a peer that answers shows that the fault is not its own.
func (m *Monitor) Others(now time.Duration, into []peer.ID) []peer.ID {
	lost := 0
	for _, l := range m.losses {
		if now-l.at < lossWindow {
			lost++
		}
	}
	for i := range m.watched {
		if w := &m.watched[i]; lost > 1 && w.target && !w.broken.lost {
			into = append(into, w.id)
		}
	}
	return into
}

// Verdict says whether a peer counts as alive.
type Verdict struct {
	ID        peer.ID
	Available bool
}

// Judge appends a verdict on every peer that probes us or is probed, sorted, to into. Either direction silent means
// unavailable. agreed reports whether a second observer accuses a peer: then a lost link counts even when others were
// lost with it, as it does when enough others have answered since.
func (m *Monitor) Judge(now time.Duration, agreed func(peer.ID) bool, into []Verdict) []Verdict {
	m.verdict.valid = false
	for i := range m.watched {
		w := &m.watched[i]
		if !w.target && !w.probes.heard() {
			continue
		}
		m.weigh(w, now, agreed)
		w.answers.told, w.probes.told = !w.answers.available(now), !w.probes.available(now)
		into = append(into, Verdict{w.id, !w.answers.told && !w.probes.told && !w.broken.acted})
	}
	return into
}

// weigh decides whether a lost link counts.
func (m *Monitor) weigh(w *watch, now time.Duration, agreed func(peer.ID) bool) {
	e := &w.broken
	if !e.lost || e.acted {
		return
	}
	held := now >= e.at+lossHold
	e.acted = e.proof || held && !e.judged && m.alone(w.id, e.at) || held && m.vouched(e.at) || agreed(w.id)
	e.judged = e.judged || held
}

// Undecided reports whether a lost link waits for a second observer to agree.
func (m *Monitor) Undecided() bool {
	for i := range m.watched {
		if e := &m.watched[i].broken; e.lost && !e.acted {
			return true
		}
	}
	return false
}

// Available reports whether id counts as alive at now; a peer that neither probes us nor is probed does. Lost links
// count as Judge last decided.
func (m *Monitor) Available(id peer.ID, now time.Duration) bool {
	w := m.get(id)
	return w == nil || w.answering(now) && w.probes.available(now)
}

// NextVerdict returns when Judge next calls a peer unavailable that was not yet.
func (m *Monitor) NextVerdict() (at time.Duration, ok bool) {
	if m.verdict.valid {
		return m.verdict.at, m.verdict.ok
	}
	earlier := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for i := range m.watched {
		w := &m.watched[i]
		for _, l := range [2]*line{&w.answers, &w.probes} {
			if t, some := l.deadline(); some && !l.told {
				earlier(t)
			}
		}
		switch e := &w.broken; {
		case !e.lost || e.acted || e.judged:
		case e.proof:
			earlier(e.at)
		default:
			earlier(e.at + lossHold)
		}
	}
	m.verdict = forecast{at, ok, true}
	return at, ok
}
