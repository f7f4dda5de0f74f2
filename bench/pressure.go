// Pressure: one slow Blocking entity among many quick ones behind TellWait, and what it costs the others.

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// Pressed makes Blocking entities that count, of which the first, ID(0), can be slow.
type Pressed struct {
	slow, others *Sink
	delay        atomic.Int64
}

// NewPressed returns a Pressed without entities.
func NewPressed() *Pressed { return &Pressed{slow: NewSink(), others: NewSink()} }

// Type declares the entities, with mailboxes that hold so many bytes.
func (p *Pressed) Type(name string, shards uint32, mailbox int, role string) kith.EntityType {
	t := p.others.Type(name, shards, kith.Blocking, role)
	quick := t.New
	t.MailboxBytes = mailbox
	t.New = func(id string, f kith.Fence) kith.Handler {
		if id == ID(0) {
			return slowEntity{p.slow.entity(1), &p.delay}
		}
		return quick(id, f)
	}
	return t
}

// Slow makes each message of the first entity take so long from now on, zero: no time.
func (p *Pressed) Slow(d time.Duration) { p.delay.Store(int64(d)) }

// Count returns how many messages have reached the first entity and the others.
func (p *Pressed) Count() (slow, others uint64) { return p.slow.Count(), p.others.Count() }

// slowEntity is the first one.
type slowEntity struct {
	*sinkEntity
	delay *atomic.Int64
}

// Receive takes its time, then counts.
func (e slowEntity) Receive(c *kith.Context, payload []byte) error {
	if d := e.delay.Load(); d > 0 {
		time.Sleep(time.Duration(d))
	}
	return e.sinkEntity.Receive(c, payload)
}

// PressLoad is what one node sends: Tellers goroutines tell all entities but the first in turn, as fast as TellWait
// accepts, and one tells the first as often as each of the others gets one. What falls due while that one waits for
// room is left out, as a producer does that is held up.
type PressLoad struct {
	Entities int // 2 or more
	Tellers  int
	Size     int           // bytes of payload
	Fill     int           // messages that the first is sent before, as far as it has room for them
	Duration time.Duration // of sending
}

// PressResult is what a PressLoad did.
type PressResult struct {
	Slow, Others uint64 // accepted messages to the first entity and to the others, Fill included
	Failed       uint64 // not accepted, though the load was not over
	FirstErr     string
	Took         time.Duration
}

// Run runs the load, and ends early with ctx.
func (l PressLoad) Run(ctx context.Context, region *kith.Region) (PressResult, error) {
	if l.Entities < 2 || l.Tellers < 1 || l.Size < 0 || l.Duration <= 0 {
		return PressResult{}, fmt.Errorf("%+v: entities must be at least 2, tellers 1, and the duration more than zero", l)
	}
	r := &pressRun{PressLoad: l, region: region, ids: IDs(l.Entities), payload: make([]byte, l.Size)}
	if err := r.fill(ctx); err != nil {
		return PressResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Duration)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for n := range l.Tellers {
		wg.Go(func() { r.tellOthers(ctx, n) })
	}
	wg.Go(func() { r.tellFirst(ctx) })
	wg.Wait()
	return PressResult{Slow: r.slow, Others: r.others.Load(), Failed: r.failed.Load(), FirstErr: r.first(),
		Took: time.Since(began)}, nil
}

// pressRun is a PressLoad under way.
type pressRun struct {
	PressLoad
	region  *kith.Region
	ids     []string
	payload []byte
	slow    uint64 // of one goroutine at a time
	others  atomic.Uint64
	failed  atomic.Uint64
	err     atomic.Pointer[error]
}

// How the first entity is filled: little at a time, so that what is under way when it is full is little too.
const (
	fillBurst = 16
	fillWait  = 20 * time.Millisecond // a sender that waits longer has found it full
)

func (r *pressRun) fill(ctx context.Context) error {
	for n := range r.Fill {
		if n%fillBurst == 0 {
			time.Sleep(time.Millisecond)
		}
		one, cancel := context.WithTimeout(ctx, fillWait)
		err := r.region.TellWait(one, r.ids[0], r.payload)
		cancel()
		switch {
		case err == nil:
			r.slow++
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return nil
		default:
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

// publishTold is how many messages a teller sends before it adds them to what all have.
const publishTold = 64

func (r *pressRun) tellOthers(ctx context.Context, teller int) {
	ids := r.ids[1:]
	sent := uint64(0)
	for i := teller * 7919 % len(ids); ctx.Err() == nil; i = (i + 1) % len(ids) {
		if r.tell(ctx, ids[i]) {
			sent++
		}
		if sent == publishTold {
			r.others.Add(sent)
			sent = 0
		}
	}
	r.others.Add(sent)
}

// tellFirst keeps step with the others: the first entity gets as many as each of them.
func (r *pressRun) tellFirst(ctx context.Context) {
	owed := func() uint64 { return r.others.Load() / uint64(len(r.ids)-1) }
	for done := uint64(0); ctx.Err() == nil; {
		if done >= owed() {
			time.Sleep(time.Millisecond)
			continue
		}
		began := time.Now()
		if r.tell(ctx, r.ids[0]) {
			r.slow++
		}
		if done++; time.Since(began) > fillWait {
			done = owed()
		}
	}
}

func (r *pressRun) tell(ctx context.Context, id string) bool {
	err := r.region.TellWait(ctx, id, r.payload)
	if err != nil && ctx.Err() == nil {
		r.failed.Add(1)
		r.err.CompareAndSwap(nil, &err)
	}
	return err == nil
}

func (r *pressRun) first() string {
	if err := r.err.Load(); err != nil {
		return (*err).Error()
	}
	return ""
}

// Peaks looks at a process and its node every few milliseconds and keeps the largest that it saw.
type Peaks struct {
	stop chan struct{}
	done sync.WaitGroup
	seen Peak
}

// Peak is what Peaks saw.
type Peak struct {
	Heap      uint64 // bytes of heap objects, those that are garbage and not swept included
	Mailboxes int64  // bytes that waited in the mailboxes of all Blocking entities of the node
}

// peakEvery is how often Peaks looks.
const peakEvery = 10 * time.Millisecond

// WatchPeaks begins to look, until End.
func WatchPeaks(node *kith.Node) *Peaks {
	p := &Peaks{stop: make(chan struct{})}
	p.done.Go(func() {
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			p.look(node)
			select {
			case <-p.stop:
				return
			case <-tick.C:
			}
		}
	})
	return p
}

func (p *Peaks) look(node *kith.Node) {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	p.seen.Heap = max(p.seen.Heap, heap[0].Value.Uint64())
	p.seen.Mailboxes = max(p.seen.Mailboxes, node.Stats().MailboxBytes)
}

// End ends the looking and returns what was seen. It is called once.
func (p *Peaks) End() Peak {
	close(p.stop)
	p.done.Wait()
	return p.seen
}

// The bursts of PressCost: short enough to fit a link's bound, which drains before the next.
const (
	costBurst  = 1024
	costBursts = 100
)

// PressCost returns the median nanoseconds of one call of Tell and of TellWait to entities that are not slow, each over
// bursts of one goroutine in turn, as Route measures them: tell_ns and tellwait_ns with suffix. Bursts that met a full
// link do not count.
func PressCost(ctx context.Context, region *kith.Region, suffix string) (Figures, error) {
	ids, payload := IDs(costBurst), make([]byte, PayloadBytes)
	burst := func(times []float64, send func(id string) error) ([]float64, error) {
		if _, err := flush(ctx, region, ids[0]); err != nil { // behind the burst before: the link is empty then
			return times, err
		}
		began := time.Now()
		for _, id := range ids {
			if err := send(id); errors.Is(err, kith.ErrLinkFull) {
				return times, nil
			} else if err != nil {
				return times, fmt.Errorf("burst: %w", err)
			}
		}
		return append(times, float64(time.Since(began))/costBurst), nil
	}
	var tell, wait []float64
	var err error
	for range costBursts {
		if tell, err = burst(tell, func(id string) error { return region.Tell(id, payload) }); err != nil {
			return nil, err
		}
		if wait, err = burst(wait, func(id string) error { return region.TellWait(ctx, id, payload) }); err != nil {
			return nil, err
		}
	}
	f := Figures{}
	for name, times := range map[string][]float64{"tell_ns": tell, "tellwait_ns": wait} {
		if slices.Sort(times); len(times) > 0 {
			f[name+suffix] = median(times)
		}
	}
	return f, nil
}

// String is p for people.
func (p Peak) String() string {
	mb := func(n float64) string { return strconv.FormatFloat(n/1e6, 'f', 1, 64) + " MB" }
	return fmt.Sprintf("heap at most %s, mailboxes %s", mb(float64(p.Heap)), mb(float64(p.Mailboxes)))
}
