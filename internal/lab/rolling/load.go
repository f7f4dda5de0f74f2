// The load of one process: senders, each of which tells numbered messages and asks, both at a fixed rate.

package rolling

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/cli"
	"github.com/kith-io/kith/internal/cli/fleet"
)

// sender is one stream of messages.
type sender struct {
	ID    uint32
	Tells float64 // a second
	Asks  float64
}

// load is what runs in one process.
type load struct {
	region *kith.Region
	clock  cli.Clock
	job    *Job
	ids    []string

	mu      sync.Mutex
	running map[uint32]*stream
	times   times
}

// times is what the asks of a process took since it was last reported.
type times struct {
	took   *hdrhistogram.Histogram // nanoseconds
	failed uint64
	errs   map[string]uint64 // by text, at most maxErrs of them
	slow   []slowAsk
}

const (
	maxErrs = 8
	maxSlow = 32
	// slowTime is how long an ask takes that is reported by itself.
	slowTime = 100 * time.Millisecond
)

// slowAsk is one that took long: when it was due, by the clock of the run.
type slowAsk struct {
	Due, Took time.Duration
	Shard     uint32
}

func newTimes() times { return times{took: fleet.NewTimes(), errs: map[string]uint64{}} }

func newLoad(r *kith.Region, clock cli.Clock, j *Job) *load {
	l := &load{region: r, clock: clock, job: j, running: map[uint32]*stream{}, times: newTimes()}
	for i := range j.Entities {
		l.ids = append(l.ids, entityID(i))
	}
	return l
}

// stream is a sender that runs.
type stream struct {
	fleet.Stream
	stop context.CancelFunc
	busy sync.WaitGroup // both goroutines, and the asks that are not answered
}

// begin starts a sender.
func (l *load) begin(s sender) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[s.ID] != nil {
		return fmt.Errorf("sender %d runs already", s.ID)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &stream{Stream: fleet.Stream{ID: s.ID, Region: l.region, IDs: l.ids, Large: l.job.Large, Size: largeSize},
		stop: stop}
	l.running[s.ID] = x
	if s.Tells > 0 { // zero would be as fast as can be
		x.busy.Go(func() { x.Tell(ctx, s.Tells) })
	}
	x.busy.Go(func() { l.ask(ctx, x, s.Asks) })
	return nil
}

// end stops all senders, waits for their answers, and returns how many numbers each has used for which entity.
func (l *load) end() map[uint32]map[string]uint64 {
	l.mu.Lock()
	running := l.running
	l.running = map[uint32]*stream{}
	l.mu.Unlock()
	counts := map[uint32]map[string]uint64{}
	for id, x := range running {
		x.stop()
		x.busy.Wait()
		counts[id] = x.Counts()
	}
	return counts
}

// ask asks entities picked at random. What an ask takes counts from when it was due, whatever held up its sending.
func (l *load) ask(ctx context.Context, x *stream, perSecond float64) {
	r := rand.New(rand.NewPCG(uint64(x.ID), 1))
	n := 0
	for at := range fleet.Due(ctx, perSecond, 0) {
		i := r.IntN(len(l.ids))
		var payload []byte
		if n++; l.job.Nested > 0 && n%l.job.Nested == 0 {
			payload = l.another(r, i)
		}
		x.busy.Add(1)
		err := l.region.AskFunc(askTime, l.ids[i], payload, func(_ []byte, err error) {
			l.answered(at, i, err)
			x.busy.Done()
		})
		if err != nil {
			l.answered(at, i, err)
			x.busy.Done()
		}
	}
}

// another returns an ask that is to be passed on to a later entity of another shard, or a plain one where there is
// none. Were earlier ones asked too, two entities could wait for each other for ever.
func (l *load) another(r *rand.Rand, i int) []byte {
	for range 10 {
		if to := i + r.IntN(len(l.ids)-i); l.region.Shard(l.ids[to]) != l.region.Shard(l.ids[i]) {
			return binary.LittleEndian.AppendUint32(nil, uint32(to))
		}
	}
	return nil
}

// answered notes what became of an ask.
func (l *load) answered(due time.Time, entity int, err error) {
	took := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.times
	if err != nil {
		t.failed++
		if text := err.Error(); len(t.errs) < maxErrs || t.errs[text] > 0 {
			t.errs[text]++
		}
		return
	}
	_ = t.took.RecordValue(min(int64(took), int64(time.Minute)))
	if took > slowTime && len(t.slow) < maxSlow {
		t.slow = append(t.slow, slowAsk{l.clock.Now() - took, took, uint32(l.region.Shard(l.ids[entity]))})
	}
}

// take hands over what the asks took since the last time.
func (l *load) take() times {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.times
	l.times = newTimes()
	return t
}
