// Tests of the check of up-numbers.

package check

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/sim/world"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/sbr"
	"github.com/kith-io/kith/sim/setup"
)

// TestNumberGivenByTheLost: a leader behind a cut gives the last number to its joiner, is downed before anybody hears
// of it, and lets in a newcomer. The others have skipped that number and given the next one. The newcomer shows the
// first until it meets them; nobody else may, and no other member may bear it (MEM-5).
func TestNumberGivenByTheLost(t *testing.T) {
	for name, k := range map[string]struct {
		lost, ours bool
		number     uint32 // that the lost one says
		taken      bool   // by another member
		want       int
	}{
		"let in by the lost":         {true, true, 50, false, 0},
		"the giver is not lost":      {false, true, 50, false, 1},
		"not let in by it":           {true, false, 50, false, 1},
		"it says another number":     {true, true, 51, false, 1},
		"the number is another's":    {true, true, 50, true, 1},
		"others know of no other so": {true, true, 0, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := formed(t, 3, setup.Config{})
			giver, joiner, other := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
			if k.lost {
				downs(w, other, giver)
			}
			fresh := &world.Process{World: w, ID: peer.ID{Addr: other.ID.Addr, Inc: other.ID.Inc + 1}}
			v := *giver.View
			v.Members = slices.Clone(v.Members)
			var shown membership.Member
			for i := range v.Members {
				if m := &v.Members[i]; m.ID == joiner.ID {
					m.UpNumber = k.number
					shown = *m
				}
			}
			if k.ours {
				v.Members = append(v.Members, membership.Member{ID: fresh.ID, Status: membership.Joining})
				slices.SortFunc(v.Members, func(a, b membership.Member) int { return a.ID.Compare(b.ID) })
			}
			giver.View, shown.UpNumber = &v, 50
			if k.taken {
				checks(w).ups[upKey{v.ClusterID, 50}] = []peer.ID{other.ID}
			}
			require.Empty(t, checks(w).Violations)
			checks(w).number(fresh, &v, &shown)
			require.Len(t, checks(w).Violations, k.want, "%v", checks(w).Violations)
		})
	}
}

// TestNumberOfTwoSides: where a strategy lets both sides of a cut live a number may be given on each, also to two that
// have joined since and know nothing of one another, and a view may list both when they have met. It may not where they
// share a member, or the strategy is another.
func TestNumberOfTwoSides(t *testing.T) {
	for name, k := range map[string]struct {
		strategy sbr.Strategy
		shared   bool
		want     int
	}{
		"two sides":          {node.ResolverUnsafeAutoDown, false, 0},
		"one side":           {node.ResolverUnsafeAutoDown, true, 1},
		"one side has to go": {node.ResolverKeepMajority, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := setup.Config{}
			c.Resolver.Strategy = k.strategy
			w := formed(t, 3, c)
			witness, bearer, both := w.Hosts[0].Process, w.Hosts[1].Process, w.Hosts[2].Process
			side := func(of *world.Process) *membership.View {
				v := *of.View
				v.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m membership.Member) bool {
					return m.ID != of.ID && (m.ID != both.ID || !k.shared)
				})
				return &v
			}
			bearer.View = side(bearer)
			v := side(witness)
			checks(w).ups[upKey{v.ClusterID, 50}] = []peer.ID{bearer.ID}
			v.Members[0].UpNumber = 50
			checks(w).unique(witness, v, &v.Members[0])
			require.Len(t, checks(w).Violations, k.want, "%v", checks(w).Violations)
			met := *both.View
			met.Members = slices.Clone(met.Members)
			for i := range met.Members {
				if id := met.Members[i].ID; id == witness.ID || id == bearer.ID {
					met.Members[i].UpNumber = 50
				}
			}
			checks(w).distinct(both, &met)
			require.Len(t, checks(w).Violations, 2*k.want, "both meet: %v", checks(w).Violations)
		})
	}
}
