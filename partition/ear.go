// Ears: the entities by which messages come to the instances of a node, one for each path and slot, of a type that has
// a shard on every node. Of hand-offs that do not buffer.

package partition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/driver"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// earType is the type of all ears.
const earType = "kith.partitions"

// maxNodes is the number of its shards: of nodes that host instances. Tests have fewer: a node that leaves gives its
// share of them back, which takes long on a machine that is busy.
var maxNodes uint32 = 1024

// earsOf is the type of ears of a node.
func earsOf(h *hub) entity.Type {
	by := func(id string) route.ShardID {
		if shard, _, _, ok := parseEar(id); ok {
			return shard
		}
		return route.NoShard
	}
	return entity.Type{Name: earType, Shards: maxNodes, ShardBy: entity.ShardBy{Name: "node", Of: by},
		Strategy: strategy.LeastShards{Absolute: int(maxNodes), Percent: 100},
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
		return p.prepare(c, e.slot, &f)
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
		p.held.drop(i)
		i.stop(c, true)
	}
}

// receive deals with a message.
func (p *Partition) receive(c *entity.Context, slot int, f *frame, payload []byte) error {
	for range maxHops { // an instance may end meanwhile
		row := p.row.Load()
		switch {
		case p.held.gone(row):
			return refuse(p.hub, c, p.path, slot, f, noInstance, payload)
		case row.InForce.New == cluster.NewBuffers && row.Epoch > 0 && !f.at.above(stampOf(&row.State)):
			return p.forward(c, slot, f, target(&row.State, slot), payload)
		}
		what, to, why := judge(&row.State, p.hub.self, slot, f.at, p.held.isOver(&row.State, slot))
		switch what {
		case refuses:
			return refuse(p.hub, c, p.path, slot, f, why, payload)
		case goes:
			return p.forward(c, slot, f, to, payload)
		}
		at := stampOf(&row.State)
		if f.at.above(at) {
			at = f.at
		}
		switch err := p.instance(slot, at).receive(c, payload); {
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

// forward sends a message on.
func (p *Partition) forward(c *entity.Context, slot int, f *frame, to kith.ID, payload []byte) error {
	next := *f
	next.hops++
	next.at = stampOf(&p.row.Load().State)
	if f.at.above(next.at) {
		next.at = f.at
	}
	region, id, ok := onward(p, to, slot)
	switch {
	case f.hops >= maxHops, to == p.hub.self && region == p.hub.pool.Region():
		return refuse(p.hub, c, p.path, slot, f, astray, payload)
	case !ok && !c.Asked() && p.wait(slot, &next, payload):
		return nil
	case !ok:
		return refuse(p.hub, c, p.path, slot, f, unreachable, payload)
	}
	p.count.forwarded.Add(1)
	h := &driver.Headers{B: appendFrame(nil, &next)}
	if !c.Asked() {
		if region.TellWith(h, id, payload) != nil {
			return refuse(p.hub, c, p.path, slot, f, unreachable, payload)
		}
		return nil
	}
	limit := p.hub.askTimeout
	if by, ok := c.Context().Deadline(); ok {
		limit = time.Until(by)
	}
	token := c.Detach()
	answer := func(b []byte, err error) {
		if err != nil {
			_ = token.Fail(err) // the asker sees it by its time limit
			return
		}
		_ = token.Reply(b)
	}
	if err := region.AskFuncWith(limit, h, id, payload, answer); err != nil {
		answer(nil, fmt.Errorf("%w: %w", err, ErrUnreachable))
	}
	return nil
}

// onward is the way on to the instance of a slot: by the ear of its node, or by the room where hand-offs buffer.
func onward(p *Partition, to kith.ID, slot int) (region *driver.Region, id string, ok bool) {
	r := p.row.Load()
	if r.InForce.New != cluster.NewBuffers {
		id, ok = p.hub.ear(to, slot, p.path)
		return p.hub.pool.Region(), id, ok
	}
	room := p.room.Load()
	if room == nil || to.IsZero() {
		return nil, "", false
	}
	return room.region(), strconv.Itoa(slot), true
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
	id, ok := h.ear(f.from, slot, path)
	if !ok || h.pool.Region().TellWith(&driver.Headers{B: appendFrame(nil, &back)}, id, payload) != nil {
		h.unreported.Add(1)
	}
}

// What waits for a way to another node: so many messages of a partition, each for so long before it is tried again.
const (
	maxWaiting = 1024
	waitTime   = 50 * time.Millisecond
)

// wait keeps a message that is to be sent on, and has no way yet: the other node has just joined, and not all have
// heard which shard is there. It reports whether there was room.
func (p *Partition) wait(slot int, f *frame, payload []byte) bool {
	if p.waiting.Add(1) > maxWaiting {
		p.waiting.Add(-1)
		return false
	}
	payload = slices.Clone(payload)
	time.AfterFunc(waitTime, func() {
		p.waiting.Add(-1)
		region, id, ok := onward(p, target(&p.row.Load().State, slot), slot)
		switch {
		case ok && region.TellWith(&driver.Headers{B: appendFrame(nil, f)}, id, payload) == nil:
			p.count.forwarded.Add(1)
		case !ok && f.hops < maxHops && p.hub.node.Err() == nil:
			f.hops++
			if p.wait(slot, f, payload) {
				return
			}
			fallthrough
		default:
			p.count.refused.Add(1)
			giveBack(p.hub, p, p.path, slot, f, unreachable, payload)
		}
	})
	return true
}

// returned reports a message to the program that came back.
func (p *Partition) returned(slot int, f *frame, payload []byte) {
	p.count.returned.Add(1)
	if p.cfg.Refused != nil {
		p.cfg.Refused(Refused{p.path, slot, f.from, reasonErrs[f.why], payload})
	}
}

// prepare makes the instance that the old node hands over, and answers that it is ready.
func (p *Partition) prepare(c *entity.Context, slot int, f *frame) error {
	row := p.row.Load()
	if ch, ok := row.Change(slot); !f.at.above(stampOf(&row.State)) &&
		!(ok && ch.To == p.hub.self && changeOf(&ch) == f.at) {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, ErrMoved) // it was given up
	}
	if err := p.instance(slot, f.at).begin(); err != nil {
		return fmt.Errorf("partition: %q: instance %d: %w", p.path, slot, err)
	}
	return c.Reply(nil)
}

// finish ends an instance: a message from this node to itself, for Stop wants a Context.
func (p *Partition) finish(c *entity.Context, slot int, at stamp) {
	i := p.held.lives(slot)
	if i == nil || i.at != at || !p.held.drop(i) {
		return
	}
	i.stop(c, true)
	p.hub.ping()
}
