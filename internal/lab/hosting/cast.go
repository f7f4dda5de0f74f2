// Cast: the instances of one storm, what is sent to them, and what has to hold at every message.

package hosting

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/sim/storm"
	"github.com/kith-io/kith/internal/sim/virtual"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/partition"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard/strategy"
)

// place is a slot of a path.
type place struct {
	path string
	slot int
}

func (w place) String() string { return fmt.Sprintf("%q, slot %d", w.path, w.slot) }

// message is one that was sent, and what became of it.
type message struct {
	by       *host
	to       place
	seq      int // of by to that place
	ordered  bool
	ask      bool
	accepted bool
	handled  int
	back     int
	why      error // of back
}

// open is a partition that a process has opened.
type open struct {
	p    *partition.Partition
	path string
	seq  map[int]int // of the last message to each slot
}

// stage is what instances need of their storm: a storm.Stage.
type stage interface {
	Quiet() bool
	Violate(p *world.Process, rule, format string, args ...any)
	MovedByHand(typ string, n route.ShardID, to peer.ID)
	Drains(p *world.Process, on bool) error
}

// cast is the instances of a storm.
type cast struct {
	stage stage
	w     *world.World
	rng   *rand.Rand
	hosts uint32
	nonce uint64
	decls []*world.EntityType
	of    map[*world.Process]*host
	all   []*host // in the order of their starts
	fixed bool    // no definition changes how instances are handed over
	ways  map[string]cluster.Handoff
	sent  []message
	seen
	press *press // nil: this storm has no topics
}

// seen are the instances that live, and what was seen of them.
type seen struct {
	live   map[place][]*actor
	last   map[stream]int // the latest message handled of a sender, of those in order
	fences map[fenced]*world.Process
	states map[uint64]place // that were handed over, and by which slot
	token  uint64
	watch  *trial // planned moves that are judged; nil: none
}

func newSeen() seen {
	return seen{live: map[place][]*actor{}, last: map[stream]int{}, fences: map[fenced]*world.Process{},
		states: map[uint64]place{}}
}

type stream struct {
	by *host
	to place
}

type fenced struct {
	at    place
	fence kith.Fence
}

// Bring makes the instances of a storm: what storm.Config.Instances wants.
func Bring(g *storm.Stage) storm.Instances {
	c := &cast{stage: g, w: g.World, rng: g.Rand, of: map[*world.Process]*host{},
		seen: newSeen()}
	c.hosts = uint32(max(16, len(c.w.Hosts)))
	c.fixed, c.ways = c.rng.IntN(2) == 0, map[string]cluster.Handoff{}
	for i, path := range storm.Paths {
		c.ways[path] = storm.Handoffs[c.rng.IntN(len(storm.Handoffs))]
		if i == 0 {
			c.ways[path] = cluster.Ordered
		}
	}
	c.declare()
	if g.Topics != nil {
		c.press = newPress(c, g.Topics)
	}
	c.w.OnStart, c.w.OnLeave = c.starts, c.leaves
	for i := range c.w.Hosts {
		c.w.After(c.between(0, 2*time.Second), func() { c.tick(i) })
	}
	return c
}

func (c *cast) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(c.rng.Int64N(int64(hi-lo)+1))
}

// Names of the types that package partition registers.
const (
	earType  = "kith.partitions"
	roomType = "kith.partition:"
)

// declare declares the types that partitions register, for processes that come to it.
func (c *cast) declare() {
	names := []string{earType}
	for _, path := range storm.Paths {
		names = append(names, roomType+path)
	}
	for _, name := range names {
		c.declares(name)
	}
}

// perNode are the types of which each node has a worker, in a shard that ids name.
func perNode(name string) bool { return name == earType || name == newsType }

// declares declares one of them.
func (c *cast) declares(name string) {
	d := &world.EntityType{Late: true, PerNode: 1, Type: entity.Type{Name: name, Shards: cluster.MaxInstances,
		ShardBy: entity.ShardBy{Name: "slot", Of: func(id string) route.ShardID {
			n, _ := strconv.ParseUint(id, 10, 32)
			return route.ShardID(n)
		}}}}
	d.Placing = func(*world.Process) strategy.Strategy { return strategy.NewExternal(cluster.MaxInstances) }
	if perNode(name) {
		d.Shards, d.Placing = c.hosts, func(*world.Process) strategy.Strategy {
			return strategy.LeastShards{Absolute: int(c.hosts), Percent: 100}
		}
		d.ShardBy = entity.ShardBy{Name: "node", Of: func(id string) route.ShardID {
			first, _, _ := strings.Cut(id, ".")
			n, _ := strconv.ParseUint(first, 10, 32)
			return route.ShardID(n)
		}}
	}
	d.Open = func(ctx *entity.Context) (entity.Handler, error) {
		t, ok := c.of[c.w.Acting].types[name]
		if !ok {
			return nil, errEnded
		}
		return t.New(ctx.ID, ctx.Fence), nil
	}
	d.Type = d.WithDefaults()
	c.w.AddType(d)
	c.decls = append(c.decls, d)
}

// typ is the declaration of a type.
func (c *cast) typ(name string) *world.EntityType { return c.w.TypeOf(route.TypeOf(name)) }

// opened are the paths that each process opens.
func opened() []string { return storm.Paths[:len(storm.Paths)-1] }

// starts has a process that was started open all paths but the last, some of them a little later.
func (c *cast) starts(p *world.Process) {
	h := &host{Ground: virtual.On(p, c.rng), c: c, p: p, types: map[string]entity.Type{}}
	c.of[p] = h
	c.all = append(c.all, h)
	c.press.starts(h)
	for i, path := range opened() {
		if i > 0 && c.rng.IntN(4) == 0 {
			p.Later(c.between(0, 3*time.Second), func() { h.opens(path) })
			continue
		}
		h.opens(path)
	}
}

// opens opens a path.
func (h *host) opens(path string) {
	c := h.c
	o := &open{path: path, seq: map[int]int{}}
	count := partition.Exactly(1 + c.rng.IntN(3))
	if count.N == 3 { // as many as the load wants, which is measured
		count = partition.Scaled(1, 3, 1)
	}
	cfg := partition.Config{Path: path, Instances: count, Handoff: c.ways[path],
		New:     func(slot int, f kith.Fence) kith.Handler { return c.begins(h, place{path, slot}, f) },
		Refused: c.returned}
	p, err := partition.On(h, cfg)
	if err != nil {
		c.stage.Violate(h.p, "instances", "%q is not opened: %v", path, err)
		return
	}
	o.p = p
	h.open = append(h.open, o)
}

// leaves does what comes before a leave.
func (c *cast) leaves(p *world.Process, then func()) {
	h := c.of[p]
	if h == nil || h.leave == nil {
		then()
		return
	}
	h.Begin(func() {
		limited, end := h.Within(context.Background(), leaveWithin)
		defer end()
		_ = h.leave(limited)
		p.Later(0, then)
	})
}

// Allows implements storm.Instances.
func (c *cast) Allows(cmd membership.Command) bool {
	d, defines := cmd.(membership.DefineCommand)
	return !c.fixed || !defines || c.ways[d.Definition.Path] == d.Definition.Handoff
}

// tick makes a host send, and comes back.
func (c *cast) tick(host int) {
	if c.stage.Quiet() {
		return
	}
	if p := c.w.Hosts[host].Process; p != nil && p.Alive && !p.Paused() {
		if h := c.of[p]; len(h.open) > 0 {
			o := h.open[c.rng.IntN(len(h.open))]
			for range 1 + c.rng.IntN(4) {
				h.sends(o, c.rng.IntN(3), c.rng.IntN(4) == 0)
			}
		}
	}
	c.w.After(c.between(20*time.Millisecond, 600*time.Millisecond), func() { c.tick(host) })
}

const mark = 0x696e7374 // of a payload

func payloadOf(nth int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, mark), uint32(nth))
}

// messageOf returns the message of a payload.
func (c *cast) messageOf(b []byte) *message {
	if len(b) != 8 || binary.LittleEndian.Uint32(b) != mark {
		return nil
	}
	if n := binary.LittleEndian.Uint32(b[4:]); int(n) < len(c.sent) {
		return &c.sent[n]
	}
	return nil
}

// sends sends a message to a slot: a tell, or an ask that is waited for on a coroutine.
func (h *host) sends(o *open, slot int, ask bool) {
	c := h.c
	state, ok := o.p.Table()
	if !ok || state.Epoch == 0 {
		return
	}
	if !ask {
		nth := h.writes(o, slot, false, state.InForce)
		err := o.p.TellAt(slot, payloadOf(nth))
		c.sent[nth].accepted = err == nil
		c.watch.fails(c.sent[nth].to, err)
		return
	}
	h.Begin(func() {
		nth := h.writes(o, slot, true, state.InForce)
		limited, end := h.Within(context.Background(), c.between(100*time.Millisecond, 5*time.Second))
		defer end()
		_, err := o.p.AskAt(limited, slot, payloadOf(nth))
		if m := &c.sent[nth]; err != nil && !kith.MayHaveRun(err) {
			m.accepted = false
			if m.handled > 0 {
				c.stage.Violate(h.p, "instance-refused", "message %d to %v was handled, and its ask says not: %v", nth, m.to, err)
			}
			m.back, m.why = m.back+1, err // it must not be handled later
		}
	})
}

// writes notes a message that is about to be sent, and returns its number.
func (h *host) writes(o *open, slot int, ask bool, way cluster.Handoff) (nth int) {
	c := h.c
	o.seq[slot]++
	c.sent = append(c.sent, message{by: h, to: place{o.path, slot}, seq: o.seq[slot], ask: ask, accepted: true,
		ordered: way.New == cluster.NewBuffers && (c.fixed || c.watch != nil)})
	return len(c.sent) - 1
}

// returned notes a message that came back.
func (c *cast) returned(r partition.Refused) {
	m := c.messageOf(r.Payload)
	switch {
	case m == nil:
		c.stage.Violate(nil, "instance-refused", "%q gives back %x, which nobody has sent", r.Path, r.Payload)
		return
	case m.back > 0:
		c.stage.Violate(m.by.p, "instance-refused", "a message to %v comes back twice: %v, %v", m.to, m.why, r.Err)
	case m.handled > 0:
		c.stage.Violate(m.by.p, "instance-refused", "a message to %v was handled, and comes back: %v", m.to, r.Err)
	case m.ask:
		c.stage.Violate(m.by.p, "instance-refused", "an ask of %v comes back: %v", m.to, r.Err)
	case m.to != place{r.Path, r.Slot}:
		c.stage.Violate(m.by.p, "instance-refused", "a message to %v comes back as one to %q, slot %d", m.to, r.Path, r.Slot)
	}
	m.back++
	m.why = r.Err
}

// answerOf is how an instance on a node answers.
func answerOf(id peer.ID) []byte { return binary.LittleEndian.AppendUint64(nil, id.Inc) }

// actor is an instance.
type actor struct {
	c     *cast
	h     *host
	at    place
	fence kith.Fence
	busy  bool
	count uint64
	calls int
}

// begins makes an instance.
func (c *cast) begins(h *host, at place, f kith.Fence) kith.Handler {
	a := &actor{c: c, h: h, at: at, fence: f}
	for _, o := range c.live[at] {
		if o.h == h && h.p.Alive {
			c.stage.Violate(h.p, "instance-twice", "there are two instances of %v on one node", at)
		}
	}
	key := fenced{at: at, fence: f}
	if by := c.fences[key]; by != nil && by != h.p {
		c.stage.Violate(h.p, "instance-fence", "%v has the fence %v, which it had on %s", at, f, c.w.Name(by.ID))
	}
	c.fences[key] = h.p
	c.live[at] = append(c.live[at], a)
	c.watch.begins(a)
	return a
}

// gone forgets an instance.
func (a *actor) gone() {
	list := a.c.live[a.at][:0:0]
	for _, o := range a.c.live[a.at] {
		if o != a {
			list = append(list, o)
		}
	}
	a.c.live[a.at] = list
}

// lives reports whether an instance lives.
func (a *actor) lives() bool {
	for _, o := range a.c.live[a.at] {
		if o == a {
			return true
		}
	}
	return false
}

// Receive implements Handler.
func (a *actor) Receive(ctx *kith.Context, b []byte) error {
	c := a.c
	m := c.messageOf(b)
	switch {
	case m == nil:
		c.stage.Violate(a.h.p, "instance-message", "%v gets %x, which nobody has sent", a.at, b)
		return nil
	case a.busy:
		c.stage.Violate(a.h.p, "instance-calls", "%v is called while it is called", a.at)
	case !a.lives():
		c.stage.Violate(a.h.p, "instance-over", "%v is called after its end", a.at)
	case m.to != a.at:
		c.stage.Violate(a.h.p, "instance-message", "%v gets a message to %v", a.at, m.to)
	case m.handled > 0:
		c.stage.Violate(a.h.p, "instance-once", "a message to %v is handled twice", a.at)
	case m.back > 0:
		c.stage.Violate(a.h.p, "instance-refused", "a message to %v came back, and is handled: %v", a.at, m.why)
	case ctx.ID != strconv.Itoa(a.at.slot):
		c.stage.Violate(a.h.p, "instance-message", "the id of %v is %q", a.at, ctx.ID)
	}
	m.handled++
	if key := (stream{m.by, m.to}); m.ordered {
		if m.seq <= c.last[key] {
			c.stage.Violate(a.h.p, "instance-order", "%v handles message %d of %s behind %d", a.at, m.seq,
				c.w.Name(m.by.p.ID), c.last[key])
		}
		c.last[key] = max(m.seq, c.last[key])
	}
	a.count++
	a.calls++
	c.watch.handles(a, m)
	if !c.stage.Quiet() && c.rng.IntN(200) == 0 {
		a.gone()
		panic("as the dice fell")
	}
	if c.rng.IntN(10) == 0 {
		a.busy = true
		a.h.Wait(context.Background(), c.between(time.Millisecond, 60*time.Millisecond), nil)
		a.busy = false
	}
	if ctx.Asked() {
		return ctx.Reply(answerOf(a.h.p.ID))
	}
	return nil
}

// Stop implements Handler.
func (a *actor) Stop(*kith.Context) {
	if a.busy {
		a.c.stage.Violate(a.h.p, "instance-calls", "%v is stopped while it is called", a.at)
	}
	a.gone()
}

// HandOver implements Stateful.
func (a *actor) HandOver(*kith.Context) ([]byte, error) {
	c := a.c
	c.token++
	c.states[c.token] = a.at
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, c.token), a.count), nil
}

// TakeUp implements Stateful.
func (a *actor) TakeUp(_ *kith.Context, b []byte) error {
	if len(b) != 16 {
		return errors.New("no state of ours")
	}
	if at, ok := a.c.states[binary.LittleEndian.Uint64(b)]; !ok || at != a.at {
		a.c.stage.Violate(a.h.p, "instance-state", "%v takes up a state of %v", a.at, at)
	}
	a.count = binary.LittleEndian.Uint64(b[8:])
	a.c.watch.takesUp(a)
	return nil
}
