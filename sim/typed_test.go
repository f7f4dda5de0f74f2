// Test of typed entities on a simulated cluster.

package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

type sale struct{ Copies int }

type stock struct{ Sold int }

// till counts the sales of a book, and drops those that nobody confirms within a minute.
type till struct{ sold int }

func (b *till) Receive(c *kith.Context, m *sale) (stock, error) {
	if _, ok := c.Timer(); ok {
		b.sold -= m.Copies
		return stock{}, nil
	}
	b.sold += m.Copies
	return stock{b.sold}, kith.SetTimer(c, kith.JSON[sale](), "", time.Minute, m)
}

func (*till) Stop(*kith.Context) {}

// TestTyped: a typed type runs in the simulator as any other, with its timers, and is asked with values.
func TestTyped(t *testing.T) {
	c := sim.New(t, 3, 7)
	c.Register(kith.TypedType(kith.EntityType{Name: "till", Shards: 8}, kith.JSON[sale](), kith.JSON[stock](),
		func(*kith.Context) (kith.TypedHandler[sale, stock], error) { return &till{}, nil }))
	c.AwaitUp()
	tills := sim.Typed(c, "till", kith.JSON[sale](), kith.JSON[stock]())
	for n := range 3 {
		got, err := tills.Ask(n, "dune", &sale{2})
		require.NoError(t, err)
		require.Equal(t, stock{2*n + 2}, got)
	}
	require.NoError(t, tills.Tell(0, "dune", &sale{1}))
	c.Advance(2 * time.Minute)
	got, err := tills.AskWithin(time.Second, 1, "dune", &sale{})
	require.NoError(t, err)
	require.Equal(t, stock{}, got, "all that was sold was taken back")

	_, err = sim.Typed(c, "till", kith.JSON[string](), kith.JSON[stock]()).Ask(0, "dune", new(string))
	require.ErrorIs(t, err, route.ErrBadPayload, "a request that the handler's codec refuses")
	require.False(t, route.MayHaveRun(err))
	_, err = sim.Typed(c, "till", kith.JSON[sale](), kith.JSON[string]()).Ask(0, "dune", &sale{})
	require.ErrorIs(t, err, route.ErrBadPayload, "a reply that the asker's codec refuses")
	require.True(t, route.MayHaveRun(err))
	require.ErrorIs(t, sim.Typed(c, "till", kith.JSON[func()](), kith.JSON[stock]()).Tell(0, "dune", new(func())),
		route.ErrBadPayload)
}
