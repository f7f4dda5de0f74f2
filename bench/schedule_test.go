// Tests of the schedule of an open loop.

package bench

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Slots lie at even distances, each is handed out once and not before its time, and a sender that is late gets its slot
// at once, with the time at which it was due (CARD-5).
func TestSlotsOfASchedule(t *testing.T) {
	s, err := newSchedule(10_000)
	require.NoError(t, err)
	defer s.close()
	s.begin = s.begin.Add(-5 * time.Millisecond) // the first 50 are due already
	var mu sync.Mutex
	seen := map[time.Duration]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 30 {
				at, ok := s.slot(t.Context())
				early := time.Until(at)
				mu.Lock()
				if !ok || early > 0 {
					t.Errorf("slot %v: handed out %v early, ok %v", at, early, ok)
				}
				seen[at.Sub(s.begin)]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 120)
	for i := range 120 {
		require.Equal(t, 1, seen[time.Duration(i)*100*time.Microsecond], "slot %d", i)
	}
	require.LessOrEqual(t, s.late.Count(), int64(70), "those that were due already were not waited for")
}

// A schedule ends with its context, also for callers that wait for a slot that is far away.
func TestScheduleEnds(t *testing.T) {
	s, err := newSchedule(0.001)
	require.NoError(t, err)
	defer s.close()
	ctx, cancel := context.WithCancel(t.Context())
	_, ok := s.slot(ctx)
	require.True(t, ok, "the first is due at once")
	ended := make(chan bool)
	for range 3 {
		go func() {
			_, ok := s.slot(ctx)
			ended <- ok
		}()
	}
	cancel()
	for range 3 {
		require.False(t, <-ended)
	}
	require.Zero(t, s.late.Count())
}

func TestSleeper(t *testing.T) {
	s, err := newSleeper()
	require.NoError(t, err)
	defer s.close()
	at := time.Now().Add(200 * time.Microsecond)
	require.NoError(t, s.until(at))
	require.False(t, time.Now().Before(at))
	require.NoError(t, s.until(at), "is over")
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = s.until(time.Now().Add(time.Microsecond)) }))
}
