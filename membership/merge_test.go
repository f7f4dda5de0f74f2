// Tests of merging as a cost: what it allocates, what it shares, and how it stands to a merge with maps (MEM-4,
// CARD-4).

package membership

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
)

// concurrent returns two versions of a state of n members that neither is newer than the other: on each side something
// happened to every tenth member, on one side somebody is accused as well. They share nothing, as if read from a wire.
func concurrent(n int) (a, b *members.State) {
	side := func(offset int) *members.State {
		s := crowd(n).Draft()
		for i := offset; i < n; i += 10 {
			s.Members[i].Status = cluster.Leaving
		}
		if offset == 0 {
			s.Reach = s.Reach.With(s.Members[1].ID, s.Members[2].ID, true)
		}
		return s.Commit(s.Members[offset].ID)
	}
	return side(0), side(5)
}

// joiner returns a member that merges b into a and publishes, as a function.
func joiner(a, b *members.State) func() *cluster.View {
	m := New(a.Members[0].ID, Config{}, rand.New(rand.NewPCG(1, 1)))
	m.phase = member
	return func() *cluster.View {
		next, how := m.store.NewerOrMerged(a, b, m.held)
		if how != members.Merged {
			panic(how)
		}
		m.install(next, false)
		m.view = nil
		return m.nextView()
	}
}

// The merge of two states of 1,000 members into a published view takes three allocations: the state with its view, the
// members, the clock.
func TestMergeAllocations(t *testing.T) {
	a, b := concurrent(1000)
	publish := joiner(a, b)
	v := publish()
	require.Len(t, v.Members, 1000)
	require.Equal(t, []cluster.Accusation{{Observer: v.Members[1].ID, Subject: v.Members[2].ID}}, v.Accusations)
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() { publish() }), 3.0)
}

// A converged leader of a thousand that has nothing to do allocates nothing and drafts no state to find that out.
func TestIdleLeaderDraftsNothing(t *testing.T) {
	s := crowd(1000)
	for i := range s.Members {
		s.Seen.Add(i)
	}
	m := New(s.Members[0].ID, Config{}, rand.New(rand.NewPCG(1, 1)))
	m.phase = member
	m.install(s, false)
	require.True(t, members.Converged(m.st, m.self, nil))
	require.Zero(t, testing.AllocsPerRun(10, m.leading.duties))
	require.Same(t, s, m.st)
}
