// Nodes: what the code of durable entities stands on in a simulated process: its coroutines and virtual time.

package durabletest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kith-io/kith/internal/base/ground"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/route"
)

const (
	patience = 2 * time.Minute       // of asks without a time of their own
	sweep    = 20 * time.Millisecond // how soon a wait ends after its context
)

// node is a ground.Node.
type node struct {
	kit      *Kit
	p        *world.Process
	kept     any
	bells    map[<-chan struct{}][]*waiter
	watched  []*waiter // with contexts that may end
	sweeping bool
}

func (n *node) guest() world.Guest { return world.Guest{Process: n.p} }

// waiter is a coroutine that waits.
type waiter struct {
	ctx  context.Context
	wake func()
}

// timed is a context that ends with its parent, and by virtual time.
type timed struct {
	context.Context
	w  *world.World
	at time.Duration
}

// Err implements context.Context.
func (c *timed) Err() error {
	if err := c.Context.Err(); err != nil || c.w.Now < c.at {
		return err
	}
	return context.DeadlineExceeded
}

// Deadline implements context.Context.
func (c *timed) Deadline() (time.Time, bool) { return steady(c.at), true }

// steady is a virtual time by a clock that nobody sets.
func steady(at time.Duration) time.Time { return time.UnixMilli(world.WallBase).UTC().Add(at) }

// Now implements ground.Ground.
func (n *node) Now() time.Time { return steady(n.kit.w.Now) }

// Wall implements ground.Ground.
func (n *node) Wall() time.Time { return n.guest().Wall() }

// Begin implements ground.Ground.
func (n *node) Begin(f func()) { n.guest().Begin(f) }

// Kept implements ground.Node.
func (n *node) Kept() *any { return &n.kept }

// Fill implements ground.Ground.
func (n *node) Fill(b []byte) {
	for i := range b {
		b[i] = byte(n.kit.rand.Uint32())
	}
}

// Chance implements ground.Ground.
func (n *node) Chance(most int64) int64 { return n.kit.rand.Int64N(most) }

// Within implements ground.Ground.
func (n *node) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	at := n.kit.w.Now + d
	if c, ok := ctx.(*timed); ok {
		ctx, at = c.Context, min(at, c.at)
	}
	return &timed{ctx, n.kit.w, at}, func() {}
}

// Wait implements ground.Ground.
func (n *node) Wait(ctx context.Context, d time.Duration, bell <-chan struct{}) bool {
	for until := n.kit.w.Now + d; ; {
		select {
		case <-bell:
			return true
		default:
		}
		now, left := n.kit.w.Now, ground.Forever
		if d >= 0 {
			left = until - now
		}
		if ctx.Err() != nil || d >= 0 && left <= 0 {
			return false
		}
		if c, ok := ctx.(*timed); ok && (left < 0 || c.at-now < left) {
			left = c.at - now
		}
		n.rest(ctx, left, bell)
	}
}

// rest puts the coroutine aside until there may be something to wait for no more.
func (n *node) rest(ctx context.Context, d time.Duration, bell <-chan struct{}) {
	if !n.guest().Rests() {
		panic("durabletest: what only coroutines may do is done by somebody else")
	}
	x := &waiter{ctx: ctx}
	if bell != nil {
		n.bells[bell] = append(n.bells[bell], x)
		defer n.leaves(bell, x)
	}
	if ctx.Done() != nil {
		n.watched = append(n.watched, x)
		n.sweeps()
		defer func() { n.watched = without(n.watched, x) }()
	}
	n.guest().Rest(d, func(wake func()) { x.wake = wake })
}

func without(list []*waiter, x *waiter) []*waiter {
	return slices.DeleteFunc(list, func(o *waiter) bool { return o == x })
}

// leaves forgets a waiter for a bell.
func (n *node) leaves(bell <-chan struct{}, x *waiter) {
	if n.bells[bell] = without(n.bells[bell], x); len(n.bells[bell]) == 0 {
		delete(n.bells, bell)
	}
}

// sweeps looks for contexts that have ended, as long as somebody waits.
func (n *node) sweeps() {
	if n.sweeping {
		return
	}
	n.sweeping = true
	n.p.Later(sweep, func() {
		n.sweeping = false
		for _, x := range n.watched {
			if x.ctx.Err() != nil {
				x.wake()
			}
		}
		if len(n.watched) > 0 {
			n.sweeps()
		}
	})
}

// Ring implements ground.Ground.
func (n *node) Ring(bell chan struct{}) {
	ground.Real{}.Ring(bell)
	n.wakes(bell)
}

// Close implements ground.Ground.
func (n *node) Close(bell chan struct{}) {
	close(bell)
	n.wakes(bell)
}

// wakes lets the waiters for a bell look.
func (n *node) wakes(bell <-chan struct{}) {
	for _, x := range n.bells[bell] {
		x.wake()
	}
}

// Line implements ground.Node.
func (n *node) Line(typ string) ground.Line { return &line{n, typ} }

// line is a ground.Line.
type line struct {
	n   *node
	typ string
}

// region returns that of the type.
func (l *line) region() (*world.Region, error) {
	if !l.n.p.Alive {
		return nil, route.NotRun(fmt.Errorf("%w: the process has ended", route.ErrNotRegistered))
	}
	r := l.n.p.Region(route.TypeOf(l.typ))
	if r == nil {
		return nil, route.NotRun(fmt.Errorf("%w: %s", route.ErrNotRegistered, l.typ))
	}
	return r, nil
}

// AskFunc implements ground.Line.
func (l *line) AskFunc(headers []byte, d time.Duration, id string, body []byte, done func([]byte, error)) error {
	_, err := l.ask(headers, d, id, body, done)
	return err
}

func (l *line) ask(headers []byte, d time.Duration, id string, body []byte, done func([]byte, error)) (func(), error) {
	r, err := l.region()
	if err != nil {
		return nil, err
	}
	return r.AskWith(headers, d, id, body, done)
}

// Tell implements ground.Line.
func (l *line) Tell(id string, body []byte) error {
	r, err := l.region()
	if err != nil {
		return err
	}
	_, err = r.Send(id, body, 0)
	return err
}

// Ask implements ground.Line: a coroutine is put aside, a test lets time pass.
func (l *line) Ask(ctx context.Context, headers []byte, id string, body []byte) (reply []byte, err error) {
	n, d := l.n, patience
	if at, ok := ctx.(*timed); ok {
		d = max(at.at-n.kit.w.Now, 0)
	}
	if ctx.Err() != nil {
		return nil, route.NotRun(context.Cause(ctx))
	}
	over, bell := false, make(chan struct{}, 1)
	giveUp, failed := l.ask(headers, d, id, body, func(b []byte, e error) {
		reply, err, over = b, e, true
		n.Ring(bell)
	})
	if failed != nil {
		return nil, failed
	}
	const behind = time.Second // an ask ends by its own time before
	if n.guest().Rests() {
		n.Wait(ctx, d+behind, bell)
	} else {
		n.kit.w.Until(d+behind, func() bool { return over || !n.p.Alive })
	}
	if !over {
		giveUp()
		return nil, route.Ran(fmt.Errorf("%w: node %d", route.ErrTimeout, n.p.Index))
	}
	return reply, err
}
