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
)

// sender is one stream of messages. Its numbers are its own: where another sender takes over it has another ID.
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

// times is what the asks of a process took since it was last told.
type times struct {
	took   *hdrhistogram.Histogram // nanoseconds
	failed uint64
	errs   map[string]uint64 // by text, at most maxErrs of them
	slow   []slowAsk
}

const (
	maxErrs = 8
	maxSlow = 32
	// slowTime is how long an ask takes that is told of by itself.
	slowTime = 100 * time.Millisecond
)

// slowAsk is one that took long: when it was due, by the clock of the run.
type slowAsk struct {
	Due, Took time.Duration
	Shard     uint32
}

// newTimes has room for answers from a microsecond to a minute, to three digits.
func newTimes() times {
	return times{took: hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3), errs: map[string]uint64{}}
}

func newLoad(r *kith.Region, clock cli.Clock, j *Job) *load {
	l := &load{region: r, clock: clock, job: j, running: map[uint32]*stream{}, times: newTimes()}
	for i := range j.Entities {
		l.ids = append(l.ids, entityID(i))
	}
	return l
}

// stream is a sender that runs.
type stream struct {
	sender
	stop context.CancelFunc
	busy sync.WaitGroup // both goroutines, and the asks that are not answered
	seqs []uint64       // by entity: the last number that was accepted; the teller's until busy is through
}

// begin starts a sender.
func (l *load) begin(s sender) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[s.ID] != nil {
		return fmt.Errorf("sender %d runs already", s.ID)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &stream{sender: s, stop: stop, seqs: make([]uint64, len(l.ids))}
	l.running[s.ID] = x
	x.busy.Go(func() { l.tell(ctx, x) })
	x.busy.Go(func() { l.ask(ctx, x) })
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
		m := map[string]uint64{}
		for i, n := range x.seqs {
			if n > 0 {
				m[l.ids[i]] = n
			}
		}
		counts[id] = m
	}
	return counts
}

// tell sends numbered messages to entities picked at random until ctx ends. A number is used up only by a message that
// was accepted.
func (l *load) tell(ctx context.Context, x *stream) {
	r := rand.New(rand.NewPCG(uint64(x.ID), 0))
	var room [largeSize]byte
	binary.LittleEndian.PutUint32(room[:], x.ID)
	n := 0
	for range due(ctx, x.Tells, tellEarly) {
		i := r.IntN(len(l.ids))
		payload := room[:tellSize]
		if n++; l.job.Large > 0 && n%l.job.Large == 0 {
			payload = room[:]
		}
		binary.LittleEndian.PutUint64(payload[4:], x.seqs[i]+1)
		for l.region.TellWait(ctx, l.ids[i], payload) != nil {
			if !cli.Pause(ctx, time.Millisecond) { // not accepted: the same number again
				return
			}
		}
		x.seqs[i]++
	}
}

// ask asks entities picked at random. What an ask takes counts from when it was due, whatever held up its sending.
func (l *load) ask(ctx context.Context, x *stream) {
	r := rand.New(rand.NewPCG(uint64(x.ID), 1))
	n := 0
	for at := range due(ctx, x.Asks, 0) {
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

// tellEarly is how early tells may go, so that not each of them waits for a timer of its own.
const tellEarly = time.Millisecond

// due yields the moments at which something is to be done, so many a second, each at most so early. Those that have
// passed while its caller was busy come at once, each as the moment that it was.
func due(ctx context.Context, perSecond float64, early time.Duration) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		if perSecond <= 0 {
			return
		}
		begin := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			at := begin.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
			if wait := time.Until(at); wait > early && !cli.Pause(ctx, wait) || !yield(at) {
				return
			}
		}
	}
}
