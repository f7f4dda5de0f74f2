// A type of very many shards in a simulated cluster: a node leaves, one joins, one is lost.

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// crowd counts what all its entities got.
type crowd struct{ n *int }

// Receive counts one message, and answers an ask.
func (e crowd) Receive(c *entity.Context, _ []byte) error {
	if c.Asked() {
		return c.Reply(nil)
	}
	*e.n++
	return nil
}

// Stop has nothing to flush.
func (crowd) Stop(*entity.Context) {}

// 20,000 shards, of which 3,000 entities use some: one of four nodes leaves and comes back, and nothing is lost; then
// one is lost with the coordinator on it, and its entities answer elsewhere when the takeover time is over (SHD-6).
func TestTypeOfVeryManyShards(t *testing.T) {
	const shards, entities = 20_000, 3000
	c := New(t, 4, 1, With(func(cfg *Config) { cfg.Text = false }))
	handled, sent := 0, 0
	c.Register(entity.Type{Name: "crowd", Shards: shards,
		New: func(string, route.Fence) entity.Handler { return crowd{&handled} }})
	c.AwaitUp()
	c.Advance(30 * time.Second)
	tellAll := func() {
		for i := range entities {
			require.NoError(t, c.Tell(i%3, "crowd", fmt.Sprint(i), nil))
			sent++
			if i%100 == 0 {
				c.Advance(time.Millisecond)
			}
		}
	}
	hosted := func(n int) (live int) {
		c.proc(n).EachType(func(_ route.TypeID, list []route.ShardID) { live += len(list) })
		return live
	}
	tellAll()
	c.Advance(20 * time.Second)
	require.Equal(t, sent, handled)
	used := hosted(0) + hosted(1) + hosted(2) + hosted(3)
	require.Greater(t, used, entities*8/10)
	require.LessOrEqual(t, used, entities)

	c.Leave(3)
	tellAll()
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(3) && hosted(0)+hosted(1)+hosted(2) == used }))
	tellAll()
	c.Advance(20 * time.Second)
	require.Equal(t, sent, handled, "a planned move loses nothing")

	c.Restart(3)
	c.AwaitUp()
	require.True(t, c.Until(10*time.Second, func() bool { return hosted(3) >= used/4 }), "it gets its share soon")
	tellAll()
	c.Advance(20 * time.Second)
	require.Equal(t, sent, handled)

	c.Crash(0)
	c.Advance(40 * time.Second)
	for i := 0; i < entities; i += 10 {
		_, err := c.Ask(1+i%3, "crowd", fmt.Sprint(i), nil)
		require.NoError(t, err)
	}
	c.AtMostOne("crowd")
}
