// Tests of single machines: scenario 23 of the reference step by step, what is ignored and why, configuration (Q8,
// GOS-7, JOIN-2).

package membership

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/gossip"
	"github.com/kith-io/kith/internal/core/members"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/wire"
)

// deliver carries all mail, and all mail that follows from it, without any deadline passing.
func (w *world) deliver() {
	for len(w.queue) > 0 {
		l := w.queue[0]
		w.queue = w.queue[1:]
		if a := w.find(l.to); a != nil {
			now := w.now - a.epoch
			require.NoError(w.t, a.m.Handle(now, now, l.from, l.kind, l.body))
			w.drain(a)
		}
	}
}

func seenBy(a *actor) []int {
	var out []int
	for i := range a.m.st.Members {
		if a.m.st.Seen.Has(i) {
			out = append(out, i+1)
		}
	}
	return out
}

func statuses(a *actor) []cluster.Status {
	var out []cluster.Status
	for _, m := range a.m.st.Members {
		out = append(out, m.Status)
	}
	return out
}

// Scenario 23: transitions step by step. Ours act on each change, so the leader's ticks of the ancestor are not
// needed: nearly everything follows from mail alone.
func TestScenario23Transitions(t *testing.T) {
	w := newWorld(t, 1)
	first, second, third := w.start(1), w.start(2), w.start(3)
	w.join(first)
	require.Equal(t, []cluster.Status{cluster.Up}, statuses(first), "up at once")
	w.join(second, 1)
	w.deliver()
	w.run(60 * time.Millisecond) // the leader's push of the promotion waits for the push interval
	for _, a := range []*actor{first, second} {
		require.Equal(t, []cluster.Status{cluster.Up, cluster.Up}, statuses(a))
		require.Equal(t, []int{1, 2}, seenBy(a))
	}
	w.now += time.Second
	w.join(third, 2)
	w.deliver()
	w.run(60 * time.Millisecond) // the second push of the leader waits for the push interval
	for _, a := range []*actor{first, second, third} {
		require.Equal(t, []cluster.Status{cluster.Up, cluster.Up, cluster.Up}, statuses(a))
	}
	require.Equal(t, []int{1, 2, 3}, seenBy(first), "the leader knows that all have seen it")
	require.Equal(t, []uint32{1, 2, 3}, []uint32{first.m.st.Members[0].UpNumber, first.m.st.Members[1].UpNumber,
		first.m.st.Members[2].UpNumber})

	// third marks second unreachable: seen by third alone, and sent to first only.
	d := third.m.st.Draft()
	d.Reach = d.Reach.With(third.id, second.id, true)
	w.now += time.Second
	third.m.begin(w.now, third.id)
	third.m.install(d.Commit(third.id), true)
	require.Equal(t, []int{3}, seenBy(third))
	third.m.settle()
	w.drain(third)
	w.deliver()
	require.Equal(t, peer.SetOf(second.id), first.view.Unreachable)
	require.False(t, first.view.Converged)

	// first downs second: it is notified directly and ends; being unreachable and Down it is removed.
	w.now += time.Second
	w.do(first, DownCommand{ID: second.id})
	w.deliver()
	w.run(60 * time.Millisecond)
	require.NotNil(t, second.ended)
	require.Equal(t, EndDowned, second.ended.Kind)
	for _, a := range []*actor{first, third} {
		require.Equal(t, []cluster.Status{cluster.Up, cluster.Up}, statuses(a))
		require.Equal(t, []members.Tombstone{{ID: second.id, Last: cluster.Down, Cause: cluster.CauseOperator, By: first.id}},
			a.m.st.Tombs)
	}
	require.Equal(t, []int{1, 2}, seenBy(first))
}

func mailOf(m *Machine) []peer.Mail {
	var out Effects
	m.Drain(&out)
	return out.Mail
}

// Q8: a welcome counts only while a join is pending, and only with its nonce.
func TestWelcomeNeedsAPendingJoin(t *testing.T) {
	m := New(ip(2), Config{}, rand.New(rand.NewPCG(1, 1)))
	body := func(nonce uint64) []byte {
		return plainBody(2, nonce, sample())
	}
	require.NoError(t, m.Handle(0, 0, ip(1), wire.KindWelcome, body(0)))
	require.Nil(t, m.st)
	require.NoError(t, m.Do(0, JoinCommand{Seeds: addrs(1, 3)}))
	require.Len(t, mailOf(m), 2)
	require.NoError(t, m.Handle(0, 0, ip(1), wire.KindWelcome, body(m.joining.nonce)))
	require.Nil(t, m.st, "asked nobody yet")
	ack := appendProbeAck(nil, probeAckBody{2, m.joining.nonce, 0x11, 0x22, 0, nil})
	require.NoError(t, m.Handle(0, 0, ip(1), wire.KindJoinProbeAck, ack))
	mail := mailOf(m)
	require.Len(t, mail, 1)
	require.Equal(t, wire.KindJoin, mail[0].Kind)
	require.Equal(t, ip(1), mail[0].To)
	require.NoError(t, m.Handle(0, 0, ip(1), wire.KindWelcome, body(m.joining.nonce+2)))
	require.Nil(t, m.st, "another nonce")
	require.Equal(t, uint64(3), m.Stats().StaleWelcome)
	require.NoError(t, m.Handle(0, 0, ip(3), wire.KindWelcome, body(m.joining.nonce)))
	require.Equal(t, member, m.phase, "any member may welcome")
}

// A first seed that asked a cluster to admit it may have been admitted though the welcome was lost: it never forms.
func TestWhoAskedNeverForms(t *testing.T) {
	w := newWorld(t, 1)
	other := w.start(2)
	w.join(other)
	first := w.start(1)
	w.cut = func(from, to peer.ID) bool { return from == other.id && len(w.queue) > 0 && first.m.phase == pending }
	w.join(first, 1, 2)
	w.until(time.Second, "asked", func() bool { return first.m.phase == pending })
	w.cut = func(from, to peer.ID) bool { return from == other.id }
	w.run(time.Minute)
	require.Nil(t, first.view)
	require.True(t, other.m.st.Has(first.id))
	w.cut = nil
	w.until(20*time.Second, "admitted", w.settled)
}

func TestSilentContactIsGivenUp(t *testing.T) {
	w := newWorld(t, 1)
	a, b, c := w.start(1), w.start(2), w.start(3)
	w.join(a)
	w.join(b, 1)
	w.until(5*time.Second, "two", w.settledOf(a, b))
	w.join(c, 1, 2)
	w.until(time.Second, "asked", func() bool { return c.m.phase == pending })
	target := c.m.joining.target
	w.cut = func(from, to peer.ID) bool { return from == target && to == c.id }
	w.crash(w.find(target))
	w.run(9 * time.Second)
	for _, o := range []*actor{a, b} {
		if !o.dead {
			w.do(o, DownCommand{ID: target})
		}
	}
	w.until(20*time.Second, "admitted by the other", w.settled)
}

func (w *world) settledOf(actors ...*actor) func() bool {
	return func() bool {
		for _, a := range actors {
			if a.view == nil || !a.view.Converged || a.view.CountUp() != len(actors) {
				return false
			}
		}
		return true
	}
}

// GOS-7 and addressing: stale gossip, gossip for another incarnation or cluster, gossip of a member that we accuse.
func TestGossipThatIsIgnored(t *testing.T) {
	m := asMember()
	status := func(to, cluster uint64) []byte {
		return appendStatus(nil, statusBody{envelope{to, cluster}, 99, 99})
	}
	now := 10 * time.Second
	handle := func(arrived time.Duration, from peer.ID, body []byte) []peer.Mail {
		require.NoError(t, m.Handle(now, arrived, from, wire.KindStatus, body))
		return mailOf(m)
	}
	require.Len(t, handle(now, ip(2), status(1, 0x11)), 1)
	require.Len(t, handle(now-2*time.Second, ip(2), status(1, 0x11)), 1)
	require.Empty(t, handle(now-2001*time.Millisecond, ip(2), status(1, 0x11)))
	require.Empty(t, handle(now, ip(2), status(7, 0x11)))
	require.Empty(t, handle(now, ip(2), status(1, 0x12)))
	require.Empty(t, handle(now, ip(3), status(1, 0x11)), "we hold 3 unreachable")
	got := m.Stats()
	got.LateSteps, got.LateTime = 0, 0 // this test's clock jumps
	require.Equal(t, Stats{Expired: 1, Misaddressed: 2, FromUnreachable: 1}, got)
	note := handle(now, ip(4), status(1, 0x11))
	require.Len(t, note, 1)
	require.Equal(t, wire.KindRemovedNote, note[0].Kind, "4 was removed and is told")
	require.Equal(t, ip(4), note[0].To)
}

// GOS-4: what follows a status with digests that differ.
func TestExchange(t *testing.T) {
	m := asMember()
	answer := func(kind wire.Kind, body []byte) wire.Kind {
		require.NoError(t, m.Handle(0, 0, ip(2), kind, body))
		mail := mailOf(m)
		if len(mail) == 0 {
			return 0
		}
		return mail[0].Kind
	}
	e := envelope{1, 0x11}
	status := func(d, s gossip.Digest) []byte { return appendStatus(nil, statusBody{e, d, s}) }
	require.Zero(t, answer(wire.KindStatus, status(m.st.Digest, m.st.Seen.Digest())))
	require.Equal(t, wire.KindSeen, answer(wire.KindStatus, status(m.st.Digest, 5)))
	require.Equal(t, wire.KindVersion, answer(wire.KindStatus, status(5, m.st.Seen.Digest())))
	version := func(c gossip.Clock, want bool) []byte { return appendVersion(nil, versionBody{e, 5, want, c}) }
	require.Equal(t, wire.KindGossip, answer(wire.KindVersion, version(nil, true)), "asked for")
	older, beside := gossip.Clock{{ID: ip(1), N: 2}}, gossip.Clock{{ID: ip(3), N: 2}}
	require.Equal(t, wire.KindGossip, answer(wire.KindVersion, version(older, false)), "ours is newer")
	require.Equal(t, wire.KindGossip, answer(wire.KindVersion, version(beside, false)), "concurrent")
	newer := slices.Clone(m.st.Clock)
	newer[0].N++
	require.Equal(t, wire.KindVersion, answer(wire.KindVersion, version(newer, false)), "theirs is newer: ask")

	seen := gossip.NewSeen(3)
	seen.Add(1)
	require.Equal(t, wire.KindSeen, answer(wire.KindSeen, appendSeenBody(nil, seenBody{e, m.st.Digest, true, seen})))
	require.Equal(t, cluster.Up, m.st.Status(ip(2)), "the union is news, and the leader looks at its duties")
	require.Zero(t, answer(wire.KindSeen, appendSeenBody(nil, seenBody{e, m.st.Digest, true, m.st.Seen})))
	require.Zero(t, answer(wire.KindSeen, appendSeenBody(nil, seenBody{e, 5, true, seen})), "of another version")
}

// The originator pushes once, at most every 50 ms; what had to wait goes out at the deadline that Next names.
func TestEagerPushIsBounded(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(8)
	w.run(3 * time.Second)
	a := all[0]
	change := func() int {
		require.NoError(t, a.m.Do(w.now, DownCommand{ID: all[7-w.rng.IntN(7)].id}))
		n := 0
		for _, mail := range mailOf(a.m) {
			if mail.Kind == wire.KindGossip || mail.Kind == wire.KindDelta {
				n++
			}
		}
		return n
	}
	require.Equal(t, 4, change(), "three of the unseen, and the downed one")
	for {
		if n := change(); n > 0 { // another member was chosen
			require.Equal(t, 1, n, "within 50 ms only the downed one is told")
			break
		}
	}
	next, _ := a.m.Next()
	require.LessOrEqual(t, next, w.now+50*time.Millisecond)
	a.m.Tick(w.now + 50*time.Millisecond)
	pushed := 0
	for _, mail := range mailOf(a.m) {
		if mail.Kind == wire.KindDelta {
			pushed++
		}
	}
	require.Equal(t, 3, pushed)
}

// An answer from a node with a stuck control loop is no sign of life.
func TestStuckNodeIsUnreachable(t *testing.T) {
	w := newWorld(t, 1)
	all := w.cluster(2)
	a, b := all[0], all[1]
	stuck := uint64(6 * time.Second)
	begin := w.now
	for w.now < begin+10*time.Second {
		w.now += 500 * time.Millisecond
		a.m.Tick(w.now)
		mailOf(a.m)
		ack := wire.AppendHeartbeatAck(nil, wire.HeartbeatAck{StepAge: stuck})
		require.NoError(t, a.m.Handle(w.now, w.now, b.id, wire.KindHeartbeatAck, ack))
		mailOf(a.m)
	}
	require.Equal(t, peer.SetOf(b.id), a.m.st.Unreachable)
	require.Equal(t, uint64(20), a.m.Stats().LateAnswers)
	require.Greater(t, a.m.Phi(b.id), 8.0)
}

func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	c := Config{Roles: []string{"b", "a", "b"}}.WithDefaults()
	require.Equal(t, []string{"a", "b"}, c.Roles)
	require.Equal(t, 5, c.MonitoredBy)
	require.Equal(t, 0.8, c.DifferentViewProbability)
	require.Zero(t, c.JoinTimeout, "off by default")
	err := Config{Roles: []string{""}, GossipInterval: -1, Threshold: 99, MaxSamples: 1, JoinTimeout: -1,
		DifferentViewProbability: 2, AppVersion: "1..2"}.Validate()
	for _, part := range []string{"role", "AppVersion", "GossipInterval", "Threshold", "MaxSamples", "JoinTimeout",
		"DifferentView"} {
		require.ErrorContains(t, err, part)
	}
}

// A member is in one zone, which has a name (FD-2).
func TestOneZoneAtMost(t *testing.T) {
	require.NoError(t, Config{Roles: []string{"zone:a", "a", "zone:a"}}.WithDefaults().Validate())
	require.ErrorContains(t, Config{Roles: []string{"zone:a", "zone:b"}}.Validate(), `"zone:b": a member names one zone`)
	require.ErrorContains(t, Config{Roles: []string{"zone:"}}.Validate(), "in 1 to 123 bytes")
	require.Equal(t, "x y", cluster.Member{Roles: []string{"a", "zone:x y", "zone:z"}}.Zone())
	require.Empty(t, cluster.Member{Roles: []string{"zone"}}.Zone())
}

func TestCommandsInOtherPhases(t *testing.T) {
	m := New(ip(1), Config{}, rand.New(rand.NewPCG(1, 1)))
	_, ok := m.Next()
	require.False(t, ok)
	require.ErrorIs(t, m.Do(0, DownCommand{ID: ip(1)}), ErrNotMember)
	require.ErrorIs(t, m.Do(0, JoinCommand{Seeds: make([]peer.Addr, MaxSeeds+1)}), ErrTooManySeeds)
	require.ErrorIs(t, m.Do(0, nil), ErrBadCommand)
	require.NoError(t, m.Do(0, LeaveCommand{}))
	var out Effects
	m.Drain(&out)
	require.Equal(t, EndLeft, out.Ended.Kind)
	require.Nil(t, out.View)
	require.ErrorIs(t, m.Do(0, JoinCommand{}), ErrEnded)
	require.NoError(t, m.Handle(0, 0, ip(2), wire.KindJoinProbe, nil), "nobody is at home")
	m.Drain(&out)
	require.Nil(t, out.Ended, "said once")
}
