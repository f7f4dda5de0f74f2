// The five verbs of the machine, and what each of them ends with.

package shard

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// Tick handles every deadline that has passed. Types without one, and untouched so far, have nothing to do.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	if m.past.age(m.now) {
		m.reviewAll()
	}
	m.agenda.touchDue(m.now)
	for _, t := range m.agenda.rising() {
		if t.region != nil {
			t.region.hand.tick()
			m.tickRegion(t)
			tickLoads(m, t)
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
		m.onView(c)
	case RegisterCommand:
		err = m.register(c)
	case WantCommand:
		err = m.want(c)
	case EagerCommand:
		err = beEager(m, c.Type)
	case StoppedCommand:
		err = m.stopped(c)
	case RefusedCommand:
		err = m.refused(c)
	case LeaveCommand:
		m.beginLeave(c)
	case DrainCommand:
		err = drain(m, c)
	case DeathCommand:
		m.died(c.ID)
		reviewHands(m)
	case SuspendCommand:
		m.hold(c.On)
	case LapseCommand:
		m.confirm.lapsed = c.On
		m.reviewAll()
	case MoveCommand:
		err = beginMove(m, c)
	case AskMoveCommand:
		err = askMove(m, c)
	case ReadyCommand:
		err = setReady(m, c)
	case LingerCommand:
		err = linger(c, m)
	case WishesCommand:
		err = setWishes(m, c)
	case LoadsCommand:
		err = tellLoads(m, c)
	case HandOverCommand:
		err = handedOver(m, c)
	case EndCommand:
		endHanding(m)
	case MarkedCommand:
		marked(m, c)
	case MarkAgainCommand:
		markAgain(m, c.To)
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
	d.add(m.agenda.next())
	return d.at, d.at != 0
}

// Drain hands over the effects of the verbs since the last Drain. They are valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out, m.out = m.out, Effects{Hosts: out.Hosts[:0], Routes: out.Routes[:0], Marks: out.Marks[:0],
		Untaken: out.Untaken[:0], Mail: out.Mail[:0],
		Refused: out.Refused[:0], Answers: out.Answers[:0], Measure: out.Measure[:0],
		Events: out.Events[:0]}
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
// answered by fewer steps than it took to ask, so this ends. Nothing has gathered for types that were not touched.
func (m *Machine) end() {
	for {
		for i := 0; i < len(m.local); i++ {
			m.deliver(m.self, m.local[i])
		}
		m.local = m.local[:0]
		m.pace.goOn(m)
		m.agenda.touchDue(m.now) // a question that waited for its batch
		for _, t := range m.agenda.rising() {
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
			break
		}
	}
	m.agenda.settle(func(t *typ) bool { return plan(m, t) })
}

// plan notes when a type that was touched is due, and what is counted of it. Each step looks at one that waits for
// something else: for moves of other types, or for the version of its coordinator to become known.
func plan(m *Machine, t *typ) (again bool) {
	var d least
	g, c, p, a := t.region, t.coord, &t.planned, &m.agenda
	refused, unsure := false, false
	if g != nil {
		d.add(g.next())
		d.add(measureAt(m, t))
		refused = g.refused != nil
		unsure = !refused && !g.joined && !g.to.IsZero()
		again = g.joined && strategy.ReadsLoads(t.strategy) && !speaksMoves(m, g.to)
	}
	if c != nil {
		d.add(c.next())
		again = again || len(c.moves.rounds.plan) > 0 || c.moves.rounds.began != 0
	}
	a.move(t, d.at)
	a.refused += bit(refused) - bit(p.refused)
	a.unsure += bit(unsure) - bit(p.unsure)
	p.refused, p.unsure = refused, unsure
	return again
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// onView takes a new membership snapshot: losses are remembered first, then coordinators and regions follow.
func (m *Machine) onView(c ViewCommand) {
	v := c.View
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
	m.comers.note(m.now, old, v)
	m.past.inherit(m.now, m.takeover(), v, c.Lost)
	lost := m.past.note(m.now, m.takeover(), m.blindTakeover(), old, v)
	for _, id := range c.Dead {
		lost = m.past.prove(v, id) || lost
	}
	for t := range eachType(m) {
		t.promise.note(m.now, v)
		if t.coord != nil {
			t.coord.onView()
		}
		if t.region != nil {
			m.regionView(t, lost)
			t.region.hand.review()
		}
	}
	m.reviewAll()
}
