// The end of execution: no handler is called any more, and what was accepted is reported, also what stands behind a
// handler that does not return.

package exec

import (
	"slices"
	"time"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/runtime/loop"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// Abandon marks all hosts as lost: from now on no handler is called, whatever loops and workers still find, and what
// comes is refused because the node ends.
func (x *Exec) Abandon() {
	x.ended.Store(true)
	for _, h := range x.hosts.snapshot() {
		h.lose() // before loops no longer hold back what came while this node was suspended
	}
	x.stopping.Store(true)
}

// DropAll makes all hosts drop what they hold, after Abandon.
func (x *Exec) DropAll() {
	for _, h := range x.hosts.snapshot() {
		h.give(orderAbandon)
	}
}

// StopWorkers makes the workers end when they have worked off what they hold.
func (x *Exec) StopWorkers() {
	for _, w := range x.workers {
		close(w.stop)
	}
}

// StopEntities ends the goroutines of Blocking entities and waits at most for patience for those that are busy, for
// lists of remembered entities that are being read, and for calls of Type.Hosted. It reports whether all have ended.
func (x *Exec) StopEntities(patience time.Duration) bool { return x.pool.stop(patience) }

// passEnd makes a loop work off what this node sent to it, behind everything that it has begun.
type passEnd struct {
	p    *pass
	done chan struct{}
}

// Run works it off, on the loop.
func (e passEnd) Run(l *loop.Loop) {
	e.p.Run(l)
	close(e.done)
}

// Settle reports what is left as abandoned, after DropAll and StopWorkers, and waits at most for patience for loops to
// do so. Workers, loops and Blocking entities that have not returned from a handler by then are left behind; behind is
// their number, and Settle reports for them what stands behind them here. stopped is closed when no loop is left
// behind. From here on what others send is not taken: they get no credit for it, and know it as lost. So when it
// returns all refusals have been given to Needs.Refused, but those of a loop that is left behind.
func (x *Exec) Settle(patience time.Duration) (behind int, stopped <-chan struct{}) {
	x.Gate.End()
	ends := make([]passEnd, len(x.passes))
	for i, p := range x.passes {
		ends[i] = passEnd{p, make(chan struct{})}
		if p.loop.Execute(ends[i]) != nil {
			close(ends[i].done) // the loop has not begun, or has ended
		}
	}
	over := make(chan struct{})
	timer := time.AfterFunc(patience, func() { close(over) })
	defer timer.Stop()
	stuck := make([]bool, len(x.passes))
	for i := range x.passes {
		select {
		case <-ends[i].done:
		case <-over:
			select {
			case <-ends[i].done:
			default:
				stuck[i] = true
			}
		}
	}
	x.settled.Store(true)
	for i, p := range x.passes {
		if stuck[i] {
			behind++
			x.abandonRuns(p.backlog.rest())
			x.giveUp(&p.local, &p.ahead)
		}
	}
	for _, w := range x.workers {
		select {
		case <-w.ended: // it may have been before the last pass of a loop, which gave it more
			x.giveUp(&w.queue, nil)
		default:
			behind++
			x.giveUp(&w.queue, &w.ahead)
		}
	}
	for _, h := range x.hosts.snapshot() {
		behind += h.leaveBehind()
	}
	behind += x.Attendants.Count()
	now := x.Clock.Now()
	watchStops(x, now, now) // by name, for the last TellLater
	all := make(chan struct{})
	go func() {
		defer close(all)
		for i := range ends {
			<-ends[i].done
		}
	}()
	return behind, all
}

// leaveBehind gives up what stands behind handlers of the host that do not return.
func (h *Host) leaveBehind() (behind int) {
	if h.queue != nil {
		l := &h.leftover
		l.lmu.Lock()
		left := l.left.takeRest()
		l.lmu.Unlock()
		h.x.abandonRuns(left)
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	behind = h.sh.LeaveBehind()
	h.publish()
	return behind
}

// giveUp tells what a goroutine that does not return from a handler has before it. a is the worker's, nil for a loop.
func (x *Exec) giveUp(q *execQueue, a *ahead) {
	q.mu.Lock()
	in := q.in.takeRest()
	hand := q.inHand(a)
	q.mu.Unlock()
	x.abandonRuns(hand)
	x.abandonRuns(in)
}

// abandonRuns refuses whole frames of this node itself, and leaves those of others.
func (x *Exec) abandonRuns(runs []chunk) {
	var cache typeCache
	for _, c := range runs {
		for buf := c.buf; len(buf) > 0; {
			n := wire.SizeOf(buf)
			f := buf[:n:n]
			buf = buf[n:]
			var env wire.Envelope
			if c.conn != nil {
				x.leave(&cache, c.conn, c.from, f)
			} else if wire.ParseEnvelope(f, &env) == nil {
				x.refuseNow(cache.typeOf(x, &env), nil, &env, route.Abandoned)
			}
		}
	}
}

// inHand returns the frames that a goroutine has taken and not begun because its handler does not return. What it wrote
// before it called it, its place, is not ordered against this by anything but the time that has passed; it
// writes no more while it is there. So the race detector is kept from looking. q.mu is held.
//
//go:norace
func (q *execQueue) inHand(a *ahead) (runs []chunk) {
	b := &q.out
	for i := b.at.chunk; i < len(b.chunks); i++ {
		c := b.chunks[i]
		if i == b.at.chunk {
			if a != nil {
				for n := a.at; n < a.n; n++ { // of the frames that were looked at together
					runs = append(runs, chunk{c.conn, c.from, a.next[n].frame})
				}
			}
			c.buf = c.buf[b.at.end:]
		}
		runs = append(runs, c)
	}
	return runs
}

// rest returns the frames in a batch of a loop that stands in a handler.
//
//go:norace
func (b *batch) rest() []chunk { return slices.Clone(b.chunks) }

// takeRest takes the frames out of the batch.
func (b *batch) takeRest() []chunk {
	runs := slices.Clone(b.chunks)
	for i := range b.chunks {
		b.chunks[i].buf = nil
	}
	return runs
}

// Rest takes what a shard that has stopped did not work off, in the order of each entity. Needs.Stopped has been
// called: nothing steps the shard any more, and what still comes to it is refused. states, called once, takes the
// states that its entities hand over in a move, as far as there is room; the others are reported as lost. It is taken
// once; what nobody takes DropAll reports as abandoned.
func Rest(h *Host) (left []entity.Message, states func(room int) []entity.State) {
	if h.end.rest.Swap(true) {
		return nil, func(int) []entity.State { return nil }
	}
	return entity.TakeLeft(h.sh), func(room int) []entity.State { return entity.TakeStates(h.sh, room) }
}

// askForStates asks the entities of a host for their states when they stop, or reports these as lost where the shard
// does not move. One that was not asked to stop is lost as in a crash.
func askForStates(h *Host) {
	switch {
	case h.end.why == entity.NotStopping:
	case h.end.cutAt > 0:
		entity.AskForState(h.sh, h.end.room)
	default:
		entity.LoseStates(h.sh)
	}
}
