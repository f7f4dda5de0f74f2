// Tests of the options of the early specification: deputies, rounds to unreachable members, the overview (GOS-9,
// GOS-10).

package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// statusRounds counts the statuses of node a by receiver during n rounds.
func statusRounds(a *actor, w *world, n int) map[string]int {
	sent := map[string]int{}
	for range n {
		a.m.begin(w.now, a.id)
		a.m.exchange.round()
		for _, mail := range mailOf(a.m) {
			if mail.Kind == wire.KindStatus {
				sent[mail.To.String()]++
			}
		}
	}
	return sent
}

// GOS-9: one status a round; with deputies one of them gets another by chance, with the other option an unreachable
// one.
func TestExtraTargets(t *testing.T) {
	const rounds = 4000
	w := newWorld(t, 3)
	all := w.cluster(6)
	lost := all[5]
	w.crash(lost)
	a := all[4]
	w.until(20*time.Second, "unreachable", func() bool { return a.m.st.Reach.Accuses(a.id, lost.id) })
	total := func(sent map[string]int) (n int) {
		for _, k := range sent {
			n += k
		}
		return n
	}
	sent := statusRounds(a, w, rounds)
	require.Equal(t, rounds, total(sent))
	require.Zero(t, sent[lost.id.String()], "it accuses that one itself")

	a.m.cfg.GossipToUnreachable = true
	sent = statusRounds(a, w, rounds)
	require.InDelta(t, rounds/5, sent[lost.id.String()], 150, "1 unreachable of 4 others live: 1/(4+1)")
	require.InDelta(t, rounds+rounds/5, total(sent), 150)

	a.m.cfg.GossipToUnreachable, a.m.cfg.Deputies = false, 2
	sent = statusRounds(a, w, rounds)
	// Half of the rounds meet a deputy (nodes 2 and 3 of 1 to 4); the others go to one with 2/(4+1).
	require.InDelta(t, rounds+rounds/5, total(sent), 200)
	require.Greater(t, sent[all[1].id.String()], sent[all[0].id.String()]+200)
	require.Greater(t, sent[all[2].id.String()], sent[all[3].id.String()]+200)
}

// What an unreachable member answers is heard by members that gossip to it, and ignored by others.
func TestAnswersOfTheUnreachable(t *testing.T) {
	for _, option := range []bool{false, true} {
		m := asMember()
		m.cfg.GossipToUnreachable = option
		body := appendStatus(nil, statusBody{envelope{1, 0x11}, 5, 5})
		require.NoError(t, m.Handle(1, 1, ip(3), wire.KindStatus, body)) // ip(1) accuses ip(3)
		require.Equal(t, option, m.stats.FromUnreachable == 0)
		require.Equal(t, option, len(mailOf(m)) > 0)
	}
}

// GOS-10: the overview names what each member said it has, and when; members that are gone are forgotten.
func TestOverview(t *testing.T) {
	w := newWorld(t, 3)
	w.cfg.Overview = true
	all := w.cluster(4)
	w.run(time.Minute)
	of := func(a *actor) []KnownVersion { return a.m.Overview(nil) }
	for _, a := range all {
		known := of(a)
		require.Len(t, known, 4)
		for i, k := range known {
			require.Equal(t, a.view.Members[i].ID, k.ID)
			require.True(t, k.Current)
			require.Equal(t, a.view.Hash, k.Version)
			require.Less(t, k.Age, time.Minute)
		}
	}
	before := all[0].view.Hash
	w.cut = func(from, to peer.ID) bool { return from == all[3].id || to == all[3].id }
	require.NoError(t, all[0].m.Do(w.now-all[0].epoch, SetMetadataCommand{Key: "k", Value: []byte("v")}))
	w.drain(all[0])
	w.run(2 * time.Second)
	known := of(all[0])
	require.True(t, known[1].Current && known[2].Current)
	require.False(t, known[3].Current)
	require.Equal(t, before, known[3].Version, "the version that it had when it last spoke")
	require.Greater(t, known[3].Age, time.Second)

	w.cut = nil
	w.do(all[3], LeaveCommand{})
	w.until(20*time.Second, "left", func() bool { return all[3].ended != nil && w.settled() })
	require.Len(t, of(all[0]), 3)
	late := w.start(9)
	w.join(late, 1)
	w.until(20*time.Second, "joined", w.settled)
	w.run(time.Minute)
	require.LessOrEqual(t, len(all[0].m.exchange.heard), 4)
	require.Empty(t, New(ip(1), Config{}, nil).Overview(nil))

	off := asMember()
	off.exchange.heardOf(ip(2), 7)
	require.Empty(t, off.exchange.heard)
	require.Zero(t, off.Overview(nil)[1].Version)
}
