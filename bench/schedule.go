// The schedule of an open loop: slots at even distances, each handed out at its time.

package bench

import (
	"context"
	"sync"
	"time"
)

// schedule hands out slots in order. One sender waits for the next slot, the others wait for their turn to do so.
type schedule struct {
	mu    sync.Mutex
	begin time.Time
	rate  float64
	next  int64
	sleep *sleeper
	late  *Latency // how long after its time a slot that was waited for was handed out
}

// newSchedule begins one, which is closed when nobody asks for slots any more.
func newSchedule(rate float64) (*schedule, error) {
	sleep, err := newSleeper()
	if err != nil {
		return nil, err
	}
	return &schedule{begin: time.Now(), rate: rate, sleep: sleep, late: NewLatency()}, nil
}

func (s *schedule) close() { s.sleep.close() }

// slot takes the next slot and waits for its time, which it returns. A sender that is late does not wait, and its
// latency counts from the slot: that corrects coordinated omission. It returns false when ctx has ended, or the timer
// has failed.
func (s *schedule) slot(ctx context.Context) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = s.begin.Add(time.Duration(float64(s.next) / s.rate * float64(time.Second)))
	s.next++
	wait := time.Until(at)
	if wait <= 0 {
		return at, ctx.Err() == nil
	}
	if wait > exactly {
		t := time.NewTimer(wait - exactly)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return at, false
		}
	}
	if s.sleep.until(at) != nil {
		return at, false
	}
	s.late.Record(time.Since(at))
	return at, ctx.Err() == nil
}

// exactly is how long before its time a wait goes over from Go's timers, which wake an idle process up to a millisecond
// late but end with the context, to the kernel's.
const exactly = 3 * time.Millisecond
