// Tests of the gate as the data plane sees it.

package exec

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// TestDataPlaneLooksAtTheClock: between the wake-up and the first step nobody has raised a flag yet; the age of the
// last step is enough. Looking costs no allocation.
func TestDataPlaneLooksAtTheClock(t *testing.T) {
	var g Gate
	g.Init(10 * time.Second)
	g.Step(time.Minute)
	require.False(t, g.Held(time.Minute+10*time.Second))
	require.True(t, g.Held(time.Minute+10*time.Second+1))
	require.False(t, g.Closed())
	g.Notice(time.Minute + 10*time.Second)
	require.False(t, g.Closed())
	g.Notice(time.Minute + 11*time.Second)
	require.True(t, g.Closed())
	require.True(t, g.Noticed())
	g.Step(2 * time.Minute)
	require.True(t, g.Held(2*time.Minute), "until the node has judged it")
	g.Judge(false, false)
	g.Lease(2*time.Minute + time.Second)
	require.False(t, g.Held(2*time.Minute+time.Second-1))
	require.True(t, g.Held(2*time.Minute+time.Second), "the session lease counts for nothing from then on")
	g.Step(2*time.Minute + time.Second)
	require.True(t, g.Held(2*time.Minute+time.Second), "a step alone is no lease")
	g.Notice(2*time.Minute + time.Second)
	require.True(t, g.Noticed(), "and the node is to judge it")
	g.Judge(false, false)
	g.Lease(3 * time.Minute)
	require.False(t, g.Held(2*time.Minute+11*time.Second))
	require.True(t, g.Held(2*time.Minute+11*time.Second+1), "the last step is too old")
	require.Zero(t, testing.AllocsPerRun(100, func() { g.Held(time.Minute) }))
}

// stands makes it look to a node with session leases as if it had stood still for longer than its session lasts.
func (x *bare) stands() { x.Clock.SetSlept(x.Clock.Slept(), x.Clock.Slept()+30*time.Minute) }

// A process that stood still in the middle of a batch until its session lease had run out handles no more than the
// handful of messages in hand, whether its ticker has run or not (MEM-10).
func TestSessionRunsOutWithinARow(t *testing.T) {
	inRows(t, func(t *testing.T, x *row) {
		x.Gate.Lease(x.Clock.Now() + 20*time.Minute)
		const sent = 50 * aheadFrames
		var handled atomic.Int64
		first := true
		f := func(*entity.Context, []byte) {
			if first {
				first = false
				x.stands()
			}
			handled.Add(1)
		}
		x.receive.Store(&f)
		row := make([][2]string, sent)
		for i := range row {
			row[i] = [2]string{"a", "m"}
		}
		x.read(t, row...)
		eventually(t, x.Gate.Closed)
		require.LessOrEqual(t, handled.Load(), int64(aheadFrames))
		x.Gate.Lease(x.Clock.Now() + time.Hour)
		eventually(t, func() bool {
			x.Gate.Judge(false, false) // each step does: the ticker may notice just now what it compared before the new lease
			return handled.Load() == sent
		})
	})
}

// A Blocking entity, whose calls may take long, handles not one more.
func TestSessionRunsOutWithinARun(t *testing.T) {
	called, leave := make(chan string, 4), make(chan struct{})
	var x *bare
	x = newBare(t, typeOf(entity.Blocking, 1, func(_ *entity.Context, payload []byte) error {
		called <- string(payload)
		if <-leave; string(payload) == "1" {
			x.stands()
		}
		return nil
	}))
	x.Gate.Lease(x.Clock.Now() + 20*time.Minute)
	for _, m := range []string{"1", "2"} {
		require.Equal(t, route.OK, x.send("a", []byte(m)))
	}
	require.Equal(t, "1", <-called)
	close(leave)
	eventually(t, func() bool { return x.waits() || len(called) > 0 })
	require.Empty(t, called, "handled after its session lease had run out")
	x.Gate.Lease(x.Clock.Now() + time.Hour)
	eventually(t, func() bool {
		x.Gate.Judge(false, false)
		return len(called) > 0
	})
	require.Equal(t, "2", <-called)
}
