// Tests of pools on a simulated cluster, by the declaration that nodes take, and by one message for tests and handlers.

package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

type (
	page  struct{ Text string }
	sheet struct{ Node int }
)

// What these tests send: pages to any worker of the press, and titles to a desk, an entity that has them printed.
var (
	press = kith.Message[page, sheet]{Type: "press", Name: "print"}
	proof = kith.Message[page, sheet]{Type: "press", Name: "proof"}
	title = kith.Message[page, sheet]{Type: "desk", Name: "title"}
)

// printer is a worker of the pool. It answers with the node that it is on.
type printer struct {
	c       *sim.Cluster
	printed *[]string
	takes   time.Duration
}

func (p *printer) print(_ *kith.Context, m *page) (sheet, error) {
	*p.printed = append(*p.printed, m.Text)
	at := p.c.Acting()
	p.c.Wait(p.takes)
	return sheet{at}, nil
}

// proof asks the pool that it is of itself.
func (p *printer) proof(c *kith.Context, m *page) (sheet, error) { return press.Ask(c, "", m) }

func (*printer) Stop(*kith.Context) {}

// desk asks any worker, as a test does.
type desk struct{}

func (*desk) title(c *kith.Context, m *page) (sheet, error) {
	if err := press.Tell(c, "", m); err != nil {
		return sheet{}, err
	}
	return press.Ask(c, "", m)
}

func (*desk) Stop(*kith.Context) {}

// printing returns a cluster of so many nodes with the pool and the desks, and what was printed.
func printing(t *testing.T, nodes int, p kith.Pool, takes time.Duration, o ...sim.Option) (*sim.Cluster, *[]string) {
	c, printed := sim.New(t, nodes, 11, o...), &[]string{}
	p.Name, p.Typed = "press", kith.Methods(func(*kith.Context) (*printer, error) {
		return &printer{c, printed, takes}, nil
	}, kith.On(press, (*printer).print), kith.On(proof, (*printer).proof))
	c.Pool(p)
	c.Register(kith.EntityType{Name: "desk", Shards: 8, Typed: kith.Methods(
		func(*kith.Context) (*desk, error) { return &desk{}, nil }, kith.On(title, (*desk).title))})
	c.AwaitUp()
	c.Advance(10 * time.Second) // each node has workers
	return c, printed
}

// TestPool: a message goes to a worker of its own node, from a test and from a handler, and to those of other nodes
// when a node is lost with its workers; nobody waits until its shards are taken over (SHD-12).
func TestPool(t *testing.T) {
	c, printed := printing(t, 3, kith.Pool{MaxNodes: 16}, 0)
	for n := range 3 {
		got, err := press.Ask(c.Node(n), "", &page{"a"})
		require.NoError(t, err)
		require.Equal(t, n, got.Node, "its own workers have room")
		got, err = title.Ask(c.Node(n), "news", &page{"b"})
		require.NoError(t, err)
		require.Equal(t, c.Owner("desk", "news"), got.Node)
	}
	require.NoError(t, press.Tell(c.Node(0), "", &page{"c"}))
	require.NoError(t, c.Tell(0, "press", "", []byte(`print {"Text":"d"}`)))
	c.Advance(time.Second)
	count := func(text string) (n int) {
		for _, s := range *printed {
			if s == text {
				n++
			}
		}
		return n
	}
	require.Equal(t, []int{3, 6, 1, 1}, []int{count("a"), count("b"), count("c"), count("d")})

	_, err := proof.Ask(c.Node(0), "", &page{"e"})
	require.ErrorContains(t, err, "its own pool")

	c.Crash(1)
	for range 20 {
		before := c.Now()
		_, err := press.Ask(c.Node(0), "", &page{"f"})
		require.NoError(t, err)
		require.Less(t, c.Now()-before, time.Second)
	}
}

// TestPoolRole: workers are on the nodes of a role alone, and a node without it asks them all. With all workers busy
// and no room in their mailboxes the sender gets an error after which nothing was done (SHD-12).
func TestPoolRole(t *testing.T) {
	const takes = time.Minute
	c, printed := printing(t, 4, kith.Pool{Role: "press", PerNode: 1, MaxNodes: 4, MailboxBytes: 1 << 10}, takes,
		sim.With(func(cfg *sim.Config) { cfg.Roles = [][]string{nil, {"press"}, {"press"}, {"press"}} }))
	text := strings.Repeat("x", 300)
	for range 40 {
		require.NoError(t, press.Tell(c.Node(0), "", &page{text}))
		c.Advance(200 * time.Millisecond)
	}
	_, err := press.Ask(c.Node(0), "", &page{text})
	require.ErrorIs(t, err, kith.ErrMailboxFull)
	require.False(t, kith.MayHaveRun(err))
	require.Equal(t, 3, len(*printed), "each has one call at a time")
	c.Advance(10 * takes)
	require.Greater(t, len(*printed), 3, "and had more in its mailbox")

	long := press
	long.Within = 2 * takes
	at := map[int]bool{}
	for range 20 {
		got, err := long.Ask(c.Node(0), "", &page{text})
		require.NoError(t, err)
		at[got.Node] = true
	}
	require.Equal(t, map[int]bool{1: true, 2: true, 3: true}, at)
}
