// Tests of the check of up-numbers.

package sim

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
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
			w := formed(t, 3, Config{})
			giver, joiner, other := w.hosts[0].proc, w.hosts[1].proc, w.hosts[2].proc
			if k.lost {
				downs(w, other, giver)
			}
			fresh := &proc{w: w, id: peer.ID{Addr: other.id.Addr, Inc: other.id.Inc + 1}}
			v := *giver.view
			v.Members = slices.Clone(v.Members)
			var shown membership.Member
			for i := range v.Members {
				if m := &v.Members[i]; m.ID == joiner.id {
					m.UpNumber = k.number
					shown = *m
				}
			}
			if k.ours {
				v.Members = append(v.Members, membership.Member{ID: fresh.id, Status: membership.Joining})
				slices.SortFunc(v.Members, func(a, b membership.Member) int { return a.ID.Compare(b.ID) })
			}
			giver.view, shown.UpNumber = &v, 50
			if k.taken {
				checks(w).ups[upKey{v.ClusterID, 50}] = other.id
			}
			require.Empty(t, checks(w).violations)
			checks(w).number(fresh, &v, &shown)
			require.Len(t, checks(w).violations, k.want, "%v", checks(w).violations)
		})
	}
}
