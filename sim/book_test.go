// A test of a user's own entity on a simulated cluster. Copy it: everything it needs is exported.

package sim_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/sim"
)

// shelf is the store that books write to. Like every store that is worth having under sharding it remembers the highest
// fence that it has seen for a book and refuses lower ones.
type shelf struct {
	fence map[string]route.Fence
	sold  map[string]int
	late  int
}

func newShelf() *shelf { return &shelf{fence: map[string]route.Fence{}, sold: map[string]int{}} }

var errLateOwner = errors.New("another owner has this book")

// claim raises the fence of a book and returns what was sold of it: first claim, then read.
func (s *shelf) claim(id string, f route.Fence) (int, error) {
	if f.Compare(s.fence[id]) < 0 {
		s.late++
		return 0, errLateOwner
	}
	s.fence[id] = f
	return s.sold[id], nil
}

func (s *shelf) write(id string, f route.Fence, sold int) error {
	if f != s.fence[id] {
		s.late++
		return errLateOwner
	}
	s.sold[id] = sold
	return nil
}

// book is the entity: it counts what is sold, and answers with the count.
type book struct {
	shelf   *shelf
	sold    int
	claimed bool
}

func (b *book) Receive(c *entity.Context, _ []byte) (err error) {
	if !b.claimed {
		if b.sold, err = b.shelf.claim(c.ID, c.Fence); err != nil {
			return err
		}
		b.claimed = true
	}
	if err := b.shelf.write(c.ID, c.Fence, b.sold+1); err != nil {
		return err
	}
	b.sold++
	if c.Asked() {
		return c.Reply([]byte(strconv.Itoa(b.sold)))
	}
	return nil
}

func (b *book) Stop(*entity.Context) {}

func bookType(s *shelf) entity.Type {
	return entity.Type{Name: "book", Shards: 20, Mode: entity.Worker,
		New: func(string, route.Fence) entity.Handler { return &book{shelf: s} }}
}

func TestBookSurvivesPartition(t *testing.T) {
	shelf := newShelf()
	c := sim.New(t, 5, 42) // five nodes, virtual time, seed 42, no sockets
	c.Register(bookType(shelf))
	c.AwaitUp()

	got, err := c.Ask(0, "book", "dune", nil)
	require.NoError(t, err)
	require.Equal(t, "1", string(got))

	c.Partition([]int{0, 1}, []int{2, 3, 4})
	for n := range 5 {
		_ = c.Tell(n, "book", "dune", nil) // those on the other side of its owner wait, or are lost and counted
	}
	c.Advance(40 * time.Second)
	c.AtMostOne("book")

	require.False(t, c.Running(0) || c.Running(1), "the resolver ended the smaller side")
	c.Heal()
	c.Restart(0)
	c.Restart(1)
	c.AwaitUp()
	before := shelf.sold["dune"]
	for n := range 5 {
		_, err := c.Ask(n, "book", "dune", nil)
		require.NoError(t, err)
	}
	require.Equal(t, before+5, shelf.sold["dune"])
	require.Zero(t, shelf.late, "the smaller side had ended before its shards were given away")
}

// What a book sold comes back from its shelf at the next home; the late owner's fence is refused there (SHD-11).
func TestBookMovesWhenItsOwnerIsGone(t *testing.T) {
	shelf := newShelf()
	c := sim.New(t, 3, 7)
	c.Register(bookType(shelf))
	c.AwaitUp()
	_, err := c.Ask(0, "book", "emma", nil)
	require.NoError(t, err)

	owner := c.Owner("book", "emma")
	others := (owner + 1) % 3
	c.Pause(owner, 90*time.Second) // stopped, not dead: it will come back as a late owner
	require.NoError(t, c.Down(others, owner))
	got, err := c.Ask(others, "book", "emma", nil) // waits for the takeover time
	require.NoError(t, err)
	require.Equal(t, "2", string(got))
	require.NotEqual(t, owner, c.Owner("book", "emma"))

	c.Advance(2 * time.Minute)
	require.False(t, c.Running(owner), "it was told, and ended itself")
	c.AtMostOne("book")
	require.Equal(t, 2, shelf.sold["emma"])
}

func TestBookIsGivenBackByALeaver(t *testing.T) {
	c := sim.New(t, 3, 9, sim.With(func(cfg *sim.Config) { cfg.Network.Loss = 0.02 }))
	c.Register(bookType(newShelf()))
	c.AwaitUp()
	_, err := c.Ask(1, "book", "ulysses", nil)
	require.NoError(t, err)
	c.Advance(30 * time.Second) // a young node cannot know which were lost before it came, and would wait for that

	owner := c.Owner("book", "ulysses")
	c.Leave(owner)
	require.True(t, c.Until(time.Minute, func() bool { return !c.Running(owner) }))
	got, err := c.AskWithin(10*time.Second, (owner+1)%3, "book", "ulysses", nil) // no takeover time: it confirmed
	require.NoError(t, err)
	require.Equal(t, "2", string(got))
}
