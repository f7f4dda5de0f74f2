// Skim: a shard of a worker is at the deadline of its move, and what waits for it stands behind what waits for others,
// as much as they have credit for. The worker takes it out of its queue then, and goes on with the others.

package exec

import (
	"time"

	"github.com/kith-io/kith/wire"
)

// skimmed is the kind of a frame that was taken out of its turn. It comes from no peer: loops stage envelopes alone.
const skimmed wire.Kind = 0xff

// skim gives the hosts whose deadline has come all that waits for them here, and their orders: nothing is handled of it,
// it is handed over. b is the batch that the worker is at, in chunk i of which rest was not looked at yet.
func (w *worker) skim(now time.Duration, b *batch, i int, rest []byte) {
	q := &w.queue
	q.hurry.Store(false)
	w.x.Gate.goOn(nil)
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
	runs := append([]chunk{{from: b.chunks[i].from, buf: rest}}, b.chunks[i+1:]...)
	runs = append(runs, q.in.chunks...) // what comes behind these is of nobody whose marker is there
	var orders []hostTask
	b.orders = skimOrders(b.orders, hosts, &orders)
	q.in.orders = skimOrders(q.in.orders, hosts, &orders)
	q.mu.Unlock()
	for _, c := range runs {
		w.skimFrames(now, hosts, c.from, c.buf)
	}
	for _, t := range orders {
		t.h.obey(now, t.o)
	}
}

// skimFrames takes the frames of hosts out of whole frames of one origin.
func (w *worker) skimFrames(now time.Duration, hosts map[*Host]bool, from *Source, frames []byte) {
	for len(frames) > 0 {
		n := wire.SizeOf(frames)
		x := foreseen{frame: frames[:n:n], kind: wire.KindOf(frames)}
		frames = frames[n:]
		if x.kind != wire.KindEnvelope || wire.ParseEnvelope(x.frame, &x.env) != nil {
			continue
		}
		if h, _ := w.x.hostOf(&w.ahead.cache, &x.env); h != nil && hosts[h] {
			w.x.arrive(now, &w.ahead.cache, nil, from, &x, nil)
			x.frame[4] = byte(skimmed)
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
