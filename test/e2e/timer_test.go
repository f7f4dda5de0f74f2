// Timers on real nodes: never early, in any mode.

package e2e_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// timed sets a timer with each message and tells by how much it came after its time.
type timed struct {
	set  map[string]time.Time
	wait time.Duration
	late chan<- time.Duration
}

func (e *timed) Receive(c *kith.Context, p []byte) error {
	if name, ok := c.Timer(); ok {
		e.late <- time.Since(e.set[name]) - e.wait
		return nil
	}
	e.set[string(p)] = time.Now()
	return c.SetTimer(string(p), e.wait, nil)
}

func (*timed) Stop(*kith.Context) {}

// ACC-4: a timer never comes before its time, whenever between two ticks it was set.
func TestTimersAreNeverEarly(t *testing.T) {
	t.Parallel()
	const timers = 300
	for _, mode := range []kith.Mode{kith.Blocking, kith.Worker, kith.Inline} {
		for _, wait := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
			t.Run(fmt.Sprint(mode, " ", wait), func(t *testing.T) {
				t.Parallel()
				late := make(chan time.Duration, timers)
				n, err := kith.Start(t.Context(), kith.Config{Name: "timers"})
				require.NoError(t, err)
				defer n.Close()
				r, err := n.Register(kith.EntityType{Name: "timed", Mode: mode, Shards: 8,
					New: func(string, kith.Fence) kith.Handler {
						return &timed{set: map[string]time.Time{}, wait: wait, late: late}
					}})
				require.NoError(t, err)
				require.NoError(t, n.Ready(t.Context()))
				var senders sync.WaitGroup
				for i := range timers / 10 {
					senders.Go(func() {
						for k := range 10 {
							require.NoError(t, r.TellWait(t.Context(), fmt.Sprint(i), fmt.Append(nil, k)))
						}
					})
				}
				senders.Wait()
				for range timers {
					require.GreaterOrEqual(t, <-late, time.Duration(0), "early")
				}
			})
		}
	}
}
