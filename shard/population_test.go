// The takeover time by the number of members there have been lately.

package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
)

// numberedView is a view of the members with these up-numbers; zero is one that joins.
func numberedView(numbers ...uint32) *membership.View {
	v := &membership.View{}
	for i, n := range numbers {
		at := peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1))
		m := membership.Member{ID: peer.ID{Addr: at, Inc: 1}, Status: membership.Up, UpNumber: n}
		if n == 0 {
			m.Status = membership.Joining
		}
		v.Members = append(v.Members, m)
	}
	return v
}

// TestPopulationDecays: a removed member counts for ten minutes, at most eleven; one that never came Up does not count
// (MEM-10).
func TestPopulationDecays(t *testing.T) {
	for _, start := range []time.Duration{0, 1, time.Minute - 1, 90 * time.Second, 100 * time.Hour} {
		var c population
		c.pass(start)
		all := numberedView(1, 2, 3, 9, 0)
		c.note(nil, all)
		require.Equal(t, 4, c.members())
		require.Equal(t, uint32(9), c.highest)
		few := &membership.View{Members: all.Members[:1]}
		c.note(all, few)
		require.Equal(t, 4, c.members())
		c.pass(start + 10*time.Minute - 1)
		require.Equal(t, 4, c.members(), "removed %v after the start", start)
		c.note(few, few)
		require.Equal(t, 4, c.members(), "it counts once")
		c.pass(start + 11*time.Minute)
		require.Equal(t, 1, c.members())
		require.Equal(t, uint32(9), c.highest)
		c.left(peer.MustAddr("10.0.0.9:1"))
		require.Equal(t, 2, c.members())
		c.pass(start + time.Hour)
		require.Equal(t, 1, c.members())
	}
}

// TestTakeoverIsFixedAtTheLoss: it goes by the members there were then, not by those that come or go afterwards.
func TestTakeoverIsFixedAtTheLoss(t *testing.T) {
	by := func(members int) time.Duration { return time.Duration(members) * 10 * time.Second }
	m := New(peer.ID{}, Config{TakeoverFor: by}, nil)
	m.begin(time.Second)
	all := numberedView(1, 2, 3, 4)
	m.past.population.note(nil, all)
	require.Equal(t, 40*time.Second, m.takeover())
	require.Equal(t, 40*time.Second, m.blindTakeover())
	few := &membership.View{Members: all.Members[:1]}
	m.past.population.note(all, few)
	m.past.note(m.now, m.takeover(), m.blindTakeover(), all, few)
	require.Len(t, m.past.losses, 3)
	require.Equal(t, 40*time.Second, m.takeover(), "the removed count on")
	m.past.population = population{}
	m.past.population.note(nil, few)
	require.Equal(t, 10*time.Second, m.takeover())
	m.past.age(41*time.Second - 1)
	require.Len(t, m.past.losses, 3)
	require.Equal(t, 41*time.Second, m.past.next())
	m.past.age(41 * time.Second)
	require.Empty(t, m.past.losses)
}

// TestBlindTakeover: one that came late does not know how many there were, but never more than up-numbers.
func TestBlindTakeover(t *testing.T) {
	by := func(members int) time.Duration { return time.Duration(members) * 10 * time.Second }
	m := New(peer.ID{}, Config{TakeoverFor: by}, nil)
	m.begin(time.Second)
	v := numberedView(0, 7)
	m.past.population.note(nil, v)
	m.past.note(m.now, m.takeover(), m.blindTakeover(), nil, v)
	require.Equal(t, 71*time.Second, m.past.incompleteUntil)

	m.view = v
	gone := func(n int) peer.ID { return peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.1.%d:1", n)), Inc: 1} }
	m.learn(recentlyLost{Complete: true, Lost: []loss{{ID: gone(1), Age: 0}, {ID: gone(2), Age: 0, Settled: true}},
		Roll: peer.SetOf(v.Members[1].ID)})
	require.Zero(t, m.past.incompleteUntil)
	require.Equal(t, 30*time.Second, m.takeover(), "those it is told of count")
	require.Equal(t, 31*time.Second, m.past.losses[0].until)
}

// TestCrashLoopIsNoCrowd: a node that restarts again and again at one address counts once, so the next loss costs no
// more; as many that come and go at addresses of their own count, for an owner may have known them all (MEM-10).
func TestCrashLoopIsNoCrowd(t *testing.T) {
	for _, loops := range []bool{true, false} {
		var c population
		old := numberedView(1, 2, 3)
		c.note(nil, old)
		for i := range 20 {
			c.pass(time.Duration(i) * 10 * time.Second)
			next := &membership.View{Members: slices.Clone(old.Members)}
			id := &next.Members[2].ID
			if id.Inc++; !loops {
				id.Addr = peer.MustAddr(fmt.Sprintf("10.0.2.%d:1", i))
			}
			next.Members[2].UpNumber++
			both := &membership.View{Members: append(slices.Clone(old.Members), next.Members[2])}
			both.Members[2].Status = membership.Down
			c.note(old, both)
			if loops {
				require.Equal(t, 3, c.members(), "the one that is gone and the one that comes")
			}
			c.note(both, next)
			old = next
		}
		want := 3
		if !loops {
			want = 23
		}
		require.Equal(t, want, c.members())
		last := &membership.View{Members: old.Members[:2]}
		c.note(old, last)
		require.Equal(t, want, c.members())
		c.pass(15 * time.Minute)
		require.Equal(t, 2, c.members())
	}
}
