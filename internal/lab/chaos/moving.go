// A planned move with a fault in its midst: the harness begins the move, holds it where the fault is to come, and lets
// that come when the nodes' notes say that the move is there.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/kith-io/kith/internal/cli"
)

// drainTime is kith.Config.Sharding.DrainTime of all nodes: its default, on which the holds are timed.
const drainTime = 2 * time.Second

// The times of a move: in a young cluster one node has all shards until they have been balanced; handlers are slow for
// so long before it begins, that something waits; it has to begin within a bound, and to come to the phase within
// another; and a hold ends so long after the fault has come.
const (
	castTime  = 30 * time.Second
	fillTime  = time.Second
	beginTime = 10 * time.Second
	reachTime = 15 * time.Second
	holdAfter = 300 * time.Millisecond
	lookEvery = time.Millisecond
	slowMost  = fillTime + beginTime
)

// cast is the nodes that take part in a move: different slots, but of three nodes the taker is the sender, too.
type cast struct {
	giver, taker, coordinator, sender int
	shard                             uint32 // of the Blocking type
}

var errNoCast = errors.New("nobody fits the parts of the move")

// cast gives the parts of a move by hand: the first entity in the drawn order that lives with a node that does not
// coordinate gives its shard. The taker of a drain or a leave is known when the move begins.
func (h *harness) cast(f *Fault) (c cast, err error) {
	oldest := h.watcher.victims(Fault{First: Coordinator, Victims: 1})
	if len(oldest) == 0 {
		return c, errNoCast
	}
	c.coordinator = oldest[0]
	shards := h.slots[c.coordinator].current()
	if shards == nil {
		return c, errNoCast
	}
	for i := range h.cfg.Load.Entities {
		target := (f.Order[0] + i) % h.cfg.Load.Entities
		c.giver = h.book.home(target, h.clock.Now())
		if c.giver < 0 || c.giver == c.coordinator {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(f.Order), func(s int) bool { return s == c.giver || s == c.coordinator })
		if len(rest) == 0 {
			return c, errNoCast
		}
		c.taker, c.sender, c.shard = rest[0], rest[len(rest)-1], shards.shards[target]
		return c, nil
	}
	return c, errNoCast
}

// slotAt returns the slot of the node at an address.
func (h *harness) slotAt(addr uint64) int {
	return slices.IndexFunc(h.seeds, func(s string) bool { return addrWord(s) == addr })
}

// underWay is a move that a fault is to come into.
type underWay struct {
	*harness
	Fault
	cast
	since time.Duration
	held  []*struck
}

// strikeMove begins a move and lets the fault come in its midst.
func (h *harness) strikeMove(ctx context.Context, f Fault) {
	var c cast
	why, ok := h.watcher.await(ctx, castTime, func() (string, bool) {
		var err error
		if c, err = h.cast(&f); err != nil {
			return err.Error(), false
		}
		return "", true
	})
	if !ok {
		h.line.printf("fault: %s: %s", f, why)
		return
	}
	u := &underWay{harness: h, Fault: f, cast: c}
	if u.Moving.Phase == Marking {
		u.hold(holdData, c.sender, c.giver)
	}
	defer u.release()
	u.call(ctx, c.giver, "slow", slowArgs{u.Moving.Slow, slowMost})
	cli.Pause(ctx, fillTime)
	defer u.after(ctx)
	if !u.begin(ctx) {
		return
	}
	if got := u.reach(ctx); got.phase() != u.Moving.Phase {
		h.line.printf("fault: %s: the move is %s: left out", f, got.phase())
		return
	}
	u.strike(ctx)
}

// call makes a call to the process of a slot, within a bound.
func (u *underWay) call(ctx context.Context, slot int, op string, args any) bool {
	l := u.slots[slot].current()
	if l == nil {
		return false
	}
	err := l.child.CallWithin(ctx, orderTime, op, args, nil)
	if err != nil {
		u.line.notef("%s: %s: %v", name(slot), op, err)
	}
	return err == nil
}

// hold keeps connections of a kind from carrying anything on one way, so that a move stays in its phase.
func (u *underWay) hold(k Kind, from, to int) {
	hit := &struck{Fault{Kind: k, Victims: 2}, []int{from, to}}
	u.mu.Lock()
	p := &u.rounds[len(u.rounds)-1]
	p.faults = append(p.faults, *hit)
	u.mu.Unlock()
	u.inNet(hit, true)
	u.held = append(u.held, hit)
	u.line.notef("%s: %s to %s", k, name(from), name(to))
}

// release ends all holds.
func (u *underWay) release() {
	for _, hit := range u.held {
		u.inNet(hit, false)
	}
	u.held = nil
}

// begin begins the move and waits until it has begun; then the taker is known, and of a drain or a leave the shard.
func (u *underWay) begin(ctx context.Context) bool {
	u.since = u.clock.Now()
	switch u.Moving.Way {
	case ByDrain:
		u.call(ctx, u.giver, "drain", cli.None{})
	case ByLeave:
		u.mu.Lock()
		p := &u.rounds[len(u.rounds)-1]
		p.faults = append(p.faults, struck{Fault{Kind: Leave, Victims: 1}, []int{u.giver}})
		u.mu.Unlock()
		u.slots[u.giver].setRest(u.Rest)
		u.call(ctx, u.giver, "leave", leaveArgs{u.Moving.Slow})
	}
	wanted := u.Moving.Way != ByHand
	for until := u.since + beginTime; u.clock.Now() < until && ctx.Err() == nil; cli.Pause(ctx, lookEvery) {
		if !wanted {
			if wanted = u.call(ctx, u.giver, "move", moveArgs{u.shard, u.seeds[u.taker]}); !wanted {
				cli.Pause(ctx, watchEvery) // the shard may be moving for balance
			}
			continue
		}
		for _, n := range u.book.moves(u.since) {
			if n.kind == stopCall || n.typ != 0 || u.slotAt(n.from) != u.giver || !u.fits(&n) {
				continue
			}
			u.shard, u.taker = n.shard, u.slotAt(n.to)
			u.line.notef("fault: shard %d moves from %s to %s, led by %s", u.shard, name(u.giver), name(u.taker),
				name(u.coordinator))
			return true
		}
	}
	u.line.printf("fault: %s: the move did not begin", u.Fault)
	return false
}

// fits reports whether a move that has begun is one that the fault may come into: its participants are three.
func (u *underWay) fits(n *moveNote) bool {
	if u.Moving.Way == ByHand {
		return n.shard == u.shard
	}
	to := u.slotAt(n.to)
	return to >= 0 && to != u.coordinator && u.book.busy(u.slots[u.giver].current(), n.shard)
}

// reach waits until the move is in the phase, or beyond, and holds it there.
func (u *underWay) reach(ctx context.Context) (c moveTracker) {
	for until := u.clock.Now() + reachTime; u.clock.Now() < until && ctx.Err() == nil; cli.Pause(ctx, lookEvery) {
		c = follow(u.book.moves(u.since), 0, u.shard, u.since)
		at := c.phase()
		if at == u.Moving.Phase || slices.Index(phases, at) > slices.Index(phases, u.Moving.Phase) || at == overPhase {
			return c
		}
		if len(u.held) > 0 || at != WorkingOff || u.clock.Now() < c.marked+drainTime*3/4 {
			continue
		}
		if u.Moving.Phase == HandingOver {
			u.hold(holdControl, u.giver, u.taker)
		} else {
			u.hold(holdControl, u.coordinator, u.taker)
		}
	}
	return c
}

// strike lets the fault come, looks whether the move was in its phase then, and ends the fault.
func (u *underWay) strike(ctx context.Context) {
	victim := map[Role]int{Giver: u.giver, Taker: u.taker, Coordinator: u.coordinator}[u.First]
	f := u.Fault
	f.Kind = u.Moving.Blow
	hit := &struck{f, []int{victim}}
	u.mu.Lock()
	p := &u.rounds[len(u.rounds)-1]
	p.faults = append(p.faults, *hit)
	p.came++
	u.mu.Unlock()
	u.line.printf("fault: %s: %s", u.Fault, name(victim))
	over := u.lay(hit)
	at := u.clock.Now()
	cli.Pause(ctx, holdAfter) // what was before has been reported by then
	then := follow(slices.DeleteFunc(u.book.moves(u.since), func(n moveNote) bool { return n.at > at }), 0, u.shard,
		u.since)
	u.release()
	cli.Pause(ctx, u.For-holdAfter)
	over()
	u.line.printf("fault over: %s", f.Kind)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.found.moves = append(u.found.moves, moved{u.cell(), u.shard, u.since, then.phase()})
}

// lay lets one fault come; over ends it.
func (h *harness) lay(hit *struck) (over func()) {
	s := hit.who[0]
	l := h.slots[s].current()
	switch {
	case hit.Kind == Cut || hit.Kind == Reset:
		h.inNet(hit, true)
		return func() { h.inNet(hit, false) }
	case l == nil:
	case hit.Kind == Kill:
		h.slots[s].setRest(hit.Rest)
		l.signal(syscall.SIGKILL)
	case hit.Kind == Pause:
		l.signal(syscall.SIGSTOP)
		over := h.book.pausedFrom(l.sender, h.clock.Now())
		return func() {
			over(h.clock.Now())
			l.signal(syscall.SIGCONT)
		}
	default:
		panic(fmt.Sprintf("no fault of a move: %s", hit.Kind))
	}
	return func() {}
}

// after makes the giver what it was.
func (u *underWay) after(ctx context.Context) {
	if u.Moving.Way != ByLeave {
		u.call(ctx, u.giver, "slow", slowArgs{})
	}
	if u.Moving.Way == ByDrain {
		u.call(ctx, u.giver, "undrain", cli.None{})
	}
}
