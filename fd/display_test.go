// Tests of what people are shown of the failure detector (FD-1).

package fd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A peer that answers is available and has time left, one that falls silent has ever less, and none at the verdict.
func TestSuspicions(t *testing.T) {
	m := monitor(3)
	require.Empty(t, m.Suspicions(0, nil))
	all := set("aa", "bb", "cc")
	m.SetRing(0, all, RingOf(all), Absent{}, nil)
	for _, s := range m.Suspicions(0, nil) {
		require.Equal(t, Suspicion{Peer: s.Peer, Available: true}, s, "never heard")
	}
	now := time.Duration(0)
	for range 10 {
		now += time.Second
		m.Heard(id("bb"), now)
		m.Heard(id("cc"), now)
	}
	for range 3 { // bb alone
		now += time.Second
		m.Heard(id("bb"), now)
	}
	list := m.Suspicions(now, nil)
	require.Len(t, list, 2)
	bb, cc := list[0], list[1]
	require.Equal(t, id("bb"), bb.Peer)
	require.Zero(t, bb.Silence)
	require.Equal(t, 3*time.Second, cc.Silence)
	require.True(t, cc.Available)
	require.InDelta(t, bb.Left-cc.Left, cc.Silence, float64(100*time.Millisecond), "about the same rhythm")

	just := now + cc.Left
	require.True(t, m.Suspicions(just-1, nil)[1].Available)
	gone := m.Suspicions(just, nil)[1]
	require.False(t, gone.Available)
	require.Zero(t, gone.Left)
	require.InDelta(t, 8, gone.Phi, 0.1)
	require.EqualValues(t, MaxPhi, m.Suspicions(now+time.Hour, nil)[1].Phi, "beyond what a float holds")
	require.True(t, m.Suspicions(now, nil)[0].Available)

	m.Probed(id("cc"), just)
	both := m.Suspicions(just, nil)[1]
	require.False(t, both.Available, "its probes come, its answers do not")
	m.Parted(id("cc"), just)

	m.Heard(id("bb"), just)
	answers := m.Suspicions(just, nil)[0]
	m.Probed(id("bb"), just-time.Second)
	probes := m.Suspicions(just, nil)[0]
	require.Equal(t, time.Second, probes.Silence, "its next probe is due before its next answer")
	require.Less(t, probes.Left, answers.Left)
	m.SetRing(just, set("aa", "bb"), RingOf(set("aa", "bb")), Absent{}, nil)
	require.Len(t, m.Suspicions(just, nil), 1)
}
