// Region: what this node knows of one registered type, how it finds and keeps its coordinator, and asks for homes.

package shard

import (
	"fmt"
	"time"

	"github.com/kith-io/kith/internal/core/sparse"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// region is one registered type on this node.
type region struct {
	settings Settings
	refused  error // the cluster's settings are others: the type is dead here
	eager    eager // every home that is not known is wanted
	slots    sparse.Table[slot]
	homes    map[peer.ID]*peer.ID // one copy of each home's identity, shared by the slots
	hosted   sparse.Set           // shards that live here or are stopping here
	late     route.Fence          // beside what slots say: no order or home under it or a lower one is taken any more

	to     peer.ID // the coordinator as this node believes; zero when there is none
	term   uint32
	joined bool // it has acknowledged this region
	retry  timer
	said   time.Duration // when this region last said to it what it is

	wanted  sparse.Set
	unsent  sparse.Set // wanted and not asked for yet
	asking  timer
	batchAt time.Duration // earliest next question for unsent ones

	started, stopped []held // answers to the coordinator that gather during a verb
	hand             *handoffs
	drain            timer
	drainDone        bool
	unready          bool // takes no shards for now, as the application declares
	lingers          lingers
	asked            map[uint64]peer.ID // moves that were asked for, by nonce: the member asked
}

// eager says of a region whether all homes are wanted though nobody sends.
type eager struct {
	since time.Duration // when that was said; 0: it was not
	at    time.Duration // while others are waited for: when it is looked again whether they come
	begun bool          // nobody is waited for any more
}

// slot is what a region knows of one shard. While it lives here fence is its fence; otherwise, if state is RouteRemote
// or RouteMoving, that of its home.
type slot struct {
	state  RouteState
	host   hostState
	ending bool // given up, and a handler may still run: nothing starts here before the runtime says that it ended
	home   *peer.ID
	fence  route.Fence
	ended  route.Fence // no order or home under this fence or a lower one is taken any more
	moved  Number      // of the last move of the shard, or the newest one that the last disclosed home takes account of
}

// slot returns the record of a shard for a change. A reader calls peek instead, so that a shard which only others name
// costs no memory.
func (g *region) slot(s route.ShardID) *slot {
	e := g.slots.At(s)
	e.ended = maxFence(e.ended, g.late)
	return e
}

// peek returns what is known of a shard.
func (g *region) peek(s route.ShardID) slot {
	e := g.slots.Peek(s)
	e.ended = maxFence(e.ended, g.late)
	return e
}

// hostState says whether a shard lives on this node.
type hostState uint8

const (
	notHosted hostState = 0
	hosted    hostState = 1
	stopping  hostState = 2 // the runtime was ordered to stop it and has not confirmed yet
)

// timer is a deadline that doubles its pause each time it is set again. Zero is none. set is when it was set last.
type timer struct{ at, wait, set time.Duration }

// start sets the deadline after the least pause, unless one stands.
func (t *timer) start(m *Machine) {
	if t.at == 0 {
		t.reset(m)
	}
}

func (t *timer) reset(m *Machine) {
	t.wait = m.cfg.RetryInterval
	t.at, t.set = m.after(t.wait), m.now
}

// due reports whether the deadline has passed and what was sent to a peer when it was set has arrived, and sets the
// next one. What is still under way to it need not be said again.
func (t *timer) due(m *Machine, to peer.ID) bool {
	if t.at == 0 || m.now < t.at {
		return false
	}
	if waits, _ := m.underWay(to, t.set); waits {
		t.at = m.after(t.wait)
		return false
	}
	t.wait = min(2*t.wait, m.cfg.RetryMax)
	t.at, t.set = m.after(t.wait), m.now
	return true
}

func (t *timer) stop() { *t = timer{} }

func (g *region) next() time.Duration {
	var d least
	d.add(g.retry.at)
	d.add(g.asking.at)
	d.add(g.drain.at)
	d.add(g.hand.next())
	d.add(g.lingers.until)
	if g.joined {
		d.add(g.eager.at)
	}
	if g.unsent.Len() > 0 && g.joined {
		d.add(g.batchAt)
	}
	return d.at
}

// register makes a type known on this node. One that was refused may be registered again, with the same settings or
// others: those of the cluster may have changed.
func (m *Machine) register(c RegisterCommand) error {
	s := c.Settings
	if err := s.Validate(); err != nil {
		return err
	}
	t := typeOf(m, s.ID())
	if t != nil && t.region != nil && !t.region.idle() {
		if t.region.settings.Name != s.Name {
			return fmt.Errorf("%w: %q and %q", ErrHashCollision, t.region.settings.Name, s.Name)
		}
		return fmt.Errorf("%w: %q", ErrTypeExists, s.Name)
	}
	if t != nil {
		if err := m.compare(t, s); err != nil {
			return err
		}
	}
	if t = m.typ(s.ID()); t == nil {
		return fmt.Errorf("%w: %d", ErrTooManyTypes, len(m.types))
	}
	g := &region{settings: s, slots: sparse.NewTable[slot](s.Shards), homes: map[peer.ID]*peer.ID{},
		hand: newHandoffs(m, t)}
	if t.region != nil {
		g.outlive(t.region)
	}
	t.region, t.strategy, t.guard = g, c.Strategy, nil
	m.retarget(t)
	return nil
}

// outlive takes over from a region that was refused which orders are late.
func (g *region) outlive(old *region) {
	g.late, g.lingers.on = old.late, old.lingers.on
	for _, e := range old.slots.All {
		g.late = maxFence(g.late, e.ended)
	}
	for s, e := range old.slots.All {
		if uint32(s) < g.slots.Shards() && (e.ending || e.moved != (Number{})) {
			n := g.slot(s)
			n.moved, n.ending = e.moved, e.ending
		}
	}
}

// settingsDiffer names both values: the cluster's and this node's.
func settingsDiffer(have, got Settings) error {
	if have.Name != got.Name {
		return fmt.Errorf("%w: %q in the cluster, %q here", ErrHashCollision, have.Name, got.Name)
	}
	if have.ShardBy != got.ShardBy {
		return fmt.Errorf("%w: type %q has %d shards, role %q and %s in the cluster, %d shards, role %q and %s here",
			ErrSettingsDiffer, have.Name, have.Shards, have.Role, have.function(), got.Shards, got.Role, got.function())
	}
	return fmt.Errorf("%w: type %q has %d shards and role %q in the cluster, %d shards and role %q here",
		ErrSettingsDiffer, have.Name, have.Shards, have.Role, got.Shards, got.Role)
}

// function names the shard function for an error.
func (s Settings) function() string {
	if s.ShardBy == "" {
		return "no shard function"
	}
	return fmt.Sprintf("shard function %q", s.ShardBy)
}

func (m *Machine) refuseType(t *typ, have Settings) {
	g := t.region
	g.refused = settingsDiffer(have, g.settings)
	g.retry.stop()
	g.asking.stop()
	g.hand.dropAll()
	g.wanted.Clear()
	g.unsent.Clear()
	g.joined = false
	m.out.Refused = append(m.out.Refused, TypeRefused{Type: t.id, Err: g.refused})
}

// idle reports whether a region has no part in the type: not registered here, or refused and hosting nothing.
func (g *region) idle() bool { return g == nil || (g.refused != nil && g.hosted.Len() == 0) }

// hosts reports whether this node's region may be given shards.
func (m *Machine) hosts(t *typ) bool {
	g := t.region
	if g == nil || g.refused != nil || m.leave.begun || m.away && g.lingers.until == 0 || m.over {
		return false
	}
	self, ok := m.view.SelfMember()
	return ok && self.HasRole(t.region.settings.Role)
}

// target returns the coordinator to register with: the oldest member of the role; or the holder of a higher promise, as
// when this node's view has not caught up with it yet; or, when that one has gone, the oldest that can follow it. Zero
// when there is none.
func (m *Machine) target(t *typ) (peer.ID, uint32) {
	oldest, ok := m.past.oldest(m.view, t.region.settings.Role)
	if p := t.promise; p.term > 0 && m.live(p.to) && !m.past.dead.Has(p.to) && (!ok || oldest.UpNumber <= p.term) {
		return p.to, p.term
	}
	next, ok := m.follows(t, t.region.settings.Role)
	if !ok {
		return peer.ID{}, 0
	}
	return next.ID, next.UpNumber
}

// retarget finds the coordinator again and registers when it is another or begins anew.
func (m *Machine) retarget(t *typ) {
	g := t.region
	if g == nil || g.refused != nil || m.view == nil || m.over {
		return
	}
	to, term := m.target(t)
	if to == g.to && term == g.term {
		return
	}
	g.to, g.term, g.drainDone = to, term, false
	m.rejoin(t)
}

// rejoin registers with the coordinator and repeats it until it is acknowledged.
func (m *Machine) rejoin(t *typ) {
	g := t.region
	g.joined = false
	unanswered(m, t)
	g.asking.stop()
	g.drain.stop()
	g.retry.stop()
	if !g.to.IsZero() {
		g.retry.reset(m)
		m.announce(t)
	}
}

func (m *Machine) announce(t *typ) {
	g := t.region
	if oldest, _ := m.past.oldest(m.view, g.settings.Role); oldest.UpNumber < t.promise.term && g.to != t.promise.to {
		m.post(g.to, m.higher(t)) // it may not know why the oldest cannot coordinate
	}
	g.said = m.now
	m.post(g.to, offers(m, t, g.to, register{head: m.head(t.id, g.term), Settings: g.settings, Knows: true}))
}

// onAck begins to use the coordinator: every home that is wanted is asked for at once.
func (m *Machine) onAck(t *typ, from peer.ID, term uint32) {
	g := t.region
	if from != g.to || term != g.term || g.refused != nil {
		return
	}
	// It may answer an earlier word. The last one comes too, unless there was no room for it: then it is said again.
	if _, lost := m.underWay(from, g.said); lost {
		g.retry.start(m)
	} else {
		g.retry.stop()
	}
	if !g.joined {
		g.joined = true
		wantUnasked(m, g)
		m.askAll(t)
		m.drainRegion(t)
	}
}

func (m *Machine) tickRegion(t *typ) {
	g := t.region
	if g.lingers.until != 0 && m.now >= g.lingers.until {
		goes(t, m)
	}
	if g.retry.due(m, g.to) {
		m.announce(t)
	}
	if g.joined && g.eager.at > 0 && m.now >= g.eager.at {
		wantUnasked(m, g)
	}
	asking, drain := g.asking.due(m, g.to), g.drain.due(m, g.to)
	if asking || drain {
		m.announce(t) // a coordinator that began anew on the same node needs the settings to begin
	}
	if asking {
		m.askAll(t)
	}
	if drain {
		m.askDrain(t)
	}
}

// want asks for homes. Shards with a known home are left out: the route says it already.
func (m *Machine) want(c WantCommand) error {
	t := typeOf(m, c.Type)
	if t == nil || t.region == nil {
		return fmt.Errorf("%w: %08x", ErrUnknownType, uint32(c.Type))
	}
	g := t.region
	if g.refused != nil {
		return g.refused
	}
	for _, s := range c.Shards {
		if uint32(s) >= g.settings.Shards {
			return fmt.Errorf("%w: shard %d of %d", ErrBadCommand, s, g.settings.Shards)
		}
	}
	for _, s := range c.Shards {
		g.want(s)
	}
	return nil
}

// want notes that a home is to be asked for, unless it is known.
func (g *region) want(s route.ShardID) {
	if st := g.peek(s).state; (st == RouteUnknown || st == RouteMoving) && g.wanted.Add(s) {
		g.unsent.Add(s)
		g.hand.joins(s)
	}
}

func (g *region) unwant(s route.ShardID) {
	if g.wanted.Remove(s) && g.wanted.Len() == 0 {
		g.asking.stop()
	}
	g.unsent.Remove(s)
}

// askAll asks for everything wanted.
func (m *Machine) askAll(t *typ) {
	g := t.region
	if g.wanted.Len() == 0 {
		g.asking.stop()
		return
	}
	m.askFor(t, &g.wanted)
	g.unsent.Clear()
	g.asking.start(m)
}

func (m *Machine) askFor(t *typ, set *sparse.Set) {
	g := t.region
	var list []route.ShardID
	for s := range set.All {
		if list = append(list, s); len(list) == maxEntries {
			m.post(g.to, ask{head: m.head(t.id, g.term), Shards: list})
			list = nil
		}
	}
	if len(list) > 0 {
		m.post(g.to, ask{head: m.head(t.id, g.term), Shards: list})
	}
	g.batchAt = m.now + m.cfg.BatchDelay
}

// flushRegion sends what gathered during the verb: questions, no more than one batch in BatchDelay, and answers.
func (m *Machine) flushRegion(t *typ) {
	g := t.region
	if g.joined && g.unsent.Len() > 0 && m.now >= g.batchAt {
		m.askFor(t, &g.unsent)
		g.unsent.Clear()
		g.asking.start(m)
	}
	g.started = m.answer(t, wire.KindShardsStarted, g.started)
	g.stopped = m.answer(t, wire.KindShardsStopped, g.stopped)
}

// answer sends a list to the coordinator that holds the promise: no other could have given the orders.
func (m *Machine) answer(t *typ, k wire.Kind, list []held) []held {
	if len(list) > 0 && t.promise.term > 0 && m.live(t.promise.to) {
		m.postHeld(t.promise.to, k, m.head(t.id, t.promise.term), list)
	}
	return nil
}

// postHeld sends a list in rising order, in as many messages as it takes. The list belongs to the messages from then
// on.
func (m *Machine) postHeld(to peer.ID, k wire.Kind, h head, list []held) {
	list = rising(list)
	for len(list) > maxEntries {
		m.post(to, ownership{Kind: k, head: h, Entries: list[:maxEntries:maxEntries]})
		list = list[maxEntries:]
	}
	if len(list) > 0 {
		m.post(to, ownership{Kind: k, head: h, Entries: list})
	}
}
