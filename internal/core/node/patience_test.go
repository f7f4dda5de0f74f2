// Presets: what they set, what they leave, and what follows.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/cluster"
	"github.com/kith-io/kith/membership"
)

// TestPatience: the silences and takeover times of each preset, as docs/failover.md publishes them (MEM-10, FD-1).
func TestPatience(t *testing.T) {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	for p, want := range map[cluster.Patience]struct {
		silence, five, ten, hundred time.Duration
		compared                    string
	}{
		cluster.PatienceNormal: {5327 * time.Millisecond, 17 * time.Second, 25 * time.Second, 43 * time.Second,
			"17s 25s 31s 38s 43s 1m0s"},
		cluster.PatienceCalm: {1597 * time.Millisecond, 4793 * time.Millisecond, 6782 * time.Millisecond,
			11201 * time.Millisecond, "4.793s 6.782s 8.107s 9.875s 11.201s 15.619s"},
		cluster.PatienceNoisy: {8327 * time.Millisecond, 25 * time.Second, 37 * time.Second, 63 * time.Second,
			"25s 37s 45s 55s 1m3s 1m30s"},
	} {
		t.Run(p.String(), func(t *testing.T) {
			c := Config{Patience: p}.Paced()
			require.NoError(t, c.Membership.Validate())
			require.NoError(t, c.Resolver.Validate())
			require.Equal(t, want.silence, ms(c.Membership.SilenceBound()))
			require.Equal(t, want.five, c.Takeover(5))
			require.Equal(t, want.ten, c.Takeover(10))
			require.Equal(t, want.hundred, c.Takeover(100))
			require.Equal(t, want.compared, c.StopsWithin())
			require.Less(t, c.nap(), c.GapLimit())
			require.Positive(t, c.ExitLimit())
			again := c.Paced()
			require.Equal(t, c.Membership.AcceptablePause, again.Membership.AcceptablePause)
			require.Equal(t, c.Resolver, again.Resolver)
		})
	}
}

// TestPatienceLeavesWhatIsSet: a preset sets zero fields only, and the margin follows the gossip that is in force.
func TestPatienceLeavesWhatIsSet(t *testing.T) {
	c := Config{Patience: cluster.PatienceCalm, Membership: membership.Config{GossipInterval: 2 * time.Second,
		AcceptablePause: 2 * time.Second}, Resolver: Resolver{StableAfter: 3 * time.Second}}.Paced()
	require.Equal(t, 2*time.Second, c.Membership.GossipInterval)
	require.Equal(t, 2*time.Second, c.Membership.AcceptablePause)
	require.Equal(t, 250*time.Millisecond, c.Membership.HeartbeatInterval)
	require.Equal(t, 3*time.Second, c.Resolver.StableFor(100))
	fast := c
	fast.Membership.GossipInterval = 250 * time.Millisecond
	slower := c.Takeover(5) - fast.Takeover(5)
	require.Equal(t, 2*1750*time.Millisecond, slower, "two rounds of gossip are waited for")
}

// TestPatienceIsNamed: what is compared at joins names a preset that differs, so that a refusal says what to set;
// that of PatienceNormal is what builds before presets say (JOIN-1).
func TestPatienceIsNamed(t *testing.T) {
	for p, want := range map[cluster.Patience]string{
		cluster.PatienceNormal: "keep-majority stable-after=by-size unstable-after=default",
		cluster.PatienceCalm:   "keep-majority stable-after=by-size*25% unstable-after=default patience=calm",
		cluster.PatienceNoisy:  "keep-majority stable-after=by-size*150% unstable-after=default patience=noisy",
	} {
		terms := Terms{Config: Config{Patience: p}.Paced()}
		require.Contains(t, terms.Joins(), membership.Setting{Key: "kith.resolver", Value: want})
	}
}

// TestPatienceByName: presets are read as they are written, and nothing else is.
func TestPatienceByName(t *testing.T) {
	for _, p := range []cluster.Patience{cluster.PatienceNormal, cluster.PatienceCalm, cluster.PatienceNoisy} {
		text, err := p.MarshalText()
		require.NoError(t, err)
		q := cluster.Patience(77)
		require.NoError(t, q.UnmarshalText(text))
		require.Equal(t, p, q)
	}
	p := cluster.PatienceCalm
	for _, bad := range []string{"", "Calm", "patience-0", "fast"} {
		require.ErrorContains(t, p.UnmarshalText([]byte(bad)), `"normal" "calm" "noisy"`)
	}
	require.Equal(t, cluster.PatienceCalm, p)
	require.False(t, cluster.Patience(3).Valid())
}

// TestResolverKnowsTheDetectors: the resolver takes from the detectors how long a silence may be and how many watch
// each member, whatever it is set to (MEM-10).
func TestResolverKnowsTheDetectors(t *testing.T) {
	c := Config{Resolver: Resolver{Silence: time.Hour, WatchedBy: 99}}
	require.Equal(t, c.Membership.SilenceBound(), c.resolver().Silence)
	require.Equal(t, 5, c.resolver().WatchedBy)
	c.Membership.MonitoredBy = 2
	require.Equal(t, 2, c.resolver().WatchedBy)
}
