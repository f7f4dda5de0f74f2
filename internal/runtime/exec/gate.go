// The gate: while the node is suspended no handler is called and nothing is consumed (MEM-10).
//
// Three things close it. The node orders it, on its control goroutine. And a time that has passed does, which the data
// plane compares once for each batch: the control goroutine's last step is too old, or the node's session lease has run
// out. After a sleep loops, workers and the goroutines of entities may run before the control goroutine does, and must
// not handle what waits on the word of a node that slept. None of them costs the fast path a write: the bits change
// with the suspension, the time with the steps of the control goroutine. Where there are session leases or tenures the
// time is compared within a batch too, see look.
//
// Loops keep what they read, up to a bound, and do not give its credit back; workers and the goroutines of entities
// wait at the gate. The ticker lets all of them go on.

package exec

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
)

// Gate stands where handlers are called. bits are read for every batch or message, hence a line of their own. Methods
// are safe for concurrent use, but Step and Lease, which are the control goroutine's.
type Gate struct {
	_    [64]byte
	bits atomic.Uint32 // plane.Gate, and leased: one word, so that goOn is inlined
	_    [60]byte

	until   atomic.Int64 // the last moment at which handlers may be called, nanoseconds since the node's start
	stepped atomic.Int64 // when the control goroutine last stepped
	limit   int64        // nanoseconds that this may be old
	lease   int64        // the moment from which on the session lease or the tenure counts for nothing
	clock   *Clock
	closes  func()      // called when the gate, which was open, has been closed; may be nil
	some    atomic.Bool // somebody waits
	mu      sync.Mutex
	bell    chan struct{} // closed when the gate opens; nil while nobody waits
	resting map[*entity.Entity]struct{}
	over    bool // the node has ended: nobody waits any more, abandoned hosts take nothing
}

// leased is the bit of a node that has a session lease or a tenure.
const leased = 1 << 31

// state is what closes the gate.
func (g *Gate) state() plane.Gate { return plane.Gate(g.bits.Load() &^ leased) }

// Init sets how old the last step may be before the gate counts as closed; before anything else.
func (g *Gate) Init(limit time.Duration) {
	g.limit, g.lease = int64(limit), math.MaxInt64
	g.until.Store(g.limit)
}

// Limit returns how old the last step may be.
func (g *Gate) Limit() time.Duration { return time.Duration(g.limit) }

// Closed reports whether the gate was closed by the node, or because a gap was noticed.
func (g *Gate) Closed() bool { return g.state() != 0 }

// Held reports whether handlers may not be called at now.
func (g *Gate) Held(now time.Duration) bool {
	return g.state().Held(now, time.Duration(g.until.Load()))
}

// End closes the gate for good: what others send from here on is left as it is, unconsumed.
func (g *Gate) End() { g.bits.Or(uint32(plane.GateEnded)) }

// Step notes a step of the control goroutine. Notice comes before.
func (g *Gate) Step(now time.Duration) {
	g.stepped.Store(int64(now))
	g.until.Store(plane.OpenUntil(int64(now), g.limit, g.lease))
}

// Lease says from when on the session lease of this node, or its tenure, counts for nothing. Of a node without either
// nobody does.
func (g *Gate) Lease(ends time.Duration) {
	if g.lease != int64(ends) || g.bits.Load()&leased == 0 {
		g.bits.Or(leased)
		g.lease = int64(ends)
		g.until.Store(plane.OpenUntil(g.stepped.Load(), g.limit, g.lease))
	}
}

// StepAge returns how long before now the control goroutine last stepped.
func (g *Gate) StepAge(now time.Duration) time.Duration { return now - time.Duration(g.stepped.Load()) }

// Notice closes the gate when its time is over. It is called with the time of a step of the control goroutine, before
// its stamp is renewed, and by the ticker.
func (g *Gate) Notice(now time.Duration) {
	if n := plane.Gate(0).Noticed(now, time.Duration(g.until.Load())); n != 0 {
		g.shut(n)
	}
}

// look is asked within a batch, for each handful of its messages: where there are session leases or tenures it compares
// the time again. A process that stood still in the middle of a batch may go on with it before the ticker runs, and by
// then its end may be proven and its shards may live elsewhere.
func (g *Gate) look() {
	if g.bits.Load()&leased != 0 {
		g.compare()
	}
}

// compare looks at the clock. It is kept out of what its callers inline.
//
//go:noinline
func (g *Gate) compare() { g.Notice(g.clock.Now()) }

// shut closes the gate.
func (g *Gate) shut(why plane.Gate) {
	if was := g.bits.Or(uint32(why)); was&^leased == 0 && g.closes != nil {
		g.closes()
	}
}

// Gap closes the gate until the node has judged a gap that somebody noticed.
func (g *Gate) Gap() { g.shut(plane.GateNoticed) }

// Noticed reports whether there is a gap to be judged.
func (g *Gate) Noticed() bool { return g.state()&plane.GateNoticed != 0 }

// Order closes the gate as the node says.
func (g *Gate) Order() { g.shut(plane.GateOrdered) }

// Judge follows a verb of the node: it has seen the gap, if there was one, and says whether the gate is closed. untold:
// the node does not know yet of a sleep.
func (g *Gate) Judge(closed, untold bool) {
	is := g.bits.Load()
	if want := uint32(plane.Judged(closed, untold)) | is&leased; is != want {
		g.bits.CompareAndSwap(is, want) // else something was noticed just now, which the next step judges
	}
}

// wait returns when the gate is open, or the node has ended. e is the entity that waits on its goroutine, nil for none.
func (g *Gate) wait(e *entity.Entity) {
	for {
		g.mu.Lock()
		if g.over || !g.Held(g.clock.Now()) {
			g.mu.Unlock()
			return
		}
		if g.bell == nil {
			g.bell = make(chan struct{})
			g.resting = map[*entity.Entity]struct{}{}
			g.some.Store(true)
		}
		if e != nil {
			g.resting[e] = struct{}{}
		}
		bell := g.bell
		g.mu.Unlock()
		<-bell
	}
}

// goOn is asked between two calls into handlers: it waits while the gate is closed.
func (g *Gate) goOn(e *entity.Entity) {
	if g.bits.Load() != 0 {
		g.rest(e)
	}
}

// rest is the slow part of goOn.
func (g *Gate) rest(e *entity.Entity) {
	if g.look(); g.Closed() {
		g.wait(e)
	}
}

// Release lets everybody at the gate look again: the ticker, when the gate is open, and the end of the node (over),
// after which nobody waits any more.
func (g *Gate) Release(over bool) {
	if !over && !g.some.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = g.over || over
	if g.bell != nil {
		close(g.bell)
		g.bell, g.resting = nil, nil
		g.some.Store(false)
	}
}

// readsOn is what loops keep; they look at it for each handful of frames.
type readsOn struct {
	moving atomic.Int32 // shards that move
	kept   atomic.Int64 // bytes that loops have read and not worked off; one for a loop that is to go on with its queue
}

// now reports whether loops read on.
func (r *readsOn) now() bool { return plane.ReadsOn(int(r.moving.Load()), r.kept.Load()) }
