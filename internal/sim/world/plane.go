// The data plane of one process: regions with their route slots, parking, links. It drives package flow bare: the same
// values that the driver puts under locks.

package world

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/flow"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/core/sparse"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// EntityType is a registered type, and the hosts that do not register it.
type EntityType struct {
	entity.Type
	Absent []int
	RoleAt func(*Process) string // nil: all processes register it with the same role
	Late   bool                  // processes register it by Register, when they come to it
	Keep   *entity.Keep          // of which entities are kept alive; nil: none
	// PerNode says that its entities are the workers of a pool, so many on each node; zero: they are not.
	PerNode int
	Lease   *LeaseUse // without which they do not live; nil: none. The type has one shard then.
	// Placing makes the strategy of one process, nil: all go by Type.Strategy.
	Placing func(*Process) strategy.Strategy
	// OnLost is called with each state that nobody takes up from a process; nil: not called.
	OnLost func(p *Process, id string, why error)
}

// Region is one type on one process.
type Region struct {
	Process *Process
	Type    *entity.Type
	ID      route.TypeID
	slots   sparse.Table[*flow.Slot]
	park    *flow.Parking
	shards  sparse.Table[*hosted]    // nil where the shard does not live here
	stopped []*hosted                // that the node gets in a moment
	left    map[route.ShardID][]byte // what shards that have stopped last handed over
	heirs   map[route.ShardID]*plane.Successors
	// lastHosted is the last fence under which each shard lived here.
	lastHosted map[route.ShardID]route.Fence
	shy        map[peer.ID]time.Duration // until when a node is given nothing of a pool that has workers elsewhere

	decl    *EntityType
	lease   *leaseDesk // nil: it needs none
	Refused error      // why the cluster does not have this type: others have registered it with other settings
}

// shardOf returns the shard of an entity id, route.NoShard where the type's function gives none.
func (r *Region) shardOf(id string) route.ShardID {
	n, _ := r.Type.ShardOf(id)
	return n
}

// Slot returns the route slot of a shard of the type.
func (r *Region) Slot(n route.ShardID) *flow.Slot {
	at := r.slots.At(n)
	if *at == nil {
		s := flow.MakeSlot(r.park)
		*at = &s
	}
	return *at
}

// dataPlane is what a process has beside its node.
type dataPlane struct {
	leaveBy   time.Duration // when a leave is forced, on its clock
	Regions   []*Region
	links     connTable
	inbound   []*inbound
	asks      asks
	parked    *flow.Pool
	mailbox   *entity.Pool
	agenda    plane.Agenda[flowSlot]
	removed   plane.Removed
	forgotten map[peer.ID]bool // members that were removed and are not talked to any more
	looks     lookout
	reports   []*refusedOf
	flights   map[peer.ID]*flow.InFlight
	reporting bool // a report is on its way
	workers   []*workQueue
	retrying  bool
	loop      *workQueue // Inline: messages of the process itself, and orders
	tasks     []*task
	running   *task // the coroutine that runs now
	gate      gate
	bulk      bulks
	waiting   []*waiter
	tries     tries
	strained  []*backTalk
	watches   watches
	dropped   [32]uint64 // messages by reason that were not delivered, as this process counts them
	told      [32]uint64 // reports of refusals by reason, that came from others
}

// flowSlot names a slot of a region.
type flowSlot struct {
	r     *Region
	shard route.ShardID
}

func (s flowSlot) slot() *flow.Slot { return s.r.Slot(s.shard) }

func (p *Process) open() {
	p.parked = &flow.Pool{Limit: p.World.Config.Data.ParkTotal}
	p.mailbox = p.World.newBudget()
	p.bulk.room.Limit = p.World.Config.Data.BulkRoom
	p.forgotten = map[peer.ID]bool{}
	p.flights = map[peer.ID]*flow.InFlight{}
	p.openQueues()
	p.gapLimit = p.World.Node().GapLimit()
}

// Register makes a type known to a process that is Late.
func Register(p *Process, t *EntityType) { p.register(t) }

// register makes a type known to the process.
func (p *Process) register(t *EntityType) {
	if slices.Contains(t.Absent, p.Index) {
		return
	}
	d := p.World.Config.Data
	park := flow.NewParking(d.ParkRecords, d.ParkBytes, d.ParkWait, p.parked)
	if d.ParkWait == 0 {
		park.Follow(func() time.Duration { return node.ParkTimeFor(p.Node.Takeover()) })
	}
	r := &Region{Process: p, Type: &t.Type, ID: route.TypeOf(t.Name), slots: sparse.NewTable[*flow.Slot](t.Shards),
		park: park, shards: sparse.NewTable[*hosted](t.Shards), decl: t}
	r.lease = leased(r)
	p.Regions = append(p.Regions, r)
	slices.SortFunc(p.Regions, func(a, b *Region) int { return int(int64(a.ID) - int64(b.ID)) })
	register(p, t)
	if r.Kept() {
		p.Do(shard.EagerCommand{Type: r.ID})
	}
}

// Kept reports whether homes of all shards are found without messages: entities or shards live without any, or they
// are workers of a pool.
func (r *Region) Kept() bool {
	return r.decl.Keep != nil || r.decl.Remembered != nil || r.decl.Hosted != nil || r.decl.PerNode > 0
}

// HomeOf returns where a shard lives as far as the process of its region knows.
func HomeOf(r *Region, n route.ShardID) (peer.ID, bool) {
	switch s := r.Slot(n); {
	case s.State() < flow.Local:
		return peer.ID{}, false
	case s.IsLocal():
		return r.Process.ID, true
	default:
		return s.Home(), true
	}
}

// CrewOf returns the workers of a pool as the process of its region knows them.
func CrewOf(r *Region) *plane.Crew {
	p := r.Process
	home := func(n route.ShardID) (peer.ID, bool) { return HomeOf(r, n) }
	usable := func(id peer.ID) bool {
		m, ok := p.View.Member(id)
		return ok && m.Status != membership.Down && p.View.Reachable(id)
	}
	return plane.MakeCrew(p.ID, plane.NewNames(r.Type.Shards), r.decl.PerNode, home, usable)
}

// Offer gives a message of a pool to workers by send until one takes it, and returns the last error. draw says which.
func Offer(r *Region, draw uint64, send func(id string) error) (err error) {
	return offer(draw, r, send, plane.NextWorker)
}

// TellAny gives a message to any worker of a pool.
func TellAny(headers []byte, r *Region, payload []byte) error {
	return Offer(r, r.Process.World.workRand.Uint64(), func(id string) error {
		_, err := r.SendWith(headers, id, payload, 0)
		return err
	})
}

// AskAny asks workers of a pool by ask, which waits, until one answers that may have handled it.
func (r *Region) AskAny(d time.Duration, ask func(d time.Duration, id string) ([]byte, error)) (b []byte, err error) {
	p := r.Process
	began := p.clock()
	var of peer.ID
	err = offer(p.World.workRand.Uint64(), r, func(id string) (err error) {
		of = r.Slot(r.shardOf(id)).Home()
		b, err = ask(d-(p.clock()-began), id)
		return err
	}, func(err error) bool {
		next := !route.MayHaveRun(err) && plane.NextWorker(err)
		if next && of != p.ID && errors.Is(err, route.ErrMailboxFull) {
			r.spare(of)
		}
		return next
	})
	return b, err
}

// Pooled reports whether the entities are the workers of a pool.
func (r *Region) Pooled() bool { return r.decl.PerNode > 0 }

// spare gives a node nothing of a pool for a while: it had no room.
func (r *Region) spare(at peer.ID) {
	if r.shy == nil {
		r.shy = map[peer.ID]time.Duration{}
	}
	r.shy[at] = r.Process.clock() + plane.ShyTime
}

// offer is Offer where next says after which errors another worker is tried.
func offer(draw uint64, r *Region, send func(id string) error, next func(error) bool) (err error) {
	p, crew := r.Process, CrewOf(r)
	load := func(team int) int {
		t := &crew.There[team]
		if r.shy[t.Node] > p.clock() {
			return math.MaxInt
		}
		l := p.linkOf(t.Node, uint32(t.Workers[0].Shard))
		return l.flow.Pending() + int(l.flow.Outstanding())
	}
	some := crew.Offer(draw, load, func(w *plane.Worker) bool {
		err = send(w.ID)
		return err != nil && next(err)
	})
	switch {
	case some:
		return err
	case shard.NoHost(p.View, r.decl.role(p)):
		return route.ErrNoHost
	}
	return send(plane.AnyWorker(draw % uint64(r.Type.Shards)))
}

// Region returns the type on the process, nil when it has not registered it.
func (p *Process) Region(id route.TypeID) *Region {
	for _, r := range p.Regions {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// Send takes one message, as Region.Tell and Ask do: to its home, or into the parking queue. corr is zero for a tell.
func (r *Region) Send(id string, payload []byte, corr uint64) (to peer.ID, err error) {
	return r.SendWith(nil, id, payload, corr)
}

// SendWith is Send with headers. What is around a tell is called; an ask has come through that before.
func (r *Region) SendWith(headers []byte, id string, payload []byte, corr uint64) (to peer.ID, err error) {
	if corr == 0 && entity.SendsAround(r.Type) {
		m := &entity.Sending{ID: id, Payload: payload, Headers: headers}
		done, err := r.enterSend(m)
		if err != nil {
			return peer.ID{}, err
		}
		to, err = r.send(m.Headers, id, m.Payload, 0, 0)
		done(nil, err)
		return to, err
	}
	return r.send(headers, id, payload, corr, 0)
}

// enterSend calls what is around a message that is about to be sent. A panic is noted, as one of a handler is.
func (r *Region) enterSend(m *entity.Sending) (done func([]byte, error), err error) {
	m.Type, m.Context = r.Type.Name, context.Background()
	return entity.EnterSend(r.Type.Around, m, func(name string, f func()) (err error) {
		defer func() {
			switch v := recover().(type) {
			case nil:
			case killed:
				panic(v)
			default:
				p := r.Process
				p.World.trace.note(p.World.Now, p.Index, opNote, name+" of "+r.Type.Name+" panicked")
				err = fmt.Errorf("%s: %v", name, v)
			}
		}()
		f()
		return nil
	})
}

// send is SendWith for an envelope that has flags.
func (r *Region) send(headers []byte, id string, payload []byte, corr uint64, flags uint8) (to peer.ID, err error) {
	p := r.Process
	if !p.Alive || p.Ended != nil {
		return peer.ID{}, route.ErrStopped
	}
	if p.Held() {
		return peer.ID{}, plane.Closed(false).Err()
	}
	if err := route.CheckID(id); err != nil {
		return peer.ID{}, err
	}
	if len(payload) > p.World.Config.Data.BulkRoom {
		return peer.ID{}, route.ErrTooLarge
	}
	if len(payload) > p.World.Config.Data.MaxPayload {
		return peer.ID{}, r.sendLarge(headers, id, payload, corr)
	}
	n, err := r.Type.ShardOf(id)
	if err != nil {
		return peer.ID{}, err
	}
	s := r.Slot(n)
	p.World.Book.sends(payload, n, corr != 0, false)
	e := wire.Envelope{Type: uint32(r.ID), Shard: uint32(n), Flags: flags, Corr: corr, Payload: payload}
	if corr != 0 {
		e.Flags |= wire.FlagAsk
	}
	p.more(&e, headers)
	switch e.Term, e.Epoch = s.Fence().Term(), s.Fence().Epoch(); s.State() {
	case flow.Local:
		p.goes(corr, p.ID, s.Fence())
		frame := make([]byte, wire.SizeEnvelope(len(id), len(payload))+e.More())
		wire.PutEnvelope(frame, &e, id)
		return p.ID, p.here(r, n, frame)
	case flow.Remote:
		return r.sendThere(n, &e, id)
	}
	if err := r.closedTo(corr != 0); err != nil {
		return peer.ID{}, err
	}
	next, err := plane.Park(s, p.clock(), &e, id)
	if err != nil {
		return peer.ID{}, err
	}
	r.follow(n, next)
	p.bounds()
	return peer.ID{}, nil
}

// closedTo returns why a message may not wait for a home: others have the type with other settings, or it is an ask and
// no member may host the type.
func (r *Region) closedTo(ask bool) error {
	if ask && shard.NoHost(r.Process.View, r.decl.role(r.Process)) {
		return route.ErrNoHost
	}
	return r.Refused
}

// sendThere is send to an entity of another process.
func (r *Region) sendThere(n route.ShardID, e *wire.Envelope, id string) (to peer.ID, err error) {
	p, s := r.Process, r.Slot(n)
	l := p.linkOf(s.Home(), uint32(n))
	if l.conn.forgotten {
		p.World.Plane.DeadEnds++
		r.rehome(n, s.Home(), s.Fence())
		return peer.ID{}, fmt.Errorf("to %s: %w", p.World.Name(s.Home()), ErrDeadEnd)
	}
	if e.Flags&wire.FlagWait != 0 {
		if err := l.fullThere(r, n, id); err != nil {
			return peer.ID{}, err
		}
	}
	room, err := l.flow.Reserve(wire.SizeEnvelope(len(id), len(e.Payload)) + e.More())
	if err != nil {
		return peer.ID{}, fmt.Errorf("to %s: %w", p.World.Name(s.Home()), err)
	}
	l.flow.Put(room, e, id)
	l.flow.Timed()
	p.goes(e.Corr, s.Home(), s.Fence())
	l.wake()
	l.bounds()
	return s.Home(), nil
}

// ErrDeadEnd is the error of a send by a route to a member that was removed here: the next home is asked for.
var ErrDeadEnd = fmt.Errorf("a member that was removed: %w", route.ErrPeerLost)

// Routed takes a change of a shard's route: parked messages go first, then the slot opens.
func (p *Process) Routed(c shard.RouteChange) {
	r := p.Region(c.Type)
	if r == nil || uint32(c.Shard) >= r.Type.Shards {
		p.World.Watcher.Violate(p, "route", "route of %s, which is not registered here", p.World.ShardName(c.Type, c.Shard))
		return
	}
	home := plane.Home{At: c.Home, Fence: c.Fence}
	if h := r.shards.Peek(c.Shard); h != nil && c.Home == p.ID && h.shard.Fence() == c.Fence {
		h.moves(c.State == shard.RouteMoving)
	}
	switch c.State {
	case shard.RouteMoving:
		home = plane.Home{Moving: true}
		r.inherits(c)
	case shard.RouteLocal:
		h := r.shards.Peek(c.Shard)
		home.At, home.Local = p.ID, true
		home.Gone = h == nil || h.shard.Fence() != c.Fence || h.shard.Stopping()
	case shard.RouteRemote:
		home.Gone = p.forgotten[c.Home]
	default:
		home = plane.Home{}
	}
	if s := r.Slot(c.Shard); c.State == shard.RouteUnknown && p.World.OnUnknown != nil && !s.IsLocal() {
		p.World.OnUnknown(r, c.Shard)
	}
	p.wakeWaiting()
	next := plane.Move(r.Slot(c.Shard), home)
	if next == plane.Forget {
		p.World.Plane.LateHomes++
		r.rehome(c.Shard, c.Home, c.Fence)
	}
	r.follow(c.Shard, next)
	for _, a := range p.asks.due() {
		p.replied(a.From, a.Corr, a.Reason, a.Payload)
	}
}

// follow does what a verb on a slot has called for.
func (r *Region) follow(n route.ShardID, next plane.Next) {
	switch next {
	case plane.Flush:
		r.drain(n)
	case plane.LookUp:
		r.Process.want(flowSlot{r, n})
	}
}

// drain sends what was parked, in order. A full link leaves the slot draining until there is room.
func (r *Region) drain(n route.ShardID) {
	p, s := r.Process, r.Slot(n)
	if s.State() != flow.Draining {
		return
	}
	home, f := s.Home(), s.Fence()
	step := plane.Drain(s, func(e *wire.Envelope, frame []byte) plane.Step { return r.forward(n, e, frame) })
	switch step {
	case plane.NoRoom:
		p.World.Plane.Stalled++
		p.agenda.Stall(p.clock(), flowSlot{r, n})
		p.attend()
	case plane.NoHome:
		p.World.Plane.DeadEnds++
		r.rehome(n, home, f)
	}
}

// forward sends one message that was parked to the home of its shard.
func (r *Region) forward(n route.ShardID, e *wire.Envelope, frame []byte) plane.Step {
	p, s := r.Process, r.Slot(n)
	if e.Flags&wire.FlagBulk != 0 {
		if !s.IsLocal() {
			return r.forwardLarge(n, e)
		}
		if l := p.largeOf(peer.ID{}, e.Payload); l != nil && l.life.Recall() {
			l.cancel() // its shard lives here now
		}
	}
	if e.Flags&wire.FlagAsk != 0 {
		if !p.waitsFor(e.Corr) {
			p.World.expires(p, e.Payload)
			p.failed(peer.ID{}, frame, route.Expired, "nobody waits for the answer")
			return plane.Stale
		}
		p.goes(e.Corr, s.Home(), s.Fence())
	}
	if s.IsLocal() {
		return r.forwardHere(n, e, slices.Clone(frame))
	}
	l := p.linkOf(s.Home(), uint32(n))
	if l.conn.forgotten {
		return plane.NoHome
	}
	room, err := l.flow.Reserve(len(frame))
	if err != nil {
		return plane.NoRoom
	}
	copy(room, frame)
	l.flow.Count(room)
	l.flow.Timed()
	l.wake()
	return plane.Sent
}

// rehome looks for the next home when one is gone for good. It is done in a turn of its own: this one may be carrying
// out what the node said.
func (r *Region) rehome(n route.ShardID, home peer.ID, f route.Fence) {
	r.Process.Later(0, func() { r.nextHome(n, home, f.Term(), f.Epoch()) })
}

// nextHome makes the node forget a home, closes the slot if it leads there still, and asks again for what waits.
func (r *Region) nextHome(n route.ShardID, at peer.ID, term, epoch uint32) {
	p := r.Process
	p.forgetHome(r.ID, n, route.MakeFence(0, term, epoch))
	if p.Alive {
		r.follow(n, plane.Rehome(r.Slot(n), at, term, epoch))
		p.watch(flowSlot{r, n})
	}
}

// failed is a message that this process accepted and cannot deliver: counted, and an ask is answered.
// to is where the link leads that held it, zero for what no link held.
func (p *Process) failed(to peer.ID, frame []byte, why route.Reason, words string) {
	var e wire.Envelope
	switch plane.ClassifyUnsent(frame, &e) {
	case plane.UnsentOther:
		if kind := wire.KindOf(frame); kind == wire.KindMarker || kind == wire.KindCancel {
			return // a marker goes again, or its reader is gone; a cancel may be lost
		}
		p.World.Watcher.Violate(p, "frame", "a frame that was kept is no message")
	case plane.UnsentReply: // the asker has a time limit
	case plane.UnsentLarge:
		if l := p.largeOf(to, e.Payload); l != nil {
			p.endLarge(l, why, FateFailed, words)
		}
	case plane.UnsentAsk:
		p.dropped[why]++
		p.World.Fate(e.Payload, FateFailed, why, words)
		p.answered(e.Corr, why, nil)
	case plane.UnsentTell:
		p.dropped[why]++
		p.World.Fate(e.Payload, FateFailed, why, words)
		p.World.Book.undeliveredTell(p, &e, why)
	}
}

// viewChanged notes members that were removed: what was asked of them fails, at once unless they went in order.
func (p *Process) viewChanged(old *membership.View) {
	if old == nil {
		return
	}
	for i := range old.Members {
		id := old.Members[i].ID
		if _, ok := p.View.Member(id); ok || id == p.ID {
			continue
		}
		s := old.Members[i].Status
		if !node.LeftGracefully(s, old.Members[i].Cause) {
			p.lostPeer(id)
		}
		p.removed.Add(p.clock(), id, s != membership.Leaving && s != membership.Exiting)
		p.attend()
	}
}
