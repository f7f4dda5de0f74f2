// Tests of whole clusters in virtual time: leaving, downing, restarting, unreachability (MEM-1, MEM-5, MEM-8, FD-3;
// scenarios 24 and 25 of the reference).

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

// MEM-8: leaving, exiting, removed; each step seen by all; the leaver ends when it was removed, not by a time limit.
func TestLeave(t *testing.T) {
	for leaver := range 3 {
		w := newWorld(t, uint64(leaver))
		all := w.cluster(3)
		for _, a := range all {
			a.events = nil
		}
		w.do(all[leaver], LeaveCommand{})
		w.do(all[leaver], LeaveCommand{})
		took := w.until(20*time.Second, "settled", func() bool { return all[leaver].ended != nil && w.settled() })
		require.Less(t, took, 6*time.Second)
		end := all[leaver].ended
		require.Equal(t, EndLeft, end.Kind)
		require.NotEqual(t, all[leaver].id, end.By, "a member confirmed the removal")
		for _, a := range w.alive() {
			kinds := kindsOf(a.events)
			require.Subset(t, []EventKind{MemberLeft, MemberExited, MemberRemoved, LeaderChanged}, kinds)
			require.Contains(t, kinds, MemberRemoved)
			require.NotContains(t, kinds, UnreachableMember)
		}
	}
}

func TestAllLeaveAtOnce(t *testing.T) {
	w := newWorld(t, 3)
	for _, a := range w.cluster(3) {
		w.do(a, LeaveCommand{})
	}
	w.run(20 * time.Second)
	for _, a := range w.actors {
		require.NotNil(t, a.ended)
		require.Equal(t, EndLeft, a.ended.Kind, "%+v", a.ended)
	}
}

func TestLeaveBeforeAdmission(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start(2)
	w.join(a, 1)
	w.do(a, LeaveCommand{})
	require.Equal(t, EndLeft, a.ended.Kind)

	// Asked already: it waits for the answer and leaves as a member, so that no ghost stays behind.
	w = newWorld(t, 1)
	first, b := w.start(1), w.start(2)
	w.join(first)
	w.join(b, 1)
	w.until(time.Second, "join sent", func() bool { return b.m.phase == pending })
	w.do(b, LeaveCommand{})
	require.Nil(t, b.ended)
	w.until(10*time.Second, "left", func() bool { return b.ended != nil && w.settled() })
	require.Equal(t, EndLeft, b.ended.Kind)
	require.Contains(t, kindsOf(first.events), MemberRemoved)
}

func TestDown(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	require.ErrorIs(t, all[0].m.Do(w.now, DownCommand{ID: peer.ID{Addr: addr(9)}}), ErrUnknownMember)
	require.ErrorIs(t, all[0].m.Do(w.now, DownCommand{ID: peer.ID{Addr: addr(2), Inc: 1}}), ErrUnknownMember)
	w.do(all[0], DownCommand{ID: peer.ID{Addr: addr(2)}})
	w.do(all[0], DownCommand{ID: all[1].id})
	w.until(time.Second, "the downed node ends itself", func() bool { return all[1].ended != nil })
	require.Equal(t, EndDowned, all[1].ended.Kind)
	require.Equal(t, all[0].id, all[1].ended.By)
	self, ok := all[1].view.SelfMember()
	require.True(t, ok && self.Status == cluster.Down)
	w.until(15*time.Second, "removed", w.settled)

	w.do(all[2], DownCommand{ID: all[2].id})
	require.Equal(t, EndDowned, all[2].ended.Kind)
	w.until(15*time.Second, "removed", w.settled)
	require.Equal(t, uint32(3), all[0].m.st.HighestUp)
}

func TestCrashIsUnreachableUntilDowned(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	w.crash(all[2])
	took := w.until(20*time.Second, "unreachable", func() bool {
		return len(all[0].view.Unreachable) == 1 && len(all[1].view.Unreachable) == 1
	})
	require.Greater(t, took, 3*time.Second)
	require.Less(t, took, 8*time.Second)

	// No convergence while it is unreachable: a joiner becomes no more than WeaklyUp.
	late := w.start(4)
	w.join(late, 1, 2, 3)
	w.run(10 * time.Second)
	self, ok := late.view.SelfMember()
	require.True(t, ok)
	require.Equal(t, cluster.WeaklyUp, self.Status)
	require.False(t, all[0].view.Converged)

	w.do(all[1], DownCommand{ID: peer.ID{Addr: addr(3)}})
	w.until(5*time.Second, "settled", w.settled)
	require.Equal(t, uint32(5), late.m.st.HighestUp, "the lost leader may have given 4")
}

// Scenario 24, a pair cut among five nodes: each of the pair accuses the other, the others hold both unreachable;
// after healing all are reachable and nobody was removed (FD-3, MEM-11).
func TestScenario24PairCut(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(5)
	a, b := all[0].id, all[1].id
	w.cut = func(from, to peer.ID) bool {
		return from.Addr == a.Addr && to.Addr == b.Addr || from.Addr == b.Addr && to.Addr == a.Addr
	}
	w.until(30*time.Second, "both accused", func() bool {
		both := peer.SetOf(a, b)
		for i, want := range []peer.Set{peer.SetOf(b), peer.SetOf(a), both, both, both} {
			if !all[i].view.Unreachable.Equal(want) {
				return false
			}
		}
		return true
	})
	w.cut = nil
	require.Less(t, w.until(45*time.Second, "healed", w.settled), 30*time.Second)
}

func TestIslandHeals(t *testing.T) {
	w := newWorld(t, 2)
	all := w.cluster(4)
	left := func(id peer.ID) bool { return id.Addr == addr(1) || id.Addr == addr(2) }
	w.cut = func(from, to peer.ID) bool { return left(from) != left(to) }
	w.until(30*time.Second, "both sides accuse", func() bool {
		for _, a := range all {
			if len(a.view.Unreachable) != 2 {
				return false
			}
		}
		return true
	})
	w.cut = nil
	require.Less(t, w.until(60*time.Second, "healed", w.settled), 30*time.Second)
	for _, a := range all {
		require.Nil(t, a.ended)
	}
}

// Scenario 25: a restart at the same address displaces the old incarnation without an operator, three rounds long,
// the first seed included (MEM-1).
func TestScenario25Restart(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	for round := 1; round <= 3; round++ {
		for i := range 3 {
			old := all[i]
			w.crash(old)
			role := fmt.Sprintf("round-%d", round)
			all[i] = w.start(i+1, role)
			w.join(all[i], 1, 2, 3)
			took := w.until(20*time.Second, "restarted", w.settled)
			require.Less(t, took, 6*time.Second)
			m, ok := all[i].view.SelfMember()
			require.True(t, ok)
			require.Equal(t, []string{role}, m.Roles)
			require.NotEqual(t, old.id.Inc, m.ID.Inc)
			_, dead := all[i].m.st.Tomb(old.id)
			require.True(t, dead)
		}
	}
	require.Equal(t, uint32(3+9*2), all[0].m.st.HighestUp,
		"each lost one may have given a number, each restarted one has one")
}

// A join that was delayed until after its process was replaced cannot displace the successor.
func TestLateJoinDisplacesNobody(t *testing.T) {
	w := newWorld(t, 1)
	w.cluster(2)
	clear(w.counts)
	ghost := w.start(2)
	w.crash(ghost)
	body := appendJoin(nil, joinBody{nonce: 5, id: ghost.id})
	for range 3 {
		require.NoError(t, w.actors[0].m.Handle(w.now, w.now, ghost.id, wire.KindJoin, body))
		w.drain(w.actors[0])
		w.run(3 * time.Second)
	}
	require.True(t, w.settled())
	require.Equal(t, 3, w.counts[wire.KindJoinProbeAck], "it is challenged each time")
}

// MEM-1: an incarnation that was removed never comes back, by no message; it is notified and ends.
func TestRemovedIncarnationIsTold(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(3)
	lost := all[2]
	w.cut = func(from, to peer.ID) bool { return from.Addr == lost.id.Addr || to.Addr == lost.id.Addr }
	w.until(20*time.Second, "unreachable", func() bool { return len(all[0].view.Unreachable) == 1 })
	w.do(all[0], DownCommand{ID: lost.id})
	w.until(20*time.Second, "removed", func() bool {
		return len(all[0].view.Members) == 2 && all[0].view.Converged && all[1].view.Converged
	})
	require.Nil(t, lost.ended)
	w.cut = nil
	w.until(5*time.Second, "told", func() bool { return lost.ended != nil })
	require.Equal(t, EndRemoved, lost.ended.Kind)
	require.Contains(t, lost.ended.Reason, "removed")
	w.run(5 * time.Second)
	require.True(t, w.settled())

	body := appendJoin(nil, joinBody{nonce: 5, id: lost.id})
	require.NoError(t, all[0].m.Handle(w.now, w.now, lost.id, wire.KindJoin, body))
	var out Effects
	all[0].m.Drain(&out)
	require.Len(t, out.Mail, 1)
	f, err := readRefused(out.Mail[0].Body)
	require.NoError(t, err)
	require.Equal(t, refuseRemoved, f.code)
	require.Equal(t, uint64(1), all[0].m.Stats().JoinsRefused)
}

// When both sides removed each other and meet again, only the smaller one ends.
func TestMutualRemoval(t *testing.T) {
	w := newWorld(t, 4)
	all := w.cluster(5)
	small := func(id peer.ID) bool { return id.Addr == addr(1) || id.Addr == addr(2) }
	w.cut = func(from, to peer.ID) bool { return small(from) != small(to) }
	w.run(15 * time.Second)
	for _, o := range all[2:] {
		w.do(all[0], DownCommand{ID: o.id})
	}
	for _, o := range all[:2] {
		w.do(all[2], DownCommand{ID: o.id})
	}
	w.run(20 * time.Second)
	require.Len(t, all[0].view.Members, 2)
	require.Len(t, all[4].view.Members, 3)
	w.cut = nil
	// They are strangers now and would not talk; a late heartbeat brings them together.
	for _, o := range []*actor{all[2], all[3], all[4]} {
		for _, s := range all[:2] {
			w.post(o.id, s.id, wire.KindHeartbeat, wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 1}))
			w.post(s.id, o.id, wire.KindHeartbeat, wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 1}))
		}
	}
	w.run(5 * time.Second)
	require.Equal(t, []bool{true, true, false, false, false},
		[]bool{all[0].dead, all[1].dead, all[2].dead, all[3].dead, all[4].dead})
	require.Equal(t, EndRemoved, all[0].ended.Kind)
}

func TestIsolatedNodeEndsItself(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.TombstoneRetention = time.Minute
	all := w.cluster(3)
	w.cut = func(from, to peer.ID) bool { return from == all[2].id || to == all[2].id }
	w.run(45 * time.Second)
	require.NotNil(t, all[2].ended)
	require.Equal(t, EndIsolated, all[2].ended.Kind)
	require.Nil(t, all[0].ended)
}

// Tombstones are forgotten after their retention, as a change of the leader.
func TestTombstonesAreForgotten(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.TombstoneRetention = time.Minute
	all := w.cluster(3)
	w.do(all[2], LeaveCommand{})
	w.until(20*time.Second, "left", w.settled)
	require.Len(t, all[0].m.st.Tombs, 1)
	w.run(70 * time.Second)
	require.Empty(t, all[0].m.st.Tombs)
	require.Empty(t, all[1].m.st.Tombs)
	require.True(t, w.settled())
}

// GOS-4: converged nodes exchange one status a second each, of at most 64 bytes, and nothing else but heartbeats.
func TestConvergedClusterIsQuiet(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(5)
	w.run(5 * time.Second)
	clear(w.counts)
	for _, a := range all {
		a.events = nil
	}
	w.run(30 * time.Second)
	require.Len(t, w.counts, 2, "%v", w.counts)
	require.InDelta(t, 150, w.counts[wire.KindStatus], 5)
	require.InDelta(t, 5*4*30, w.counts[wire.KindHeartbeat], 20)
	require.LessOrEqual(t, w.sizes[wire.KindStatus], 64)
	for _, a := range all {
		require.Empty(t, a.events, "30 s without an event")
	}
}

// Seed 000: "Periodically, the default is every 1 second, each node chooses another random node to initiate a round of
// gossip with. If less than ½ of the nodes resides in the seen set (have seen the new state) then the cluster gossips 3
// times instead of once every second." (GOS-5) Here gossip of one node is lost, so it stays the only one that has seen
// its change: half of two, fewer than half of three.
func TestRoundsOfASecond(t *testing.T) {
	for n := 2; n <= 7; n++ {
		w := newWorld(t, uint64(n))
		all := w.cluster(n)
		w.run(5 * time.Second)
		rounds := 0
		w.lose = func(from peer.ID, kind wire.Kind) bool {
			if from == all[0].id && kind == wire.KindStatus {
				rounds++
			}
			return kind >= wire.KindStatus && kind <= wire.KindDelta
		}
		w.run(10 * time.Second)
		require.Equal(t, 10, rounds, "%d nodes, all have seen", n)
		w.do(all[0], SetMetadataCommand{"schema", []byte("7")})
		w.run(time.Second) // the interval in which the change falls began before it
		rounds = 0
		w.run(10 * time.Second)
		require.Equal(t, 1, all[0].m.st.Seen.Count())
		want := 30
		if n == 2 {
			want = 10
		}
		require.Equal(t, want, rounds, "%d nodes, one has seen", n)
		w.lose = nil
		w.until(5*time.Second, "all have seen", w.settled)
	}
}

// Loss, duplicates, delays of seconds and reordering change no outcome: whatever happens, live nodes settle.
func TestChaosSettles(t *testing.T) {
	for seed := range uint64(25) {
		w := newWorld(t, seed)
		w.chaos = true
		var all []*actor
		for n := range 5 {
			all = append(all, w.start(n+1))
			w.join(all[n], 1, 2, 3)
		}
		w.run(10 * time.Second)
		w.crash(all[4])
		w.do(all[3], LeaveCommand{})
		w.run(10 * time.Second)
		again := w.start(5)
		w.join(again, 1, 2, 3)
		w.run(20 * time.Second)
		w.chaos = false
		w.until(60*time.Second, fmt.Sprintf("settled, seed %d", seed), w.settled)
		require.GreaterOrEqual(t, len(w.alive()), 4)
	}
}

// The same seed gives the same mail, byte for byte.
func TestSameSeedSameTrace(t *testing.T) {
	trace := func() string {
		w := newWorld(t, 11)
		w.chaos = true
		for n := range 4 {
			w.join(w.start(n+1), 1, 2)
		}
		out := ""
		for range 3000 {
			w.step(time.Hour)
			if n := len(w.queue); n > 0 {
				l := w.queue[n-1]
				out += fmt.Sprintf("%v %s %s %s %x\n", l.at, l.from, l.to, l.kind, l.body)
			}
		}
		return out
	}
	require.Equal(t, trace(), trace())
}

// A larger cluster, joined at once: promoted in few batches, no up-number twice.
func TestManyJoinAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(40)
	require.Less(t, w.now, 15*time.Second)
	require.Equal(t, uint32(40), all[0].m.st.HighestUp)
	t.Logf("40 nodes in %v, messages %v, largest %v", w.now, w.counts, w.sizes)
}
