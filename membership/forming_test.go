// Tests of forming and joining in virtual time (JOIN-1, JOIN-2, MEM-9; scenario 20 of the reference).

package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

func TestOneNodeFormsACluster(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(1, "b", "a")
	w.join(a)
	require.Equal(t, []EventKind{MemberUp, LeaderChanged, RoleLeaderChanged, RoleLeaderChanged, ClusterFormed},
		kindsOf(a.events))
	require.Equal(t, "this node is the only seed, and remembers no cluster", a.events[4].Detail)
	m, ok := a.view.SelfMember()
	require.True(t, ok)
	require.Equal(t, cluster.Member{ID: a.id, Status: cluster.Up, UpNumber: 1, Roles: []string{"a", "b"}}, m)
	require.True(t, a.view.Converged)
	require.Equal(t, uint64(1_750_000_000_000), a.view.Birth>>birthLowBits)
	require.NotZero(t, a.view.ClusterID)
	require.ErrorIs(t, a.m.Do(w.now, JoinCommand{}), ErrJoining)
	w.run(10 * time.Second)
	require.Empty(t, w.counts, "nobody to talk to")
	w.do(a, LeaveCommand{})
	require.Equal(t, EndLeft, a.ended.Kind)
	require.Empty(t, a.view.Members)
	last := a.events[5]
	require.Equal(t, MemberRemoved, last.Kind)
	require.ErrorIs(t, a.m.Do(w.now, JoinCommand{}), ErrEnded)
}

// Forming waits for no interval: the first seed forms when all others said no, and notifies the nodes that asked too
// early.
func TestFormingIsFast(t *testing.T) {
	for n := 2; n <= 5; n++ {
		for seed := range uint64(10) {
			w := newWorld(t, seed)
			w.cluster(n)
			require.Less(t, w.now, 2500*time.Millisecond, "%d nodes, seed %d", n, seed)
		}
	}
}

func TestStartOrderDoesNotMatter(t *testing.T) {
	w := newWorld(t, 1)
	for _, n := range []int{3, 2, 4} {
		w.join(w.start(n), 1, 2, 3)
		w.run(3 * time.Second)
	}
	for _, a := range w.actors {
		require.Nil(t, a.view, "only the first seed may form")
	}
	w.join(w.start(1), 1, 2, 3)
	require.Less(t, w.until(10*time.Second, "settled", w.settled), 5*time.Second)
	first, _ := w.actors[0].view.Oldest("")
	require.Equal(t, addr(1), first.ID.Addr)
}

// JOIN-2: seeds that do not answer hold the first one back for the seed timeout only.
func TestFirstSeedFormsAlone(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(1)
	w.join(a, 1, 2, 3)
	w.run(4900 * time.Millisecond)
	require.Nil(t, a.view)
	w.run(200 * time.Millisecond)
	require.True(t, w.settled())
}

// Scenario 20: with the first seed dead nobody forms; each ends when its own time limit has passed.
func TestScenario20JoinTimeout(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg = Config{JoinTimeout: 5 * time.Second, SeedTimeout: 2 * time.Second}
	s2, n := w.start(2), w.start(3)
	w.join(s2, 1, 2)
	w.join(n, 1, 2)
	w.run(6 * time.Second)
	for _, a := range w.actors {
		require.NotNil(t, a.ended)
		require.Equal(t, EndJoinTimeout, a.ended.Kind)
		require.Equal(t, 5*time.Second, a.ended.At)
		require.Nil(t, a.view)
	}
}

// Scenario 20: a probe is answered with no before the node is a member, with its cluster's id and birth afterwards.
func TestScenario20ProbeAnswers(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(1)
	asker := peer.ID{Addr: addr(9), Inc: 9}
	ask := func() peer.Mail {
		require.NoError(t, a.m.Handle(w.now, w.now, asker, wire.KindJoinProbe, wire.AppendU64(nil, 77)))
		var out Effects
		a.m.Drain(&out)
		require.Len(t, out.Mail, 1)
		return out.Mail[0]
	}
	nak := ask()
	require.Equal(t, wire.KindJoinProbeNak, nak.Kind)
	to, nonce, err := readProbeNak(nak.Body)
	require.NoError(t, err)
	require.Equal(t, [2]uint64{9, 77}, [2]uint64{to, nonce})
	w.join(a)
	ack, err := readProbeAck(ask().Body)
	require.NoError(t, err)
	require.Equal(t, probeAckBody{9, 77, a.view.ClusterID, a.view.Birth, 0, nil}, ack)
}

func TestBirths(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(1)
	a.m.cfg.MinBirth = 1 << 62
	w.join(a)
	require.Equal(t, uint64(1<<62+1), a.view.Birth, "above every birth under which it issued fences")

	w = newWorld(t, 1)
	w.join(w.start(1))
	b := w.start(2)
	b.m.cfg.MinBirth = 1 << 63
	w.join(b, 1)
	w.run(time.Second)
	require.Equal(t, EndJoinRefused, b.ended.Kind)
	require.Contains(t, b.ended.Reason, fmt.Sprint(w.actors[0].view.Birth))
	require.Contains(t, b.ended.Reason, fmt.Sprint(uint64(1<<63)))
	require.Len(t, w.actors[0].view.Members, 1)
}
