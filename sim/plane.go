// The data plane of one process: regions with their route slots, parking, links. It rides package flow bare: the same
// values that the driver puts under locks.

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/flow"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// DataConfig bounds the data plane of every node. The zero value of a field takes the default of its room.
type DataConfig struct {
	ParkRecords   int           // messages parked for one shard
	ParkBytes     int           // bytes parked for one shard
	ParkTotal     int           // bytes parked on a node; default 64 MiB
	ParkWait      time.Duration // longest time parked
	LinkBuffer    int           // bytes that wait for one peer
	Window        int           // bytes on their way to one peer and not consumed
	Connections   int           // data connections to one peer, each with bounds of its own; default 1
	OldCredit     bool          // credit travels on control connections, as nodes of wire version 1 send it
	MailboxBudget int           // bytes in the mailboxes of a node; default 64 MiB
	// MaxPayload is the longest payload that goes in one frame; a longer one is a large message. Default: what fits.
	MaxPayload int
	// AskTogether has homes asked for that are wanted at one moment in one command, as a node does that is busy; else each
	// is asked for by itself.
	AskTogether bool
	BulkRoom    int           // bytes of others' large messages held by a node; default 64 MiB
	BulkChunk   int           // bytes of a large message in one frame; four of them may be on their way
	BulkStall   time.Duration // a large message for which nothing moves for so long is given up
	MaxAsks     int           // asks under way on a node; default 65,536
	Keep        int           // bytes that a suspended node keeps of what others send; default plane.KeepMost
	// LocalBuffer is how many bytes of a node's own wait for one worker or for its loop. Default: eight link buffers.
	LocalBuffer int
	WorkDelay   time.Duration // a worker, or the loop for what comes from its node, begins within this
}

func (d DataConfig) withDefaults() DataConfig {
	if d.ParkTotal == 0 {
		d.ParkTotal = 64 << 20
	}
	if d.Connections == 0 {
		d.Connections = 1
	}
	if d.MaxAsks == 0 {
		d.MaxAsks = 1 << 16
	}
	if d.Keep == 0 {
		d.Keep = plane.KeepMost
	}
	if d.LocalBuffer == 0 {
		d.LocalBuffer = 8 * cmp.Or(d.LinkBuffer, flow.DefaultLinkBuffer)
	}
	if d.MailboxBudget == 0 {
		d.MailboxBudget = 64 << 20
	}
	if d.MaxPayload == 0 {
		d.MaxPayload = wire.DefaultMaxFrame - wire.EnvelopeSize - wire.MaxIDSize
	}
	if d.BulkRoom == 0 {
		d.BulkRoom = 64 << 20
	}
	return d
}

// entityType is a registered type, and the hosts that do not register it.
type entityType struct {
	entity.Type
	absent []int
	roleAt func(*proc) string // nil: all processes register it with the same role
}

// region is one type on one process.
type region struct {
	p      *proc
	typ    *entity.Type
	id     route.TypeID
	slots  []flow.Slot
	shards []*hosted // nil where the shard does not live here

	decl    *entityType
	refused error // why the cluster does not have this type: others have registered it with other settings
}

// dataPlane is what a process has beside its node.
type dataPlane struct {
	regions   []*region
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
	reporting bool // a report is on its way
	workers   []*workQueue
	retrying  bool
	loop      *workQueue // Inline: messages of the process itself, and orders
	tasks     []*task
	running   *task // the coroutine that runs now
	gate      gate
	bulk      bulks
	dropped   [32]uint64 // messages by reason that were not delivered, as this process counts them
	told      [32]uint64 // reports of refusals by reason, that came from others
}

// flowSlot names a slot of a region.
type flowSlot struct {
	r     *region
	shard route.ShardID
}

func (s flowSlot) slot() *flow.Slot { return &s.r.slots[s.shard] }

func (p *proc) open() {
	p.parked = &flow.Pool{Limit: p.w.cfg.Data.ParkTotal}
	p.mailbox = p.w.newBudget()
	p.bulk.room.Limit = p.w.cfg.Data.BulkRoom
	p.forgotten = map[peer.ID]bool{}
	p.openQueues()
	p.gate.limit = p.w.node().GapLimit()
}

// register makes a type known to the process.
func (p *proc) register(t *entityType) {
	if slices.Contains(t.absent, p.idx) {
		return
	}
	d := p.w.cfg.Data
	park := flow.NewParking(d.ParkRecords, d.ParkBytes, d.ParkWait, p.parked)
	if d.ParkWait == 0 {
		park.Follow(func() time.Duration { return node.ParkTimeFor(p.node.Takeover()) })
	}
	r := &region{p: p, typ: &t.Type, id: route.TypeOf(t.Name), slots: make([]flow.Slot, t.Shards),
		shards: make([]*hosted, t.Shards)}
	for i := range r.slots {
		r.slots[i] = flow.MakeSlot(park)
	}
	r.decl = t
	p.regions = append(p.regions, r)
	slices.SortFunc(p.regions, func(a, b *region) int { return int(int64(a.id) - int64(b.id)) })
	p.do(shard.RegisterCommand{Settings: shard.Settings{Name: t.Name, Shards: t.Shards, Role: t.role(p)}})
}

func (p *proc) region(id route.TypeID) *region {
	for _, r := range p.regions {
		if r.id == id {
			return r
		}
	}
	return nil
}

// send takes one message, as Region.Tell and Ask do: to its home, or into the parking queue. corr is zero for a tell.
func (r *region) send(id string, payload []byte, corr uint64) (to peer.ID, err error) {
	p := r.p
	if !p.alive || p.ended != nil {
		return peer.ID{}, route.ErrStopped
	}
	if p.held() {
		return peer.ID{}, plane.Closed(false).Err()
	}
	if err := route.CheckID(id); err != nil {
		return peer.ID{}, err
	}
	if len(payload) > p.w.cfg.Data.BulkRoom {
		return peer.ID{}, route.ErrTooLarge
	}
	if len(payload) > p.w.cfg.Data.MaxPayload {
		return peer.ID{}, r.sendLarge(id, payload, corr)
	}
	n := route.ShardOf(id, r.typ.Shards)
	s := &r.slots[n]
	e := wire.Envelope{Type: uint32(r.id), Shard: uint32(n), Corr: corr, Payload: payload}
	if corr != 0 {
		e.Flags = wire.FlagAsk
	}
	e.Term, e.Epoch = s.Fence().Term(), s.Fence().Epoch()
	switch s.State() {
	case flow.Local:
		p.goes(corr, p.id, s.Fence())
		frame := make([]byte, wire.SizeEnvelope(len(id), len(payload)))
		wire.PutEnvelope(frame, &e, id)
		return p.id, p.here(r, n, frame)
	case flow.Remote:
		l := p.linkOf(s.Home(), uint32(n))
		if l.conn.forgotten {
			p.w.plane.DeadEnds++
			r.rehome(n, s.Home(), s.Fence())
			return peer.ID{}, fmt.Errorf("to %s: %w", p.w.name(s.Home()), errDeadEnd)
		}
		room, err := l.flow.Reserve(wire.SizeEnvelope(len(id), len(payload)))
		if err != nil {
			return peer.ID{}, fmt.Errorf("to %s: %w", p.w.name(s.Home()), err)
		}
		wire.PutEnvelope(room, &e, id)
		p.goes(corr, s.Home(), s.Fence())
		l.wake()
		l.bounds()
		return s.Home(), nil
	}
	if r.refused != nil {
		return peer.ID{}, r.refused
	}
	next, err := plane.Park(s, p.clock(), &e, id)
	if err != nil {
		return peer.ID{}, err
	}
	r.follow(n, next)
	p.bounds()
	return peer.ID{}, nil
}

// errDeadEnd is the error of a send whose route leads to a member that was removed here: the next home is asked for.
var errDeadEnd = fmt.Errorf("a member that was removed: %w", route.ErrPeerLost)

// routed takes a change of a shard's route: parked messages go first, then the slot opens.
func (p *proc) routed(c shard.RouteChange) {
	r := p.region(c.Type)
	if r == nil || int(c.Shard) >= len(r.slots) {
		p.w.check.violate(p, "route", "route of %s, which is not registered here", p.w.shardName(c.Type, c.Shard))
		return
	}
	home := plane.Home{At: c.Home, Fence: c.Fence}
	switch c.State {
	case shard.RouteLocal:
		h := r.shards[c.Shard]
		home.At, home.Local = p.id, true
		home.Gone = h == nil || h.shard.Fence() != c.Fence || h.shard.Stopping()
	case shard.RouteRemote:
		home.Gone = p.forgotten[c.Home]
	default:
		home = plane.Home{}
	}
	if s := &r.slots[c.Shard]; c.State == shard.RouteUnknown && p.w.onUnknown != nil && !s.IsLocal() {
		p.w.onUnknown(r, c.Shard)
	}
	next := plane.Move(&r.slots[c.Shard], home)
	if next == plane.Forget {
		p.w.plane.LateHomes++
		r.rehome(c.Shard, c.Home, c.Fence)
	}
	r.follow(c.Shard, next)
}

// follow does what a verb on a slot has called for.
func (r *region) follow(n route.ShardID, next plane.Next) {
	switch next {
	case plane.Flush:
		r.drain(n)
	case plane.LookUp:
		r.p.want(flowSlot{r, n})
	}
}

// drain sends what was parked, in order. A full link leaves the slot draining until there is room.
func (r *region) drain(n route.ShardID) {
	p, s := r.p, &r.slots[n]
	if s.State() != flow.Draining {
		return
	}
	home, f := s.Home(), s.Fence()
	step := plane.Drain(s, func(e *wire.Envelope, frame []byte) plane.Step { return r.forward(n, e, frame) })
	switch step {
	case plane.NoRoom:
		p.w.plane.Stalled++
		p.agenda.Stall(p.clock(), flowSlot{r, n})
		p.attend()
	case plane.NoHome:
		p.w.plane.DeadEnds++
		r.rehome(n, home, f)
	}
}

// forward sends one message that was parked to the home of its shard.
func (r *region) forward(n route.ShardID, e *wire.Envelope, frame []byte) plane.Step {
	p, s := r.p, &r.slots[n]
	if e.Flags&wire.FlagBulk != 0 {
		if !s.IsLocal() {
			return r.forwardLarge(n, e)
		}
		if l := p.largeOf(e.Payload); l != nil && l.life.Recall() {
			l.cancel() // its shard lives here now
		}
	}
	if e.Flags&wire.FlagAsk != 0 {
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
	l.wake()
	return plane.Sent
}

// rehome has the next home looked for when one is gone for good. It is done in a turn of its own: this one may be
// carrying out what the node said.
func (r *region) rehome(n route.ShardID, home peer.ID, f route.Fence) {
	r.p.later(0, func() { r.nextHome(n, home, f.Term(), f.Epoch()) })
}

// nextHome has the node forget a home, closes the slot if it leads there still, and asks again for what waits.
func (r *region) nextHome(n route.ShardID, at peer.ID, term, epoch uint32) {
	p := r.p
	p.forgetHome(r.id, n, route.MakeFence(0, term, epoch))
	if p.alive {
		r.follow(n, plane.Rehome(&r.slots[n], at, term, epoch))
		p.watch(flowSlot{r, n})
	}
}

// failed is a message that this process accepted and cannot deliver: counted, and an ask is answered.
func (p *proc) failed(frame []byte, why route.Reason, words string) {
	var e wire.Envelope
	switch plane.GiveUp(frame, &e) {
	case plane.UnsentOther:
		p.w.check.violate(p, "frame", "a frame that was kept is no message")
	case plane.UnsentReply: // whoever asked has a time limit
	case plane.UnsentLarge:
		if l := p.largeOf(e.Payload); l != nil {
			p.endLarge(l, why, fateFailed, words)
		}
	case plane.UnsentAsk:
		p.dropped[why]++
		p.w.fate(e.Payload, fateFailed, words)
		p.answered(e.Corr, why, nil)
	case plane.UnsentTell:
		p.dropped[why]++
		p.w.fate(e.Payload, fateFailed, words)
	}
}

// viewChanged notes members that were removed: what was asked of them fails.
func (p *proc) viewChanged(old *membership.View) {
	if old == nil {
		return
	}
	for i := range old.Members {
		id := old.Members[i].ID
		if _, ok := p.view.Member(id); ok || id == p.id {
			continue
		}
		p.lostPeer(id)
		p.removed.Add(p.clock(), id)
		p.attend()
	}
}

// forgetPeer drops everything about a member that was removed: what waits for it is failed.
func (p *proc) forgetPeer(id peer.ID) {
	p.forgotten[id] = true
	for _, c := range p.links.list {
		if c.to == id {
			c.close()
			c.state, c.forgotten = connRefused, true
			c.link.flow.FailAll(func(frame []byte) { p.failed(frame, plane.WhyUnsent(false), "peer removed") })
		}
	}
	for _, c := range p.bulk.links.list {
		if c.to == id {
			c.close()
			c.state, c.forgotten = connRefused, true
			c.bulk.pump()
		}
	}
	for _, c := range p.conns.list {
		if c.to == id {
			c.waiting = nil
		}
	}
	p.lostPeer(id)
}
