// Virtual: goroutines and clocks of code that runs in a simulated process.

// Package virtual is what code of a library stands on that runs in a process of a simulated cluster: coroutines and
// virtual time in place of goroutines and clocks.
package virtual

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// Ground is a ground.Ground on a process. As the simulator, it is for one goroutine.
type Ground struct {
	p        *world.Process
	rand     *rand.Rand
	bells    map[<-chan struct{}][]*waiter
	watched  []*waiter // with contexts that may end
	sweeping bool
}

// On returns the ground of a process, which draws from rng.
func On(p *world.Process, rng *rand.Rand) *Ground {
	return &Ground{p: p, rand: rng, bells: map[<-chan struct{}][]*waiter{}}
}

// Process returns it.
func (g *Ground) Process() *world.Process { return g.p }

func (g *Ground) guest() world.Guest { return world.Guest{Process: g.p} }

// waiter is a coroutine that waits.
type waiter struct {
	ctx  context.Context
	wake func()
}

// Timed is a context that ends with its parent, and by virtual time.
type Timed struct {
	context.Context
	World *world.World
	At    time.Duration
}

// Err implements context.Context.
func (c *Timed) Err() error {
	if err := c.Context.Err(); err != nil || c.World.Now < c.At {
		return err
	}
	return context.DeadlineExceeded
}

// Deadline implements context.Context.
func (c *Timed) Deadline() (time.Time, bool) { return Steady(c.At), true }

// Steady is a virtual time by a clock that nobody sets.
func Steady(at time.Duration) time.Time { return time.UnixMilli(world.WallBase).UTC().Add(at) }

// Now implements ground.Ground.
func (g *Ground) Now() time.Time { return Steady(g.p.World.Now) }

// Wall implements ground.Ground.
func (g *Ground) Wall() time.Time { return g.guest().Wall() }

// Begin implements ground.Ground.
func (g *Ground) Begin(f func()) { g.guest().Begin(f) }

// Fill implements ground.Ground.
func (g *Ground) Fill(b []byte) {
	for i := range b {
		b[i] = byte(g.rand.Uint32())
	}
}

// Chance implements ground.Ground.
func (g *Ground) Chance(most int64) int64 { return g.rand.Int64N(most) }

// Within implements ground.Ground.
func (g *Ground) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	at := g.p.World.Now + d
	if c, ok := ctx.(*Timed); ok {
		ctx, at = c.Context, min(at, c.At)
	}
	return &Timed{ctx, g.p.World, at}, func() {}
}

// Wait implements ground.Ground.
func (g *Ground) Wait(ctx context.Context, d time.Duration, bell <-chan struct{}) bool {
	for until := g.p.World.Now + d; ; {
		select {
		case <-bell:
			return true
		default:
		}
		now, left := g.p.World.Now, ground.Forever
		if d >= 0 {
			left = until - now
		}
		if ctx.Err() != nil || d >= 0 && left <= 0 {
			return false
		}
		if c, ok := ctx.(*Timed); ok && (left < 0 || c.At-now < left) {
			left = c.At - now
		}
		g.rest(ctx, left, bell)
	}
}

// rest puts the coroutine aside until there may be something to wait for no more.
func (g *Ground) rest(ctx context.Context, d time.Duration, bell <-chan struct{}) {
	if !g.guest().Rests() {
		panic("virtual: what only coroutines may do is done by somebody else")
	}
	x := &waiter{ctx: ctx}
	if bell != nil {
		g.bells[bell] = append(g.bells[bell], x)
		defer g.leaves(bell, x)
	}
	if ctx.Done() != nil {
		g.watched = append(g.watched, x)
		g.sweeps()
		defer func() { g.watched = without(g.watched, x) }()
	}
	g.guest().Rest(d, func(wake func()) { x.wake = wake })
}

func without(list []*waiter, x *waiter) []*waiter {
	return slices.DeleteFunc(list, func(o *waiter) bool { return o == x })
}

// leaves forgets a waiter for a bell.
func (g *Ground) leaves(bell <-chan struct{}, x *waiter) {
	if g.bells[bell] = without(g.bells[bell], x); len(g.bells[bell]) == 0 {
		delete(g.bells, bell)
	}
}

// sweeps looks for contexts that have ended, as long as somebody waits.
func (g *Ground) sweeps() {
	if g.sweeping {
		return
	}
	g.sweeping = true
	g.p.Later(sweep, func() {
		g.sweeping = false
		for _, x := range g.watched {
			if x.ctx.Err() != nil {
				x.wake()
			}
		}
		if len(g.watched) > 0 {
			g.sweeps()
		}
	})
}

// Ring implements ground.Ground.
func (g *Ground) Ring(bell chan struct{}) {
	ground.Real{}.Ring(bell)
	g.wakes(bell)
}

// Close implements ground.Ground.
func (g *Ground) Close(bell chan struct{}) {
	close(bell)
	g.wakes(bell)
}

// wakes lets the waiters for a bell look.
func (g *Ground) wakes(bell <-chan struct{}) {
	for _, x := range g.bells[bell] {
		x.wake()
	}
}

// Ask asks an entity of a type and waits: a coroutine is put aside, a test lets time pass. region may fail.
func (g *Ground) Ask(ctx context.Context, region func() (*world.Region, error), headers []byte, id string,
	body []byte) (reply []byte, err error) {
	d := patience
	if at, ok := ctx.(*Timed); ok {
		d = max(at.At-g.p.World.Now, 0)
	}
	if ctx.Err() != nil {
		return nil, route.NotRun(context.Cause(ctx))
	}
	r, err := region()
	if err != nil {
		return nil, err
	}
	over, bell := false, make(chan struct{}, 1)
	giveUp, failed := r.AskWith(headers, d, id, body, func(b []byte, e error) {
		reply, err, over = b, e, true
		g.Ring(bell)
	})
	if failed != nil {
		return nil, failed
	}
	const behind = time.Second // an ask ends by its own time before
	if g.guest().Rests() {
		g.Wait(ctx, d+behind, bell)
	} else {
		g.p.World.Until(d+behind, func() bool { return over || !g.p.Alive })
	}
	if !over {
		giveUp()
		return nil, route.Ran(fmt.Errorf("%w: node %d", route.ErrTimeout, g.p.Index))
	}
	return reply, err
}

// RegionOf returns the type on a process, or why it has none.
func RegionOf(p *world.Process, typ string) (*world.Region, error) {
	if !p.Alive {
		return nil, route.NotRun(fmt.Errorf("%w: the process has ended", route.ErrNotRegistered))
	}
	r := p.Region(route.TypeOf(typ))
	if r == nil {
		return nil, route.NotRun(fmt.Errorf("%w: %s", route.ErrNotRegistered, typ))
	}
	return r, nil
}
