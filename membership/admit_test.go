// Tests of which joiners are let in (JOIN-1, MEM-10).

package membership

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/internal/core/members"
)

// TestJoinsThatNeverComeAlive: a join is one frame. When as many as there are Up members, sixteen at least, are joining
// and unheard, further newcomers are asked to come again; one that is heard does not count.
func TestJoinsThatNeverComeAlive(t *testing.T) {
	for _, c := range []struct {
		up, lost, heard int
		busy            bool
	}{{3, 15, 9, false}, {3, 16, 0, true}, {18, 17, 3, false}, {18, 18, 0, true}} {
		m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
		v := members.Version{Cluster: 1, Birth: 1, HighestUp: 100}
		for i := range c.up + c.lost + c.heard {
			o := cluster.Member{ID: ip(i + 1), Status: cluster.Joining}
			if i < c.up {
				o.Status, o.UpNumber = cluster.Up, uint32(i+1)
			} else if i < c.up+c.lost {
				v.Reach = v.Reach.With(ip(1), o.ID, true)
			}
			v.Add(o)
		}
		m.phase, m.st = member, members.NewState(v).Seal()
		j := joinBody{id: ip(200)}
		why, text := m.admission.refuses(&j)
		require.Equal(t, c.busy, why == refuseBusy, "%+v", c)
		if c.busy {
			require.Contains(t, text, "nobody hears")
		}
	}
}
