// Workers: goroutines that run the handlers of Worker types, each those of its own shards.

package exec

import (
	"time"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// worker runs the handlers of the shards of Worker types that are its own, without locks.
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
			w.x.Gate.look()
			rest = w.ahead.look(rest)
			b.at = place{chunk: i, end: len(c.buf) - len(rest)}
			if frames%stallStep < w.ahead.n {
				w.count.enter(w.x)
			}
			frames += w.ahead.n
			w.frames(now, c.from, times)
			if w.queue.hurry.Load() {
				w.x.Gate.goOn(nil)
				w.skim(now, b)
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
func (w *worker) frame(now time.Duration, from *Source, x *prefetched) {
	if x.kind != wire.KindEnvelope || x.bad != nil {
		w.other(from, x)
		return
	}
	w.x.arrive(now, &w.ahead.cache, nil, from, x, nil)
}

// other notes a frame that a peer sent and that made no sense.
func (w *worker) other(from *Source, x *prefetched) {
	if x.kind == skimmed {
		return
	}
	var id peer.ID
	if from != nil { // nil cannot be: this node has made it
		id = from.ID
	}
	w.x.needs.InvalidFrames(id, x.kind, x.bad)
}

// skim gives the hosts at their deadline what waits for them here, and their orders.
func (w *worker) skim(now time.Duration, b *batch) {
	w.queue.skim(w.x, &w.ahead.cache, b,
		func(from *Source, x *prefetched) { w.x.arrive(now, &w.ahead.cache, nil, from, x, nil) },
		func(t hostTask) { t.h.obey(now, t.o) })
}

// A shard at the deadline of its move stands in the queue of its worker or loop behind what waits for others, as much
// as they have credit for. It is taken out of its turn then, and the others go on.

// skimmed is the kind of a frame that was taken out of its turn. It comes from no peer: loops stage envelopes alone.
const skimmed wire.Kind = 0xff

// skim gives the hosts at their deadline all that waits for them in the queue, to take, and their orders, to
// obey: nothing is handled of it, it is handed over. b is the batch that the queue's goroutine is at; of its chunk in
// hand all up to its place was begun.
func (q *execQueue) skim(x *Exec, cache *typeCache, b *batch, take func(from *Source, f *prefetched),
	obey func(hostTask)) {
	q.hurry.Store(false)
	q.mu.Lock()
	hosts := map[*Host]bool{}
	for _, list := range [...][]hostTask{b.orders, q.in.orders} {
		for _, t := range list {
			if t.o == orderCut {
				hosts[t.h] = true
			}
		}
	}
	if len(hosts) == 0 {
		q.mu.Unlock()
		return // they were obeyed in their turn
	}
	var runs []chunk
	for i := b.at.chunk; i < len(b.chunks); i++ {
		c := b.chunks[i]
		if i == b.at.chunk {
			c.buf = c.buf[b.at.end:]
		}
		runs = append(runs, c)
	}
	runs = append(runs, q.in.chunks...) // what comes behind these is of no sender with a marker there
	var orders []hostTask
	b.orders = skimOrders(b.orders, hosts, &orders)
	q.in.orders = skimOrders(q.in.orders, hosts, &orders)
	q.mu.Unlock()
	for _, c := range runs {
		skimFrames(hosts, c, x, cache, take)
	}
	for _, t := range orders {
		obey(t)
	}
}

// skimFrames takes the frames of hosts out of whole frames of one origin.
func skimFrames(hosts map[*Host]bool, c chunk, x *Exec, cache *typeCache,
	take func(from *Source, f *prefetched)) {
	for frames := c.buf; len(frames) > 0; {
		n := wire.SizeOf(frames)
		f := prefetched{frame: frames[:n:n], kind: wire.KindOf(frames)}
		frames = frames[n:]
		if f.kind != wire.KindEnvelope || wire.ParseEnvelope(f.frame, &f.env) != nil {
			continue
		}
		if h, _ := x.hostOf(cache, &f.env); h != nil && hosts[h] {
			take(c.from, &f)
			f.frame[4] = byte(skimmed)
		}
	}
}

// skimOrders takes the orders for hosts out of a list.
func skimOrders(list []hostTask, hosts map[*Host]bool, taken *[]hostTask) []hostTask {
	kept := list[:0]
	for _, t := range list {
		if hosts[t.h] {
			*taken = append(*taken, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(list[len(kept):])
	return kept
}
