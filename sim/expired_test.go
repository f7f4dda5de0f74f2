// Scenarios of asks of callers that gave up while they waited for a home, a mailbox, or a process that stood still.

package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// Asks wait for the home of a crashed owner's shard, and their askers give up before there is one: none is handled
// later, and each error says that it was certainly not (SHD-4, ACC-3).
func TestAsksThatGaveUpWhileParked(t *testing.T) {
	for _, mode := range []entity.Mode{entity.Blocking, entity.Worker, entity.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			ran := 0
			c := New(t, 3, 1)
			c.Register(entity.Type{Name: "g", Mode: mode, New: func(string, route.Fence) entity.Handler {
				return handlerFunc(func(k *entity.Context, p []byte) error { ran++; return k.Reply(p) })
			}})
			c.AwaitUp()
			_, err := c.Ask(0, "g", "x", nil)
			require.NoError(t, err)
			owner := c.Owner("g", "x")
			c.Crash(owner)
			c.Advance(15 * time.Second)
			ran = 0
			for range 3 {
				_, err = c.AskWithin(time.Second, (owner+1)%3, "g", "x", nil)
				require.ErrorIs(t, err, route.ErrTimeout)
				require.ErrorIs(t, err, route.ErrExpired, "it went nowhere")
			}
			c.Advance(60 * time.Second)
			require.Zero(t, ran)
			_, err = c.Ask((owner+1)%3, "g", "x", nil)
			require.NoError(t, err)
			require.Equal(t, 1, ran)
		})
	}
}

// An owner that stands still for a while handles what is waited for still. What became of asks that had left for it
// when their askers gave up nobody knows, and no error says that it was not executed: time on the way is not counted
// (SHD-5).
func TestAsksThatGaveUpOnTheirWay(t *testing.T) {
	ran := map[string]int{}
	c := New(t, 3, 2)
	c.Register(entity.Type{Name: "g", Mode: entity.Worker, New: func(string, route.Fence) entity.Handler {
		return handlerFunc(func(k *entity.Context, p []byte) error { ran[string(p)]++; return k.Reply(p) })
	}})
	c.AwaitUp()
	for n := range 3 {
		_, err := c.Ask(n, "g", "x", nil)
		require.NoError(t, err)
	}
	owner := c.Owner("g", "x")
	asker := (owner + 1) % 3
	c.Pause(owner, 3*time.Second)
	long := make(chan error, 1)
	require.NoError(t, c.proc(asker).Ask(10*time.Second, "g", "x", []byte("long"),
		func(_ []byte, err error) { long <- err }))
	for range 5 {
		_, err := c.AskWithin(100*time.Millisecond, asker, "g", "x", []byte("short"))
		require.ErrorIs(t, err, route.ErrTimeout)
		require.NotErrorIs(t, err, route.ErrExpired, "nobody knows here what became of it")
	}
	c.Advance(5 * time.Second)
	require.NoError(t, <-long)
	require.Equal(t, 1, ran["long"])
}
