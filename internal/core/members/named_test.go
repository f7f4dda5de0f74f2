// Tests that one clock names one content though members are removed with changes that few have seen (GOS-2, MEM-1).

package members

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/peer"
)

// received returns what self holds after a state has come, as the gossip of a machine makes it.
func received(local, remote *State, self peer.ID) (*State, Outcome) {
	next, how := new(work).newerOrMerged(local, remote)
	if how == Bumped {
		next = next.Draft().Commit(self)
	}
	return next, how
}

// moved returns the next version, in which by has moved a member on.
func moved(s *State, by, id peer.ID, to cluster.Status) *State {
	d := s.Draft()
	d.SetStatus(id, to)
	return d.Commit(by)
}

// TestChangeOfTheRemoved: two nodes that have removed x join with states that x knew, one with the last change of x and
// one without. Then a change of the node without it must not take that change back. Found by storm 12880000055.
func TestChangeOfTheRemoved(t *testing.T) {
	base := stateOf([]string{"a up", "b up", "c up", "d up", "x up"}, "x").Draft().Commit(nid("x"))
	removed := base.Draft()
	removed.Remove(nid("x"))
	removed = removed.Commit(nid("a"))

	joining := base.Draft()
	joining.Add(cluster.Member{ID: nid("j"), Status: cluster.Joining})
	joining = joining.Commit(nid("c"))
	weakly := moved(joining, nid("x"), nid("j"), cluster.WeaklyUp)

	a, how := received(removed, weakly, nid("a"))
	require.Equal(t, Bumped, how)
	b, how := received(removed, joining, nid("b"))
	require.Equal(t, Bumped, how)
	c, how := received(joining, removed, nid("c"))
	require.Equal(t, Bumped, how)
	require.NotEqual(t, gossip.Same, a.Clock.Compare(b.Clock))

	b, _ = received(b, a, nid("b"))
	require.Equal(t, cluster.WeaklyUp, b.Status(nid("j")))
	c = c.Draft().Commit(nid("c"))
	b, how = received(b, c, nid("b"))
	require.Equal(t, Merged, how)
	require.Equal(t, cluster.WeaklyUp, b.Status(nid("j")))

	// A row is its observer's: a state that adds nothing else needs no change of the node that joins.
	row := base.Draft()
	row.Reach = row.Reach.With(nid("d"), nid("c"), true)
	_, how = received(removed, row.Commit(nid("d")), nid("a"))
	require.Equal(t, Merged, how)
}

// TestNothingGoesBack: nodes change their states, remove one another and hear of states of any age. What one holds
// never goes back, and one clock names one content.
func TestNothingGoesBack(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	onward := map[cluster.Status]cluster.Status{cluster.Joining: cluster.WeaklyUp, cluster.Up: cluster.Leaving,
		cluster.Leaving: cluster.Exiting}
	rapid.Check(t, func(t *rapid.T) {
		base := stateOf([]string{"a up", "b up", "c up", "d up", "x joining"}, "")
		holds, all := map[string]*State{}, []*State{base}
		for _, n := range names {
			holds[n] = base
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n := rapid.SampledFrom(names).Draw(t, "node")
			s := holds[n]
			id := rapid.SampledFrom(s.Members).Draw(t, "member").ID
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				s = moved(s, nid(n), id, onward[s.Status(id)])
			case 1:
				s = s.Draft()
				s.Reach = s.Reach.With(nid(n), id, id != nid(n))
				s = s.Commit(nid(n))
			case 2:
				if id != nid(n) {
					s = s.Draft()
					s.SetDown(id, nid(n), cluster.CauseResolver)
					s.Remove(id)
					s = s.Commit(nid(n))
				}
			default:
				if other := rapid.SampledFrom(all).Draw(t, "heard"); other.Has(nid(n)) {
					s, _ = received(s, other, nid(n))
				}
			}
			for _, m := range holds[n].Members {
				_, dead := s.Tomb(m.ID)
				require.True(t, dead || m.Status.Rank() <= s.Status(m.ID).Rank() && s.Has(m.ID), "%v went back", m.ID)
			}
			for _, o := range all {
				require.False(t, o.Clock.Compare(s.Clock) == gossip.Same && o.Digest != s.Digest, "one clock, two contents")
			}
			holds[n], all = s, append(slices.Clip(all), s)
		}
	})
}
