// The machine: its own session, renewed in time, and the sessions of lost members, ended as soon as they have run out.

package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// Bounds of what a machine does at once.
const (
	ownCalls   = 2    // calls for its own session
	seekCalls  = 4    // calls that end others' sessions
	maxTargets = 4096 // lost members that it looks after, as many as shards remember; the others wait
	atOnce     = 64   // of these; with more each is tried the more rarely
	maxRank    = 10   // a member further behind counts as this
	maxText    = 256  // bytes of an error that are kept
	nothing    = -1   // no deadline: it may handle nothing
)

// Command is a local wish: BeginCommand, SleptCommand, LostCommand, Result.
type Command interface{ command() }

// BeginCommand has the machine ask for its session, from now on.
type BeginCommand struct{}

// SleptCommand says that time may have passed which this node's clock does not show: its wall clock has stepped.
type SleptCommand struct{ For time.Duration }

// LostCommand names all members with sessions to be ended, sorted. Rank is how many of the others try before this
// one: it waits that many times a fifth of the TTL before its first attempt, and rests longer between two. The machine
// copies IDs.
type LostCommand struct {
	IDs  []peer.ID
	Rank int
}

// Op is one call of the store, which is answered by a Result: acquire the session Of for its owner, or with End for
// nobody, as its end. A node may try to end its own: that it cannot says that it holds it.
type Op struct {
	ID    uint64
	Of    peer.ID
	End   bool
	Limit time.Duration // how long it may take
}

// Result answers an Op. OK: the session is that owner's; with End: it had run out, or was ended before.
type Result struct {
	ID  uint64
	OK  bool
	Err string // what went wrong: nothing is known then; empty: OK is the answer
}

func (BeginCommand) command() {}
func (SleptCommand) command() {}
func (LostCommand) command()  {}
func (Result) command()       {}

// EventKind is what an Event tells.
type EventKind uint8

// What is reported.
const (
	Began   EventKind = 1 // the session is held for the first time
	RanOut  EventKind = 2 // it was not renewed in time: nothing is handled here
	Back    EventKind = 3 // it is held again, and nobody has ended it
	Ended   EventKind = 4 // somebody has ended it: this node ends
	GaveUp  EventKind = 5 // there was none for Config.Outage: this node ends
	Failing EventKind = 6 // a renewal has failed; the first of several in a row
	Swapped EventKind = 7 // this node has ended the session of Of, which handles nothing any more
	NotYet  EventKind = 8 // an attempt to end the session of Of failed; the first of several in a row
)

// Event is something to be logged.
type Event struct {
	Kind EventKind
	Of   peer.ID       // of Swapped and NotYet
	For  time.Duration // without a session, of Back, Ended and GaveUp
	Why  string        // of RanOut, Failing, NotYet and GaveUp
}

// Effects is what the verbs want done. Slices are valid until the next verb.
type Effects struct {
	Ops    []Op
	Proven []peer.ID // sessions that were ended: their owners handle nothing any more
	Over   string    // not empty: this node must end, and why; reported once
	Events []Event
}

// Status is where the session of this node stands.
type Status struct {
	Held    bool
	Since   time.Duration // it is held, or is not; on this node's clock
	Until   time.Duration // it is held without another answer; of the last one when it is not
	Why     string        // it is not held
	Renewed uint64        // calls that were answered with yes
	Failed  uint64        // calls that were answered with an error, or too late
	RanOut  uint64        // times that it ran out
	Swapped uint64        // sessions of others that this node has ended
}

// call is one that is under way.
type call struct {
	id   uint64
	made time.Duration
	of   peer.ID // the owner, when it is to end that session; this node: it asks whether it slept
}

// target is a lost member.
type target struct {
	id     peer.ID
	at     time.Duration // of the next attempt
	asked  bool          // one is under way
	failed bool          // the last one ended with an error
}

// Machine is the session of one node, and what it does about others'. Its clock is that of the node and all sleeps that
// this does not show. now never goes back.
type Machine struct {
	cfg   Config
	self  peer.ID
	now   time.Duration // on its own clock
	slept time.Duration

	begun bool // it asks
	had   bool // it has had one
	held  bool
	over  bool
	until time.Duration // an answer counts so long; nothing: there was none
	since time.Duration // it is held, or is not
	ask   time.Duration // when to ask again
	why   string        // the last failure; empty: the last call went well
	doubt bool          // the wall clock has stepped, and whether this node slept is being asked
	probe uint64        // the call that asks it
	loose time.Duration // from when on no own call that failed can still be carried out

	calls   []call
	last    uint64
	targets []target
	rank    time.Duration // of the last LostCommand
	counts  Status
	out     Effects
	drained bool
}

// New returns the machine of a node. cfg is valid and on.
func New(self peer.ID, cfg Config) *Machine {
	return &Machine{cfg: cfg, self: self, until: nothing}
}

func (m *Machine) begin(now time.Duration) {
	if m.drained {
		m.drained = false
		m.out = Effects{Ops: m.out.Ops[:0], Proven: m.out.Proven[:0], Events: m.out.Events[:0]}
	}
	m.now = max(m.now, now+m.slept)
	m.look()
}

// look notices that the session has run out, and that it did so too long ago. It comes before anything else of a verb:
// an answer that is read later changes nothing about it.
func (m *Machine) look() {
	if m.held && m.now >= m.until {
		m.lapse(m.until)
	}
	if m.begun && !m.held && !m.over && m.now-m.since >= m.cfg.Outage() {
		m.end(Event{Kind: GaveUp, Why: m.Why()}, fmt.Sprintf("it was without a session lease for %v, at most %v may pass: %s",
			m.now-m.since, m.cfg.Outage(), m.Why()))
	}
}

// end ends it for good: an ended session is never renewed.
func (m *Machine) end(e Event, why string) {
	e.For = m.now - m.since
	m.over, m.held, m.until, m.targets = true, false, nothing, nil
	m.out.Over, m.out.Ops = why, nil
	m.tell(e)
}

// Tick asks when it is time.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	m.pump()
}

// Do carries out a command. It refuses none; an answer to no call means nothing.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	switch c := cmd.(type) {
	case BeginCommand:
		if !m.begun {
			m.begun, m.since, m.ask = true, m.now, m.now
		}
	case SleptCommand:
		m.stepped(now, min(max(c.For, 0), m.cfg.Ends)) // a longer one says no more
	case LostCommand:
		m.seek(c)
	case Result:
		m.answer(c)
	}
	m.pump()
	return nil
}

// stepped takes a step of the wall clock: this node slept, or somebody has set the clock. It counts as a sleep while
// that costs a moment without a session at most. A longer one would end this node, so it asks whether it slept: by an
// attempt to end its own session, which fails only while it holds that by the store's clock. The answer says nothing
// where a renewal may be carried out after the sleep.
func (m *Machine) stepped(now, by time.Duration) {
	if m.held && m.now+by-m.until >= m.cfg.Outage() && m.under(true) == 0 && m.now >= m.loose {
		m.doubt, m.probe = true, 0
		m.why = fmt.Sprintf("the wall clock has stepped by %v or more, and whether this node slept is being asked", by)
		m.lapse(m.now)
		m.until, m.ask = nothing, m.now
		return
	}
	m.slept += by
	m.begin(now)
}

// lapse ends the time in which this node may handle messages.
func (m *Machine) lapse(at time.Duration) {
	m.held, m.since = false, at
	m.counts.RanOut++
	m.tell(Event{Kind: RanOut, Why: m.Why()})
}

// probed takes the answer to the attempt to end the own session.
func (m *Machine) probed(k call, r Result) {
	switch {
	case r.Err == "" && r.OK:
		m.end(Event{Kind: Ended}, "its session lease had run out while it slept")
	case k.id != m.probe: // of an earlier step
	case r.Err != "":
		m.probe, m.why, m.ask = 0, r.Err, m.now+m.cfg.Retry()
	default: // it is held, so this node did not sleep for as long as that
		m.doubt, m.why, m.ask = false, "", m.now
	}
}

// seek takes over the members with sessions to be ended.
func (m *Machine) seek(c LostCommand) {
	m.rank = time.Duration(min(max(c.Rank, 0), maxRank))
	next := make([]target, 0, min(len(c.IDs), maxTargets))
	had := m.targets // sorted as IDs are
	for _, id := range c.IDs {
		if id == m.self || len(next) == maxTargets {
			continue
		}
		for len(had) > 0 && had[0].id.Compare(id) < 0 {
			had = had[1:]
		}
		if len(had) > 0 && had[0].id == id {
			next = append(next, had[0])
			continue
		}
		asked := slices.ContainsFunc(m.calls, func(k call) bool { return k.of == id })
		next = append(next, target{id: id, at: m.now + m.rank*m.cfg.Limit(), asked: asked})
	}
	m.targets = next
}

// answer takes a result.
func (m *Machine) answer(r Result) {
	i := slices.IndexFunc(m.calls, func(k call) bool { return k.id == r.ID })
	if i < 0 {
		return
	}
	k := m.calls[i]
	m.calls = slices.Delete(m.calls, i, i+1)
	if len(r.Err) > maxText {
		r.Err = r.Err[:maxText]
	}
	switch {
	case m.over:
	case k.of.IsZero():
		m.answered(k, r)
	case k.of == m.self:
		m.probed(k, r)
	default:
		m.swapped(k, r)
	}
}

// answered takes the answer to a call for the own session: it counts from when the call was made.
func (m *Machine) answered(k call, r Result) {
	valid := k.made + m.cfg.Sure()
	late := r.Err == "" && r.OK && valid <= m.now
	switch {
	case r.Err == "" && !r.OK:
		m.end(Event{Kind: Ended}, "another member has ended its session lease")
		return
	case late:
		r.Err = fmt.Sprintf("an answer after %v, which counts for %v", m.now-k.made, m.cfg.Sure())
	}
	if r.Err != "" {
		m.counts.Failed++
		m.loose = m.now + m.cfg.Outage()
		if m.why == "" {
			m.tell(Event{Kind: Failing, Why: r.Err})
		}
		m.why, m.ask = r.Err, min(m.ask, m.now+m.cfg.Retry())
		return
	}
	m.counts.Renewed++
	m.why, m.until = "", max(m.until, valid)
	if m.held {
		return
	}
	without := m.now - m.since
	m.held, m.since = true, m.now
	if m.had {
		m.tell(Event{Kind: Back, For: without})
	} else {
		m.had = true
		m.tell(Event{Kind: Began, For: without})
	}
}

// swapped takes the answer to an attempt to end another's session.
func (m *Machine) swapped(k call, r Result) {
	i := slices.IndexFunc(m.targets, func(t target) bool { return t.id == k.of })
	if r.Err == "" && r.OK { // also when nobody looks for it any more: it is ended
		m.counts.Swapped++
		m.out.Proven = append(m.out.Proven, k.of)
		m.tell(Event{Kind: Swapped, Of: k.of})
		if i >= 0 {
			m.targets = slices.Delete(m.targets, i, i+1)
		}
		return
	}
	if i < 0 {
		return
	}
	t := &m.targets[i]
	if r.Err != "" && !t.failed {
		m.tell(Event{Kind: NotYet, Of: k.of, Why: r.Err})
	}
	t.asked, t.failed = false, r.Err != ""
}

// pump makes the calls that are due. A node without a session ends none: the store may be away for all.
func (m *Machine) pump() {
	if m.doubt && !m.over && m.now >= m.ask && m.probe == 0 {
		m.call(m.self)
		m.probe = m.last
	}
	if m.asking() && m.now >= m.ask && m.under(true) < ownCalls {
		m.call(peer.ID{})
		m.ask = m.now + m.cfg.Renew()
	}
	for m.held && m.under(false) < seekCalls {
		t := m.due()
		if t == nil {
			return
		}
		m.call(t.id)
		t.asked = true
		t.at = m.now + (m.rank+1)*m.cfg.Retry()*time.Duration(1+len(m.targets)/(atOnce+1))
	}
}

// asking reports whether this node renews its session.
func (m *Machine) asking() bool { return m.begun && !m.over && !m.doubt }

// due returns the target that has waited for its turn for longest, nil when none is due. So those that are held for
// good keep nobody from being tried, however slow the store is.
func (m *Machine) due() (first *target) {
	for i := range m.targets {
		if t := &m.targets[i]; !t.asked && m.now >= t.at && (first == nil || t.at < first.at) {
			first = t
		}
	}
	return first
}

// under counts the calls under way for the own session, or for others'.
func (m *Machine) under(own bool) (n int) {
	for _, k := range m.calls {
		if k.of.IsZero() == own {
			n++
		}
	}
	return n
}

func (m *Machine) call(of peer.ID) {
	m.last++
	m.calls = append(m.calls, call{m.last, m.now, of})
	op := Op{ID: m.last, Of: of, End: true, Limit: m.cfg.Limit()}
	if of.IsZero() {
		op.Of, op.End = m.self, false
	}
	m.out.Ops = append(m.out.Ops, op)
}

func (m *Machine) tell(e Event) { m.out.Events = append(m.out.Events, e) }

// Next returns when Tick has something to do, on the node's clock.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	add := func(at time.Duration) {
		if at -= m.slept; !ok || at < deadline {
			deadline, ok = at, true
		}
	}
	if m.begun && !m.over {
		if m.asking() && m.under(true) < ownCalls || m.doubt && m.probe == 0 {
			add(m.ask)
		}
		if m.held {
			add(m.until)
		} else {
			add(m.since + m.cfg.Outage())
		}
	}
	for i := range m.targets {
		if t := &m.targets[i]; m.held && !t.asked && m.under(false) < seekCalls {
			add(t.at)
		}
	}
	return deadline, ok
}

// Drain hands over what the verbs want done, since the last time. It is valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out = m.Peek()
	m.drained = true
}

// Peek returns what the next Drain will hand over. It is valid until the next verb and is not to be changed.
func (m *Machine) Peek() Effects {
	if m.drained {
		return Effects{}
	}
	return m.out
}

// Held reports whether this node may handle messages, as of its last step.
func (m *Machine) Held() bool { return m.held }

// First returns until when, on the node's clock, the first answer may still come in time; ok is false from then on.
func (m *Machine) First() (until time.Duration, ok bool) {
	until = m.since + m.cfg.Limit()
	return until - m.slept, m.begun && !m.had && !m.over && m.now < until
}

// Begun reports whether it asks for a session.
func (m *Machine) Begun() bool { return m.begun }

// Until returns the time, on the node's clock, from which this node may handle nothing; negative: it may not now.
func (m *Machine) Until() time.Duration {
	if !m.held {
		return nothing
	}
	return m.until - m.slept
}

// Why says why the session is not held, or is about to run out.
func (m *Machine) Why() string {
	switch {
	case m.why != "":
		return m.why
	case !m.begun:
		return "it has not been asked for yet"
	}
	return "the store has not answered yet"
}

// Status returns where the session stands, as of the last step.
func (m *Machine) Status() Status {
	s := m.counts
	s.Held, s.Since, s.Until = m.held, m.since-m.slept, m.until-m.slept
	if !m.held {
		s.Why = m.Why()
	}
	return s
}

// Seeks reports whether it is about to end somebody's session.
func (m *Machine) Seeks() bool { return len(m.targets) > 0 }
