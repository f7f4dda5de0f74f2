// Hosting: what the node says of the shards that live here is carried out by package exec. Control goroutine.

package driver

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/internal/runtime/exec"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// hostOrder carries out what the node says of one hosted shard.
func (d *Driver) hostOrder(o *shard.HostOrder) {
	r := d.regions.Load().byID.At(o.Type)
	if r == nil || uint32(o.Shard) >= r.shards {
		return
	}
	ref := slotRef{r, o.Shard}
	h := ref.host()
	if !o.Stop {
		if h == nil || h.Fence() != o.Fence {
			left, states := takesUp(d, ref, o.Left)
			r.hosts.Begin(o.Shard, o.Fence, left, states)
			if r.lease != nil {
				r.lease.begins(o.Fence)
			}
		}
		return
	}
	if h == nil || h.Fence() != o.Fence {
		if r.lease.ending(o.Fence) {
			return // the answer follows
		}
		d.inbox.post(func() { d.tellStopped(ref, o.Fence) })
		return
	}
	if !h.Ending() {
		// Senders here park from now on; what they appended before is worked off.
		d.moveRoute(ref, nil, plane.Home{Moving: o.Moves})
	}
	if o.Abandon {
		h.Abandon()
	} else {
		why, by := entity.StopMoved, time.Duration(0)
		if o.Leaving {
			why, by = entity.StopLeaving, d.leaving.by
		}
		h.Stop(why, by, o.Within, o.Room)
	}
}

// balanced carries out what a step wants for the balance of types: answers about moves by hand, and loads.
func balanced(d *Driver, e *node.Effects) {
	for _, a := range e.Answers {
		moveAnswered(d, a)
	}
	for _, t := range e.Measure {
		d.inbox.post(func() { measure(d, t) })
	}
}

// measure tells the node what the shards of a type cost that live here, of figures that there are anyway but
// for how long handlers run, which is measured from the first time on.
func measure(d *Driver, id route.TypeID) {
	r := d.regions.Load().byID.At(id)
	if r == nil {
		return
	}
	exec.Weigh(r.hosts)
	cmd := shard.LoadsCommand{Type: id, Node: d.strain.read()}
	for h := range exec.Hosts(r.hosts) {
		cmd.Readings = append(cmd.Readings, strategy.Reading{Shard: h.Shard(), Fence: h.Fence(),
			Entities: uint32(min(exec.Entities(h), math.MaxUint32)), Handled: exec.Handled(h), HandlerTime: exec.HandlerTime(h),
			Queued: uint32(min(exec.MailboxBytes(h), math.MaxUint32))})
	}
	_ = d.command(cmd) // refused if the type was, meanwhile
}

// hostStopped removes a host when its entities have stopped, and tells the node.
func (d *Driver) hostStopped(h *exec.Host) {
	h.Remove()
	r := d.regionOf(h.Type())
	if r == nil {
		return
	}
	ref := slotRef{r, h.Shard()}
	left, states := handsOver(d, ref, h)
	if r.lease != nil {
		r.lease.ends(h.Fence(), func() { hasStopped(d, ref, h.Fence(), left, states) })
		return
	}
	hasStopped(d, ref, h.Fence(), left, states)
}

// hasStopped tells the node that a shard has stopped, and what it hands over.
func hasStopped(d *Driver, ref slotRef, f route.Fence, left []byte, states bool) {
	if len(left) == 0 {
		d.tellStopped(ref, f)
		return
	}
	cmd := shard.StoppedCommand{Type: ref.r.id, Shard: ref.shard, Fence: f}
	tell(d, ref, shard.HandOverCommand{StoppedCommand: cmd, Left: left, States: states})
}

// handsOver returns what a shard that has stopped hands over, as the next owner reads it: what it did not work off, and
// states of its entities, as far as there is room for them.
func handsOver(d *Driver, ref slotRef, h *exec.Host) (left []byte, states bool) {
	f, now := h.Fence(), d.now()
	waits, take := exec.Rest(h)
	for _, m := range waits {
		e := wire.Envelope{Type: uint32(ref.r.id), Shard: uint32(ref.shard), Term: f.Term(), Epoch: f.Epoch(), ID: m.ID,
			Payload: m.Payload, Headers: m.Headers, Corr: m.Corr}
		asker := peer.ID{}
		switch from := m.From.(type) {
		case nil:
			e.Corr = 0
		case *selfOrigin:
			asker = d.self
		case *peerConn:
			asker = from.id
		default:
			continue // it has gone: nobody waits
		}
		plane.FlagUnhandled(&e, m.From != nil, m.Limit)
		left = plane.AppendUnhandled(left, asker, &e, now)
	}
	for _, st := range take(plane.StateRoom(d.cfg.Sharding.MaxHandOver, len(left))) {
		left, states = plane.AppendState(left, st.ID, st.Bytes), true
	}
	return left, states
}

// reads is what another owner handed over of a shard, or this node did.
func reads(d *Driver, ref slotRef, left []byte) ([]plane.Unhandled, []plane.HandedState) {
	hashed := ref.r.shards
	if ref.r.chosen {
		hashed = 0 // no function of the application runs on this goroutine
	}
	list, states, err := plane.ReadUnhandled(left, ref.r.id, ref.shard, hashed, d.now())
	if err != nil {
		d.log.Error("what was handed over of a shard makes no sense", "type", ref.r.typ.Name, "shard", ref.shard,
			"bytes", len(left), "error", err)
	}
	return list, states
}

// takesUp returns what the last owner of a shard handed over.
func takesUp(d *Driver, ref slotRef, left []byte) ([]entity.Message, []entity.State) {
	if len(left) == 0 {
		return nil, nil
	}
	list, handed := reads(d, ref, left)
	states := make([]entity.State, len(handed))
	for i, st := range handed {
		states[i] = entity.State{ID: st.ID, Bytes: st.State}
	}
	now := d.now()
	all := make([]entity.Message, len(list))
	for i := range list {
		e, m := &list[i].Envelope, &all[i]
		m.ID, m.Payload, m.Corr = e.ID, e.Payload, e.Corr
		if e.Flags&wire.FlagAsk != 0 {
			m.From = askerAt(d, list[i].Asker, e.Corr)
		}
		if e.Flags&wire.FlagLimit != 0 {
			m.Limit = plane.LimitAt(e.Limit, now)
		}
		if e.Flags&wire.FlagHeaders != 0 {
			m.Headers = e.Headers
		}
	}
	return all, states
}

// askerAt returns where the answer to an ask goes that another node has taken: to its asker, while that is a member.
func askerAt(d *Driver, id peer.ID, corr uint64) entity.Origin {
	if id == d.self {
		return &d.origin
	}
	if _, member := d.View().Member(id); !member {
		return goneOrigin{}
	}
	n := d.peerNode(id)
	return n.conns[uint32(corr)%uint32(len(n.conns))]
}

// goneOrigin is that of an ask when its asker is gone.
type goneOrigin struct{}

// Reply says so.
func (goneOrigin) Reply(uint64, route.Reason, []byte) error { return route.ErrPeerLost }

// tellStopped tells the node that no entity of a shard runs here any more under a fence.
func (d *Driver) tellStopped(ref slotRef, f route.Fence) {
	tell(d, ref, shard.StoppedCommand{Type: ref.r.id, Shard: ref.shard, Fence: f})
}

// tell tells the node that a shard has stopped.
func tell(d *Driver, ref slotRef, cmd shard.Command) {
	if err := d.command(cmd); err != nil {
		d.log.Warn("stopped shard not reported", "type", ref.r.typ.Name, "shard", ref.shard, "error", err)
	}
}

// sendHere takes a message of this node under the route e, which leads here; hash is that of the id. stale means that
// the route has changed. waits: its caller waits for an answer, and the handler may be called before sendHere returns.
func (c *routeCell) sendHere(r *Region, e *routeEntry, env *wire.Envelope, hash uint64, id string,
	waits bool) (stale bool, err error) {
	if e.host == nil {
		return true, nil // the route has changed between two looks at its cell
	}
	now := e.host.Lock()
	if c.route.Load() != e {
		e.host.Unlock()
		return true, nil
	}
	if waits {
		if now, idle := exec.Idle(e.host); idle {
			exec.Call(e.host, now, env, hash, id)
			return false, nil
		}
	}
	switch reason := e.host.Send(now, env, hash, id); reason {
	case route.OK:
		return false, nil
	case route.QueueFull: // of a worker or loop: no bound of the type
		return false, r.d.queueFull
	default:
		return false, r.errOf(reason)
	}
}

// takeHere takes a message of this node under the route e, which leads here, as sendHere does.
func (c *routeCell) takeHere(r *Region, e *routeEntry, sh route.ShardID, hash uint64, id string, payload []byte,
	corr uint64, a *asking, h *Headers) (stale bool, err error) {
	if a == nil && h == nil {
		return c.tellHere(r, e, sh, hash, id, payload)
	}
	var env wire.Envelope
	r.envelope(&env, sh, e, corr, payload, a, h)
	return c.sendHere(r, e, &env, hash, id, a != nil && !a.called)
}

// tellHere is sendHere for what is no ask and has no headers, as most are.
func (c *routeCell) tellHere(r *Region, e *routeEntry, sh route.ShardID, hash uint64, id string, payload []byte) (
	stale bool, err error) {
	if e.host == nil {
		return true, nil // the route has changed between two looks at its cell
	}
	now := e.host.Lock()
	if c.route.Load() != e {
		e.host.Unlock()
		return true, nil
	}
	switch reason := e.host.Tell(now, sh, hash, id, payload); reason {
	case route.OK:
		return false, nil
	case route.QueueFull: // of a worker or loop: no bound of the type
		return false, r.d.queueFull
	default:
		return false, r.errOf(reason)
	}
}

// hostRuntime is what the handlers of one shard reach the world by.
type hostRuntime struct {
	*exec.Host
	r *Region
}

func (x hostRuntime) region(typ string) (*Region, error) {
	if typ == x.r.typ.Name {
		return x.r, nil
	}
	if r := x.r.d.regions.Load().named(typ); r != nil {
		return r, nil
	}
	return nil, route.ErrNotRegistered
}

// Now is the exact time of the node, from which timers count.
func (x hostRuntime) Now() time.Duration { return exactly(x.r.d) }

// headersOf returns headers, nil for none.
func headersOf(b []byte) *Headers {
	if len(b) == 0 {
		return nil
	}
	return &Headers{b}
}

// Answered forgets the context of an ask when its handler has returned.
func (x hostRuntime) Answered(from entity.Origin, corr uint64) {
	exec.Answered(asker(from), corr, x.Host)
}

// Tell sends as TellNamed does.
func (x hostRuntime) Tell(headers []byte, typ, id string, payload []byte) error {
	r, err := x.region(typ)
	if err != nil {
		return err
	}
	if len(headers) == 0 && r.crew == nil && !r.sends { // TellNamed with nothing to do, as mostly
		return r.send(entity.HashID(bytesOf(id)), id, payload, 0, nil, nil)
	}
	return TellNamed(headersOf(headers), r, id, payload)
}

// Ask asks as Region.AskWithinWith and Pool.AskWithinWith do.
func (x hostRuntime) Ask(headers []byte, d time.Duration, typ, id string, payload []byte) ([]byte, error) {
	r, err := x.region(typ)
	if err != nil {
		return nil, err
	}
	if id == "" && r.crew != nil {
		if r == x.r {
			return nil, fmt.Errorf("%w: a worker asks its own pool, which may be itself", entity.ErrWouldBlock)
		}
		return r.crew.askFor(x.Host, d, headersOf(headers), payload, nil)
	}
	if sh := r.Shard(id); r == x.r && sh == x.Shard() {
		if err := slotOf(r, sh).asksItself(); err != nil {
			return nil, err
		}
	}
	return r.askFor(x.Host, d, headersOf(headers), id, payload, nil)
}

// TellNamed is TellWith to a type that the sender names: any worker of a pool gets what has no id.
func TellNamed(h *Headers, r *Region, id string, payload []byte) error {
	if id == "" && r.crew != nil {
		return r.crew.TellWith(h, payload)
	}
	return r.TellWith(h, id, payload)
}

// AskNamed is AskWith to a type that the sender names: any worker of a pool gets what has no id.
func AskNamed(ctx context.Context, r *Region, h *Headers, id string, payload []byte) ([]byte, error) {
	if id == "" && r.crew != nil {
		return r.crew.AskWith(ctx, h, payload)
	}
	return r.AskWith(ctx, h, id, payload)
}

// asksItself judges an ask of a handler to the shard that it belongs to.
func (s *regionSlot) asksItself() error {
	if s.route.Load() != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := plane.AsksItself(&s.slot); why != route.OK {
		return route.NotRun(why.Err())
	}
	return nil
}

// letGo fails every ask of the handlers of a shard that is at the deadline of its move: what they wait for may wait for
// them.
func (t *askTable) letGo(by *exec.Host) {
	for i := range t.stripes {
		for j := range t.stripes[i].chunks {
			chunk := t.stripes[i].chunks[j].Load()
			if chunk == nil {
				break
			}
			for k := range chunk {
				w := &chunk[k]
				if w.claimIf(func() bool { return w.by.Load() == by }) {
					t.finish(w, route.ShardStopping, []byte(plane.LetGo), true)
				}
			}
		}
	}
}
