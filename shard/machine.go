// Machine: the sharding machine of one node with its five verbs.

package shard

import (
	"cmp"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/core/loads"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
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
	comers  comers
	leave   leave
	away    bool // shards move away and no others come, though this node stays: see DrainCommand
	confirm confirmation
	types   map[route.TypeID]*typ
	agenda  agenda

	sends   []parcel  // transfers under way, in the order in which they began
	local   []message // mail of this node to itself
	out     Effects
	arena   peer.Arena
	drained bool // the effects were taken: the arena may be used anew
	ignored uint64
	stale   uint64
	full    uint64
	placed  Placing
	moves   MoveCounters
	pace    pace
}

// typ is everything this node knows of one type. It exists once the type is registered here or a coordinator has asked
// for a report.
type typ struct {
	id      route.TypeID
	promise promise
	epoch   uint32        // last epoch given here as coordinator; kept when another takes over
	moves   uint32        // last sequence of a move begun here; kept likewise
	typical int           // bytes that a move of the type hands over, as seen here in whatever part; zero: unknown
	region  *region       // nil while the type is not registered here
	coord   *coordinator  // nil while another node coordinates
	rest    time.Duration // no term begins before: the last one was contradicted

	strategy strategy.Strategy // as the type was registered here
	guard    *strategy.Checked // around it, once it is asked
	meter    loads.Meter       // of the shards that live here, if the strategy reads loads
	measured time.Duration     // when they were read last

	planned planned
}

// Placing are the totals of the strategies of all types that this node coordinated.
type Placing struct {
	Faults    uint64 // answers that were refused, see strategy.Fault
	Fallbacks uint64 // shards that were given a region by LeastShards because of one
}

// promise is what the last report promised: to refuse every order of a lower term, of the same term from another
// incarnation, and every fence below floor.
type promise struct {
	term     uint32
	to       peer.ID
	floor    route.Fence
	settings Settings      // of the term that was promised to; zero when only its term is known
	gone     time.Duration // when to was first seen to be no member any more; 0 while it is one
}

// New returns a machine that knows no type and has seen no view. rng spreads repetitions; it belongs to the machine
// from now on.
func New(self peer.ID, cfg Config, rng *rand.Rand) *Machine {
	return &Machine{self: self, cfg: cfg.withDefaults(), rng: rng, types: map[route.TypeID]*typ{}, drained: true,
		past: memory{proofOnly: cfg.ProofOnly}}
}

// least finds the earliest of several deadlines, where zero is none.
type least struct{ at time.Duration }

func (l *least) add(at time.Duration) {
	if at != 0 && (l.at == 0 || at < l.at) {
		l.at = at
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

// underWay reports whether what was sent to a peer at since or earlier has not arrived yet, as far as anybody can tell,
// and whether something that was sent at since or later is lost.
func (m *Machine) underWay(to peer.ID, since time.Duration) (is, lost bool) {
	if m.cfg.UnderWay == nil || since < 0 {
		return false, false
	}
	return m.cfg.UnderWay(to, since)
}

// live reports whether id is a member that may still speak.
func (m *Machine) live(id peer.ID) bool {
	mb, ok := m.view.Member(id)
	return ok && mb.Status != membership.Down
}

// typ returns the type, made on first use; nil when there are too many.
func (m *Machine) typ(id route.TypeID) *typ {
	t := typeOf(m, id)
	if t == nil && len(m.types) < m.cfg.MaxTypes {
		t = &typ{id: id}
		m.types[id] = t
		at, _ := slices.BinarySearch(m.agenda.order, id)
		m.agenda.order = slices.Insert(m.agenda.order, at, id)
		m.agenda.touch(t)
	}
	return t
}

// typeOf returns a type that this step may change, nil when there is none of it. A caller that only reads takes it from
// types.
func typeOf(m *Machine, id route.TypeID) *typ {
	t := m.types[id]
	if t != nil {
		m.agenda.touch(t)
	}
	return t
}

// eachType yields all types, rising, which this step may change.
func eachType(m *Machine) iter.Seq[*typ] {
	return func(yield func(*typ) bool) {
		for _, id := range m.agenda.order {
			if t := typeOf(m, id); !yield(t) {
				return
			}
		}
	}
}

func (m *Machine) head(id route.TypeID, term uint32) head {
	return head{Birth: m.view.Birth, Type: id, Term: term}
}

// planned is when a step has to look at a type though nothing comes for it, and what was counted of it.
type planned struct {
	due             time.Duration // zero: never
	pos             int           // in agenda.heap, from one on; zero: not there
	touched         bool
	refused, unsure bool
}

// agenda is which types a step looks at: those that it has touched, and those that are due. A node may have thousands,
// and looks at no other.
type agenda struct {
	order   []route.TypeID // of all types, rising
	heap    []*typ         // those that are due at some time, the earliest first
	touched []*typ
	refused int // types that the cluster refuses as they are registered here
	unsure  int // types registered here that their coordinators have not acknowledged
}

// touch makes the step look at a type.
func (a *agenda) touch(t *typ) {
	if !t.planned.touched {
		t.planned.touched = true
		a.touched = append(a.touched, t)
	}
}

// touchDue touches what is due, from a place of the heap on downwards.
func (a *agenda) touchDue(now time.Duration) { a.touchFrom(0, now) }

func (a *agenda) touchFrom(i int, now time.Duration) {
	if i < len(a.heap) && a.heap[i].planned.due <= now {
		a.touch(a.heap[i])
		a.touchFrom(2*i+1, now)
		a.touchFrom(2*i+2, now)
	}
}

// rising returns what is touched, in the order of types. It is valid until something is touched.
func (a *agenda) rising() []*typ {
	slices.SortFunc(a.touched, func(s, t *typ) int { return cmp.Compare(s.id, t.id) })
	return a.touched
}

// settle ends a step: plan notes when each type that was touched is due, and reports whether the next step is to look
// at it whatever comes.
func (a *agenda) settle(plan func(*typ) bool) {
	a.touched = slices.DeleteFunc(a.touched, func(t *typ) bool {
		t.planned.touched = plan(t)
		return !t.planned.touched
	})
}

// next returns when the first type is due, zero for never.
func (a *agenda) next() time.Duration {
	if len(a.heap) == 0 {
		return 0
	}
	return a.heap[0].planned.due
}

// move puts a type where its new time belongs.
func (a *agenda) move(t *typ, due time.Duration) {
	p := &t.planned
	if due == p.due {
		return
	}
	p.due = due
	switch {
	case due == 0:
		last := len(a.heap) - 1
		i := p.pos - 1
		a.swap(i, last)
		a.heap[last], a.heap, p.pos = nil, a.heap[:last], 0
		if i < last {
			a.down(i)
			a.up(i)
		}
	case p.pos == 0:
		a.heap = append(a.heap, t)
		p.pos = len(a.heap)
		a.up(p.pos - 1)
	default:
		a.up(p.pos - 1)
		a.down(p.pos - 1)
	}
}

func (a *agenda) swap(i, j int) {
	a.heap[i], a.heap[j] = a.heap[j], a.heap[i]
	a.heap[i].planned.pos, a.heap[j].planned.pos = i+1, j+1
}

func (a *agenda) up(i int) {
	for ; i > 0 && a.heap[i].planned.due < a.heap[(i-1)/2].planned.due; i = (i - 1) / 2 {
		a.swap(i, (i-1)/2)
	}
}

func (a *agenda) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(a.heap); c++ {
			if a.heap[c].planned.due < a.heap[least].planned.due {
				least = c
			}
		}
		if least == i {
			return
		}
		a.swap(i, least)
		i = least
	}
}

// reviewAll lets every coordinator look again at what it waits for.
func (m *Machine) reviewAll() {
	for t := range eachType(m) {
		if t.coord != nil {
			t.coord.review()
		}
	}
}

// takesStates reports whether a member is not known to know nothing of states.
func takesStates(m *Machine, id peer.ID) bool {
	return id == m.self || m.cfg.NoStates == nil || !m.cfg.NoStates(id)
}

// speaksMoves reports whether a member understands moves.
func speaksMoves(m *Machine, id peer.ID) bool {
	return id == m.self || m.cfg.Moves != nil && m.cfg.Moves(id)
}

// speaksCosts reports whether a member understands what a move cost, and waits for room.
func speaksCosts(m *Machine, id peer.ID) bool {
	return id == m.self || m.cfg.Costs != nil && m.cfg.Costs(id)
}

// closing reports whether the whole cluster stops: eager regions want nothing then, else what is kept alive would go
// from member to member with each that leaves (MEM-7).
func closing(m *Machine) bool { return strategy.HoldOf(m.view.Members, nil)&strategy.Shutdown != 0 }

// higher is the answer to one that follows a lower term than this node has promised.
func (m *Machine) higher(t *typ) nak {
	return nak{head: m.head(t.id, t.promise.term), Reason: nakTerm, Coordinator: t.promise.to}
}

// counts reports whether a member may coordinate: it has its up-number and has not left.
func counts(mb membership.Member) bool {
	return mb.UpNumber != 0 && (mb.Status.Working() || mb.Status == membership.Leaving)
}

// comers are the members that this node has seen come: some may be about to, or came a moment ago.
type comers struct {
	first time.Duration // when one was seen Up first; 0: none was
	last  time.Duration // when another was seen Up last
	more  bool          // some are about to be
}

// note follows a new view; old may be nil.
func (c *comers) note(now time.Duration, old, v *membership.View) {
	c.more = false
	for i := range v.Members {
		mb := &v.Members[i]
		switch mb.Status {
		case membership.Joining, membership.WeaklyUp:
			c.more = true
			continue
		case membership.Up:
		default:
			continue
		}
		if old != nil {
			if was, in := old.Member(mb.ID); in && was.UpNumber != 0 {
				continue
			}
		}
		if c.last = now; c.first == 0 {
			c.first = now
		}
	}
}

// until returns when a wait for comers that began at since ends, as far as can be seen now.
func (c *comers) until(since, wait time.Duration) time.Duration {
	most := max(since, c.first) + settleMost*wait
	if c.more {
		return most
	}
	return min(most, c.last+wait)
}
