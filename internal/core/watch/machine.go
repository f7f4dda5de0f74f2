// Machine: where each watch of this node is, and what others get. A watch goes to the home of its shard, where the
// answer comes from; a home that does not own it sends it back, and the next one is looked for. Frames travel by the
// courier: once, in order, or the other node is lost, and then all that was there is reported as lost.

package watch

import (
	"cmp"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Errors of the verbs.
var (
	ErrBadCommand = errors.New("watch: unknown command")
	ErrBadKind    = errors.New("watch: frame kind of another package")
	ErrNoRoom     = errors.New("watch: the courier has no room")
)

// RetryAfter is the pause before what could not be sent is tried again, or a home looked for.
const RetryAfter = 200 * time.Millisecond

// Config is what the composition does for a machine. Its functions are called within verbs.
type Config struct {
	// Home returns where a shard lives and under which fence, as far as this node knows.
	Home func(t route.TypeID, s route.ShardID) (at peer.ID, f route.Fence, known bool)
	// Next returns which node a shard is about to go to that lives here, or lives at; zero: not known.
	Next func(t route.TypeID, s route.ShardID) peer.ID
	// Want asks for the home of a shard, Stale says that the one under a fence does not own it.
	Want  func(t route.TypeID, s route.ShardID)
	Stale func(t route.TypeID, s route.ShardID, f route.Fence)
	// Lost reports whether nothing that is sent to a peer will ever arrive there.
	Lost func(peer.ID) bool
	// Post sends a frame by the courier. ErrNoRoom: later. Any other error: its receiver is lost.
	Post func(m peer.Mail) error
}

// Command is a wish of the runtime, or of the composition: TurnCommand, OlderCommand, FollowCommand, KnownCommand.
type Command interface{ command() }

// TurnCommand says what has gathered: watches that began, watches that are over, what became of those on entities here.
type TurnCommand struct {
	Begin, End []Wanted
	Reports    []Report
}

// OlderCommand says that a peer speaks a wire version without watches.
type OlderCommand struct{ ID peer.ID }

// FollowCommand brings a new view.
type FollowCommand struct{ View *cluster.View }

// KnownCommand says of which shards the home is known since a moment ago.
type KnownCommand struct{ Places []Place }

func (TurnCommand) command()   {}
func (OlderCommand) command()  {}
func (FollowCommand) command() {}
func (KnownCommand) command()  {}

// Place is a shard.
type Place struct {
	Type  route.TypeID
	Shard route.ShardID
}

// Report is what became of a watch on an entity of a shard here. Cause zero: the shard does not live here.
type Report struct {
	To       entity.Watcher
	Place    Place
	Cause    entity.EndCause
	Fence    route.Fence
	Instance uint64
}

// Look is a watch on an entity of this node that the runtime is to take to its host, or (Off) to take back.
type Look struct {
	From peer.ID
	Off  bool
	Wanted
}

// Told says what became of a watch of this node. Type and ID of the end are left to the holder of the book.
type Told struct {
	Number uint64
	Ended  entity.Ended
}

// Effects is what one or more verbs ask for: what hosts here are to look at, in order; nodes with watches here that are
// over; ends to report; mail that needs no courier. It is valid until the next verb.
type Effects struct {
	Looks []Look
	Gone  []peer.ID
	Told  []Told
	Mail  []peer.Mail
}

// Stats is what a machine counts.
type Stats struct {
	Standing int                      // watches of this node's entities
	Told     [entity.EndCauses]uint64 // ends of others, by cause
	Taken    uint64                   // watches that came from other nodes
}

// ByCause returns how many ends were reported of each cause of which there were some.
func (s *Stats) ByCause() map[string]uint64 {
	told := map[string]uint64{}
	for c, n := range s.Told {
		if n > 0 {
			told[entity.EndCause(c).String()] = n
		}
	}
	return told
}

// Machine is the machine of one node. It is not safe for concurrent use.
type Machine struct {
	self    peer.ID
	cfg     Config
	now     time.Duration
	watches map[uint64]watch
	seeking map[Place][]uint64 // watches that wait for a home
	desks   []*desk            // by identity
	at      time.Duration      // when what waits is tried again; zero: nothing does
	arena   peer.Arena
	out     Effects
	drained bool
	stats   Stats
}

// watch is one of this node.
type watch struct {
	Wanted
	at    peer.ID // where it went; zero: it waits for a home
	fence route.Fence
}

// desk is another node.
type desk struct {
	id       peer.ID
	asked    bool // whether it does; until the next try
	speaks   bool // it is known to speak a version with watches
	old      bool // it is known to speak one without
	status   cluster.Status
	standing map[uint64]struct{} // watches that went there
	out      []item              // that are to be sent
}

// New returns a machine without watches.
func New(self peer.ID, cfg Config) *Machine {
	return &Machine{self: self, cfg: cfg, drained: true, watches: map[uint64]watch{}, seeking: map[Place][]uint64{}}
}

func (m *Machine) begin(now time.Duration) {
	m.now = max(m.now, now, 1) // zero means no deadline
	if m.drained {
		m.drained = false
		m.arena.Reset()
	}
}

// Do carries out a command. Errors: ErrBadCommand.
func (m *Machine) Do(now time.Duration, cmd Command) error {
	m.begin(now)
	switch c := cmd.(type) {
	case TurnCommand:
		m.turn(c)
	case OlderCommand:
		m.older(c.ID)
	case FollowCommand:
		m.follow(c)
	case KnownCommand:
		for _, p := range c.Places {
			m.seekAll(p)
		}
	default:
		return fmt.Errorf("%w: %T", ErrBadCommand, cmd)
	}
	m.flush()
	return nil
}

// turn takes what has gathered. A report may be about a watch that began in the same turn, never the other way round.
func (m *Machine) turn(c TurnCommand) {
	for _, w := range c.Begin {
		m.watches[w.Number] = watch{Wanted: w}
		m.seek(w.Number)
	}
	for _, w := range c.End {
		m.end(w.Number)
	}
	for i := range c.Reports {
		m.report(&c.Reports[i])
	}
}

// seek sends a watch to the home of its shard, or has it wait for one.
func (m *Machine) seek(number uint64) {
	w := m.watches[number]
	at, f, known := m.cfg.Home(w.Type, w.Shard)
	if !known || at != m.self && m.cfg.Lost(at) {
		m.wait(w.Wanted)
		m.cfg.Want(w.Type, w.Shard)
		return
	}
	w.at, w.fence = at, f
	m.watches[number] = w
	if at == m.self {
		m.out.Looks = append(m.out.Looks, Look{From: m.self, Wanted: w.Wanted})
		return
	}
	d := m.desk(at)
	d.standing[number] = struct{}{}
	d.out = append(d.out, item{op: watches, Wanted: w.Wanted})
}

// wait makes a watch wait for a home.
func (m *Machine) wait(w Wanted) {
	m.watches[w.Number] = watch{Wanted: w}
	p := Place{w.Type, w.Shard}
	m.seeking[p] = append(m.seeking[p], w.Number)
	m.retry()
}

// seekAll sends what waits for the home of a shard.
func (m *Machine) seekAll(p Place) {
	list := m.seeking[p]
	delete(m.seeking, p)
	for _, n := range list {
		if _, stands := m.watches[n]; stands {
			m.seek(n)
		}
	}
}

// end takes a watch back. One that is not known was reported a moment ago.
func (m *Machine) end(number uint64) {
	w, stands := m.watches[number]
	if !stands {
		return
	}
	delete(m.watches, number)
	switch w.at {
	case peer.ID{}: // what waits is looked at again
	case m.self:
		m.out.Looks = append(m.out.Looks, Look{From: m.self, Off: true, Wanted: w.Wanted})
	default:
		d := m.desk(w.at)
		delete(d.standing, number)
		d.out = append(d.out, item{op: unwatch, Wanted: w.Wanted})
	}
}

// report tells the node of a watcher what became of its watch.
func (m *Machine) report(r *Report) {
	i := item{op: ended, Wanted: Wanted{Number: r.To.Number}, cause: r.Cause, fence: r.Fence, instance: r.Instance}
	if r.Cause == entity.EndedMoved || r.Cause == entity.EndedLeft {
		i.home = m.cfg.Next(r.Place.Type, r.Place.Shard)
	}
	if r.To.Node == m.self {
		m.ended(m.self, &i)
		return
	}
	if m.cfg.Lost(r.To.Node) {
		return
	}
	d := m.desk(r.To.Node)
	d.out = append(d.out, i)
}

// ended takes a node's word on a watch that went there.
func (m *Machine) ended(from peer.ID, i *item) {
	w, stands := m.watches[i.Number]
	if !stands || w.at != from {
		return
	}
	if d, is := m.find(from); is {
		delete(m.desks[d].standing, i.Number)
	}
	if i.cause == away {
		m.cfg.Stale(w.Type, w.Shard, w.fence)
		m.wait(w.Wanted)
		return
	}
	end := entity.Ended{Cause: i.cause, Fence: i.fence, Instance: i.instance, Home: i.home}
	if end.Home.IsZero() && (i.cause == entity.EndedMoved || i.cause == entity.EndedLeft) {
		if at, f, known := m.cfg.Home(w.Type, w.Shard); known && f.Compare(i.fence) > 0 {
			end.Home = at
		}
	}
	m.tell(i.Number, end)
}

// tell reports an end to the watcher.
func (m *Machine) tell(number uint64, end entity.Ended) {
	delete(m.watches, number)
	m.stats.Told[end.Cause]++
	m.out.Told = append(m.out.Told, Told{number, end})
}

// follow takes a new view. All that went to a node which is lost is reported as such: its own node says it no more.
func (m *Machine) follow(c FollowCommand) {
	kept := m.desks[:0]
	for _, d := range m.desks {
		mb, in := c.View.Member(d.id)
		if in {
			d.status = mb.Status
		}
		if !m.cfg.Lost(d.id) {
			kept = append(kept, d)
			continue
		}
		cause := entity.EndedLost
		if !in && d.status == cluster.Exiting {
			cause = entity.EndedLeft // in order: nothing lives there any more
		}
		m.lose(d, cause)
		m.out.Gone = append(m.out.Gone, d.id)
	}
	clear(m.desks[len(kept):])
	m.desks = kept
}

// lose tells all that went to a node.
func (m *Machine) lose(d *desk, why entity.EndCause) {
	for _, n := range byNumber(d.standing) {
		m.tell(n, entity.Ended{Cause: why, Fence: m.watches[n].fence})
	}
	clear(d.standing)
	d.out = nil
}

// older notes that a node tells of no ends.
func (m *Machine) older(id peer.ID) {
	if m.cfg.Lost(id) {
		return
	}
	d := m.desk(id)
	d.old = true
	m.lose(d, entity.EndedOld)
}

// Handle takes a frame: a greeting, which comes bare, or watches, which have come by the courier. An error means
// nonsense, and nothing has changed.
func (m *Machine) Handle(now, _ time.Duration, from peer.ID, kind wire.Kind, body []byte) error {
	m.begin(now)
	switch kind {
	case wire.KindWatchHello:
		r := wire.NewReader(kind, body)
		answer := r.Bool()
		if err := r.Done(); err != nil {
			return err
		}
		if !answer {
			m.greet(from, true)
		}
	case wire.KindWatches:
		list, err := parse(body)
		if err != nil {
			return err
		}
		if m.cfg.Lost(from) {
			return nil // nobody would forget its watches any more, and nothing is sent to it
		}
		for i := range list {
			m.heard(from, &list[i])
		}
	default:
		return fmt.Errorf("%w: %s", ErrBadKind, kind)
	}
	if !m.cfg.Lost(from) {
		d := m.desk(from)
		d.speaks, d.old = true, false
	}
	m.flush()
	return nil
}

// heard takes one entry.
func (m *Machine) heard(from peer.ID, i *item) {
	if i.op == ended {
		m.ended(from, i)
		return
	}
	if i.op == watches {
		m.stats.Taken++
	}
	m.out.Looks = append(m.out.Looks, Look{From: from, Off: i.op == unwatch, Wanted: i.Wanted})
}

// greet asks a node whether it knows of watches, or answers that this one does.
func (m *Machine) greet(to peer.ID, answer bool) {
	invariant.Check(!m.drained, "watch: mail outside a verb")
	m.out.Mail = append(m.out.Mail, peer.Mail{To: to, Kind: wire.KindWatchHello,
		Body: m.arena.End(wire.AppendBool(m.arena.Begin(), answer))})
}

// flush sends what is to be sent.
func (m *Machine) flush() {
	for _, d := range m.desks {
		switch {
		case len(d.out) == 0:
		case d.old:
			m.lose(d, entity.EndedOld)
		case !d.speaks:
			if !d.asked {
				d.asked = true
				m.greet(d.id, false)
			}
			m.retry()
		default:
			m.send(d)
		}
	}
}

// send sends what is to be sent to a node.
func (m *Machine) send(d *desk) {
	for len(d.out) > 0 {
		var b []byte
		n := 0
		for n < len(d.out) && len(b) < maxBody {
			b = d.out[n].append(b)
			n++
		}
		switch err := m.cfg.Post(peer.Mail{To: d.id, Kind: wire.KindWatches, Body: b}); {
		case err == nil:
			d.out = d.out[n:]
		case errors.Is(err, ErrNoRoom):
			m.retry()
			return
		default:
			m.lose(d, entity.EndedLost)
		}
	}
	d.out = nil
}

// retry plans that what waits is tried again.
func (m *Machine) retry() {
	if m.at == 0 {
		m.at = m.now + RetryAfter
	}
}

// Tick tries again what waits.
func (m *Machine) Tick(now time.Duration) {
	m.begin(now)
	if m.at == 0 || m.now < m.at {
		return
	}
	m.at = 0
	places := make([]Place, 0, len(m.seeking))
	for p := range m.seeking { // sorted below: the order does not show
		places = append(places, p)
	}
	sort.Slice(places, func(i, k int) bool {
		a, b := places[i], places[k]
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Shard, b.Shard)) < 0
	})
	for _, p := range places {
		m.seekAll(p)
	}
	for _, d := range m.desks {
		d.asked = false
	}
	m.flush()
}

// Next returns when Tick has something to do.
func (m *Machine) Next() (deadline time.Duration, ok bool) { return m.at, m.at != 0 }

// Drain hands over what the verbs since the last Drain want done.
func (m *Machine) Drain(out *Effects) {
	*out, m.out = m.out, Effects{Looks: out.Looks[:0], Gone: out.Gone[:0], Told: out.Told[:0], Mail: out.Mail[:0]}
	m.drained = true
}

// Seeks reports whether watches wait for homes.
func (m *Machine) Seeks() bool { return len(m.seeking) > 0 }

// Stats returns the counters.
func (m *Machine) Stats() Stats {
	s := m.stats
	s.Standing = len(m.watches)
	return s
}

func (m *Machine) find(id peer.ID) (int, bool) {
	return sort.Find(len(m.desks), func(i int) int { return id.Compare(m.desks[i].id) })
}

// desk returns what is known of a node, made on first use.
func (m *Machine) desk(id peer.ID) *desk {
	i, ok := m.find(id)
	if !ok {
		m.desks = append(m.desks, nil)
		copy(m.desks[i+1:], m.desks[i:])
		m.desks[i] = &desk{id: id, standing: map[uint64]struct{}{}}
	}
	return m.desks[i]
}
