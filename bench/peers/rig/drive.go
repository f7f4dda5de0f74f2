// Drive: the loads of a peer that can tell and ask, one message at a time.

package rig

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith/bench"
)

// takeAtOnce is how many messages' room a sending goroutine takes from the window in one go.
const takeAtOnce = 16

// Client is one variant of a peer, seen from the sender.
type Client struct {
	// Tell hands one message for an entity to the peer. lane is the sending goroutine, 0 to Senders-1.
	Tell func(lane, entity int, payload []byte) error
	// Flush follows the last Tell of a lane; nil when there is nothing to flush.
	Flush func(lane int) error
	// Ask sends one message to an entity and waits for the answer. caller is 0 to Inflight-1.
	Ask func(caller, entity int, payload []byte) error
	// AskLimit bounds the callers; 0 when any number can ask.
	AskLimit int
}

// Load implements Sender.
func (c Client) Load(ctx context.Context, l Load) (Result, error) {
	switch {
	case l.Work == Tell && c.Tell != nil:
		return c.tell(ctx, l), nil
	case l.Work == Ask && c.Ask != nil && (c.AskLimit == 0 || l.Inflight <= c.AskLimit):
		return c.ask(ctx, l), nil
	}
	return Result{}, fmt.Errorf("this peer's variant %q has no load %q with %d in flight", l.Variant, l.Work, l.Inflight)
}

// Variants is a Sender that finds the client of a load by its variant.
type Variants map[string]Client

// Load implements Sender.
func (v Variants) Load(ctx context.Context, l Load) (Result, error) {
	c, ok := v[l.Variant]
	if !ok {
		return Result{}, fmt.Errorf("no variant %q", l.Variant)
	}
	return c.Load(ctx, l)
}

// sum gathers what goroutines did.
type sum struct {
	mu      sync.Mutex
	r       Result
	latency *bench.Latency
}

func (s *sum) add(sent, failed uint64, first error, l *bench.Latency) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.r.Sent += sent
	s.r.Failed += failed
	if s.r.FirstErr == "" && first != nil {
		s.r.FirstErr = first.Error()
	}
	if l == nil {
		return
	}
	if s.latency == nil {
		s.latency = l
	} else {
		s.latency.Merge(l)
	}
}

// result is what was gathered.
func (s *sum) result() Result {
	if s.latency != nil && s.latency.Count() > 0 {
		s.r.P50 = bench.Micros(s.latency.Quantile(50))
		s.r.P99 = bench.Micros(s.latency.Quantile(99))
	}
	return s.r
}

// until returns a flag that is set when the load's time is over or its context ends.
func until(ctx context.Context, l Load, then func()) (over *atomic.Bool, stop func()) {
	over = &atomic.Bool{}
	ctx, cancel := context.WithTimeout(ctx, l.Duration())
	context.AfterFunc(ctx, func() {
		over.Store(true)
		if then != nil {
			then()
		}
	})
	return over, cancel
}

func (c Client) tell(ctx context.Context, l Load) Result {
	w, _ := ctx.Value(windowKey{}).(*window)
	var wake func()
	if w != nil {
		wake = w.wake
	}
	over, stop := until(ctx, l, wake)
	defer stop()
	var s sum
	var wg sync.WaitGroup
	for lane := range Senders {
		wg.Go(func() { s.add(c.tellLane(lane, l.Size, w, over)) })
	}
	wg.Wait()
	return s.result()
}

func (c Client) tellLane(lane, size int, w *window, over *atomic.Bool) (sent, failed uint64, first error, _ *bench.Latency) {
	payload := make([]byte, size)
	for i := lane * 7919 % Entities; !over.Load(); {
		if w != nil && !w.take(takeAtOnce, over) {
			break
		}
		for range takeAtOnce {
			if err := c.Tell(lane, i, payload); err == nil {
				sent++
			} else if failed++; first == nil {
				first = err
			}
			if i++; i == Entities {
				i = 0
			}
		}
	}
	if c.Flush != nil {
		if err := c.Flush(lane); err != nil && first == nil {
			failed, first = failed+1, err
		}
	}
	return sent, failed, first, nil
}

func (c Client) ask(ctx context.Context, l Load) Result {
	over, stop := until(ctx, l, nil)
	defer stop()
	var s sum
	var wg sync.WaitGroup
	for caller := range l.Inflight {
		wg.Go(func() { s.add(c.askOne(caller, l.Size, bench.TimeEvery(l.Inflight), over)) })
	}
	wg.Wait()
	return s.result()
}

func (c Client) askOne(caller, size, every int, over *atomic.Bool) (
	sent, failed uint64, first error, _ *bench.Latency) {
	payload := make([]byte, size)
	latency := bench.NewLatency()
	for i := caller * 7919 % Entities; !over.Load(); i = (i + 1) % Entities {
		timed := sent%uint64(every) == 0
		var begin time.Time
		if timed {
			begin = time.Now()
		}
		if err := c.Ask(caller, i, payload); err != nil {
			if failed++; first == nil {
				first = err
			}
			continue
		}
		if timed {
			latency.Record(time.Since(begin))
		}
		sent++
	}
	return sent, failed, first, latency
}
