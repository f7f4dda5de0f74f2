// Load: goroutines that tell or ask the entities of a region, as fast as accepted or on a schedule.

package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kith-io/kith"
)

// Mode is what a load does.
type Mode string

// The modes.
const (
	Tell    Mode = "tell"     // sends, waiting for room on a full link
	Ask     Mode = "ask"      // goroutines that wait for their answers
	AskFunc Mode = "ask-func" // callbacks; no goroutine waits
)

// Load describes one load.
type Load struct {
	Mode     Mode
	Size     int           // bytes of payload, 1 or more; 16 or more for stamped tells
	Entities int           // ids in turn
	Senders  int           // goroutines that send; each keeps Inflight asks under way
	Inflight int           // asks of one sender
	Rate     float64       // messages per second of all senders together; zero: as fast as accepted
	Duration time.Duration // of sending
	Stamp    bool          // tells carry the time at which they should have left
	Timeout  time.Duration // of an ask
}

// Validate returns all faults joined.
func (l Load) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(l.Mode == Tell || l.Mode == Ask || l.Mode == AskFunc, "mode %q: must be tell, ask or ask-func", l.Mode)
	least := 1
	if l.Stamp {
		least = MinStamped
	}
	check(l.Size >= least, "size %d: must be at least %d", l.Size, least)
	check(l.Entities >= 1, "entities %d: must be at least 1", l.Entities)
	check(l.Senders >= 1, "senders %d: must be at least 1", l.Senders)
	check(l.Mode == Tell || l.Inflight >= 1, "inflight %d: must be at least 1", l.Inflight)
	check(l.Rate >= 0, "rate %v: must not be negative", l.Rate)
	check(l.Duration > 0, "duration %v: must be more than zero", l.Duration)
	check(l.Mode == Tell || l.Timeout > 0, "timeout %v: must be more than zero", l.Timeout)
	return errors.Join(errs...)
}

// Result is what a load did. Latency holds answered asks only, from when each should have been sent.
type Result struct {
	Sent     uint64 // tells accepted, or asks answered
	Failed   uint64
	FirstErr string
	Took     time.Duration
	Latency  *Latency // nil for tells
	Late     *Latency // how late this end woke up for the slots of its schedule; nil without Rate
}

// Run runs the load and returns when it is over and no ask is under way. It ends early with ctx.
func (l Load) Run(ctx context.Context, region *kith.Region) (Result, error) {
	if err := l.Validate(); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Duration)
	defer cancel()
	r := &loadRun{Load: l, region: region, ids: IDs(l.Entities), begin: time.Now()}
	if r.Rate > 0 {
		var err error
		if r.slots, err = newSchedule(r.Rate); err != nil {
			return Result{}, err
		}
		defer r.slots.close()
	}
	context.AfterFunc(ctx, func() { r.stop.Store(true) })
	var wg sync.WaitGroup
	for s := range l.Senders {
		switch l.Mode {
		case Tell:
			wg.Go(func() { r.tell(ctx, s) })
		case Ask:
			for k := range l.Inflight {
				wg.Go(func() { r.ask(ctx, s*l.Inflight+k) })
			}
		case AskFunc:
			wg.Go(func() { r.askFunc(ctx, s) })
		}
	}
	wg.Wait()
	r.sum.Took = time.Since(r.begin)
	if r.slots != nil {
		r.sum.Late = r.slots.late
	}
	return r.sum, nil
}

// loadRun is a load under way.
type loadRun struct {
	Load
	region *kith.Region
	ids    []string
	begin  time.Time
	stop   atomic.Bool
	slots  *schedule // nil: as fast as accepted

	mu  sync.Mutex
	sum Result
}

// due waits for the next slot of the schedule and returns its time. Without a schedule it is now.
func (r *loadRun) due(ctx context.Context) (time.Time, bool) {
	if r.slots == nil {
		return time.Now(), !r.stop.Load()
	}
	at, ok := r.slots.slot(ctx)
	return at, ok && !r.stop.Load()
}

// add merges what one sender did.
func (r *loadRun) add(sent, failed uint64, first error, l *Latency) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Sent += sent
	r.sum.Failed += failed
	if r.sum.FirstErr == "" && first != nil {
		r.sum.FirstErr = first.Error()
	}
	switch {
	case l == nil:
	case r.sum.Latency == nil:
		r.sum.Latency = l
	default:
		r.sum.Latency.Merge(l)
	}
}

// start spreads the senders over the ids, so that they do not walk them in step.
func (r *loadRun) start(sender int) int { return sender * 7919 % len(r.ids) }

func (r *loadRun) tell(ctx context.Context, sender int) {
	payload := make([]byte, r.Size)
	if r.Stamp {
		payload[0] = opStamp
	}
	var sent, failed uint64
	var first error
	i := r.start(sender)
	for !r.stop.Load() {
		if r.Rate > 0 {
			at, ok := r.due(ctx)
			if !ok {
				break
			}
			if r.Stamp { // the shared clock's reading at the slot
				binary.LittleEndian.PutUint64(payload[8:], uint64(sharedClock()-int64(time.Since(at))))
			}
		}
		if err := r.region.TellWait(ctx, r.ids[i], payload); err == nil {
			sent++
		} else if ctx.Err() == nil {
			failed++
			if first == nil {
				first = err
			}
		}
		if i++; i == len(r.ids) {
			i = 0
		}
	}
	r.add(sent, failed, first, nil)
}

func (r *loadRun) ask(ctx context.Context, asker int) {
	payload, into := make([]byte, r.Size), make([]byte, r.Size)
	payload[0] = opAsk
	l, every := NewLatency(), uint64(TimeEvery(r.Senders*r.Inflight))
	var sent, failed uint64
	var first error
	for i := r.start(asker); ; i = (i + 1) % len(r.ids) {
		timed := r.Rate > 0 || sent%every == 0
		var at time.Time
		ok := !r.stop.Load()
		if timed {
			at, ok = r.due(ctx)
		}
		if !ok {
			break
		}
		if _, err := r.region.AskWithin(r.Timeout, r.ids[i], payload, into[:0]); err != nil {
			if failed++; first == nil {
				first = err
			}
			continue
		}
		if timed {
			l.Record(time.Since(at))
		}
		sent++
	}
	r.add(sent, failed, first, l)
}
