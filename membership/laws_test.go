// The laws that a watcher demands of observed states, and that each of them can be broken.

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
)

func TestLawsCryOut(t *testing.T) {
	holds := func(s *members.State) *Machine {
		s.Seen = gossip.NewSeen(len(s.Members))
		return &Machine{core: core{st: s}}
	}
	fresh := func() (a, b, c *Machine) {
		base := stateOf([]string{"a up", "b up", "x up"}, "a").Draft().Commit(nid("x"))
		left, gone := base.Draft(), base.Draft()
		left.SetStatus(nid("b"), cluster.Leaving)
		left.Commit(nid("b"))
		gone.SetStatus(nid("b"), cluster.Down)
		gone.Commit(nid("a"))
		return holds(base), holds(left), holds(gone)
	}
	a, b, c := fresh()
	require.NoError(t, Laws(a, b, c))
	require.NoError(t, Laws(a, a, a))
	require.NoError(t, Laws(a, &Machine{}, c), "no state yet")

	a, b, c = fresh()
	b.st.Cluster++
	b.st.Digest++
	require.NoError(t, Laws(a, b, c), "another cluster")

	a, b, c = fresh()
	a.st.Digest++
	require.ErrorIs(t, Laws(a, b, c), members.ErrLaw, "a state that its digest does not name")

	a, b, c = fresh()
	b.st.Clock = a.st.Clock
	require.ErrorIs(t, Laws(a, b, c), members.ErrLaw, "two contents under one clock")

	a, b, c = fresh()
	c.st.Seen = gossip.NewSeen(4)
	require.ErrorIs(t, Laws(a, b, c), members.ErrLaw, "a seen set over others than the members")

	a, b, c = fresh()
	a.st.Members = append(a.st.Members[:0:0], a.st.Members...)
	a.st.Members[0].Status = cluster.ReadyForShutdown
	require.ErrorIs(t, Laws(a, b, c), members.ErrLaw, "a state that was changed after it was sealed")
}

// TestDownAllIsOneChange: a leader that ends itself with all others decides nothing on the way, as a leader that is
// alone for a moment would: it promotes nobody, so no number is given that dies with it (MEM-5, MEM-10).
func TestDownAllIsOneChange(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	late := w.start(4)
	all[2].dead = true
	w.run(20 * time.Second)
	w.join(late, 1)
	w.run(3 * time.Second)
	require.Contains(t, []cluster.Status{cluster.Joining, cluster.WeaklyUp}, all[0].m.st.Status(late.id))
	highest := all[0].m.st.HighestUp
	w.do(all[0], DownAllCommand{IDs: []peer.ID{all[1].id, all[2].id, late.id, {Addr: addr(9), Inc: 9}, all[0].id},
		Cause: cluster.CauseUnstable})
	st := all[0].m.st
	for _, m := range st.Members {
		require.Equal(t, cluster.Down, m.Status)
		require.Equal(t, cluster.CauseUnstable, m.Cause)
	}
	require.Len(t, st.Members, 4, "nobody was removed on the way")
	require.Equal(t, highest, st.HighestUp)
	require.ErrorIs(t, all[0].m.Do(w.now, DownAllCommand{}), ErrEnded)
}
