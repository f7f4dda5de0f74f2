// A loss beside a planned leave: a leaver counts until all may know that it is gone, so the others live.

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
)

// TestLossBesideALeave: one node loses its power, crashes or stands still for ten seconds, and before that is decided
// another is ordered to leave. Whichever two of three these are, the third lives, alone or with the one that stood
// still, and the leaver has left (MEM-10, MEM-8). Without counting the leaver the third ended for every moment from 0
// to 9 s.
func TestLossBesideALeave(t *testing.T) {
	for what, fault := range map[string]func(c *Cluster, n int){
		"power": func(c *Cluster, n int) { c.PowerOff(n) },
		"crash": func(c *Cluster, n int) { c.Crash(n) },
		"pause": func(c *Cluster, n int) { c.Pause(n, 10*time.Second) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for dead := range 3 {
				for leaver := range 3 {
					for after := time.Duration(0); dead != leaver && after <= 12*time.Second; after += 1500 * time.Millisecond {
						lossBesideALeave(t, 3, dead, leaver, after, fault)
					}
				}
			}
			for n := 4; n <= 5; n++ {
				lossBesideALeave(t, n, 0, 1, 3*time.Second, fault)
			}
		})
	}
}

func lossBesideALeave(t *testing.T, n, dead, leaver int, after time.Duration, fault func(c *Cluster, n int)) {
	c := New(t, n, uint64(after/time.Millisecond)+1)
	c.Register(entity.Type{Name: "x", Shards: 10, New: func(string, route.Fence) entity.Handler {
		return handlerFunc(func(*entity.Context, []byte) error { return nil })
	}})
	c.AwaitUp()
	c.Advance(10 * time.Second)
	fault(c, dead)
	c.Advance(after)
	c.Leave(leaver)
	c.Advance(45 * time.Second)
	for i := range n {
		if i != dead && i != leaver {
			require.True(t, c.Running(i), "n%d is lost, n%d leaves %v later: n%d has ended", dead+1, leaver+1, after, i+1)
		}
	}
	require.False(t, c.Running(leaver))
	require.Equal(t, membership.EndLeft, c.Ended(leaver).Kind)
}
