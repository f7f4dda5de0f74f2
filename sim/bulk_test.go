// Large messages in the simulator: the situations by name.

package sim

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim/setup"
)

// keeper is an entity that keeps what it got.
type keeper struct{ got *[]string }

func (k *keeper) Receive(c *entity.Context, payload []byte) error {
	*k.got = append(*k.got, fmt.Sprintf("%c%d", payload[0], len(payload)))
	if c.Asked() {
		return c.Reply([]byte("ok"))
	}
	return nil
}

func (k *keeper) Stop(*entity.Context) {}

func keepers(t *testing.T, mode entity.Mode) (*Cluster, *[]string) {
	got := &[]string{}
	c := New(t, 3, 7, With(func(cfg *setup.Config) {
		cfg.Data.MaxPayload, cfg.Data.BulkChunk, cfg.Data.BulkStall = 1000, 500, 5*time.Second
	}))
	c.Register(entity.Type{Name: "keeper", Shards: 6, Mode: mode,
		New: func(string, route.Fence) entity.Handler { return &keeper{got} }})
	c.AwaitUp()
	return c, got
}

func filled(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

// TestLargeMessageKeepsItsPlace in every mode, to an entity elsewhere and to one at home (SHD-9).
func TestLargeMessageKeepsItsPlace(t *testing.T) {
	for mode := entity.Blocking; mode <= entity.Inline; mode++ {
		for from := range 2 {
			t.Run(fmt.Sprint(mode, from), func(t *testing.T) {
				c, got := keepers(t, mode)
				require.NoError(t, c.Tell(from, "keeper", "a", filled('a', 10)))
				require.NoError(t, c.Tell(from, "keeper", "a", filled('b', 50_000)))
				require.NoError(t, c.Tell(from, "keeper", "a", filled('c', 10)))
				reply, err := c.Ask(from, "keeper", "a", filled('d', 3000))
				require.NoError(t, err)
				require.Equal(t, "ok", string(reply))
				require.NoError(t, c.Tell(from, "keeper", "a", filled('e', 10)))
				c.Advance(time.Second)
				require.Equal(t, []string{"a10", "b50000", "c10", "d3000", "e10"}, *got)
			})
		}
	}
}

// TestLargeMessageFollowsItsShard: the owner leaves in the middle; the message, and what is behind it, goes to the
// next one (SHD-7).
func TestLargeMessageFollowsItsShard(t *testing.T) {
	c, got := keepers(t, entity.Worker)
	require.NoError(t, c.Tell(0, "keeper", "a", filled('a', 10)))
	c.Advance(time.Second)
	owner := c.Owner("keeper", "a")
	from := (owner + 1) % 3
	require.NoError(t, c.Tell(from, "keeper", "a", filled('b', 10)))
	c.Advance(time.Second)
	require.NoError(t, c.Tell(from, "keeper", "a", filled('c', 4_000_000)))
	require.NoError(t, c.Tell(from, "keeper", "a", filled('d', 10)))
	c.Advance(20 * time.Millisecond)
	c.Leave(owner)
	require.True(t, c.Until(5*time.Minute, func() bool { return len(*got) == 4 }))
	require.Equal(t, []string{"a10", "b10", "c4000000", "d10"}, *got)
	require.NotEqual(t, owner, c.Owner("keeper", "a"))
}
