// Ears: the entities by which messages come to the instances of a node, one for each path and slot, of a type that has
// a shard on every node. Of hand-offs that do not buffer.

package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/footing"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
	"github.com/kith-io/kith/wire"
)

// earType is the type of all ears.
const earType = "kith.partitions"

// earsOf is the type of ears of a node.
func earsOf(h *hub) entity.Type {
	hosts := h.node.Hosts()
	by := func(id string) route.ShardID {
		if shard, _, _, ok := parseEar(id); ok {
			return shard
		}
		return route.NoShard
	}
	return entity.Type{Name: earType, Shards: hosts, ShardBy: entity.ShardBy{Name: "node", Of: by},
		Strategy: strategy.LeastShards{Absolute: int(hosts), Percent: 100},
		New: func(id string, _ route.Fence) entity.Handler {
			_, slot, path, _ := parseEar(id)
			return &ear{h, slot, path}
		}}
}

// ear takes what comes for the instance of a slot.
type ear struct {
	hub  *hub
	slot int
	path string
}

// Receive implements Handler.
func (e *ear) Receive(c *entity.Context, payload []byte) error {
	p := e.hub.find(e.path)
	defer func() {
		if p == nil || p.held.lives(e.slot) == nil {
			c.Passivate()
		}
	}()
	raw := c.Headers()
	if _, timer := c.Timer(); timer || len(raw) == 0 {
		return e.alone(c, p, payload)
	}
	f, err := parseFrame(raw)
	if err != nil {
		e.hub.stray.Add(1)
		return err
	}
	switch {
	case p == nil && f.kind == isMessage:
		return refuse(e.hub, c, e.path, e.slot, &f, notOpen, payload)
	case p == nil:
		e.hub.stray.Add(1)
		return fmt.Errorf("%q: %w", e.path, ErrNotOpen)
	case f.kind == isMessage:
		return p.receive(c, e.slot, &f, payload)
	case f.kind == isInit:
		return p.prepare(c, e.slot, &f, payload)
	case f.kind == isGauge:
		return c.Reply(wire.AppendU64(nil, p.count.all(p.room.Load())))
	case f.kind == isEnd:
		p.finish(c, e.slot, f.at)
	case f.kind == isBack:
		p.returned(e.slot, &f, payload)
	}
	return nil
}

// alone is a message without a frame: of a timer that the instance has set.
func (e *ear) alone(c *entity.Context, p *Partition, payload []byte) error {
	if p != nil {
		if i := p.held.lives(e.slot); i != nil {
			return i.receive(c, payload)
		}
	}
	e.hub.stray.Add(1)
	return errFrame
}

// Stop implements Handler. An instance stays where its node is when the shard of its ear moves.
func (e *ear) Stop(c *entity.Context) {
	p := e.hub.find(e.path)
	if p == nil {
		return
	}
	i := p.held.lives(e.slot)
	switch why := c.StopReason(); {
	case i == nil:
	case why == entity.StopPassivated: // the handler wanted it: the next message makes another one
		i.stop(c, false)
	case why == entity.StopLeaving && p.hub.left.Load():
		i.stop(c, true)
	}
}

// receive deals with a message.
func (p *Partition) receive(c *entity.Context, slot int, f *frame, payload []byte) error {
	for range maxHops { // an instance may end meanwhile
		row := p.row.by(f.at, p.hub, p.path)
		switch {
		case p.held.gone(row):
			return refuse(p.hub, c, p.path, slot, f, noInstance, payload)
		case row.InForce.New == cluster.NewBuffers && row.Epoch > 0 && !f.at.above(stampOf(&row.State)):
			return p.forward(c, slot, f, target(&row.State, slot), payload)
		case p.room.Load().has(slot): // the hand-off is another one now, and this instance is about to end
			return p.forwardBy(c, slot, f, p.room.Load().lane, strconv.Itoa(slot), payload)
		}
		over := p.held.isOver(&row.State, slot)
		what, to, why := judge(&row.State, p.hub.self, slot, f.at, over, p.held.lives(slot) != nil)
		switch what {
		case refuses:
			return refuse(p.hub, c, p.path, slot, f, why, payload)
		case goes:
			ch, pending := row.Change(slot)
			pending = pending && ch.From == p.hub.self
			if !pending || over || ch.Complete || p.held.mayAsk(p.hub, p.path, &ch) {
				if pending {
					p.held.asks(slot, changeOf(&ch)) // the new node makes its instance for it
				}
				return p.forward(c, slot, f, to, payload)
			}
		}
		at := stampOf(&row.State)
		if f.at.above(at) {
			at = f.at
		}
		i := p.instance(row, slot, at, rankOf(&row.State, p.hub.self, slot, f.at))
		if i == nil {
			continue
		}
		switch err := i.receive(c, payload); {
		case errors.Is(err, errOver):
			continue
		case errors.Is(err, ErrNotMade):
			p.hub.log.Error("an instance of a partition could not be made", "event", "partition-not-made", "path", p.path,
				"slot", slot, "error", err)
			return refuse(p.hub, c, p.path, slot, f, notMade, payload)
		default:
			return err
		}
	}
	return refuse(p.hub, c, p.path, slot, f, noInstance, payload)
}

// forward sends a message on to the node of the instance.
func (p *Partition) forward(c *entity.Context, slot int, f *frame, to kith.ID, payload []byte) error {
	lane, id, ok := onward(p, to, slot)
	switch {
	case f.hops >= maxHops, to == p.hub.self && lane == p.hub.pool:
		return refuse(p.hub, c, p.path, slot, f, astray, payload)
	case behind(f, p.row.Load()) && holds(c, p, slot, f, payload):
		return nil
	case !ok && !c.Asked() && p.wait(slot, p.hop(f), payload):
		return nil
	case !ok:
		return refuse(p.hub, c, p.path, slot, f, unreachable, payload)
	}
	return p.forwardBy(c, slot, f, lane, id, payload)
}

// behind reports whether a message that was sent on already comes by a later table than that of this node: the two
// would send it to and fro until this one has the table too.
func behind(f *frame, r *row) bool { return f.hops > 0 && f.at.above(stampOf(&r.State)) }

// holds keeps a message for a while, and then gives it to the ear here anew. It reports whether there was room.
func holds(c *entity.Context, p *Partition, slot int, f *frame, payload []byte) bool {
	id, ok := p.hub.ear(p.hub.self, slot, p.path)
	switch {
	case !ok:
		return false
	case !c.Asked():
		return p.wait(slot, p.hop(f), payload)
	}
	forwardAsk(c, p, p.hub.pool, appendFrame(nil, p.hop(f)), id, payload, true)
	return true
}

// hop is the frame of a message that is sent on.
func (p *Partition) hop(f *frame) *frame {
	next := *f
	next.hops++
	next.at = stampOf(&p.row.Load().State)
	if f.at.above(next.at) {
		next.at = f.at
	}
	return &next
}

// forwardBy sends a message on by a lane.
func (p *Partition) forwardBy(c *entity.Context, slot int, f *frame, lane footing.Lane, id string,
	payload []byte) error {
	if f.hops >= maxHops {
		return refuse(p.hub, c, p.path, slot, f, astray, payload)
	}
	h := appendFrame(nil, p.hop(f))
	if c.Asked() {
		p.count.forwarded.Add(1)
		forwardAsk(c, p, lane, h, id, payload, false)
		return nil
	}
	err := lane.Tell(h, id, payload)
	if err == nil {
		p.count.forwarded.Add(1)
	} else if !noRoom(err) || !p.wait(slot, p.hop(f), payload) {
		return refuse(p.hub, c, p.path, slot, f, unreachable, payload)
	}
	return nil
}

// forwardAsk sends an ask on by a lane, as soon as there is room on the way; rests: not at once.
func forwardAsk(c *entity.Context, p *Partition, lane footing.Lane, h []byte, id string, payload []byte, rests bool) {
	limit := p.hub.askTimeout
	if by, ok := c.Context().Deadline(); ok {
		limit = by.Sub(p.hub.node.Wall())
	}
	token := c.Detach()
	answer := func(b []byte, err error) {
		if err != nil {
			_ = token.Fail(err) // the asker sees it by its time limit
			return
		}
		_ = token.Reply(b)
	}
	send := func(payload []byte, after int) (over bool) {
		left := limit - time.Duration(after)*waitTime
		err := lane.AskFunc(left, h, id, payload, answer)
		if noRoom(err) && left > waitTime && p.hub.node.Err() == nil {
			return false
		}
		if err != nil {
			answer(nil, fmt.Errorf("%w: %w", err, ErrUnreachable))
		}
		return true
	}
	again := func(payload []byte, nth int) bool { return send(payload, nth+1) }
	if (rests || !send(payload, 0)) && !p.later(payload, again) {
		answer(nil, fmt.Errorf("%w: %w", route.ErrLinkFull, ErrUnreachable))
	}
}

// noRoom reports whether a message was not accepted because too much waits on its way.
func noRoom(err error) bool {
	return errors.Is(err, route.ErrLinkFull) || errors.Is(err, route.ErrMailboxFull) || errors.Is(err, route.ErrParkFull)
}

// onward is the way on to the instance of a slot: by the ear of its node, or by the room where hand-offs buffer.
func onward(p *Partition, to kith.ID, slot int) (lane footing.Lane, id string, ok bool) {
	r := p.row.Load()
	if r.InForce.New != cluster.NewBuffers {
		id, ok = p.hub.ear(to, slot, p.path)
		return p.hub.pool, id, ok
	}
	room := p.room.Load()
	if room == nil || to.IsZero() {
		return nil, "", false
	}
	return room.lane, strconv.Itoa(slot), true
}

// refuse refuses a message: an asker gets the reason, the sender of a tell gets the message back.
func refuse(h *hub, c *entity.Context, path string, slot int, f *frame, why reason, payload []byte) error {
	p := h.find(path)
	if p != nil {
		p.count.refused.Add(1)
	}
	if c.Asked() {
		return fmt.Errorf("partition: %q: instance %d at %v: %w", path, slot, h.self, reasonErrs[why])
	}
	giveBack(h, p, path, slot, f, why, payload)
	return nil
}

// giveBack sends a message that is refused to the node of its sender. p is nil where the path is not open.
func giveBack(h *hub, p *Partition, path string, slot int, f *frame, why reason, payload []byte) {
	back := frame{kind: isBack, why: why, at: f.at, from: h.self}
	if f.from == h.self && p != nil {
		p.returned(slot, &back, payload)
		return
	}
	if tellBack(h, path, slot, f.from, &back, payload) {
		return
	}
	waiting := &h.waiting
	if p != nil {
		waiting = &p.waiting
	}
	if !h.giveBackLater(waiting, path, slot, f.from, &back, payload) {
		h.unreported.Add(1)
	}
}

// tellBack sends a message that is refused to a node, and reports whether there was a way, and room.
func tellBack(h *hub, path string, slot int, to kith.ID, back *frame, payload []byte) bool {
	id, ok := h.ear(to, slot, path)
	return ok && h.pool.Tell(appendFrame(nil, back), id, payload) == nil
}

// giveBackLater keeps a message that is refused until there is a way to the node of its sender, and room: what an
// instance refuses in a burst may fill the link. It reports whether there was room to keep it.
func (h *hub) giveBackLater(waiting *atomic.Int64, path string, slot int, to kith.ID, back *frame,
	payload []byte) bool {
	return h.later(waiting, payload, func(payload []byte, nth int) (over bool) {
		switch {
		case tellBack(h, path, slot, to, back, payload):
			return true
		case nth < backTries && h.node.Err() == nil:
			return false
		}
		h.unreported.Add(1)
		return true
	})
}

// What waits for a way to another node, or for room on it: so many messages of a partition, or of all paths that are
// not open, each for so long before it is tried again.
const (
	maxWaiting = 1024
	waitTime   = 50 * time.Millisecond
	backTries  = 200 // of what goes back to its sender, and of what finds no room
)

// later does something with a copy of a payload each waitTime until it is over. It reports whether there was room.
func (p *Partition) later(payload []byte, do func(payload []byte, nth int) (over bool)) bool {
	return p.hub.later(&p.waiting, payload, do)
}

func (h *hub) later(waiting *atomic.Int64, payload []byte, do func(payload []byte, nth int) (over bool)) bool {
	if waiting.Add(1) > maxWaiting {
		waiting.Add(-1)
		return false
	}
	payload = slices.Clone(payload)
	spawn(h.node, func() {
		defer waiting.Add(-1)
		for nth := 0; ; nth++ {
			if h.node.Wait(context.Background(), waitTime, nil); do(payload, nth) {
				return
			}
		}
	})
	return true
}

// wait keeps a message that is to be sent on, and has no way yet, since the other node has just joined, and not all
// have heard which shard is there; or one for which the way is full, as it may be while an old node sends on what all
// send. It reports whether there was room.
func (p *Partition) wait(slot int, f *frame, payload []byte) bool {
	next := *f
	return p.later(payload, func(payload []byte, nth int) (over bool) {
		lane, id, ok := onward(p, target(&p.row.Load().State, slot), slot)
		err := error(nil)
		if ok {
			err = lane.Tell(appendFrame(nil, &next), id, payload)
		}
		switch {
		case ok && err == nil:
			p.count.forwarded.Add(1)
			return true
		case ok && noRoom(err) && nth < backTries && p.hub.node.Err() == nil:
			return false
		case !ok && next.hops < maxHops && p.hub.node.Err() == nil:
			next.hops++
			return false
		}
		p.count.refused.Add(1)
		giveBack(p.hub, p, p.path, slot, &next, unreachable, payload)
		return true
	})
}

// returned reports a message to the program that came back.
func (p *Partition) returned(slot int, f *frame, payload []byte) {
	p.count.returned.Add(1)
	if p.cfg.Refused != nil {
		p.cfg.Refused(Refused{p.path, slot, f.from, reasonErrs[f.why], payload})
	}
}

// prepare makes the instance that the old node hands over, and answers that it is ready. meant is the node that was
// asked, empty from one of an earlier build: the shard by which the request came may have moved.
func (p *Partition) prepare(c *entity.Context, slot int, f *frame, meant []byte) error {
	if r := wire.NewReader(wire.Kind(0), meant); len(meant) > 0 && peer.ReadID(&r) != p.hub.self {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, ErrMoved) // it is asked again
	}
	row := p.row.by(f.at, p.hub, p.path)
	if ch, ok := row.Change(slot); !f.at.above(stampOf(&row.State)) &&
		!(ok && ch.To == p.hub.self && changeOf(&ch) == f.at) {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, ErrMoved) // it was given up
	}
	i := p.instance(row, slot, f.at, f.at)
	if i == nil {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, ErrMoved) // it is asked again
	}
	if err := i.begin(); err != nil {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, err)
	}
	return c.Reply(nil)
}

// finish ends an instance: a message from this node to itself, for Stop wants a Context.
func (p *Partition) finish(c *entity.Context, slot int, at stamp) {
	i := p.held.lives(slot)
	if i == nil || i.at != at {
		return
	}
	i.stop(c, true)
	p.hub.ping()
}
