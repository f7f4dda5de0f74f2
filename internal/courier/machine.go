// Machine: all streams of one node, its verbs, and who is a member.

package courier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/invariant"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

// Standing is what the membership says of a peer.
type Standing uint8

// The standings of a peer.
const (
	Absent    Standing = iota // no member, or no member any more
	Lost                      // Down: nothing is sent to it, what it says last is still taken
	Condemned                 // given up: this node holds it quarantined
	Doubted                   // a member that is unreachable, or not Up yet: mail waits, its silence does not count
	Present                   // a member that is reachable and has come Up
)

// Roster is the present membership: the standing of a peer, which must not change while the Roster is in use, and for
// how long, while it is Present, a peer may acknowledge nothing before it is given up. Zero: for ever.
type Roster struct {
	Of          func(id peer.ID) Standing
	GiveUpAfter time.Duration
}

// GaveUp says that a peer acknowledged nothing for too long, and why in words. Alike is how many others have
// acknowledged nothing for more than half as long: whoever is about to give up many is likelier at fault itself.
type GaveUp struct {
	ID     peer.ID
	Reason string
	Alike  int
}

// Delivery is one message, in the order of its sender. Body is valid as long as the frame that was handed to Handle.
type Delivery struct {
	Kind wire.Kind
	Body []byte
}

// Effects is what one or more verbs ask the rider to do. Slices and bodies are valid until the next verb.
type Effects struct {
	Mail []peer.Mail
	Full []*FullError // the first message to a peer that found no room, until there was room again
}

// Machine carries the control messages of one node. It is not safe for concurrent use.
type Machine struct {
	self   peer.ID
	cfg    Config
	rng    *rand.Rand
	now    time.Duration
	roster Roster
	links  []*link   // by identity
	gone   []peer.ID // those of them that are no members any more, the first to go first
	open   int       // outstanding messages
	bytes  int       // of their bodies
	due    time.Duration
	mended time.Duration // when a peer that had long been silent acknowledged something

	arena   peer.Arena
	out     Effects
	inbox   []Delivery
	lost    []GaveUp
	drained bool
	stats   stats.Courier
}

// New returns a courier that knows nobody. rng spreads repetitions; it belongs to the machine from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	return &Machine{self: self, cfg: cfg.withDefaults(), rng: rng, drained: true}
}

func (m *Machine) begin(now time.Duration) {
	m.now = max(m.now, now, 1) // zero means "no deadline" everywhere in this room
	m.inbox = m.inbox[:0]
	if m.drained {
		m.drained = false
		m.arena.Reset()
	}
}

// Follow takes a new membership.
func (m *Machine) Follow(now time.Duration, r Roster) {
	m.begin(now)
	m.roster = r
	for _, l := range m.links {
		m.count(l)
		old := l.standing
		if old == Absent {
			continue
		}
		l.standing = m.standing(l.id)
		switch l.standing {
		case Absent:
			m.gone = append(m.gone, l.id)
			l.held, l.heldBytes = nil, 0
			m.close(l)
		case Lost, Condemned:
			m.close(l)
		case Present:
			if old == Doubted && len(l.sent) > 0 {
				l.wait = 0
				m.plan(&l.at, m.now)
			}
		}
	}
	for ; len(m.gone) > maxGone; m.gone = m.gone[1:] {
		if i, ok := m.find(m.gone[0]); ok {
			m.links = slices.Delete(m.links, i, i+1)
		}
	}
}

// Post takes a message for a member; its body is copied. A *FullError or ErrNoPeer means that it will not be sent.
func (m *Machine) Post(now time.Duration, mail peer.Mail) error {
	m.begin(now)
	if !Carries(mail.Kind) {
		return fmt.Errorf("%w: %s", ErrBadKind, mail.Kind)
	}
	l := m.link(mail.To)
	if l == nil || l.closed {
		m.stats.Dropped++
		return fmt.Errorf("%w: %s to %s", ErrNoPeer, mail.Kind, mail.To)
	}
	if l.plain {
		m.mail(l.id, mail.Kind, append(m.arena.Begin(), mail.Body...))
		return nil
	}
	return m.push(l, mail.Kind, mail.Body)
}

// Plain says that a peer does not know parcels: an earlier version of the protocol. What is outstanding goes to it
// bare, once, and so does everything later.
func (m *Machine) Plain(now time.Duration, id peer.ID) {
	m.begin(now)
	l := m.link(id)
	if l == nil || l.closed || l.plain {
		return
	}
	l.plain = true
	for i := range l.sent {
		m.mail(l.id, l.sent[i].kind, append(m.arena.Begin(), l.sent[i].body...))
	}
	m.clear(l)
}

// Forgive begins every peer's silence anew: this node took the fault for its own.
func (m *Machine) Forgive() {
	for _, l := range m.links {
		l.waited, l.since = 0, m.now
	}
}

// Bare says whether a letter that came without a parcel may be taken: only from one that never sent a parcel.
func (m *Machine) Bare(from peer.ID, kind wire.Kind) error {
	if i, ok := m.find(from); ok && (m.links[i].got > 0 || len(m.links[i].held) > 0) {
		return fmt.Errorf("%w: %s of %s came without a parcel", ErrNonsense, kind, from)
	}
	return nil
}

// Handle takes a parcel or a receipt and returns the messages that are to be delivered now; they are valid until the
// next verb. An error (a *wire.Error, ErrNonsense, ErrBadKind) means that the peer sent nonsense; nothing has changed.
// Frames between other incarnations, and those of strangers, are ignored: a stranger that is about to be a member sends
// again.
func (m *Machine) Handle(now time.Duration, from peer.ID, kind wire.Kind, body []byte) ([]Delivery, error) {
	m.begin(now)
	var err error
	switch kind {
	case wire.KindParcel:
		err = m.onParcel(from, body)
	case wire.KindReceipt:
		err = m.onReceipt(from, body)
	default:
		err = fmt.Errorf("%w: %s", ErrBadKind, kind)
	}
	return m.inbox, err
}

// Tick handles every deadline that has passed and returns who is to be given up; the list is valid until the next Tick.
func (m *Machine) Tick(now time.Duration) []GaveUp {
	m.begin(now)
	m.lost = m.lost[:0]
	if m.due == 0 || m.now < m.due {
		return nil
	}
	m.due = 0
	for _, l := range m.links {
		if l.ackAt != 0 && l.ackAt <= m.now {
			m.acknowledge(l, false)
		}
		if l.at != 0 && l.at <= m.now {
			m.count(l)
			m.judge(l)
			m.resend(l)
		}
		m.dueAt(l.ackAt)
		m.dueAt(l.at)
	}
	return m.lost
}

// Next returns the earliest deadline at which Tick has something to do; ok is false when there is none.
func (m *Machine) Next() (deadline time.Duration, ok bool) { return m.due, m.due != 0 }

// Drain moves the effects of the verbs since the last Drain into out. They are valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out, m.out = m.out, Effects{Mail: out.Mail[:0], Full: out.Full[:0]}
	m.drained = true
}

// UnderWay reports whether something that was posted to id at since or earlier is not acknowledged yet. Whoever repeats
// a question by its own timer need not while this is so.
func (m *Machine) UnderWay(id peer.ID, since time.Duration) bool {
	i, ok := m.find(id)
	return ok && len(m.links[i].sent) > 0 && m.links[i].sent[0].posted <= max(since, 1)
}

// plan sets a deadline.
func (m *Machine) plan(at *time.Duration, when time.Duration) {
	*at = max(when, 1)
	m.dueAt(*at)
}

func (m *Machine) dueAt(at time.Duration) {
	if at != 0 && (m.due == 0 || at < m.due) {
		m.due = at
	}
}

// after returns the time wait from now, spread by up to an eighth so that nodes do not repeat in step.
func (m *Machine) after(wait time.Duration) time.Duration {
	return m.now + wait + time.Duration(m.rng.Int64N(int64(wait)/8+1))
}

func (m *Machine) find(id peer.ID) (int, bool) {
	return slices.BinarySearchFunc(m.links, id, func(l *link, id peer.ID) int { return l.id.Compare(id) })
}

func (m *Machine) standing(id peer.ID) Standing {
	if m.roster.Of == nil || id == m.self || id.Inc == 0 {
		return Absent
	}
	return m.roster.Of(id)
}

// link returns the stream to a peer, made on first use; nil for a stranger.
func (m *Machine) link(id peer.ID) *link {
	i, ok := m.find(id)
	if !ok {
		s := m.standing(id)
		if s == Absent {
			return nil
		}
		l := &link{id: id, standing: s, base: 1, closed: s == Lost || s == Condemned}
		m.links = slices.Insert(m.links, i, l)
	}
	return m.links[i]
}

// mail sends a frame whose body was appended to what the arena began.
func (m *Machine) mail(to peer.ID, kind wire.Kind, body []byte) {
	invariant.Check(!m.drained, "courier: mail outside a verb")
	m.out.Mail = append(m.out.Mail, peer.Mail{To: to, Kind: kind, Body: m.arena.End(body)})
}
