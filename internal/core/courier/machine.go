// Machine: all streams of one node and its verbs.

package courier

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/stats"
	"github.com/kith-io/kith/wire"
)

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
	drained bool
	stats   stats.Courier
}

// New returns a courier that knows nobody. rng spreads repetitions; it belongs to the machine from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	return &Machine{self: self, cfg: cfg.withDefaults(), rng: rng, drained: true}
}

func (m *Machine) begin(now time.Duration) {
	m.now = max(m.now, now, 1) // zero means "no deadline" everywhere in this room
	if m.drained {
		m.drained = false
		m.arena.Reset()
	}
}

// Do carries out a command of the composition. Errors: ErrBadCommand, and those that the command names.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	switch c := cmd.(type) {
	case FollowCommand:
		m.follow(c.Roster)
	case PostCommand:
		return m.post(c.Mail, c.CanWait)
	case PlainCommand:
		m.plain(c.ID)
	case ForgiveCommand:
		m.forgive()
	default:
		return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
	}
	return nil
}

// follow takes a new membership.
func (m *Machine) follow(r Roster) {
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

// post takes a message for a member.
func (m *Machine) post(mail peer.Mail, canWait bool) error {
	if !Carries(mail.Kind) {
		return fmt.Errorf("%w: %s", ErrBadKind, mail.Kind)
	}
	l := m.link(mail.To)
	if l == nil || l.closed {
		m.stats.Dropped++
		return fmt.Errorf("%w: %s to %s", ErrNoPeer, mail.Kind, mail.To)
	}
	if l.plain {
		m.send(l.id, mail.Kind, append(m.arena.Begin(), mail.Body...))
		return nil
	}
	if canWait && (len(l.sent) >= m.cfg.Messages/4 || len(l.sent) > 0 && l.bytes+len(mail.Body) > m.cfg.Bytes/4 ||
		m.bytes+len(mail.Body) > m.cfg.TotalBytes/2) {
		return &FullError{Peer: l.id, Kind: mail.Kind, Messages: len(l.sent), Bytes: l.bytes,
			Bound: "a quarter of the window for what can wait"}
	}
	return m.push(l, mail.Kind, mail.Body)
}

// plain sends what is outstanding to a peer that does not know segments.
func (m *Machine) plain(id peer.ID) {
	l := m.link(id)
	if l == nil || l.closed || l.plain {
		return
	}
	l.plain = true
	for i := range l.sent {
		m.send(l.id, l.sent[i].kind, append(m.arena.Begin(), l.sent[i].body...))
	}
	m.clear(l)
}

// forgive begins every peer's silence anew.
func (m *Machine) forgive() {
	for _, l := range m.links {
		l.waited, l.since = 0, m.now
	}
}

// Bare says whether a message that came without a segment may be taken: only from one that never sent a segment.
func (m *Machine) Bare(from peer.ID, kind wire.Kind) error {
	if i, ok := m.find(from); ok && (m.links[i].got > 0 || len(m.links[i].held) > 0) {
		return fmt.Errorf("%w: %s of %s came without a segment", ErrNonsense, kind, from)
	}
	return nil
}

// Handle takes a segment or an acknowledgement. What is to be delivered stands in the effects. An error (a *wire.Error,
// ErrNonsense, ErrBadKind) means that the peer sent nonsense; nothing has changed. Frames between other incarnations,
// and those of strangers, are ignored: a stranger that is about to be a member sends again.
func (m *Machine) Handle(now, _ time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	m.begin(now)
	switch kind {
	case wire.KindSegment:
		return m.onSegment(from, body)
	case wire.KindSegmentAck:
		return m.onReceipt(from, body)
	}
	return fmt.Errorf("%w: %s", ErrBadKind, kind)
}

// Tick handles every deadline that has passed. The peers to give up stand in the effects.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	if m.due == 0 || m.now < m.due {
		return
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
}

// Next returns the earliest deadline at which Tick has something to do; ok is false when there is none.
func (m *Machine) Next() (deadline time.Duration, ok bool) { return m.due, m.due != 0 }

// Drain hands over the effects of the verbs since the last Drain. They are valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out, m.out = m.out, Effects{Mail: out.Mail[:0], Full: out.Full[:0], Delivered: out.Delivered[:0],
		GaveUp: out.GaveUp[:0], Closed: out.Closed[:0]}
	m.drained = true
}

// Peek returns what the next Drain will hand over, for a composition that acts on it within the same step. It is valid
// until the next verb and is not to be changed.
func (m *Machine) Peek() Effects { return m.out }

// UnderWay reports whether something that was posted to id at since or earlier is not acknowledged yet. While this is
// so, a caller that repeats a question by its own timer need not. lost means that something that was posted at since or
// later found no room.
func (m *Machine) UnderWay(id peer.ID, since time.Duration) (is, lost bool) {
	i, ok := m.find(id)
	if !ok {
		return false, false
	}
	l := m.links[i]
	return len(l.sent) > 0 && l.sent[0].posted <= max(since, 1), l.spent >= max(since, 1)
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
	return m.roster.Of.Of(id)
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

// send sends a frame with the body that was appended to what the arena began.
func (m *Machine) send(to peer.ID, kind wire.Kind, body []byte) {
	invariant.Check(!m.drained, "courier: mail outside a verb")
	m.out.Mail = append(m.out.Mail, peer.Mail{To: to, Kind: kind, Body: m.arena.End(body)})
}
