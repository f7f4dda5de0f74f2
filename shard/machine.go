// Machine: the sharding machine of one node with its five verbs.

package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// ErrNonsense is wrapped by errors of Handle for mail that is well-formed and cannot be true: a shard beyond the type's
// count, an order under another fence than its term, a term that is not the sender's up-number.
var ErrNonsense = errors.New("shard: mail that cannot be true")

// Machine is the sharding machine of one node. It is a value stepped by its runtime and not safe for concurrent use.
type Machine struct {
	self    peer.ID
	cfg     Config
	rng     *rand.Rand
	now     time.Duration
	view    *membership.View
	over    bool // this incarnation was downed or removed: it hosts nothing and says nothing any more
	past    memory
	leave   leave
	confirm confirmation
	types   map[route.TypeID]*typ
	order   []route.TypeID // the keys of types, rising

	local   []message // mail of this node to itself
	out     Effects
	arena   peer.Arena
	drained bool // the effects were taken: the arena may be used anew
	ignored uint64
	stale   uint64
	full    uint64
}

// typ is everything this node knows of one type. It exists once the type is registered here or a coordinator has asked
// for a report.
type typ struct {
	id      route.TypeID
	promise promise
	epoch   uint32        // last epoch given here as coordinator; kept when another takes over
	region  *region       // nil while the type is not registered here
	coord   *coordinator  // nil while another node coordinates
	rest    time.Duration // no reign begins before: the last one was contradicted
}

// promise is what the last report promised: to refuse every order of a lower term, of the same term from another
// incarnation, and every fence below floor.
type promise struct {
	term     uint32
	to       peer.ID
	floor    route.Fence
	settings Settings      // of the reign that was promised to; zero when only its term is known
	gone     time.Duration // when to was first seen to be no member any more; 0 while it is one
}

// New returns a machine that knows no type and has seen no view. rng spreads repetitions; it belongs to the machine
// from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	return &Machine{self: self, cfg: cfg.withDefaults(), rng: rng, types: map[route.TypeID]*typ{}, drained: true}
}

// Tick handles every deadline that has passed.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	if m.past.age(m.now) {
		m.reviewAll()
	}
	for _, id := range m.order {
		t := m.types[id]
		if t.region != nil {
			m.tickRegion(t)
		}
		if t.coord != nil {
			t.coord.tick()
		}
	}
	m.tickLeave()
	m.tickConfirm()
	m.end()
}

// Handle takes one control frame. An error means that the peer sent nonsense; nothing has changed. Mail of a stranger,
// of a member that is Down, or of another cluster is ignored: views differ for a moment, and what matters is repeated.
func (m *Machine) Handle(now, _ time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	m.begin(now)
	l, err := readMessage(kind, body)
	if err != nil {
		return err
	}
	if !m.admits(from, l) {
		if q, ok := l.(confirmOwner); ok && m.view == nil && q.Term == 0 {
			m.answerUnadmitted(from, q)
			return nil
		}
		m.ignored++
		return nil
	}
	if err := m.check(from, l); err != nil {
		return err
	}
	m.deliver(from, l)
	m.end()
	return nil
}

// Do carries out a command of the node itself.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	var err error
	switch c := cmd.(type) {
	case ViewCommand:
		m.onView(c.View)
	case RegisterCommand:
		err = m.register(c.Settings)
	case WantCommand:
		err = m.want(c)
	case StoppedCommand:
		err = m.stopped(c)
	case RefusedCommand:
		err = m.refused(c)
	case LeaveCommand:
		m.beginLeave()
	case DeathCommand:
		m.died(c.ID)
	case SuspendCommand:
		m.hold(c.On)
	default:
		return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
	}
	m.end()
	return err
}

// Next returns the earliest deadline at which Tick has something to do.
func (m *Machine) Next() (deadline time.Duration, ok bool) {
	if m.over {
		return 0, false
	}
	var d least
	d.add(m.past.next())
	d.add(m.leave.next(m))
	d.add(m.confirm.retry.at)
	for _, id := range m.order {
		t := m.types[id]
		if t.region != nil {
			d.add(t.region.next())
		}
		if t.coord != nil {
			d.add(t.coord.next())
		}
	}
	return d.at, d.at != 0
}

// least finds the earliest of several deadlines, where zero is none.
type least struct{ at time.Duration }

func (l *least) add(at time.Duration) {
	if at != 0 && (l.at == 0 || at < l.at) {
		l.at = at
	}
}

// Drain hands over the effects of the verbs since the last Drain. They are valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out, m.out = m.out, Effects{Hosts: out.Hosts[:0], Routes: out.Routes[:0], Mail: out.Mail[:0],
		Refused: out.Refused[:0], Events: out.Events[:0]}
	m.drained = true
}

// Peek returns what the next Drain will hand over, for a composition that acts on it within the same step. It is valid
// until the next verb and is not to be changed.
func (m *Machine) Peek() Effects { return m.out }

func (m *Machine) begin(now time.Duration) {
	m.now = max(m.now, now, 1) // zero means "no deadline" everywhere in this room
	m.past.population.pass(m.now)
	if m.drained {
		m.arena.Reset()
		m.drained = false
	}
}

// end delivers the mail of this node to itself and sends what has gathered, until nothing is left. Every message is
// answered by fewer steps than it took to ask, so this ends.
func (m *Machine) end() {
	for {
		for i := 0; i < len(m.local); i++ {
			m.deliver(m.self, m.local[i])
		}
		m.local = m.local[:0]
		for _, id := range m.order {
			t := m.types[id]
			if t.coord != nil {
				t.coord.flush()
			}
			if t.region != nil {
				m.flushRegion(t)
			}
		}
		m.checkLeave()
		m.checkConfirm()
		if len(m.local) == 0 {
			return
		}
	}
}

// post sends a message. Mail to this node itself takes the same way without being encoded.
func (m *Machine) post(to peer.ID, l message) {
	if to == m.self {
		m.local = append(m.local, l)
		return
	}
	body := m.arena.End(l.append(m.arena.Begin()))
	m.out.Mail = append(m.out.Mail, peer.Mail{To: to, Kind: l.kind(), Body: body})
}

func (m *Machine) event(e Event) { m.out.Events = append(m.out.Events, e) }

// refuse counts and tells that an order or report of a lower term or fence was refused.
func (m *Machine) refuse(t route.TypeID, term uint32, from peer.ID, s route.ShardID, f route.Fence) {
	m.stale++
	m.event(Event{Kind: StaleRefused, Type: t, Shard: s, Term: term, Home: from, Fence: f})
}

// after returns the deadline wait from now, spread by up to an eighth so that nodes do not repeat in step.
func (m *Machine) after(wait time.Duration) time.Duration {
	return m.now + wait + time.Duration(m.rng.Int64N(int64(wait)/8+1))
}

// underWay reports whether what was sent to a peer at since or earlier has not arrived yet, as far as anybody can tell.
func (m *Machine) underWay(to peer.ID, since time.Duration) bool {
	return m.cfg.UnderWay != nil && since >= 0 && m.cfg.UnderWay(to, since)
}

// live reports whether id is a member that may still speak.
func (m *Machine) live(id peer.ID) bool {
	mb, ok := m.view.Member(id)
	return ok && mb.Status != membership.Down
}

// typ returns the type, made on first use; nil when there are too many.
func (m *Machine) typ(id route.TypeID) *typ {
	t := m.types[id]
	if t == nil && len(m.types) < m.cfg.MaxTypes {
		t = &typ{id: id}
		m.types[id] = t
		at, _ := slices.BinarySearch(m.order, id)
		m.order = slices.Insert(m.order, at, id)
	}
	return t
}

func (m *Machine) head(id route.TypeID, term uint32) head {
	return head{Birth: m.view.Birth, Type: id, Term: term}
}

// onView takes a new membership snapshot: losses are remembered first, then coordinators and regions follow.
func (m *Machine) onView(v *membership.View) {
	if v == nil || m.over || (m.view != nil && v.Seq < m.view.Seq) {
		return
	}
	old := m.view
	self, member := v.SelfMember()
	switch {
	case member && self.Status == membership.Down, !member && old != nil:
		m.view = v
		m.abandon()
		return
	case !member || v.Birth == 0:
		return // not admitted yet
	}
	m.view = v
	m.past.population.note(old, v)
	lost := m.past.note(m.now, m.takeover(), m.blindTakeover(), old, v)
	for _, id := range m.order {
		t := m.types[id]
		t.promise.note(m.now, v)
		if t.coord != nil {
			t.coord.onView()
		}
		if t.region != nil {
			m.regionView(t, lost)
		}
	}
	m.reviewAll()
}

// reviewAll lets every coordinator look again at what it waits for.
func (m *Machine) reviewAll() {
	for _, id := range m.order {
		if c := m.types[id].coord; c != nil {
			c.review()
		}
	}
}
