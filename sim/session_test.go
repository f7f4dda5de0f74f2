// Session leases in the simulator: how soon a lost owner's entities live again, and what the store's absence costs.

package sim

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
)

// sessions has all nodes of a cluster hold session leases.
var sessions = With(func(c *Config) { c.SessionTTL, c.SessionEnds = 5*time.Second, 2*time.Minute })

// TestSessionsShortenOutages: the page's table of outages with session leases, to a tenth of a second (SHD-4, AVL-5).
func TestSessionsShortenOutages(t *testing.T) {
	text, err := os.ReadFile("../docs/contributing/session.md")
	require.NoError(t, err)
	kill := func(c *Cluster, owner int) { c.Crash(owner) }
	for _, o := range []outage{
		{name: "the owner is killed (kill -9)", n: 5, fail: kill},
		{name: "its machine dies, or is cut off", n: 5, fail: func(c *Cluster, owner int) { c.PowerOff(owner) }},
		{name: "the coordinator is killed, which owns the entity too", n: 5, coordinator: true, fail: kill},
		{name: "the owner is killed in a cluster of ten", n: 10, fail: kill},
		{name: "the owner stands still for 30 s", n: 5, fail: func(c *Cluster, owner int) { c.Pause(owner, 30*time.Second) }},
	} {
		most := time.Duration(0)
		for seed := range uint64(4) {
			most = max(most, o.cost(t, seed+1, sessions))
		}
		require.Less(t, most, 6500*time.Millisecond, o.name)
		require.Contains(t, string(text), fmt.Sprintf("| %s | %.1f s |", o.name, most.Seconds()))
	}
}

// answers reports whether every entity of a cluster answers to a node.
func answers(c *Cluster, asker int) bool {
	for i := range 20 {
		if _, err := c.AskWithin(100*time.Millisecond, asker, "echo", fmt.Sprint(i), nil); err != nil {
			return false
		}
	}
	return true
}

// running returns the incarnations that run.
func (c *Cluster) running() (ids []string) {
	for _, p := range c.w.Running() {
		ids = append(ids, p.ID.String())
	}
	return ids
}

func newSessions(t *testing.T, n int, seed uint64) *Cluster {
	c := New(t, n, seed, sessions)
	c.Register(echo())
	c.AwaitUp()
	c.Advance(10 * time.Second)
	require.True(t, answers(c, 0))
	return c
}

// TestSessionStoreAway: while the store is away for a minute no owner handles anything; then all go on, and nobody has
// ended (the rule goes-on; MEM-10).
func TestSessionStoreAway(t *testing.T) {
	c := newSessions(t, 4, 1)
	before := c.running()
	c.w.Leases.Sessions.Away = []int{0, 1, 2, 3}
	c.Advance(5 * time.Second)
	for i := range 4 {
		p := c.w.Hosts[i].Process
		require.True(t, p.Held())
		h := p.Node.Health()
		require.Equal(t, membership.StateSuspended, h.State)
		require.Contains(t, h.Reason, "session lease has run out: the store is away")
	}
	require.False(t, answers(c, 0))
	c.Advance(55 * time.Second)
	require.True(t, c.w.Hosts[0].Process.Held())
	c.w.Leases.Sessions.Away = nil
	c.Advance(2 * time.Second)
	require.True(t, answers(c, 0))
	require.Equal(t, before, c.running())
	require.Zero(t, c.w.Leases.Sessions.Swaps)
	require.Equal(t, 4, c.w.Leases.Sessions.Backs)
}

// TestSessionStoreAwayTooLong: a node that may ask no more ends by itself, and says why.
func TestSessionStoreAwayTooLong(t *testing.T) {
	c := newSessions(t, 3, 1)
	c.w.Leases.Sessions.Away = []int{0, 1, 2}
	c.Advance(2 * time.Minute)
	require.Empty(t, c.running())
	require.Equal(t, 3, c.w.Leases.Sessions.GaveUp)
	for _, p := range c.w.Processes {
		require.Equal(t, membership.EndIsolated, p.Ended.Kind)
		require.Contains(t, p.Ended.Reason, "without a session lease for 1m43s")
	}
}

// TestOneIsCutOffFromTheSessionStore: it handles nothing, is a member still, and comes back; one that is away for
// longer than it may ask ends, and its entities live elsewhere.
func TestOneIsCutOffFromTheSessionStore(t *testing.T) {
	c := newSessions(t, 3, 1)
	c.w.Leases.Sessions.Away = []int{1}
	c.Advance(time.Minute)
	require.True(t, c.w.Hosts[1].Process.Held())
	require.Len(t, c.running(), 3)
	require.Zero(t, c.w.Leases.Sessions.Swaps, "nobody holds it for lost")
	c.w.Leases.Sessions.Away = nil
	c.Advance(2 * time.Second)
	require.True(t, answers(c, 0))
	c.w.Leases.Sessions.Away = []int{1}
	c.Advance(2 * time.Minute)
	require.Len(t, c.running(), 2)
	require.True(t, answers(c, 0))
}

// TestNoSessionNoDecision: a node that is cut off from the others while its session has run out downs nobody, though
// its side would live: they may have ended it. It decides once it holds one (storm 12600001009).
func TestNoSessionNoDecision(t *testing.T) {
	c := newSessions(t, 2, 1)
	c.w.Leases.Sessions.Away = []int{0}
	c.Advance(10 * time.Second)
	require.True(t, c.w.Hosts[0].Process.Held())
	c.Partition([]int{0}, []int{1})
	c.Advance(40 * time.Second)
	require.True(t, c.Running(0))
	require.Len(t, c.View(0).Unreachable, 1)
	require.Len(t, c.View(0).Members, 2, "nobody is removed")
	require.Zero(t, c.w.Leases.Sessions.Swaps)
	c.w.Leases.Sessions.Away = nil
	c.Advance(5 * time.Second)
	require.Len(t, c.View(0).Members, 1, "it has decided")
	require.True(t, c.Running(0))
}

// TestNobodyBesideThoseThatEndedItsSession: members without the role end the session of the last one with it, live on,
// and let another one in. The one that was killed starts again, cut off from them, and forms no cluster beside theirs
// (storm 13100002475; JOIN-1).
func TestNobodyBesideThoseThatEndedItsSession(t *testing.T) {
	c := New(t, 4, 1, sessions, With(func(c *Config) {
		c.Records, c.Roles = true, [][]string{{"store"}, nil, nil, {"store"}}
		c.Resolver.Role = "store"
	}))
	c.AwaitUp()
	c.Advance(10 * time.Second)
	c.Crash(0)
	c.Advance(10 * time.Second)
	c.Crash(3)
	c.Advance(6 * time.Second)
	require.Len(t, c.View(1).Members, 2, "the sessions of both are ended")
	c.Restart(0)
	c.Advance(5 * time.Second)
	require.Len(t, c.View(1).Members, 3)
	c.Partition([]int{3}, []int{0, 1, 2})
	c.Restart(3)
	c.Advance(2 * time.Minute)
	require.Nil(t, c.View(3), "they may live")
	c.Heal()
	c.Advance(30 * time.Second)
	require.Len(t, c.View(3).Members, 4)
	require.Equal(t, c.View(0).ClusterID, c.View(3).ClusterID)
}

// TestSessionOutlivesNoSwap: a node that is cut off from the others and from the store is ended; when it is back it
// hears that, and ends. One that is cut off from the others alone keeps its session until its resolver stops it, and
// its entities live nowhere else before.
func TestSessionOutlivesNoSwap(t *testing.T) {
	for name, away := range map[string][]int{"from both": {2}, "from the others": nil} {
		t.Run(name, func(t *testing.T) {
			c := newSessions(t, 5, 3)
			lost := c.w.Hosts[2].Process
			c.w.Leases.Sessions.Away = away
			c.Partition([]int{2}, []int{0, 1, 3, 4})
			c.Advance(7 * time.Second)
			require.Equal(t, away != nil, c.w.Leases.Sessions.Ended(lost.ID))
			require.Equal(t, away != nil, lost.Held())
			require.Equal(t, away != nil, answers(c, 0))
			c.Advance(time.Minute)
			require.True(t, c.w.Leases.Sessions.Ended(lost.ID))
			require.True(t, answers(c, 0))
			c.Heal()
			c.w.Leases.Sessions.Away = nil
			c.Advance(10 * time.Second)
			require.False(t, slices.Contains(c.running(), lost.ID.String()))
		})
	}
}
