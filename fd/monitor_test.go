// Tests of the ring and the monitor: scenarios 14 and 15 of the reference (FD-2).

package fd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
)

func id(name string) peer.ID {
	return peer.ID{Addr: peer.MustAddr(name + ":7355"), Inc: uint64(name[0]-'a') + 1}
}

func set(names ...string) peer.Set {
	var s peer.Set
	for _, n := range names {
		s.Add(id(n))
	}
	return s
}

// Scenario 14: six nodes in the order of their incarnations, three watched.
func TestScenario14Ring(t *testing.T) {
	all := set("aa", "bb", "cc", "dd", "ee", "ff")
	for _, self := range all {
		got := RingOf(all).Receivers(self, Absent{}, 3)
		require.Len(t, got, 3)
		require.False(t, got.Has(self))
	}
	unreachable := set("aa", "dd", "ee")
	for self, want := range map[string]peer.Set{
		"aa": set("bb", "cc", "dd", "ff"), "bb": set("cc", "dd", "ee", "ff"), "cc": set("dd", "ee", "ff", "bb"),
		"dd": set("ee", "ff", "aa", "bb", "cc"), "ee": set("ff", "aa", "bb", "cc"), "ff": set("aa", "bb", "cc"),
	} {
		require.Equal(t, want, RingOf(all).Receivers(id(self), Absent{Unreachable: unreachable}, 3), self)
	}
	for _, n := range []int{5, 6, 7} {
		got := RingOf(all).Receivers(id("cc"), Absent{Unreachable: unreachable}, n)
		require.Equal(t, set("aa", "bb", "dd", "ee", "ff"), got)
	}
	require.Empty(t, RingOf(set("aa")).Receivers(id("aa"), Absent{}, 3))
	require.Equal(t, set("aa", "bb"), RingOf(set("aa", "bb")).Receivers(id("zz"), Absent{}, 5), "self is not a member yet")
}

// FD-2: however many others are unreachable, each node is watched by at least five, or by all others.
func TestEveryNodeIsWatched(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		var nodes peer.Set
		for i := range 1 + rng.IntN(30) {
			nodes.Add(peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: rng.Uint64()})
		}
		watchers := map[peer.ID]int{}
		for _, n := range nodes {
			for _, r := range RingOf(nodes).Receivers(n, Absent{}, 5) {
				watchers[r]++
			}
		}
		for _, n := range nodes {
			require.Equal(t, min(5, len(nodes)-1), watchers[n])
		}
	}
}

// FD-2: Down nodes watch nobody and are watched like all others: each node is watched by five that are neither Down nor
// unreachable, or by all of these, unless it is unreachable, which somebody knows already.
func TestDownNodesAreNoWatchers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		var nodes peer.Set
		var absent Absent
		for i := range 2 + rng.IntN(30) {
			id := peer.ID{Addr: peer.MustAddr(fmt.Sprintf("10.0.0.%d:1", i+1)), Inc: rng.Uint64()}
			nodes.Add(id)
			if rng.IntN(2) == 0 {
				absent.Down.Add(id)
			}
			if rng.IntN(4) == 0 {
				absent.Unreachable.Add(id)
			}
		}
		watchers, here := map[peer.ID]int{}, 0
		for _, n := range nodes {
			if absent.has(n) {
				continue
			}
			here++
			for _, r := range RingOf(nodes).Receivers(n, absent, 5) {
				watchers[r]++
			}
		}
		for _, n := range nodes {
			if most := here - 1; !absent.has(n) {
				require.Equal(t, min(5, most), watchers[n])
			} else if !absent.Unreachable.Has(n) {
				require.Equal(t, min(5, here), watchers[n])
			}
		}
	}
}

func monitor(n int) *Monitor {
	return NewMonitor(id("aa"), settings(), PhiAccrual, time.Second, n)
}

func setRing(m *Monitor, now time.Duration, members, unreachable, accusers peer.Set) {
	m.SetRing(now, members, RingOf(members), Absent{Unreachable: unreachable}, accusers)
}

func targets(m *Monitor) peer.Set { return peer.Set(m.Targets(nil)) }

// Scenario 15: which members are probed when the ring changes.
func TestScenario15Targets(t *testing.T) {
	m := monitor(2)
	require.Empty(t, targets(m))
	setRing(m, 0, set("aa", "bb", "cc"), nil, nil)
	require.Equal(t, set("bb", "cc"), targets(m))

	// A neighbour that is available is forgotten when the ring moves on.
	m.Heard(id("bb"), 1)
	m.Heard(id("cc"), 1)
	setRing(m, 2, set("aa", "bb", "bc", "cc"), nil, nil)
	require.Len(t, targets(m), 2)

	// One that is silent stays, beside the new ring, until it answers.
	m = monitor(2)
	setRing(m, 0, set("aa", "cc", "dd"), nil, nil)
	m.Heard(id("cc"), 0)
	m.Heard(id("dd"), 0)
	late := 20 * time.Second
	m.Heard(id("dd"), late)
	require.False(t, m.Available(id("cc"), late))
	require.True(t, m.Available(id("dd"), late))
	setRing(m, late, set("aa", "bb", "cc", "dd"), nil, nil)
	require.Equal(t, set("bb", "cc"), targets(m), "dd is available and no neighbour any more")
	setRing(m, late, set("aa", "ab", "bb", "cc", "dd"), nil, nil)
	require.Equal(t, set("ab", "bb", "cc"), targets(m), "cc is silent and kept")
	m.Heard(id("cc"), late+1)
	require.Equal(t, set("ab", "bb"), targets(m), "cc answered")
	require.True(t, m.Available(id("cc"), late+time.Hour), "whom we do not watch we do not accuse")

	// Removal forgets, silent or not.
	m.Heard(id("bb"), late)
	require.False(t, m.Available(id("bb"), 3*late))
	setRing(m, 3*late, set("aa"), nil, nil)
	require.Empty(t, targets(m))
}

// A peer that never answers counts as heard once, a second after the first probe, and is then found silent.
func TestFirstHeartbeatIsAssumed(t *testing.T) {
	m := monitor(5)
	setRing(m, 0, set("aa", "bb", "cc"), nil, nil)
	_, ok := m.Next()
	require.False(t, ok, "nobody was probed")
	m.Sent(3 * time.Second)
	m.Sent(3500 * millis)
	m.Heard(id("cc"), 3600*millis)
	next, ok := m.Next()
	require.True(t, ok)
	require.Equal(t, 4*time.Second, next)
	m.Tick(3999 * millis)
	require.True(t, m.Available(id("bb"), time.Hour))
	m.Tick(4 * time.Second)
	_, ok = m.Next()
	require.False(t, ok)
	require.True(t, m.Available(id("bb"), 9300*millis))
	require.False(t, m.Available(id("bb"), 9310*millis))
	require.Greater(t, m.Phi(id("bb"), 10*time.Second), 8.0)
	require.Zero(t, m.Phi(id("dd"), 10*time.Second))
}

// Random operations keep: every neighbour is probed, every other probed node is a silent member, never self.
func TestScenario15RandomOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	m := monitor(3)
	members := set("aa")
	var unreachable peer.Set
	now := time.Duration(0)
	for range 20_000 {
		now += time.Duration(rng.IntN(2000)) * millis
		n := id(string([]byte{byte('a' + rng.IntN(15)), 'x'}))
		switch rng.IntN(5) {
		case 0:
			members.Add(n)
		case 1:
			members.Remove(n)
			unreachable.Remove(n)
		case 2:
			if members.Has(n) {
				unreachable.Add(n)
			}
		case 3:
			unreachable.Remove(n)
		case 4:
			m.Sent(now)
			m.Heard(n, now)
			m.Tick(now)
		}
		members.Add(id("aa"))
		setRing(m, now, members, unreachable, nil)
		ring := RingOf(members).Receivers(id("aa"), Absent{Unreachable: unreachable}, 3)
		for _, r := range ring {
			require.True(t, m.watching(r))
		}
		for _, w := range targets(m) {
			require.NotEqual(t, id("aa"), w)
			require.True(t, members.Has(w))
			require.True(t, ring.Has(w) || !m.Available(w, now))
		}
	}
}

// watching reports whether id is probed.
func (m *Monitor) watching(id peer.ID) bool {
	w := m.get(id)
	return w != nil && w.target
}

// listening reports whether probes of id are expected.
func (m *Monitor) listening(id peer.ID) bool {
	w := m.get(id)
	return w != nil && w.probes.heard()
}
