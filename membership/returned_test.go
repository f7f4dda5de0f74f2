// Removed incarnations that come back after their tombstones were forgotten (MEM-1).

package membership

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// side is a machine of one of five former members, on a side that removed all but those of kept and forgot them; a
// state of it has a change of its own.
func side(self, kept string) *Machine {
	base := stateOf([]string{"a up", "b up", "c up", "d up", "e up"}, "abcde")
	d := base.Draft()
	for _, m := range base.Members {
		if !containsID(kept, m.ID) {
			d.Remove(m.ID)
		}
	}
	d.Tombs = nil
	m := New(nid(self), Config{}, rand.New(rand.NewPCG(1, 1)))
	m.phase = member
	m.install(d.Commit(nid(self)), false)
	return m
}

func containsID(names string, id peer.ID) bool {
	for _, n := range names {
		if nid(string(n)) == id {
			return true
		}
	}
	return false
}

// TestRemovedMembersDoNotReturn: a node that is no member any more in a state that knows a number above its own gets
// its tombstone again, and is notified; the others of the state that brought it are taken as ever.
func TestRemovedMembersDoNotReturn(t *testing.T) {
	m, old := side("c", "cde"), side("a", "abcde")
	m.exchange.take(nid("a"), old.st)
	require.Equal(t, member, m.phase)
	require.Equal(t, uint64(2), m.stats.Returned)
	for _, gone := range []string{"a", "b"} {
		require.False(t, m.st.Has(nid(gone)))
		_, dead := m.st.Tomb(nid(gone))
		require.True(t, dead)
	}
	require.Equal(t, wire.KindRemovedNote, m.mail[len(m.mail)-1].Kind)
	require.Equal(t, nid("a"), m.mail[len(m.mail)-1].To)

	joined := side("d", "cde").st.Draft() // a member that has joined since is none that returns
	joined.HighestUp++
	joined.Add(cluster.Member{ID: nid("x"), Status: cluster.Up, UpNumber: joined.HighestUp})
	m = side("c", "cde")
	m.exchange.take(nid("d"), joined.Commit(nid("d")))
	require.True(t, m.st.Has(nid("x")))
	require.Zero(t, m.stats.Returned)
}

// TestForgottenMemberEnds: a member that is none in the state of another, which knows a number above its own, was
// removed there. Of two sides that have forgotten each other exactly one lives.
func TestForgottenMemberEnds(t *testing.T) {
	old := side("a", "abcde")
	old.exchange.take(nid("c"), side("c", "cde").st)
	require.Equal(t, ended, old.phase)
	require.Equal(t, EndRemoved, old.over.Kind)
	for _, c := range []struct{ left, right string }{{"ab", "cde"}, {"abc", "de"}, {"ab", "de"}, {"ce", "bd"},
		{"a", "e"}} {
		l, r := side(c.left[:1], c.left), side(c.right[:1], c.right)
		atLeft, atRight := l.st, r.st
		l.exchange.take(r.self, atRight)
		r.exchange.take(l.self, atLeft)
		require.NotEqual(t, l.phase == ended, r.phase == ended, "%s and %s", c.left, c.right)
		if len(c.left) != len(c.right) {
			require.Equal(t, len(c.left) < len(c.right), l.phase == ended, "the smaller side ends")
		}
		for _, m := range []*Machine{l, r} {
			if m.phase != ended {
				require.Len(t, m.st.Members, len(c.left)+len(c.right)-len(map[*Machine]string{l: c.right, r: c.left}[m]))
			}
		}
	}
}

// TestIsolationComesBeforeAnythingElse: a node that heard nobody for half the retention ends in its next verb,
// whichever that is, and looks at no frame (MEM-1).
func TestIsolationComesBeforeAnythingElse(t *testing.T) {
	for name, verb := range map[string]func(a, other *actor, now time.Duration){
		"tick": func(a, _ *actor, now time.Duration) { a.m.Tick(now) },
		"frame": func(a, other *actor, now time.Duration) {
			beat := wire.AppendHeartbeat(nil, wire.Heartbeat{Seq: 1})
			require.NoError(t, a.m.Handle(now, now, other.id, wire.KindHeartbeat, beat))
		},
		"command": func(a, _ *actor, now time.Duration) { require.ErrorIs(t, a.m.Do(now, LeaveCommand{}), ErrEnded) },
	} {
		w := newWorld(t, 1)
		w.cfg.TombstoneRetention = time.Minute
		all := w.cluster(3)
		verb(all[2], all[0], w.now+31*time.Second)
		w.drain(all[2])
		require.NotNil(t, all[2].ended, name)
		require.Equal(t, EndIsolated, all[2].ended.Kind, name)
	}
	w := newWorld(t, 1)
	w.cfg.TombstoneRetention = time.Minute
	alone := w.cluster(1)[0]
	alone.m.Tick(w.now + time.Hour)
	w.drain(alone)
	require.Nil(t, alone.ended, "nobody could have removed it")
}

// TestJoinerDoesNotOutliveItsTombstone: a joiner was let in and hears of it neither by its welcome nor by anything
// else; it is downed, removed and forgotten. It asks nobody for longer than it can be sure to be remembered: the
// incarnation ends, and the next one is let in (MEM-1). Found by storm seed 9780.
func TestJoinerDoesNotOutliveItsTombstone(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.TombstoneRetention = time.Minute
	all := w.cluster(3)
	x := w.start(4)
	w.join(x, 1, 2, 3, 4)
	w.until(5*time.Second, "the joiner asks", func() bool { return x.m.phase == pending })
	w.cut = func(_, to peer.ID) bool { return to == x.id }
	w.until(5*time.Second, "it is let in", func() bool { return all[0].m.st.Has(x.id) })
	w.cut = func(from, to peer.ID) bool { return to == x.id || from == x.id }
	w.run(5 * time.Second)
	w.do(all[0], DownCommand{ID: x.id})
	w.until(30*time.Second, "it is removed", func() bool { return !all[0].m.st.Has(x.id) })
	w.until(2*time.Minute, "it is forgotten", func() bool { return len(all[0].m.st.Tombs) == 0 })
	w.cut = nil
	w.run(30 * time.Second)
	for _, a := range all {
		require.False(t, a.m.st.Has(x.id), w.describe())
	}
	require.NotNil(t, x.ended)
	require.Equal(t, EndIsolated, x.ended.Kind)
	require.Contains(t, x.ended.Reason, "may have been let in and removed")
	w.join(w.start(4), 1, 2, 3, 4)
	w.until(30*time.Second, "its successor is let in", w.settled)
}

// TestJoinerTakesNoWelcomeOfOld: a joiner slept from when it asked until it may have been removed and forgotten. What
// lay in its sockets comes first, and makes it no member of a state in which it was one (MEM-1).
func TestJoinerTakesNoWelcomeOfOld(t *testing.T) {
	for slept, taken := range map[time.Duration]bool{29 * time.Second: true, 31 * time.Second: false} {
		w := newWorld(t, 1)
		w.cfg.TombstoneRetention = time.Minute
		all := w.cluster(2)
		x := w.start(3)
		w.join(x, 1, 2, 3)
		w.until(5*time.Second, "the joiner asks", func() bool { return x.m.phase == pending })
		asked := w.now - x.epoch
		x.dead = true // asleep
		w.until(5*time.Second, "it is let in", func() bool { return all[0].m.st.Has(x.id) })
		all[0].m.mail = nil
		all[0].m.admission.welcome(x.id, x.m.joining.nonce)
		welcome := all[0].m.mail[0]
		require.NoError(t, x.m.Handle(asked+slept, asked+slept, all[0].id, welcome.Kind, welcome.Body))
		require.Equal(t, taken, x.m.phase == member)
		require.Equal(t, !taken, x.m.phase == ended)
	}
}

// TestJoinersTimeRunsFromItsFirstJoin: a member asked later proves nothing about the first one asked (MEM-1).
func TestJoinersTimeRunsFromItsFirstJoin(t *testing.T) {
	w := newWorld(t, 1)
	w.cfg.TombstoneRetention = time.Minute
	one := w.cluster(1)[0]
	x := w.start(2)
	w.join(x, 1, 2)
	w.until(5*time.Second, "the joiner asks", func() bool { return x.m.phase == pending })
	asked := w.now - x.epoch
	x.m.Tick(asked + 11*time.Second)
	require.Equal(t, probing, x.m.phase, "nobody answered")
	one.m.mail = nil
	one.m.admission.sendProbeAck(x.id, x.m.joining.nonce, 0)
	again := asked + 20*time.Second
	require.NoError(t, x.m.Handle(again, again, one.id, one.m.mail[0].Kind, one.m.mail[0].Body))
	require.Equal(t, pending, x.m.phase)
	x.m.Tick(asked + 29*time.Second)
	require.Equal(t, pending, x.m.phase)
	x.m.Tick(asked + 31*time.Second)
	require.Equal(t, ended, x.m.phase)
	require.Equal(t, EndIsolated, x.m.over.Kind)
}

// TestRemovedJoinerDoesNotReturn: a joiner removed before it was up has no number that shows it. It comes with those of
// its side that have one, and all that were joining on a dead side are dead, too; a joiner that comes with no removed
// member is taken as ever (MEM-1).
func TestRemovedJoinerDoesNotReturn(t *testing.T) {
	m := side("c", "cde") // it has removed a, b and the joiner x, and forgotten them
	d := side("a", "abcde").st.Draft()
	d.Add(cluster.Member{ID: nid("x"), Status: cluster.Joining})
	old := d.Commit(nid("a"))
	m.exchange.take(nid("a"), old)
	require.False(t, m.st.Has(nid("x")))
	_, dead := m.st.Tomb(nid("x"))
	require.True(t, dead)
	require.Equal(t, uint64(3), m.stats.Returned)

	d = side("d", "cde").st.Draft()
	d.Add(cluster.Member{ID: nid("x"), Status: cluster.Joining})
	m = side("c", "cde")
	m.exchange.take(nid("d"), d.Commit(nid("d")))
	require.True(t, m.st.Has(nid("x")))
	require.Zero(t, m.stats.Returned)
}
