// The time without a coordinator: what is known goes on, what is not waits (SHD-8).

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// Seed 001: "During such a failure period shards with a known location are still available, while messages for new
// (unknown) shards are buffered until the new ShardCoordinator becomes available" (SHD-8).
func TestUnknownShardsWaitForTheNextCoordinator(t *testing.T) {
	c := New(t, 3, 2)
	got := map[string][]string{}
	typ := entity.Type{Name: "log", Shards: 60, Mode: entity.Worker, New: func(id string, _ route.Fence) entity.Handler {
		return handlerFunc(func(c *entity.Context, b []byte) error {
			got[id] = append(got[id], string(b))
			return c.Reply(b)
		})
	}}
	c.Register(typ)
	c.AwaitUp()
	var known string
	for i := 0; known == ""; i++ { // on a node that stays: the oldest, which coordinates, is 0
		id := fmt.Sprint("known", i)
		_, err := c.Ask(1, "log", id, []byte("before"))
		require.NoError(t, err)
		if c.Owner("log", id) != 0 {
			known = id
		}
	}
	var unknown string
	for i := 0; unknown == ""; i++ {
		if id := fmt.Sprint("unknown", i); c.Owner("log", id) < 0 {
			unknown = id
		}
	}
	c.Crash(0)
	for i := range 10 {
		require.NoError(t, c.Tell(1, "log", unknown, fmt.Append(nil, i)))
		_, err := c.Ask(1, "log", known, fmt.Append(nil, i))
		require.NoError(t, err, "a known location is available")
		c.Advance(200 * time.Millisecond)
	}
	require.Empty(t, got[unknown], "nobody gives it a home")
	require.Equal(t, []string{"before", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, got[known])
	require.True(t, c.Until(2*time.Minute, func() bool { return len(got[unknown]) == 10 }), "there is a coordinator again")
	require.Equal(t, got[known][1:], got[unknown], "in order")
	require.NotZero(t, c.Owner("log", unknown))
}
