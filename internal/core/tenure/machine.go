// The machine: the tenure of this node, the seat that it may hold, and what it asks of others' seats about the lost.

package tenure

import (
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/peer"
)

// nothing is no deadline: the node may handle nothing.
const nothing = -1

// Command is a local wish: ViewCommand, NeedCommand, MissCommand, SeekCommand, SleptCommand.
type Command interface{ command() }

// ViewCommand says what this node's state holds now: the list of seats; all members that are not Down, those that are
// joining too; and those that it lists as Down or removed, both sorted. One that it has not heard of yet is neither. A
// list that is older than the one before is not taken. The machine copies Members and Lost.
type ViewCommand struct {
	Seats   Seats
	Members []peer.ID
	Lost    []peer.ID
}

// NeedCommand says whether this node needs its tenure: it owns something, or may be given it.
type NeedCommand struct{ On bool }

// MissCommand names all members that do not answer as far as this node knows, sorted: as the holder of a seat it
// vouches no more for one of these when a seeker asks for that, and it has not just asked for its tenure here. The
// machine copies IDs.
type MissCommand struct{ IDs []peer.ID }

// SeekCommand names all incarnations with an end to be proven, sorted: members that are missed, and those that are Down
// or were removed. Rank is how many of the others try before this node: it waits that many times Config.Retry before
// its first question, and rests longer between two. The machine copies IDs.
type SeekCommand struct {
	IDs  []peer.ID
	Rank int
}

// SleptCommand says that time has passed which this node's clock does not show.
type SleptCommand struct{ For time.Duration }

func (ViewCommand) command()  {}
func (NeedCommand) command()  {}
func (MissCommand) command()  {}
func (SeekCommand) command()  {}
func (SleptCommand) command() {}

// EventKind is what an Event reports.
type EventKind uint8

// What is reported.
const (
	Began   EventKind = 1 // the tenure is held for the first time
	RanOut  EventKind = 2 // no quorum has renewed it in time: nothing is handled here
	Back    EventKind = 3 // it is held again
	Revoked EventKind = 4 // as a holder this node vouches for Of no more
	Proven  EventKind = 5 // a quorum of the seats has said that the tenure of Of is over
	GotSeat EventKind = 6
	NoSeat  EventKind = 7 // the seat that this node held is no longer its own
	Assumed EventKind = 8 // the tenures of All are taken for over: a person said so here, or this leader assumes it
)

// Event is something to be logged.
type Event struct {
	Kind EventKind
	Of   peer.ID       // of Revoked and Proven
	For  time.Duration // without a tenure, of Began and Back
	Why  string        // of RanOut
	All  []peer.ID     // of Assumed; sorted
}

// Mail is one message. Body is valid until the next verb.
type Mail struct {
	To   peer.ID
	Body []byte
}

// Effects is what the verbs want done, in this order. Slices are valid until the next verb.
type Effects struct {
	// Down are members to be marked Down in this node's own state, which is then fed back as a view, before anything
	// else is sent: their tenure is over for this holder.
	Down   []peer.ID
	Proven []peer.ID // they handle nothing any more, and never will
	Mail   []Mail
	Events []Event
}

// Status is where the tenure of this node stands.
type Status struct {
	Held    bool
	Since   time.Duration // it is held, or is not; on this node's clock
	Until   time.Duration // it is held without another grant; of the last ones when it is not
	Least   time.Duration // the least that was left of it when it was renewed, since it was last gained
	Why     string        // it is not held
	Seat    int           // that this node holds, -1 for none
	Granted uint64        // grants that it has counted
	Refused uint64        // refusals that it has had
	RanOut  uint64        // times that it ran out
	Gave    uint64        // grants that it has given
	Spoke   uint64        // words that it has said
	Proven  uint64        // ends that it has proven
	Full    uint64        // questions that found no room
}

// Machine is the tenure of one node. Time never goes back. Its own tenure runs by the node's clock and all sleeps that
// this does not show: one that was taken for longer than it was costs the tenure. What it promises others runs by the
// node's clock alone: there a sleep too long would break a promise.
type Machine struct {
	cfg   Config
	self  peer.ID
	clock time.Duration // the node's
	now   time.Duration // and all sleeps
	slept time.Duration

	seats   Seats
	members peer.Set // not Down
	lost    peer.Set // Down, or removed
	missing peer.Set

	heard peer.Set // have ended, as others say, and this node's own state does not know it yet

	own    owner
	held   holder
	seek   seeker
	counts Status

	out     Effects
	drained bool
}

// New returns the machine of a node. cfg is valid and on.
func New(self peer.ID, cfg Config) *Machine {
	m := &Machine{cfg: cfg, self: self}
	m.own.forget(cfg)
	m.counts.Seat = -1
	return m
}

func (m *Machine) begin(now time.Duration) {
	if m.drained {
		m.drained = false
		m.out = Effects{Down: m.out.Down[:0], Proven: m.out.Proven[:0], Mail: m.out.Mail[:0], Events: m.out.Events[:0]}
	}
	m.clock, m.now = max(m.clock, now), max(m.now, now+m.slept)
	m.lapse()
}

// Tick does what is due.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	m.pump()
}

// Do carries out a command. It refuses none.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	switch c := cmd.(type) {
	case ViewCommand:
		m.sees(c)
	case NeedCommand:
		if c.On && !m.own.needs {
			m.own.begun, m.own.ask = m.now, max(m.own.ask, m.now)
		}
		m.own.needs = c.On
	case MissCommand:
		m.missing = append(m.missing[:0], c.IDs...)
	case SeekCommand:
		m.seeks(c)
	case SleptCommand:
		m.slept += max(c.For, 0)
		m.begin(now)
	}
	m.pump()
	return nil
}

// Handle takes one message. An error means nonsense; nothing has changed then.
func (m *Machine) Handle(now time.Duration, from peer.ID, body []byte) error {
	p, err := read(body)
	if err != nil {
		return err
	}
	m.begin(now)
	switch p.verb {
	case renew:
		m.renewal(from, p.seq)
	case granted:
		m.counted(from, p)
	case refused:
		m.refusal(from, p)
	case ask:
		m.asked(from, p.target, p.yes)
	case missed, over:
		m.answered(from, p)
	case ended:
		m.hears(from, p.target)
	}
	m.pump()
	return nil
}

// sees takes over a view. A list that replaces another makes no promise of its former holders count, and no word.
func (m *Machine) sees(c ViewCommand) {
	m.members, m.lost = append(m.members[:0], c.Members...), append(m.lost[:0], c.Lost...)
	if c.Seats.Newer(m.seats) {
		was := m.seats
		m.seats = c.Seats
		m.own.follow(was, m.seats)
		m.seek.forget()
		switch before, now := was.Seat(m.self), m.seats.Seat(m.self); {
		case now >= 0 && before < 0:
			m.held.cold = m.clock + m.cfg.Promise()
			m.event(Event{Kind: GotSeat})
		case now < 0 && before >= 0:
			m.event(Event{Kind: NoSeat})
		}
		m.counts.Seat, m.own.ask = m.seats.Seat(m.self), m.now
		m.lapse()
	}
	m.held.follow(m)
	m.heard = slices.DeleteFunc(m.heard, m.isLost)
	for _, id := range m.heard {
		if m.isMember(id) {
			m.out.Proven = append(m.out.Proven, id)
		}
	}
}

// maxHeard is how many ends are kept that this node's own state does not know.
const maxHeard = 256

// hears takes the word of a member that an incarnation has ended: it goes into this node's own state, as soon as that
// knows of it.
func (m *Machine) hears(from, id peer.ID) {
	switch {
	case !m.isMember(from) || id == m.self:
	case len(m.heard) >= maxHeard && !m.heard.Has(id):
		m.counts.Full++
	default:
		if !m.isLost(id) {
			m.heard.Add(id)
		}
		m.out.Proven = append(m.out.Proven, id)
	}
}

// pump does what is due, and says what may be said.
func (m *Machine) pump() {
	m.renews()
	m.questions()
	m.speaks()
}

// isMember reports whether id is a member that is not Down, by this node's own state.
func (m *Machine) isMember(id peer.ID) bool { return m.members.Has(id) }

// isLost reports whether id is Down or removed by that state, and so for good. One that it has never heard of is no
// member either, but may be one with the next state.
func (m *Machine) isLost(id peer.ID) bool { return m.lost.Has(id) }

func (m *Machine) post(to peer.ID, p message) {
	m.out.Mail = append(m.out.Mail, Mail{To: to, Body: p.append(nil)})
}

func (m *Machine) event(e Event) { m.out.Events = append(m.out.Events, e) }

// Next returns when Tick has something to do, on the node's clock.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	add := func(at time.Duration) {
		if !ok || at < deadline {
			deadline, ok = at, true
		}
	}
	if m.own.needs && m.seats.Number > 0 {
		add(m.own.ask - m.slept)
	}
	if m.own.held {
		add(m.until() - m.slept)
	}
	for i := range m.held.asks { // they are kept without a seat
		if a := &m.held.asks[i]; m.isLost(a.target) && m.seats.Seat(m.self) >= 0 {
			add(max(m.held.promised(a.target), m.held.cold))
		}
	}
	if m.seats.Number > 0 && m.isMember(m.self) {
		for i := range m.seek.targets {
			add(m.seek.targets[i].at)
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
func (m *Machine) Held() bool { return m.own.held }

// First returns until when, on the node's clock, it is no wonder that the tenure was never held: there may be no list
// yet; ok is false from then on.
func (m *Machine) First() (until time.Duration, ok bool) {
	until = m.own.begun + firstAfter*m.cfg.Grant
	return until - m.slept, m.own.needs && !m.own.had && m.now < until
}

// Seats returns the list that this node goes by.
func (m *Machine) Seats() Seats { return m.seats }

// Vouched appends until when the grant of each seat counts, on the node's clock, by seat of the list that the node goes
// by: nothing before the first list, negative where there is no grant.
func (m *Machine) Vouched(to []time.Duration) []time.Duration {
	for i := range m.seats.Holders {
		at := time.Duration(nothing)
		if i < len(m.own.until) && m.own.until[i] >= 0 {
			at = m.own.until[i] - m.slept
		}
		to = append(to, at)
	}
	return to
}

// Until returns the time, on the node's clock, from which this node may handle nothing; negative: it may not now.
func (m *Machine) Until() time.Duration {
	if !m.own.held {
		return nothing
	}
	return m.until() - m.slept
}

// Status returns where the tenure stands, as of the last step.
func (m *Machine) Status() Status {
	s := m.counts
	s.Held, s.Since, s.Until = m.own.held, m.own.since-m.slept, m.until()-m.slept
	if !m.own.held {
		s.Why = m.Why()
	}
	return s
}

// Seeks reports whether it is about to prove somebody's end.
func (m *Machine) Seeks() bool { return len(m.seek.targets) > 0 }

// holdersBut calls f for each holder but this node that its own state does not list as Down.
func (m *Machine) holdersBut(f func(seat int, id peer.ID)) {
	for i, h := range m.seats.Holders {
		if !h.IsZero() && h != m.self && m.isMember(h) {
			f(i, h)
		}
	}
}

// sortedTimes is scratch memory for a quorum: as many as there may be seats.
type sortedTimes [MaxVoters]time.Duration

// latest returns the latest time that at least n of times are not before.
func latest(times []time.Duration, n int) time.Duration {
	var s sortedTimes
	k := copy(s[:], times)
	slices.Sort(s[:k])
	if k < n {
		return nothing
	}
	return s[k-n]
}

// Owner: the tenure of this node is asked for in time, and counted from the asking, on this node's own clock.

// firstAfter is how many grants it may take until there is a list of seats, in a cluster that is being formed.
const firstAfter = 4

// kept is how many questions are remembered: an answer to one before them counts for nothing.
const kept = 8

// owner is this node's part as the owner of something.
type owner struct {
	needs bool
	held  bool
	had   bool
	begun time.Duration // it has been needed since
	since time.Duration // it is held, or is not
	ask   time.Duration // when to ask again
	seq   uint64        // of the last question
	sent  [kept]time.Duration
	until []time.Duration // by seat of the list: the grant of its holder counts so long
	why   refusal         // of the last refusal, 0 for none since the last grant
	by    peer.ID         // it refused
}

func (o *owner) forget(cfg Config) {
	o.until = make([]time.Duration, cfg.Voters)
	for i := range o.until {
		o.until[i] = nothing
	}
}

// follow takes over another list: grants of holders that it does not name count no more.
func (o *owner) follow(was, is Seats) {
	until := make([]time.Duration, len(o.until))
	for i := range until {
		until[i] = nothing
		if i >= len(is.Holders) {
			continue
		}
		if before := was.Seat(is.Holders[i]); before >= 0 && before < len(o.until) {
			until[i] = o.until[before]
		}
	}
	o.until = until
}

// until returns for how long a quorum has granted.
func (m *Machine) until() time.Duration { return latest(m.own.until, m.cfg.Quorum()) }

// lapse notices that the tenure has run out. It comes before anything else of a verb: an answer that is read later
// changes nothing about it.
func (m *Machine) lapse() {
	if o := &m.own; o.held && m.now >= m.until() {
		o.held = false
		if o.since = m.until(); o.since < 0 { // with the list that it was granted under
			o.since = m.now
		}
		m.counts.RanOut++
		m.event(Event{Kind: RanOut, Why: m.Why()})
	}
}

// renews asks all holders that the own list names.
func (m *Machine) renews() {
	o := &m.own
	if !o.needs || m.seats.Number == 0 || m.now < o.ask {
		return
	}
	o.ask = m.now + m.cfg.Renew()
	o.seq++
	o.sent[o.seq%kept] = m.now
	m.holdersBut(func(_ int, h peer.ID) { m.post(h, message{verb: renew, seq: o.seq}) })
	if m.grants(m.self) == 0 && m.seats.Seat(m.self) >= 0 {
		m.count(m.seats.Seat(m.self), m.now)
	}
}

// counted takes a grant. One under a list that this node does not have yet counts for nothing: the list comes by
// gossip, and the next question finds it here.
func (m *Machine) counted(from peer.ID, p message) {
	o := &m.own
	seat := m.seats.Seat(from)
	if p.seq == 0 || p.seq > o.seq || o.seq-p.seq >= kept || seat < 0 ||
		p.list.Number >= m.seats.Number && !p.list.Same(m.seats) {
		return
	}
	m.count(seat, o.sent[p.seq%kept])
}

// count has the grant of a seat count from when it was asked for.
func (m *Machine) count(seat int, asked time.Duration) {
	o := &m.own
	valid := asked + m.cfg.Grant
	if valid <= m.now || valid <= o.until[seat] {
		return
	}
	left := m.until() - m.now
	o.until[seat] = valid
	m.counts.Granted++
	o.why = 0
	switch {
	case m.until() <= m.now:
	case o.held:
		if m.until()-m.now > left {
			m.counts.Least = min(m.counts.Least, left)
		}
	default:
		without := m.now - o.since
		kind := Back
		if !o.had {
			kind = Began
		}
		o.held, o.had, o.since, m.counts.Least = true, true, m.now, m.cfg.Grant
		m.event(Event{Kind: kind, For: without})
	}
}

// refusal takes one: it says why, and nothing else.
func (m *Machine) refusal(from peer.ID, p message) {
	if m.seats.Seat(from) >= 0 && p.seq != 0 && p.seq <= m.own.seq {
		m.counts.Refused++
		m.own.why, m.own.by = p.why, from
	}
}

// Why says why the tenure is not held, or is about to run out.
func (m *Machine) Why() string {
	switch o := &m.own; {
	case m.seats.Number == 0:
		return fmt.Sprintf("no seat has a holder yet: that takes %d members", m.cfg.Quorum())
	case !o.needs:
		return "it has not been asked for"
	case o.why != 0:
		return fmt.Sprintf("%s does not vouch for this node: %s", o.by, o.why)
	}
	n := 0
	for _, at := range m.own.until {
		if at > m.now {
			n++
		}
	}
	return fmt.Sprintf("%d of %d seats vouch for this node, %d have to", n, m.cfg.Voters, m.cfg.Quorum())
}

// Holder: what this node promises when it holds a seat, and when it says that somebody's tenure is over.

// Bounds of what a holder remembers.
const (
	maxPromises = 10_000 // as many as there may be members
	maxAsks     = 1024   // questions that wait for a promise to run out
)

// holder is this node's part as the holder of a seat.
type holder struct {
	cold     time.Duration // until then it says nothing, for a promise of the holder before it may run
	promises []promise     // sorted by id
	asks     []question    // that are not answered with "over" yet, sorted
}

// promise is one to an incarnation: no "over" before then.
type promise struct {
	id    peer.ID
	until time.Duration
}

// question is what a seeker wants to hear: that the tenure of target is over.
type question struct{ target, seeker peer.ID }

func (q question) compare(o question) int {
	if c := q.target.Compare(o.target); c != 0 {
		return c
	}
	return q.seeker.Compare(o.seeker)
}

func (h *holder) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(h.promises, id, func(p promise, id peer.ID) int { return p.id.Compare(id) })
}

// promised returns until when this node has promised to id, 0 for never.
func (h *holder) promised(id peer.ID) time.Duration {
	if i, ok := h.find(id); ok {
		return h.promises[i].until
	}
	return 0
}

// follow forgets promises to those that are no members when they have run out, and questions of those that are Down.
// They are kept when this node loses its seat: it may get one back.
func (h *holder) follow(m *Machine) {
	h.promises = slices.DeleteFunc(h.promises, func(p promise) bool { return p.until <= m.clock && !m.isMember(p.id) })
	h.asks = slices.DeleteFunc(h.asks, func(q question) bool {
		return !m.isMember(q.seeker) || !m.isMember(q.target) && !m.isLost(q.target) // it is forgotten
	})
}

// grants notes a promise to an owner, from now on, and returns 0; or why it does not.
func (m *Machine) grants(id peer.ID) refusal {
	h := &m.held
	switch {
	case m.seats.Seat(m.self) < 0 || !m.isMember(m.self):
		return noHolder
	case m.clock < h.cold:
		return tooNew
	case !m.isMember(id):
		return noMember
	}
	until := m.clock + m.cfg.Promise()
	i, ok := h.find(id)
	switch {
	case ok:
		h.promises[i].until = max(h.promises[i].until, until)
	case len(h.promises) >= maxPromises:
		m.counts.Full++
		return noMember
	default:
		h.promises = slices.Insert(h.promises, i, promise{id, until})
	}
	m.counts.Gave++
	return 0
}

// renewal answers an owner that asks for its tenure.
func (m *Machine) renewal(from peer.ID, seq uint64) {
	if why := m.grants(from); why != 0 {
		m.post(from, message{verb: refused, seq: seq, why: why})
		return
	}
	m.post(from, message{verb: granted, seq: seq, list: m.seats})
}

// asked takes the question of a seeker. A holder vouches no more for a target that it misses itself: it has it marked
// Down first, and says "over" when its own state shows that and its promise has run out. Of one that it has never heard
// of it does not: it would grant to it as soon as it hears that it is a member. It answers nobody that is Down for it.
func (m *Machine) asked(seeker, target peer.ID, firm bool) {
	if m.seats.Seat(m.self) < 0 || !m.isMember(seeker) || target == m.self {
		return
	}
	lost := m.isLost(target)
	misses := lost || m.misses(target)
	if !firm || !misses {
		m.answer(seeker, message{verb: missed, list: m.seats, target: target, yes: misses})
		return
	}
	q := question{target, seeker}
	i, ok := slices.BinarySearchFunc(m.held.asks, q, question.compare)
	if !ok && len(m.held.asks) >= maxAsks {
		m.counts.Full++
		return
	}
	if !ok {
		m.held.asks = slices.Insert(m.held.asks, i, q)
	}
	if !lost && !slices.Contains(m.out.Down, target) {
		m.out.Down = append(m.out.Down, target)
		m.event(Event{Kind: Revoked, Of: target})
	}
}

// misses reports whether this node misses a member: what others say of it counts for nothing while it asks here for its
// tenure.
func (m *Machine) misses(id peer.ID) bool {
	if !m.missing.Has(id) {
		return false
	}
	until := m.held.promised(id)
	return until == 0 || m.clock >= until-m.cfg.Promise()+m.cfg.Heard()
}

// speaks says "over" where it was asked for and may be said.
func (m *Machine) speaks() {
	h := &m.held
	if m.seats.Seat(m.self) < 0 || m.clock < h.cold || len(h.asks) == 0 {
		return
	}
	h.asks = slices.DeleteFunc(h.asks, func(q question) bool {
		if !m.isLost(q.target) || m.clock < h.promised(q.target) {
			return false
		}
		m.counts.Spoke++
		m.answer(q.seeker, message{verb: over, list: m.seats, target: q.target})
		return true
	})
}

// answer sends an answer to a seeker, which may be this node.
func (m *Machine) answer(seeker peer.ID, p message) {
	if seeker == m.self {
		m.answered(m.self, p)
		return
	}
	m.post(seeker, p)
}

// Seeker: how this node proves that a lost incarnation handles nothing any more. It first asks softly which holders
// miss the target too, so that nobody loses the word of some for one node's bad link. When a quorum does it asks
// firmly. One that is Down or removed already is asked for firmly at once.

// Bounds of a seeker.
const (
	maxTargets = 64 // lost incarnations that it looks after; the others wait
	maxRank    = 10 // a member further behind counts as this
)

// target is an incarnation with an end to be proven.
type target struct {
	id     peer.ID
	at     time.Duration // of the next question
	firm   bool
	misses uint8 // holders that miss it, a bit for each seat
	over   uint8 // holders that have said "over"
}

type seeker struct {
	targets []target
	rank    time.Duration
}

// forget drops what holders have said under a list before.
func (s *seeker) forget() {
	for i := range s.targets {
		t := &s.targets[i]
		t.misses, t.over, t.firm = 0, 0, false
	}
}

// seeks takes over the targets.
func (m *Machine) seeks(c SeekCommand) {
	s := &m.seek
	s.rank = time.Duration(min(max(c.Rank, 0), maxRank))
	next := make([]target, 0, min(len(c.IDs), maxTargets))
	for _, id := range c.IDs {
		if id == m.self || len(next) == maxTargets {
			continue
		}
		if i := slices.IndexFunc(s.targets, func(t target) bool { return t.id == id }); i >= 0 {
			next = append(next, s.targets[i])
			continue
		}
		next = append(next, target{id: id, at: m.clock + s.rank*m.cfg.Retry()})
	}
	s.targets = next
}

// questions asks the holders about each target that is due.
func (m *Machine) questions() {
	if m.seats.Number == 0 || !m.isMember(m.self) {
		return
	}
	for i := range m.seek.targets {
		if t := &m.seek.targets[i]; m.clock >= t.at {
			t.at = m.clock + (m.seek.rank+1)*m.cfg.Retry()
			m.question(t)
		}
	}
}

// question asks all holders that are not Down here about one target.
func (m *Machine) question(t *target) {
	if m.isLost(t.id) {
		t.firm = true
	}
	id, firm := t.id, t.firm
	m.holdersBut(func(_ int, h peer.ID) {
		if h != id {
			m.post(h, message{verb: ask, target: id, yes: firm})
		}
	})
	m.asked(m.self, id, firm)
}

// answered takes what a holder says of a target. It counts under this node's own list alone, and from a holder that is
// not Down here.
func (m *Machine) answered(from peer.ID, p message) {
	seat := m.seats.Seat(from)
	i := slices.IndexFunc(m.seek.targets, func(t target) bool { return t.id == p.target })
	if seat < 0 || i < 0 || !p.list.Same(m.seats) || !m.isMember(from) {
		return
	}
	t := &m.seek.targets[i]
	if p.verb == missed {
		if t.misses &^= 1 << seat; p.yes {
			t.misses |= 1 << seat
		}
		if was := t.firm; !was && m.quorum(t.misses) {
			t.firm, t.at = true, m.clock+(m.seek.rank+1)*m.cfg.Retry()
			m.question(t)
		}
		return
	}
	if t.over |= 1 << seat; !m.quorum(t.over) {
		return
	}
	m.counts.Proven++
	m.out.Proven = append(m.out.Proven, p.target)
	m.event(Event{Kind: Proven, Of: p.target})
	m.seek.targets = slices.Delete(m.seek.targets, i, i+1)
}

// quorum reports whether a quorum of seats is in the set, counted by holders that are not Down here now.
func (m *Machine) quorum(seats uint8) bool {
	n := 0
	for i, h := range m.seats.Holders {
		if seats&(1<<i) != 0 && m.isMember(h) {
			n++
		}
	}
	return n >= m.cfg.Quorum()
}
