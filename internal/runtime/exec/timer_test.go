// Tests of timers on real time: never early, also when the clock of slow calls lags.

package exec

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/route"
)

// ACC-4: after a stall, or a sleep of the machine, the slewed clock lags by as much: a timer that is set then is not
// early.
func TestTimersAfterAStall(t *testing.T) {
	const wait = 30 * time.Millisecond
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			var set time.Time
			came := make(chan time.Duration, 1)
			x := newBare(t, typeOf(mode, 1, func(c *entity.Context, _ []byte) error {
				if _, timer := c.Timer(); timer {
					came <- time.Since(set)
					return nil
				}
				set = time.Now()
				return c.After(wait, nil)
			}))
			x.Clock.SetSlept(0, 50*time.Minute)
			require.Greater(t, x.Clock.Now()-x.Clock.Slewed(), 40*time.Minute)
			require.Equal(t, route.OK, x.send("a", nil))
			require.GreaterOrEqual(t, <-came, wait)
		})
	}
}

// The figures of a shard are published though the slewed clock lags.
func TestClocksAfterAStall(t *testing.T) {
	var c Clock
	c.Init(time.Now().Add(-time.Hour))
	now := c.Now()
	require.GreaterOrEqual(t, now, time.Hour)
	c.Tick(now)
	require.Equal(t, now, c.Ticked())
	require.Positive(t, c.Slewed())
	require.Less(t, plane.SlewStep, entity.SlowAfter)
	require.Greater(t, plane.SlewStep, plane.ClockTick)
	require.Less(t, c.Slewed(), entity.SlowAfter)
	for range 3 {
		before := c.Slewed()
		c.Tick(now + time.Second)
		require.Less(t, c.Slewed()-before, entity.SlowAfter, "no call looks slow")
		require.Less(t, c.Slewed(), c.Ticked())
	}
}

// idler notes its end.
type idler struct {
	handling
	stopped chan<- string
}

func (h *idler) Stop(c *entity.Context) { h.stopped <- c.ID }

// An entity is idle from its last message on, not from when the batch of that message was begun, however long the other
// calls of that batch took.
func TestIdleAfterALongBatch(t *testing.T) {
	const idle = 10 * time.Minute
	for _, mode := range []entity.Mode{entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			var x *bare
			entered, leave, stopped := make(chan struct{}), make(chan struct{}), make(chan string, 8)
			does := func(_ *entity.Context, what []byte) error {
				switch string(what) {
				case "wait":
					close(entered)
					<-leave
				case "take long":
					x.Clock.SetSlept(0, 2*idle)
					for x.Clock.Ticked() < 2*idle {
						runtime.Gosched()
					}
				}
				return nil
			}
			x = newBare(t, entity.Type{Name: "bare", Shards: 1, Mode: mode, IdleAfter: idle,
				New: func(string, route.Fence) entity.Handler { return &idler{does, stopped} }})
			require.Equal(t, route.OK, x.send("before", []byte("wait")))
			<-entered
			for _, id := range []string{"long", "after", "behind"} { // one batch
				require.Equal(t, route.OK, x.send(id, []byte(map[bool]string{true: "take long"}[id == "long"])))
			}
			close(leave)
			require.ElementsMatch(t, []string{"long", "before"}, []string{<-stopped, <-stopped},
				"those that were idle, and no other")
		})
	}
}
