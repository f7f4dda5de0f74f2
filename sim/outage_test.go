// What an outage costs with all defaults, as docs/operations.md says it, in virtual time.

package sim

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outage is one way in which an entity loses its owner, in a cluster of n nodes.
type outage struct {
	name        string // as the table has it
	n           int
	coordinator bool // the owner coordinates, too
	loops       bool // another node has crashed and restarted ten times by then
	fail        func(c *Cluster, owner int)
}

var outages = []outage{
	{name: "the owner leaves (SIGTERM)", n: 3, fail: func(c *Cluster, owner int) { c.Leave(owner) }},
	{name: "the owner is killed (kill -9)", n: 3, fail: func(c *Cluster, owner int) { c.Crash(owner) }},
	{name: "its machine dies", n: 3, fail: func(c *Cluster, owner int) { c.PowerOff(owner) }},
	{name: "the same, and it starts again at its address", n: 3, fail: func(c *Cluster, owner int) { c.Restart(owner) }},
	{name: "the owner stands still for 30 s", n: 3, fail: func(c *Cluster, owner int) { c.Pause(owner, 30*time.Second) }},
	{name: "the coordinator is killed, which owns the entity too", n: 3, coordinator: true,
		fail: func(c *Cluster, owner int) { c.Crash(owner) }},
	{name: "the owner is killed, after another node has crashed ten times", n: 3, loops: true,
		fail: func(c *Cluster, owner int) { c.Crash(owner) }},
	{name: "the owner is killed in a cluster of ten", n: 10, fail: func(c *Cluster, owner int) { c.Crash(owner) }},
}

// cost runs an outage and returns how long an entity of the lost owner was not served, as another node sees it.
func (o *outage) cost(t *testing.T, seed uint64, options ...Option) time.Duration {
	c := New(t, o.n, seed, options...)
	c.Register(echo())
	c.AwaitUp()
	c.Advance(30 * time.Second)
	for i := 0; o.loops && i < 10; i++ {
		c.Restart(o.n - 1)
		c.Advance(time.Second)
		c.AwaitUp()
	}
	oldest, _ := c.View(0).Oldest("")
	id, owner := "", -1
	for i := 0; owner < 0; i++ {
		id = fmt.Sprint(i)
		require.Less(t, i, 1000)
		_, err := c.Ask(0, "echo", id, nil)
		require.NoError(t, err)
		if at := c.Owner("echo", id); at >= 0 && (c.View(at).Self == oldest.ID) == o.coordinator {
			owner = at
		}
	}
	asker := (owner + 1) % o.n
	begin := c.Now()
	o.fail(c, owner)
	for {
		if _, err := c.AskWithin(100*time.Millisecond, asker, "echo", id, nil); err == nil && c.Owner("echo", id) >= 0 {
			return c.Now() - begin
		}
		c.Advance(50 * time.Millisecond)
		require.Less(t, c.Now()-begin, 3*time.Minute)
	}
}

// The table of outages in docs/operations.md says what they cost, to the second (SHD-4, AVL-5).
func TestOperationsSayWhatAnOutageCosts(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	for _, o := range outages {
		most := time.Duration(0)
		for seed := range uint64(2) {
			most = max(most, o.cost(t, seed+1))
		}
		row := fmt.Sprintf("| %s | %.0f s |", o.name, most.Seconds())
		if most > 10*time.Millisecond && most < time.Second {
			row = fmt.Sprintf("| %s | below 1 s |", o.name)
		}
		require.Contains(t, string(text), row, "it took %v", most)
	}
}
