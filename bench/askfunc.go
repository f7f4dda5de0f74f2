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
	i    int // of the id that is asked next
	done func(reply []byte, err error)
}

// refusedPause is how long a lane rests when its ask was not accepted.
const refusedPause = time.Millisecond

func (r *loadRun) askFunc(ctx context.Context, sender int) {
	c := &callbacks{loadRun: r, payload: make([]byte, r.Size), free: make(chan *lane, r.Inflight), latency: NewLatency()}
	c.payload[0] = opAsk
	lanes := make([]*lane, r.Inflight)
	for k := range lanes {
		lanes[k] = &lane{i: (r.start(sender) + k*len(r.ids)/len(lanes)) % len(r.ids)}
	}
	if r.Rate > 0 {
		c.onSchedule(ctx, lanes)
	} else {
		c.inTurn(lanes)
	}
	for range r.Inflight { // every ask ends, by its answer or its time limit
		<-c.free
	}
	r.add(c.sent, c.failed, c.first, c.latency)
}

// onSchedule asks when the time has come, as far as a lane is free.
func (c *callbacks) onSchedule(ctx context.Context, lanes []*lane) {
	for _, x := range lanes {
		x.done = func(_ []byte, err error) {
			c.note(x, err)
			c.free <- x // has room for every lane
		}
		c.free <- x
	}
	for !c.stop.Load() {
		x := <-c.free
		var ok bool
		if x.at, ok = c.due(ctx); !ok {
			c.free <- x
			return
		}
		if err := c.ask(x); err != nil {
			c.note(x, err)
			c.free <- x
		}
	}
}

// inTurn makes each lane ask again in the callback of its answer, without a goroutine in between.
func (c *callbacks) inTurn(lanes []*lane) {
	for _, x := range lanes {
		x.done = func(_ []byte, err error) {
			c.note(x, err)
			c.again(x)
		}
	}
	for _, x := range lanes {
		c.again(x)
	}
}

func (c *callbacks) again(x *lane) {
	if c.stop.Load() {
		c.free <- x
		return
	}
	x.at = time.Now()
	if err := c.ask(x); err != nil {
		c.note(x, err)
		time.AfterFunc(refusedPause, func() { c.again(x) })
	}
}

func (c *callbacks) ask(x *lane) error {
	id := c.ids[x.i]
	if x.i++; x.i == len(c.ids) {
		x.i = 0
	}
	return c.region.AskFunc(c.Timeout, id, c.payload, x.done)
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
