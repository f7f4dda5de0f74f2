// Tests of the verdicts: both directions, other signs of life, pauses of this node, lost links (FD-1, FD-5).

package fd

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

func alone(peer.ID) bool { return false }

func verdicts(m *Monitor, now time.Duration) map[peer.ID]bool {
	out := map[peer.ID]bool{}
	for _, v := range m.Judge(now, alone, nil) {
		out[v.ID] = v.Available
	}
	return out
}

// rhythm lets answers and probes of the named peers come once a second, from 1 s to end.
func rhythm(m *Monitor, end time.Duration, answering, probing peer.Set) {
	for now := time.Second; now <= end; now += time.Second {
		m.Sent(now)
		for _, n := range answering {
			m.Heard(n, now)
		}
		for _, n := range probing {
			m.Probed(n, now)
		}
	}
}

func next(t *testing.T, m *Monitor) time.Duration {
	at, ok := m.NextVerdict()
	require.True(t, ok)
	return at
}

// FD-1: the verdict has a deadline, is reported once, and comes again after the peer was heard.
func TestNextVerdict(t *testing.T) {
	m := monitor(5)
	setRing(m, 0, set("aa", "bb", "cc"), nil, nil)
	_, ok := m.NextVerdict()
	require.False(t, ok, "nobody was heard")
	rhythm(m, 20*time.Second, set("bb", "cc"), nil)
	m.Heard(id("cc"), 21*time.Second)
	silent := next(t, m)
	require.Greater(t, silent, 24500*millis)
	require.Less(t, silent, 24700*millis)
	require.Equal(t, map[peer.ID]bool{id("bb"): true, id("cc"): true}, verdicts(m, silent-1))
	require.Equal(t, silent, next(t, m))
	require.Equal(t, map[peer.ID]bool{id("bb"): false, id("cc"): true}, verdicts(m, silent))
	require.Greater(t, next(t, m), silent+900*millis, "bb is told, cc comes next")
	m.Heard(id("bb"), silent+1)
	m.Heard(id("cc"), silent+2)
	require.Greater(t, next(t, m), silent+4*time.Second)
	require.True(t, verdicts(m, silent+2)[id("bb")])
}

// Two directions: probes that came are expected to go on coming, until the last one is announced. A node that never
// probed us owes us nothing.
func TestSilentProbes(t *testing.T) {
	m := monitor(1)
	setRing(m, 0, set("aa", "bb", "cc", "dd"), nil, nil)
	require.Equal(t, set("bb"), targets(m))
	m.Probed(id("zz"), time.Second)
	require.False(t, m.listening(id("zz")), "no member")
	rhythm(m, 20*time.Second, set("bb"), set("dd"))
	require.True(t, m.listening(id("dd")) && !m.watching(id("dd")))
	for now := 21 * time.Second; now < 40*time.Second; now += time.Second {
		m.Heard(id("bb"), now)
	}
	require.Equal(t, map[peer.ID]bool{id("bb"): true, id("dd"): false}, verdicts(m, 40*time.Second))
	require.False(t, m.Available(id("dd"), 40*time.Second))
	m.Probed(id("dd"), 40*time.Second+1)
	require.True(t, m.Available(id("dd"), 41*time.Second))
	m.Parted(id("dd"), 41*time.Second)
	require.True(t, m.Available(id("dd"), time.Hour), "it said that it will not probe any more")
	require.False(t, m.listening(id("dd")))

	// Answers do not make up for probes, nor probes for answers.
	for _, both := range []struct{ answers, probes peer.Set }{{set("bb"), nil}, {nil, set("bb")}} {
		m = monitor(1)
		setRing(m, 0, set("aa", "bb"), nil, nil)
		rhythm(m, 20*time.Second, set("bb"), set("bb"))
		for now := 21 * time.Second; now < 40*time.Second; now += time.Second {
			for range both.answers {
				m.Heard(id("bb"), now)
			}
			for range both.probes {
				m.Probed(id("bb"), now)
			}
		}
		require.False(t, m.Available(id("bb"), 40*time.Second))
	}
}

// FD-5: another sign of life puts off the verdict on the way it came, and teaches no rhythm.
func TestSignsOfLife(t *testing.T) {
	m := monitor(1)
	setRing(m, 0, set("aa", "bb", "cc"), nil, nil)
	rhythm(m, 20*time.Second, set("bb"), set("bb", "cc"))
	before := next(t, m)
	m.Sign(id("bb"), 22*time.Second)
	m.Sign(id("cc"), 22*time.Second)
	require.Equal(t, before, next(t, m), "the answers of bb are due as they were")
	require.False(t, m.Available(id("bb"), before))
	require.True(t, m.Available(id("cc"), before+2*time.Second-1))
	require.False(t, m.Available(id("cc"), before+2*time.Second))
	m.Sign(id("cc"), 21*time.Second)
	require.False(t, m.Available(id("cc"), before+2*time.Second), "older than what is known")

	// The rhythm of the probes is what it would be without.
	m.Sign(id("cc"), 22500*millis)
	m.Probed(id("cc"), 23*time.Second)
	with := m.get(id("cc")).probes.detector.(*phiAccrual).history
	plain := newPhi(settings())
	for now := time.Second; now <= 20*time.Second; now += time.Second {
		plain.Heartbeat(now)
	}
	plain.Heartbeat(23 * time.Second)
	require.Equal(t, plain.history, with)
	require.Equal(t, 23*time.Second, m.get(id("cc")).probes.beat)
	m.Sign(id("dd"), time.Second)
	require.Nil(t, m.get(id("dd")))
}

// A node that stood still takes that time out of the silence, and heartbeats that waited meanwhile do not put it back.
func TestForgiven(t *testing.T) {
	m := monitor(1)
	setRing(m, 0, set("aa", "bb", "cc"), nil, nil)
	rhythm(m, 20*time.Second, set("bb"), set("cc"))
	silent := next(t, m)
	now := 36 * time.Second
	m.Forgive(now, 15*time.Second)
	require.Equal(t, silent+15*time.Second, next(t, m))
	require.Equal(t, map[peer.ID]bool{id("bb"): true, id("cc"): true}, verdicts(m, now))
	m.Heard(id("bb"), 21*time.Second)
	m.Probed(id("cc"), 22*time.Second)
	require.True(t, m.Available(id("bb"), now+3*time.Second) && m.Available(id("cc"), now+3*time.Second))
	require.Equal(t, map[peer.ID]bool{id("bb"): false, id("cc"): false}, verdicts(m, silent+16*time.Second))
	m.Forgive(now, time.Hour)
	require.False(t, m.Available(id("bb"), now+10*time.Second), "at most until now")

	// A peer that was never heard is given as much more time to answer.
	m = monitor(1)
	setRing(m, 0, set("aa", "bb"), nil, nil)
	m.Sent(time.Second)
	m.Forgive(9*time.Second, 7*time.Second)
	due, ok := m.Next()
	require.True(t, ok)
	require.Equal(t, 9*time.Second, due)
}

// A former neighbour is notified, a few times, and on until it answers; an accuser of this node is probed until it is
// none.
func TestLeaveNoticesAndAccusers(t *testing.T) {
	m := monitor(1)
	all := set("aa", "bb", "cc", "dd")
	setRing(m, 0, all, nil, nil)
	rhythm(m, 3*time.Second, set("bb"), nil)
	setRing(m, 3*time.Second, all, nil, set("dd"))
	require.Equal(t, set("bb", "dd"), targets(m))
	setRing(m, 3*time.Second, all, nil, nil)
	require.Equal(t, set("bb"), targets(m))
	require.Equal(t, []peer.ID{id("dd")}, m.LeaveNotices(nil))
	joined := set("aa", "ab", "bb", "cc", "dd")
	setRing(m, 4*time.Second, joined, nil, nil)
	m.Noticed(id("dd"))
	require.Equal(t, []peer.ID{id("bb"), id("dd")}, m.LeaveNotices(nil), "two more, though it has answered the first")
	require.Equal(t, []peer.ID{id("bb"), id("dd")}, m.LeaveNotices(nil))
	for range 20 {
		require.Equal(t, []peer.ID{id("bb")}, m.LeaveNotices(nil), "it has answered none")
		setRing(m, 4*time.Second, joined, nil, nil)
	}
	m.Noticed(id("bb"))
	m.Noticed(id("zz"))
	require.Empty(t, m.LeaveNotices(nil))
	require.NotEmpty(t, m.watched)
	setRing(m, 4*time.Second, joined, nil, nil)
	require.Len(t, m.watched, 1, "nothing is kept of those who were told")

	// One that becomes a target again is not sent away.
	setRing(m, 5*time.Second, joined, nil, set("dd"))
	setRing(m, 5*time.Second, joined, nil, nil)
	setRing(m, 5*time.Second, joined, nil, set("dd"))
	require.Empty(t, m.LeaveNotices(nil))
	require.True(t, m.watching(id("dd")))

	// One that is removed is owed nothing.
	setRing(m, 6*time.Second, joined, nil, nil)
	require.Equal(t, []peer.ID{id("dd")}, m.LeaveNotices(nil))
	setRing(m, 6*time.Second, set("aa", "ab"), nil, nil)
	require.Empty(t, m.LeaveNotices(nil))
}

// A link that was reset and then refused is silence at once, when no other link was lost with it.
func TestLostLink(t *testing.T) {
	fresh := func() *Monitor {
		m := monitor(5)
		setRing(m, 0, set("aa", "bb", "cc", "dd"), nil, nil)
		rhythm(m, 20*time.Second, set("bb", "cc"), nil)
		return m
	}
	now := 20100 * millis
	m := fresh()
	require.True(t, m.Lost(id("bb"), now, false))
	require.False(t, m.Lost(id("zz"), now+2*time.Second, false), "no target")
	require.Equal(t, now+lossHold, next(t, m))
	require.True(t, verdicts(m, now+lossHold-1)[id("bb")])
	require.False(t, verdicts(m, now+lossHold)[id("bb")])
	m.Heard(id("bb"), now-1)
	require.False(t, verdicts(m, now+lossHold)[id("bb")], "older than the evidence")
	m.Heard(id("bb"), now+1)
	require.True(t, verdicts(m, now+lossHold)[id("bb")], "newer than the evidence")

	// Two at once: neither counts by itself, and one does as soon as a second observer agrees.
	m = fresh()
	m.Lost(id("bb"), now, false)
	m.Lost(id("cc"), now+50*millis, false)
	require.True(t, m.Undecided())
	require.Equal(t, map[peer.ID]bool{id("bb"): true, id("cc"): true, id("dd"): true}, verdicts(m, now+500*millis))
	require.Greater(t, next(t, m), now+2*time.Second, "what is left is silence")
	agreed := func(n peer.ID) bool { return n == id("cc") }
	require.False(t, m.Judge(now+600*millis, agreed, nil)[1].Available)
	require.True(t, m.Judge(now+600*millis, alone, nil)[0].Available)
	require.False(t, m.Judge(now+600*millis, alone, nil)[1].Available, "the second observer may change its mind")

	// Nor do they when the others that answer since then are fewer than those that were lost, or have answered before.
	m = fresh()
	require.Empty(t, m.Others(now, nil))
	m.Lost(id("bb"), now, false)
	require.Empty(t, m.Others(now, nil))
	m.Lost(id("cc"), now+50*millis, false)
	require.Equal(t, []peer.ID{id("dd")}, m.Others(now+50*millis, nil), "whom to ask")
	m.Heard(id("dd"), now+90*millis)
	require.True(t, verdicts(m, now+500*millis)[id("bb")])
	setRing(m, now, set("aa", "bb", "cc", "dd", "ee"), nil, nil)
	m.Heard(id("ee"), now+40*millis)
	require.True(t, verdicts(m, now+500*millis)[id("bb")])
	m.Heard(id("ee"), now+600*millis)
	got := verdicts(m, now+700*millis)
	require.False(t, got[id("bb")] || got[id("cc")], "as many have answered as were lost: it is not this node's fault")
	require.Empty(t, m.Others(now+2*time.Second, nil))

	// Later than that, each stands for itself.
	m = fresh()
	m.Lost(id("bb"), now, false)
	require.False(t, verdicts(m, now+lossHold)[id("bb")])
	m.Lost(id("cc"), now+lossWindow, false)
	require.False(t, verdicts(m, now+lossWindow+lossHold)[id("cc")])

	// Another incarnation at the address is proof, whatever else is lost, and nothing takes it back.
	m = fresh()
	m.Lost(id("cc"), now, false)
	m.Lost(id("bb"), now, true)
	require.Equal(t, now, next(t, m))
	require.Equal(t, map[peer.ID]bool{id("bb"): false, id("cc"): true, id("dd"): true}, verdicts(m, now))
	m.Heard(id("bb"), now+1)
	require.False(t, verdicts(m, now+1)[id("bb")])
}

// A target with a late answer is doubted from one and a half intervals on, until it is accused.
func TestDoubted(t *testing.T) {
	m := monitor(5)
	setRing(m, 0, set("aa", "bb", "cc"), nil, nil)
	m.Sent(time.Second)
	require.Empty(t, m.Doubted(10*time.Second, nil), "never heard")
	rhythm(m, 20*time.Second, set("bb", "cc"), nil)
	m.Heard(id("cc"), 21*time.Second)
	require.Empty(t, m.Doubted(21499*millis, nil))
	require.Equal(t, []peer.ID{id("bb")}, m.Doubted(21500*millis, nil))
	require.False(t, verdicts(m, 25*time.Second)[id("bb")])
	require.Equal(t, []peer.ID{id("cc")}, m.Doubted(25*time.Second, nil), "bb is accused already")
}

// A neighbour is unmet until something comes from it, or it is accused; one that was met and is silent is not (MEM-10).
func TestUnmet(t *testing.T) {
	m := monitor(5)
	setRing(m, 0, set("aa", "bb", "cc", "dd"), nil, nil)
	require.Equal(t, []peer.ID{id("bb"), id("cc"), id("dd")}, m.Unmet(nil))
	m.Sent(time.Second)
	m.Heard(id("bb"), 2*time.Second)
	m.Probed(id("cc"), 2*time.Second)
	require.Equal(t, []peer.ID{id("dd")}, m.Unmet(nil))
	m.Tick(3 * time.Second) // counted as heard once, and not met for that
	require.Equal(t, []peer.ID{id("dd")}, m.Unmet(nil))
	m.Judge(40*time.Second, nil, nil)
	require.Empty(t, m.Unmet(nil), "it is accused")
	setRing(m, 50*time.Second, set("aa", "bb", "cc", "dd", "ee"), nil, nil)
	require.Equal(t, []peer.ID{id("ee")}, m.Unmet(nil), "bb and cc were met")
}

// A peer is late when one direction has been silent for two intervals, until it is accused.
func TestLate(t *testing.T) {
	m := monitor(5)
	setRing(m, 0, set("aa", "bb", "cc", "dd"), nil, nil)
	m.Sent(time.Second)
	require.Empty(t, m.Late(10*time.Second, nil), "never heard")
	rhythm(m, 20*time.Second, set("bb", "cc"), set("bb", "dd"))
	m.Heard(id("bb"), 21*time.Second)
	m.Heard(id("cc"), 21*time.Second)
	require.Empty(t, m.Late(21999*millis, nil))
	require.Equal(t, []peer.ID{id("bb"), id("dd")}, m.Late(22*time.Second, nil), "their probes")
	m.Probed(id("bb"), 22*time.Second)
	require.Equal(t, []peer.ID{id("dd")}, m.Late(22*time.Second, nil))
	require.Equal(t, []peer.ID{id("bb"), id("cc"), id("dd")}, m.Late(23*time.Second, nil), "their answers")
	require.False(t, verdicts(m, 40*time.Second)[id("dd")])
	require.Empty(t, m.Late(40*time.Second, nil), "all are accused already")
	require.Equal(t, []peer.ID{id("bb"), id("cc")}, m.Unheard(40*time.Second, 17*time.Second, nil))
	m.Forgive(40*time.Second, 15*time.Second)
	require.NotEmpty(t, m.Unheard(40*time.Second, 17*time.Second, nil), "nothing is forgiven")
	require.Empty(t, m.Unheard(40*time.Second, time.Minute, nil))
}

// A member that is no target vanishes when its link is lost, until something newer arrives from it, this node accuses
// it, or it is no member any more.
func TestVanished(t *testing.T) {
	now := 20100 * millis
	held := now + lossHold
	all := set("aa", "bb", "cc", "dd", "ee")
	fresh := func() *Monitor {
		m := monitor(2)
		setRing(m, 0, all, nil, nil)
		rhythm(m, 20*time.Second, set("bb", "cc"), set("ee"))
		require.Equal(t, set("bb", "cc"), targets(m))
		return m
	}
	gone := func(m *Monitor, at time.Duration) peer.Set { return peer.SetOf(m.Vanished(at, nil)...) }

	m := fresh()
	require.False(t, m.Lost(id("dd"), now, false))
	require.False(t, m.Lost(id("dd"), now, false), "told twice")
	m.Lost(id("zz"), now, false)
	require.Empty(t, gone(m, held-1))
	require.Equal(t, set("dd"), gone(m, held))
	require.Equal(t, set("dd"), gone(m, now+time.Hour))
	require.False(t, m.Undecided())
	for _, v := range m.Judge(held, alone, nil) {
		require.True(t, v.Available, "others judge it")
	}
	m.Sign(id("dd"), now)
	require.Equal(t, set("dd"), gone(m, held), "that may have been on its way")
	for name, hear := range map[string]func(peer.ID, time.Duration){
		"answer": m.Heard, "probe": m.Probed, "last probe": m.Parted, "gossip": m.Sign,
	} {
		hear(id("dd"), held)
		require.Empty(t, gone(m, held), name)
		m.Lost(id("dd"), held, false)
		require.Equal(t, set("dd"), gone(m, held+lossHold), name)
	}
	setRing(m, held, set("aa", "bb", "cc", "ee"), nil, nil)
	require.Empty(t, gone(m, now+time.Hour), "no member")

	// This node judges itself the members that it accuses.
	m = fresh()
	m.Lost(id("ee"), now, false)
	require.Equal(t, set("ee"), gone(m, held))
	require.False(t, verdicts(m, now+20*time.Second)[id("ee")])
	require.Empty(t, gone(m, now+20*time.Second))

	// Several together may be this node's own fault, until as many targets have answered since.
	m = fresh()
	m.Lost(id("dd"), now, false)
	m.Lost(id("ee"), now+50*millis, false)
	require.Empty(t, gone(m, now+time.Second))
	m.Heard(id("bb"), now+60*millis)
	require.Empty(t, gone(m, now+time.Second))
	m.Heard(id("cc"), now+60*millis)
	require.Equal(t, set("dd", "ee"), gone(m, now+time.Second))
	m.Lost(id("cc"), now+70*millis, false)
	require.Empty(t, gone(m, now+time.Second), "a target is among them")
	m = fresh()
	m.Lost(id("dd"), now, false)
	m.Lost(id("ee"), now+lossWindow, false)
	require.Equal(t, set("dd", "ee"), gone(m, now+2*lossWindow), "each stands for itself")
}

// What is remembered of links that were lost is bounded, and what is forgotten makes room.
func TestVanishedIsBounded(t *testing.T) {
	m := monitor(1)
	var all peer.Set
	for i := range 2 * maxLosses {
		all.Add(peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: uint64(i + 1)})
	}
	m.self = all[0]
	setRing(m, 0, all, nil, nil)
	at := time.Duration(0)
	for range 2 {
		for _, id := range all {
			at += 2 * lossWindow
			m.Lost(id, at, false)
		}
		require.Len(t, m.Vanished(at+lossHold, nil), maxLosses)
	}
	heard := m.Vanished(at+lossHold, nil)[0]
	m.Sign(heard, at+1)
	require.Len(t, m.Vanished(at+lossHold, nil), maxLosses-1)
	m.Lost(heard, at+2*lossWindow, false)
	require.Len(t, m.Vanished(at+3*lossWindow, nil), maxLosses)
}
