// The takeover time follows what makes a cut-off owner stop.

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/fd"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/shard"
)

// TestTakeoverBySize: detection bound, 1.75 times the patience, two seconds, rounded up to a second (MEM-10).
func TestTakeoverBySize(t *testing.T) {
	const s = time.Second
	slow := membership.Config{AcceptablePause: 10 * s}
	for name, c := range map[string]struct {
		cfg Config
		gap time.Duration
		by  map[int]time.Duration
	}{
		"default": {Config{}, 8500 * time.Millisecond, map[int]time.Duration{0: 17 * s, 1: 17 * s, 5: 17 * s, 6: 25 * s,
			10: 25 * s, 11: 31 * s, 20: 31 * s, 21: 38 * s, 50: 38 * s, 51: 43 * s, 100: 43 * s, 101: 60 * s, 10_000: 60 * s}},
		"lease waits a second more": {Config{Resolver: Resolver{Strategy: ResolverLeaseMajority}}, 9 * s,
			map[int]time.Duration{5: 18 * s, 101: 61 * s}},
		"lease outlasts a short instability": {Config{Resolver: Resolver{Strategy: ResolverLeaseMajority, StableAfter: 20 * s,
			UnstableAfter: s}}, 21500 * time.Millisecond, map[int]time.Duration{5: 43 * s}},
		"patience is fixed": {Config{Resolver: Resolver{StableAfter: 4 * s}}, 7500 * time.Millisecond,
			map[int]time.Duration{1: 15 * s, 500: 15 * s}},
		"instability is fixed": {Config{Resolver: Resolver{UnstableAfter: s}}, 7 * s,
			map[int]time.Duration{5: 14 * s, 10: 19 * s}},
		"instability is never called": {Config{Resolver: Resolver{UnstableAfter: -1}}, 8500 * time.Millisecond,
			map[int]time.Duration{5: 17 * s}},
		"a patient detector": {Config{Membership: slow}, 12 * s, map[int]time.Duration{5: 24 * s}},
		"a higher threshold": {Config{Membership: membership.Config{Threshold: 12, HeartbeatInterval: 4 * s}},
			12500 * time.Millisecond, map[int]time.Duration{5: 25 * s}},
		"another detector": {Config{Membership: membership.Config{Detector: fd.Deadline}}, 8 * s,
			map[int]time.Duration{5: 16 * s}},
		"off": {Config{Resolver: Resolver{Strategy: ResolverOff}, Membership: slow}, 10 * s,
			map[int]time.Duration{1: 20 * s, 500: 20 * s}},
		"fixed": {Config{Shard: shard.Config{TakeoverTime: 90 * s}}, 45 * s, map[int]time.Duration{1: 90 * s, 500: 90 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			for n, want := range c.by {
				require.Equal(t, want, c.cfg.Takeover(n), "%d members", n)
			}
			require.Equal(t, c.gap, c.cfg.GapLimit())
			last := time.Duration(0)
			for n := range 200 {
				require.GreaterOrEqual(t, c.cfg.Takeover(n), last, "%d members", n)
				last = c.cfg.Takeover(n)
				require.LessOrEqual(t, c.cfg.GapLimit(), last/2)
			}
		})
	}
}

// TestStopsWithin: what nodes compare names every size at which it changes, and differs when a setting matters
// (JOIN-1).
func TestStopsWithin(t *testing.T) {
	require.Equal(t, "17s 25s 31s 38s 43s 1m0s", Config{}.StopsWithin())
	require.Equal(t, "15s", Config{Resolver: Resolver{StableAfter: 4 * time.Second}}.StopsWithin())
	require.Equal(t, "never", Config{Resolver: Resolver{Strategy: ResolverOff}}.StopsWithin())
	longest := Config{Membership: membership.Config{AcceptablePause: 9999 * time.Hour}}.StopsWithin()
	require.LessOrEqual(t, len(longest), membership.MaxSettingValue)
}
