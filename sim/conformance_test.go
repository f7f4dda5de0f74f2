// The story by which the reference tests its sharding as a whole, on a simulated cluster.

package sim_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

// F-R1: an entity counts messages of all nodes, of one that hosts nothing among them; it ends when it is idle and
// begins again with what is in its store; after a crash of its owner, and then of the coordinator, it is served
// elsewhere, and nobody lives twice; after ten intervals of the balance the shards are spread again (SHD-1, SHD-2,
// SHD-9, SHD-12).
func TestConformanceStory(t *testing.T) {
	shelf := newShelf()
	typ := bookType(shelf)
	typ.Role, typ.IdleAfter = "r", time.Minute
	const interval = 10 * time.Second
	c := sim.New(t, 5, 11, sim.With(func(cfg *sim.Config) {
		cfg.Roles = [][]string{{"r"}, {"r"}, {"r"}, {"r"}, nil}
		cfg.Shard.RebalanceInterval = interval
	}))
	c.Register(typ)
	c.AwaitUp()
	sold := 0
	ask := func(on int, id string) {
		t.Helper()
		got, err := c.Ask(on, "book", id, nil)
		for errors.Is(err, route.ErrPeerLost) { // it was on its way when its owner crashed
			got, err = c.Ask(on, "book", id, nil)
		}
		require.NoError(t, err)
		if id == "1" {
			sold++
			require.Equal(t, strconv.Itoa(sold), string(got))
		}
	}
	for range 3 {
		require.NoError(t, c.Tell(0, "book", "1", nil))
		sold++
	}
	ask(0, "1")
	ask(1, "1")
	ask(4, "1")
	require.NotEqual(t, 4, c.Owner("book", "1"), "it is a proxy")
	homes := func() (n [5]int) {
		for i := range 200 {
			if on := c.Owner("book", strconv.Itoa(i)); on >= 0 {
				n[on]++
			}
		}
		return n
	}
	for i := range 200 {
		ask(4, strconv.Itoa(i))
	}
	require.Zero(t, homes()[4])

	fence := shelf.fence["1"]
	c.Advance(2 * time.Minute)
	ask(4, "1")
	require.Equal(t, fence, shelf.fence["1"], "the same owner, another instance")

	crash := func(n int) {
		t.Helper()
		before := shelf.fence["1"]
		mine := c.Owner("book", "1") == n
		c.Crash(n)
		lost := c.Now()
		for i := range 200 {
			ask(4, strconv.Itoa(i))
		}
		require.LessOrEqual(t, c.Now()-lost, 28*time.Second, "for all of them together")
		if mine {
			require.Positive(t, shelf.fence["1"].Compare(before))
		}
		c.AtMostOne("book")
		require.Zero(t, shelf.late)
		c.Restart(n)
		c.AwaitUp()
	}
	owner := c.Owner("book", "1")
	if owner == 0 {
		owner = 1
	}
	crash(owner)
	crash(0) // the oldest of the role coordinates
	for range 10 {
		c.Advance(interval)
		for i := range 200 {
			ask(4, strconv.Itoa(i))
		}
	}
	for n, have := range homes() {
		if n < 4 {
			require.Positive(t, have, "%v", homes())
		}
	}
	c.AtMostOne("book")
}

// F-C7: three members are needed before shards get homes: with two nobody is Up and nothing is handled, with three it
// works, and with two that are left it goes on (SHD-2).
func TestConformanceMinimum(t *testing.T) {
	shelf := newShelf()
	c := sim.New(t, 3, 12, sim.With(func(cfg *sim.Config) { cfg.Membership.MinMembers = 3 }))
	c.Register(bookType(shelf))
	c.Crash(2)
	_, err := c.AskWithin(30*time.Second, 0, "book", "1", nil)
	require.ErrorIs(t, err, route.ErrTimeout)
	require.Empty(t, shelf.sold)
	c.Restart(2)
	c.AwaitUp()
	for i := range 50 {
		_, err := c.Ask(1, "book", strconv.Itoa(i), nil)
		require.NoError(t, err)
	}
	c.Crash(2)
	c.Advance(time.Minute)
	for i := range 50 {
		_, err := c.Ask(1, "book", strconv.Itoa(i), nil)
		require.NoError(t, err)
	}
	c.AtMostOne("book")
}
