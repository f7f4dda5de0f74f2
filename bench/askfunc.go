// Asks by callback: a sender keeps a number of them under way without a goroutine for each.

package bench

import (
	"context"
	"sync"
	"time"
)

// callbacks is one sender's asks by callback. Each of its lanes has one ask under way; free holds those that have none.
type callbacks struct {
	*loadRun
	payload []byte
	free    chan *lane

	mu           sync.Mutex
	sent, failed uint64
	first        error
	latency      *Latency
}

// lane is room for one ask. Its callback is made once, so that an ask allocates nothing here.
type lane struct {
	at   time.Time
	done func(reply []byte, err error)
}

func (r *loadRun) askFunc(ctx context.Context, sender int) {
	c := &callbacks{loadRun: r, payload: make([]byte, r.Size), free: make(chan *lane, r.Inflight), latency: NewLatency()}
	c.payload[0] = opAsk
	for range r.Inflight {
		x := &lane{}
		x.done = func(_ []byte, err error) {
			c.note(x, err)
			c.free <- x // has room for every lane
		}
		c.free <- x
	}
	i := r.start(sender)
	for !r.stop.Load() {
		x := <-c.free
		var ok bool
		if x.at, ok = r.due(ctx); !ok {
			c.free <- x
			break
		}
		if err := r.region.AskFunc(r.Timeout, r.ids[i], c.payload, x.done); err != nil {
			c.note(x, err)
			c.free <- x
		}
		if i++; i == len(r.ids) {
			i = 0
		}
	}
	for range r.Inflight { // every ask ends, by its answer or its time limit
		<-c.free
	}
	r.add(c.sent, c.failed, c.first, c.latency)
}

func (c *callbacks) note(x *lane, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.failed++; c.first == nil {
			c.first = err
		}
		return
	}
	c.latency.Record(time.Since(x.at))
	c.sent++
}
