// Laws of crews: which workers are in them, and which are offered a message (SHD-12).

package plane

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

func rid(i int) peer.ID {
	return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i)), Inc: uint64(i)}
}

// Every node that has a shard of the pool has as many workers as it is to have, evenly among its shards, each in a
// shard that lives there, by an id that says so. A node that is not usable has none, nor has a shard without a home.
func TestCrewLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards, perNode := rapid.IntRange(1, 40).Draw(t, "shards"), rapid.IntRange(1, 9).Draw(t, "workers")
		homes, owned := map[route.ShardID]peer.ID{}, map[peer.ID]int{}
		self, shunned := rid(1), rid(4)
		for s := range shards {
			if at := rapid.IntRange(0, 4).Draw(t, "home"); at > 0 {
				homes[route.ShardID(s)] = rid(at)
				owned[rid(at)]++
			}
		}
		home := func(s route.ShardID) (peer.ID, bool) { at, ok := homes[s]; return at, ok }
		c := MakeCrew(self, NewNames(uint32(shards)), perNode, home,
			func(id peer.ID) bool { require.NotEqual(t, self, id); return id != shunned })
		teams := c.There
		if owned[self] > 0 {
			teams = append(slices.Clone(teams), Team{self, c.Here})
		} else {
			require.Empty(t, c.Here)
		}
		delete(owned, shunned)
		require.Len(t, teams, len(owned))
		for _, team := range teams {
			require.Len(t, team.Workers, perNode)
			seen, of := map[string]bool{}, map[route.ShardID]int{}
			for _, w := range team.Workers {
				require.Equal(t, team.Node, homes[w.Shard])
				require.Equal(t, w.Shard, route.ShardOf(w.ID, uint32(shards)))
				require.False(t, seen[w.ID])
				seen[w.ID] = true
				of[w.Shard]++
			}
			require.Len(t, of, min(perNode, owned[team.Node]))
			for _, n := range of {
				require.LessOrEqual(t, n, (perNode+len(of)-1)/len(of))
			}
		}
	})
}

// Names do not depend on the order in which they are asked for, and are found in few looks, however many shards there
// are: nodes of a large pool find them in one step.
func TestNames(t *testing.T) {
	const shards = 10_000
	up, down := NewNames(shards), NewNames(shards)
	for s := range route.ShardID(shards) {
		id := up.Of(s, 1)
		require.Equal(t, s, route.ShardOf(id, shards))
		require.NotEqual(t, id, up.Of(s, 0))
	}
	for s := route.ShardID(shards - 1); s > 0; s-- {
		require.Equal(t, up.Of(s, 1), down.Of(s, 1))
	}
	require.Less(t, up.looked, uint64(20*shards))
}

// A message is offered to two workers here, then to one on each of two other nodes, the less loaded first, until one
// takes it; over many draws to all.
func TestOfferLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		here, there := rapid.IntRange(0, 4).Draw(t, "here"), rapid.IntRange(0, 4).Draw(t, "there")
		takes := rapid.IntRange(1, 5).Draw(t, "who takes it")
		c := &Crew{}
		for i := range here {
			c.Here = append(c.Here, Worker{ID: fmt.Sprint(i)})
		}
		loads := map[int]int{}
		for i := range there {
			c.There = append(c.There, Team{Workers: []Worker{{ID: fmt.Sprint("t", i)}, {ID: fmt.Sprint("t", i)}}})
			loads[i] = rapid.IntRange(0, 3).Draw(t, "load")
		}
		var tried []string
		looked := []int{}
		load := func(i int) int { looked = append(looked, loads[i]); return loads[i] }
		some := c.Offer(rapid.Uint64().Draw(t, "r"), load, func(w *Worker) bool {
			tried = append(tried, w.ID)
			return len(tried) < takes
		})
		require.Equal(t, here+there > 0, some)
		require.Len(t, tried, min(takes, min(here, 2)+min(there, 2)))
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(tried))), len(tried), "nobody is asked twice")
		for i, id := range tried {
			require.Equal(t, i >= min(here, 2), id[0] == 't', "here first: %v", tried)
		}
		if len(looked) > 0 {
			require.Len(t, looked, 2)
			first := tried[min(here, 2)]
			require.Equal(t, min(looked[0], looked[1]), loads[int(first[1]-'0')])
		}
	})
	c := &Crew{Here: make([]Worker, 3), There: make([]Team, 3)}
	for i := range 3 {
		c.Here[i].ID = fmt.Sprint(i)
		c.There[i].Workers = []Worker{{ID: fmt.Sprint(i, "a")}, {ID: fmt.Sprint(i, "b")}}
	}
	got := map[string]int{}
	for r := range uint64(3000) {
		c.Offer(r*0x9e3779b97f4a7c15, func(int) int { return 0 }, func(w *Worker) bool { got[w.ID]++; return true })
	}
	require.Len(t, got, 9)
	for id, n := range got {
		require.Greater(t, n, 800, id)
	}
}

func TestNextWorker(t *testing.T) {
	for _, err := range []error{route.ErrMailboxFull, route.ErrQueueFull, route.ErrBudgetFull, &route.LinkFullError{},
		&route.ParkFullError{}, route.ErrPeerLost, route.ErrCrashed, route.NotRun(route.ErrMailboxFull)} {
		require.True(t, NextWorker(err), "%v", err)
	}
	for _, err := range []error{nil, route.ErrTooLarge, route.ErrStopped, route.ErrSuspended, route.ErrNoHost,
		route.ErrHandler, route.ErrTimeout} {
		require.False(t, NextWorker(err), "%v", err)
	}
}

// Choosing costs nothing but what its callbacks do.
func TestOfferAllocatesNothing(t *testing.T) {
	c := &Crew{Here: make([]Worker, 2), There: []Team{{Workers: make([]Worker, 1)}, {Workers: make([]Worker, 1)}}}
	n, r := 0, uint64(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r += 0x9e3779b97f4a7c15
		c.Offer(r, func(i int) int { return n + i }, func(*Worker) bool { n++; return true })
	}))
}
