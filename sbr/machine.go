// Machine: the resolver of one node as a stepped value; its verbs, and when it decides.

package sbr

import (
	"errors"
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/base/enum"
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// ErrBadCommand is returned by Do for a command of another kind.
var ErrBadCommand = errors.New("sbr: unknown command")

// Command is an input of a resolver: one of ViewCommand, SeatsCommand, SeenCommand, LateCommand, SleptCommand,
// UnconfirmedCommand, UnheardCommand, OlderCommand, LeaseResult.
type Command interface{ command() }

// ViewCommand gives the newest view.
type ViewCommand struct{ View *membership.View }

// SeenCommand names members that are known to have seen the state of the newest view.
type SeenCommand struct{ IDs []peer.ID }

// LateCommand names, at the moment of a Tick, the members that have not shown lately that they live, or not at all
// since this node began to watch them. Those that are accused already, or do not count, are ignored. Quiet are those
// that have missed one answer: they may be about to be late, so that nobody knows whether their word still stands.
type LateCommand struct{ IDs, Quiet []peer.ID }

// SleptCommand says that this node did not run for longer than it ever waits: what it knows is as old as that.
type SleptCommand struct{}

// UnconfirmedCommand says that this node has slept for so long that it is suspended until others have confirmed that it
// still is a member, or, with On false, that they have.
type UnconfirmedCommand struct{ On bool }

// UnheardCommand names the members that last answered this node longer ago than Bound.
type UnheardCommand struct{ IDs []peer.ID }

// OlderCommand names a member that runs an older build: as long as it is one, no leaving member counts for our side in
// the worst case, for to that build they count nowhere once they are Exiting.
type OlderCommand struct{ ID peer.ID }

// LeaseResult answers a LeaseOp: OK says that the lease was acquired, or released. No answer until the deadline, or an
// error, is not OK. Stale says that this side must not live by a lease that it got: this node slept for so long that
// others may have had it meanwhile and given it back.
type LeaseResult struct {
	Op    uint64
	OK    bool
	Stale bool
}

func (ViewCommand) command()        {}
func (SeenCommand) command()        {}
func (LateCommand) command()        {}
func (SleptCommand) command()       {}
func (UnconfirmedCommand) command() {}
func (UnheardCommand) command()     {}
func (OlderCommand) command()       {}
func (LeaseResult) command()        {}

// Effects is what one or more verbs ask for. Drain fills it; slices are valid until the next verb.
type Effects struct {
	Down      []membership.DownCommand // carry these out in this order; this node itself comes last
	Suspend   *Suspend                 // nil: as before
	Lease     []LeaseOp                // carry these out and answer with LeaseResult
	Decisions []Decision               // new ones, explained
	Events    []Event                  // what else is worth telling
}

// Suspend orders this node's data plane to stop, because this node is on a side that goes, or says that the reason has
// gone: the view has healed, and the node may lift the suspension.
type Suspend struct {
	On  bool
	Why string
}

// Event is something worth telling besides decisions, in words.
type Event struct {
	Kind EventKind
	Text string
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of event.
const (
	Unstable       EventKind = iota + 1 // what is reachable goes on changing: all nodes will be downed unless it stops
	QuorumExceeded                      // static-quorum: more members than the quorum is made for
	LeaseChanged                        // the lease was acquired, refused or released
)

var eventNames = []string{Unstable: "unstable", QuorumExceeded: "quorum-exceeded", LeaseChanged: "lease-changed"}

// String names the kind.
func (k EventKind) String() string { return enum.Name(eventNames, k, "event") }

// MarshalText gives the name.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText takes a name, as String gives it.
func (k *EventKind) UnmarshalText(text []byte) error { return enum.Parse(k, text) }

// Machine is the resolver of one node. It is not safe for concurrent use.
type Machine struct {
	self peer.ID
	cfg  Config
	now  time.Duration

	view      *membership.View
	accused   peer.Set      // members, this node included, that one that is not Down holds unreachable
	stable    time.Duration // patience by the last converged version
	settled   peer.Set      // the members that counted at that version
	quietAt   time.Duration // when the picture will have stood still long enough
	contactAt time.Duration // when an accused member last came into contact
	movedAt   time.Duration // when the picture last moved
	lookedAt  time.Duration // when it last looked for late members
	againAt   time.Duration // when a decision that was put off for that is looked at again
	waitEnd   time.Duration // until when it is put off at most; zero: it is not
	sure      bool          // it is put off for longer: this node lives whatever comes of it, or has stopped
	lookAt    time.Duration // after a sleep: no decision before
	heldAt    time.Duration // when this node stopped because it could not decide yet; negative: it has not
	lostAt    time.Duration // when this node, which decided that it goes, goes by itself; negative: it has not
	cause     membership.Cause
	stopped   bool          // this node was suspended
	waitedAt  time.Duration // lease-majority: when a node that does not ask itself gives up waiting; negative: not waiting

	unrest
	electorate
	bounded
	lateness
	words
	parting
	stray   stray
	lease   lease
	log     []Decision
	out     Effects
	drained bool
}

// unrest is that what is reachable changes before it could be decided.
type unrest struct {
	first   time.Duration // first change of the present instability
	changes int           // changes that count for it; 0: none
	flapped bool          // among them was one that came back
	unsure  bool          // among them was one on our side that was downed
	warned  bool
	flaps   flaps
}

// bounded is what a node knows of members that have not answered.
type bounded struct {
	unheard peer.Set  // members that have not answered for as long as an owner may go on
	quiet   []peer.ID // members that had missed an answer when this node last looked
	bound   bool      // this node stopped for that
}

// lateness is the members that have not shown lately that they live.
type lateness struct {
	silent []peer.ID     // members that were late when this node last looked
	late   peer.Set      // of these, members that count and are not accused: the picture may change
	lateAt time.Duration // when one of these became so last
}

// words is which of the accused are in contact, and when an accusation was last made or withdrawn.
type words struct {
	contact peer.Set      // accused members that confirmed all accusations against them
	rowsAt  time.Duration // when an accusation last came or went
	saidAt  time.Duration // when this node last accused a member that may confirm that
	worseAt time.Duration // when a member was lost last, or a status changed
	met     peer.Set      // of the accused, those in contact since the newest accusation of them began
	metAt   time.Duration // when the last of these came into contact first
	blamed  bool          // in the present instability this node was accused, or had lost most of the others
}

// Contact returns the accused members that have confirmed it to this node. A decision hangs on whether they are still
// there, and while no connection breaks nothing says so: LateCommand has to name those that are not. It is valid until
// the next verb.
func (w *words) Contact() peer.Set { return w.contact }

// New returns the resolver of self. cfg is taken with its defaults.
func New(self peer.ID, cfg Config) *Machine {
	cfg = cfg.WithDefaults()
	return &Machine{self: self, cfg: cfg, stable: cfg.StableFor(1), waitedAt: -1, heldAt: -1, lostAt: -1}
}

// Decisions returns the newest decisions, oldest first, at most MaxDecisions; the caller owns the slice.
func (m *Machine) Decisions() []Decision { return append([]Decision(nil), m.log...) }

// Watched returns the members that have to see the newest state now: SeenCommand may leave out all others. It is valid
// until the next verb.
func (m *Machine) Watched() peer.Set { return m.watched }

func (m *Machine) begin(now time.Duration) {
	invariant.Check(now >= m.now, "sbr: time goes back")
	m.now = now
	if m.drained {
		m.drained = false
		m.out = Effects{Down: m.out.Down[:0], Lease: m.out.Lease[:0], Decisions: m.out.Decisions[:0],
			Events: m.out.Events[:0]}
	}
}

// Do takes a command. The only error is ErrBadCommand; nothing has changed then.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	switch c := cmd.(type) {
	case SeatsCommand:
		m.electorate.takes(c)
	case ViewCommand:
		m.electorate.sees(c.View)
		m.see(c.View)
	case SeenCommand:
		for _, id := range c.IDs {
			if m.accused.Has(id) && !m.contact.Has(id) {
				meets(m, id)
				m.stray.look(m, nil, nil)
			}
			m.parting.confirms(m.view, id)
		}
	case LateCommand:
		m.keepLate(c.IDs)
		m.quiet = append(m.quiet[:0], c.Quiet...)
	case SleptCommand:
		if m.open() {
			m.overslept()
		}
		if m.Open() {
			m.listen()
		}
	case UnconfirmedCommand:
		if m.stray.dozed = c.On; m.view != nil {
			m.stray.look(m, nil, nil)
		}
	case UnheardCommand:
		m.bind(c.IDs)
	case OlderCommand:
		m.isOlder(c.ID)
	case LeaseResult:
		m.leaseAnswer(c)
	default:
		return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
	}
	return nil
}

// Tick does what is due.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	m.lookedAt = now
	m.leaseTick()
	if m.stray.goes(m) || !m.open() {
		return
	}
	if m.lostAt >= 0 {
		m.goLost()
		return
	}
	if m.waitedAt >= 0 && m.now >= m.waitedAt {
		m.waitedAt = -1
		m.suspend("nobody said in time who has the lease")
	}
	if m.lease.busy() {
		return
	}
	m.overslept()
	m.sure = false
	if m.now >= m.decideAt() && !m.waits() { // what stood still long enough is decided, however long ago that began
		m.decide()
		return
	}
	d, goesOn, end := rides(m)
	if end {
		endFlaps(m, d)
		return
	}
	m.sure = m.sure || goesOn || anyway(m)
	m.tooLong()
}

// goLost ends a node that decided against itself when nobody has downed it in time. It makes no other decision any
// more: the member that was to down it may have done so and be out of reach, and a later picture must not make it a
// survivor.
func (m *Machine) goLost() {
	if m.now >= m.lostAt {
		m.lostAt = m.now + settle
		m.out.Down = append(m.out.Down, membership.DownCommand{ID: m.self, Cause: m.cause})
	}
}

// Open reports whether there is something to decide: a member is accused, and this node has a say, or never came Up and
// has lost all that did.
func (m *Machine) Open() bool { return m.open() || m.Stray(m.now) }

// Stray reports whether this node never came Up and none of those that did is in reach, or nobody ever did and it waits
// in vain for others to confirm it: it goes when that lasts, and speaks for no cluster until then.
func (m *Machine) Stray(now time.Duration) bool { return m.stray.is(now) }

// open reports whether there is something to decide and this node has a say.
func (m *Machine) open() bool {
	if m.cfg.Strategy == Off || m.view == nil {
		return false
	}
	self, ok := m.view.SelfMember()
	if !ok || !decides(self.Status) {
		return false
	}
	for _, id := range m.accused {
		if x, ok := m.view.Member(id); ok && downable(x.Status) {
			return true
		}
	}
	return false
}

// Next returns the earliest deadline at which Tick has something to do; ok is false when there is none.
func (m *Machine) Next() (at time.Duration, ok bool) {
	add := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if t, some := m.lease.next(); some {
		add(t)
	}
	if t, some := m.stray.due(m); some {
		add(t)
	}
	if !m.open() {
		return at, ok
	}
	if m.lostAt >= 0 {
		add(m.lostAt)
		return at, ok
	}
	if m.waitedAt >= 0 {
		add(m.waitedAt)
	}
	if m.lease.busy() {
		return at, ok
	}
	add(max(m.decideAt(), m.againAt))
	if end, some := looksAt(m); some {
		add(end)
	}
	if len(m.contact) > 0 {
		add(max(m.lookedAt+lookEvery, m.quietAt-m.takeBack()))
	}
	if _, some := m.cfg.unstableFor(m.stable); some && m.changes > 0 && !m.warned {
		add(m.warnAt())
	}
	return at, ok
}

// Drain hands over the effects of the verbs since the last Drain. They are valid until the next verb.
func (m *Machine) Drain(out *Effects) {
	*out = m.Peek()
	m.drained = true
}

// Peek returns what the next Drain will hand over, for a composition that acts on it within the same step. It is valid
// until the next verb and is not to be changed.
func (m *Machine) Peek() Effects {
	if m.drained {
		return Effects{}
	}
	return m.out
}

func (m *Machine) situation() Situation {
	s := Situation{Self: m.self, Members: m.view.Members, Accusations: m.view.Accusations, Contact: m.contact,
		Aware: m.aware, Older: m.mixed(m.view), Seats: m.list.Holders,
		Ended: m.list.Ended, FirstSeats: !m.founded}
	for i := range s.Members {
		if x := &s.Members[i]; counts(x.Status) && !m.settled.Has(x.ID) {
			s.Fresh = append(s.Fresh, x.ID)
		}
	}
	return s
}

func (m *Machine) tell(kind EventKind, text string) {
	m.out.Events = append(m.out.Events, Event{kind, text})
}
