// The gate: while the node is suspended no handler is called, nothing is consumed, and no local send is taken (MEM-10).
//
// Two things close it. The node orders it, on the control goroutine. And the age of the control goroutine's last step
// does, which the data plane compares once for each batch: after a sleep loops, workers and the goroutines of entities
// may run before the control goroutine does, and must not handle what waits on the word of a node that slept. Neither
// costs the fast path a write: the bits change with the suspension, the stamp with the steps of the control goroutine.
//
// Loops keep what they read, up to a bound, and do not give its credit back; workers and the goroutines of entities
// wait at the gate. The ticker lets all of them go on.

package driver

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/node"
	"github.com/kith-io/kith/internal/plane"
	"github.com/kith-io/kith/route"
)

const (
	gateOrdered = uint32(plane.GateOrdered)
	gateNoticed = uint32(plane.GateNoticed)

	reportRunningAfter = time.Second // how long handlers have to return before they are reported
	reportRunningMost  = 16
)

// gate stands where handlers are called. bits and limit are read for every batch or message, hence a line of their own.
type gate struct {
	_     [64]byte
	bits  atomic.Uint32 // plane.Gate
	limit int64         // nanoseconds that the last step may be old
	_     [48]byte

	some    atomic.Bool // somebody waits
	mu      sync.Mutex
	bell    chan struct{} // closed when the gate opens; nil while nobody waits
	resting map[*entity.Entity]struct{}
	over    bool // the node has ended: nobody waits any more, abandoned hosts take nothing
}

// held reports whether handlers may not be called at now.
func (d *Driver) held(now time.Duration) bool {
	return plane.Gate(d.gate.bits.Load()).Held(now-time.Duration(d.lastStep.Load()), time.Duration(d.gate.limit))
}

// notice is called with the time of a step of the control goroutine, before its stamp is renewed, and by the ticker.
func (d *Driver) notice(now time.Duration) {
	age := now - time.Duration(d.lastStep.Load())
	if g := plane.Gate(0).Noticed(age, time.Duration(d.gate.limit)); g != 0 {
		d.gate.bits.Or(uint32(g))
	}
}

// suspend carries out the node's order to stop.
func (d *Driver) suspend(o *node.Suspend) {
	if o == nil {
		return
	}
	c := &d.control
	if !o.On {
		d.log.Info("handling messages again", "node", d.self, "why", o.Why, "suspended", d.now()-c.suspendedAt)
		c.reportAt = 0
		return
	}
	d.gate.bits.Or(gateOrdered)
	c.suspendedAt = d.now()
	c.reportAt = c.suspendedAt + reportRunningAfter
	d.log.Warn("suspended: no message is handled until others confirm this node", "node", d.self, "why", o.Why)
}

// judge follows a verb of the node: it has seen the gap, if there was one, and says whether the gate is closed. It
// comes last in a step, when shards that are not ours any more have been abandoned.
func (d *Driver) judge() {
	is := d.gate.bits.Load()
	want := uint32(plane.Judged(d.control.node.Suspended(), d.sleeps.steps.Load() != 0))
	if is != want {
		d.gate.bits.CompareAndSwap(is, want) // else something was noticed just now, which the next step judges
	}
}

// wait returns when the gate is open, or the node has ended. e is the entity whose goroutine waits, nil for none.
func (d *Driver) wait(e *entity.Entity) {
	g := &d.gate
	for {
		g.mu.Lock()
		if g.over || !d.held(d.now()) {
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
func (d *Driver) goOn(e *entity.Entity) {
	if d.gate.bits.Load() != 0 {
		d.wait(e)
	}
}

// release lets everybody at the gate look again. The ticker calls it when the gate is open.
func (g *gate) release(over bool) {
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

// tickGate is the ticker's part: it notices a gap, and has what waited go on when the gate is open.
func (d *Driver) tickGate(now time.Duration) (open bool) {
	d.notice(now)
	if d.held(now) {
		return false
	}
	d.gate.release(false)
	for _, p := range d.passes {
		if p.waits.Load() && p.waits.CompareAndSwap(true, false) && p.loop.Execute(p) != nil {
			p.waits.Store(true)
		}
	}
	return true
}

// reportRunning tells of handlers that were running when the node suspended itself and have not returned: nothing can
// stop them but themselves (Context.Suspended). Control goroutine.
func (d *Driver) reportRunning() {
	c := &d.control
	took := d.now() - c.suspendedAt
	c.reportAt = 0
	found := 0
	for _, h := range d.hosts.snapshot() {
		if h.r.typ.Mode != entity.Blocking {
			continue
		}
		var ids []string
		h.mu.Lock()
		d.gate.mu.Lock()
		for e := range h.sh.Running {
			if _, rests := d.gate.resting[e]; !rests && found < reportRunningMost {
				ids = append(ids, e.ID())
				found++
			}
		}
		d.gate.mu.Unlock()
		h.mu.Unlock()
		for _, id := range ids {
			d.report(h.r, entity.Incident{Type: h.r.typ.Name, ID: id, Shard: h.shard, Kind: entity.Overrun, Took: took})
		}
	}
}

// suspended is the error of a local send while the gate is closed.
func (r *Region) suspended() error {
	if why := plane.Closed(r.d.stopping.Load()); why != route.Stopped {
		return why.Err()
	}
	return r.d.ended()
}
