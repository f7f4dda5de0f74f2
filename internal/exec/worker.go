// Workers: goroutines that run the handlers of Worker types, each those of its own shards.

package exec

import (
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// worker runs the handlers of Worker types whose shards are its own, without locks.
type worker struct {
	x     *Exec
	queue execQueue
	bell  chan struct{} // capacity 1
	stop  chan struct{}
	ended chan struct{} // closed when run has returned
	count execCounters
	ahead ahead
	timed Sampler
}

func newWorker(x *Exec) *worker {
	w := &worker{x: x, bell: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	w.queue.init(x.cfg.LocalBuffer, func() bool {
		select {
		case w.bell <- struct{}{}:
		default:
		}
		return true
	})
	w.ahead.x, w.ahead.queue, w.queue.callFrame = x, &w.queue, &w.ahead.callFrame
	return w
}

// run is the worker's goroutine.
func (w *worker) run() {
	defer close(w.ended)
	for {
		over := false
		select {
		case <-w.bell:
		case <-w.stop:
			over = true
		}
		for b := w.queue.take(); b != nil; b = w.queue.take() {
			w.work(b)
		}
		if over {
			return
		}
	}
}

func (w *worker) work(b *batch) {
	now := w.x.Clock.Now()
	if w.x.Gate.Held(now) {
		w.x.Gate.wait(nil)
		now = w.x.Clock.Now()
	}
	frames, times := 0, timed(w.x)
	w.count.enter(w.x)
	for i := range b.chunks {
		c := &b.chunks[i]
		for rest := c.buf; len(rest) > 0; {
			w.ahead.at = 0
			rest = w.ahead.look(rest)
			b.at = place{i, len(c.buf) - len(rest)}
			if frames%stallStep < w.ahead.n {
				w.count.enter(w.x)
			}
			frames += w.ahead.n
			w.frames(now, c.from, times)
			if w.queue.hurry.Load() {
				w.skim(now, b, i, rest)
			}
		}
		if c.conn != nil {
			c.conn.Consumed(len(c.buf))
		}
	}
	for _, t := range b.orders {
		w.x.Gate.goOn(nil)
		t.h.obey(now, t.o)
	}
	w.count.leave()
	w.count.handled.Add(uint64(frames))
}

// frames works off what was looked at.
func (w *worker) frames(now time.Duration, from *Source, times bool) {
	a := &w.ahead
	for at := 0; at < a.n; at++ {
		end := a.n
		if times {
			end = min(end, at+w.timed.room())
		}
		to := a.run(now, from, at, end)
		w.timed.pass(to - at)
		a.at = min(to+1, a.n)
		if at = to; at == a.n {
			return
		}
		w.x.Gate.goOn(nil)
		if times {
			w.timeFrame(now, from, &a.next[at])
		} else {
			w.frame(now, from, &a.next[at])
		}
	}
}

// frame works off one.
func (w *worker) frame(now time.Duration, from *Source, x *foreseen) {
	if x.kind != wire.KindEnvelope || x.bad != nil {
		w.other(from, x)
		return
	}
	w.x.arrive(now, &w.ahead.cache, nil, from, x, nil)
}

// other notes a frame that a peer sent and that made no sense.
func (w *worker) other(from *Source, x *foreseen) {
	if x.kind == skimmed {
		return
	}
	var id peer.ID
	if from != nil { // nil cannot be: this node has made it
		id = from.ID
	}
	w.x.needs.InvalidFrames(id, x.kind, x.bad)
}
