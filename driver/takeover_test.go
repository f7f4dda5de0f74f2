// The takeover time as the driver compares it at joins and watches it.

package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/node"
	"github.com/kith-io/kith/peer"
)

// TestSettingsOfTheTakeover: nodes whose detectors or resolvers make them stop at another time do not fit together, and
// neither does a fixed time with a derived one (JOIN-1, MEM-10).
func TestSettingsOfTheTakeover(t *testing.T) {
	get := func(c Config) (stops, takeover string) {
		for _, s := range c.WithDefaults().members().Settings {
			switch s.Key {
			case "kith.stops-within":
				stops = s.Value
			case "kith.takeover-time":
				takeover = s.Value
			}
		}
		return stops, takeover
	}
	for name, c := range map[string]struct {
		cfg             Config
		stops, takeover string
	}{
		"default": {Config{}, "20s 25s 31s 38s 43s 1m0s", "derived"},
		"detector": {Config{Membership: membership.Config{AcceptablePause: 5 * time.Second}}, "22s 27s 33s 40s 45s 1m2s",
			"derived"},
		"resolver": {Config{Resolver: node.Resolver{StableAfter: 4 * time.Second}}, "15s", "derived"},
		"off":      {Config{Resolver: node.Resolver{Strategy: ResolverOff}}, "never", "derived"},
		"fixed":    {Config{TakeoverTime: time.Minute}, "20s 25s 31s 38s 43s 1m0s", "1m0s"},
	} {
		stops, takeover := get(c.cfg)
		require.Equal(t, c.stops, stops, name)
		require.Equal(t, c.takeover, takeover, name)
	}
}

// TestOutgrownTakeoverTime: one warning when the cluster has become too large for a fixed takeover time (MEM-10).
func TestOutgrownTakeoverTime(t *testing.T) {
	view := func(n int) *membership.View {
		v := &membership.View{}
		for i := range n {
			id := peer.ID{Addr: peer.MustAddr("127.0.0.1:1"), Inc: uint64(i + 1)}
			v.Members = append(v.Members, membership.Member{ID: id, Status: membership.Up, UpNumber: uint32(i + 1)})
		}
		return v
	}
	for name, c := range map[string]struct {
		cfg   Config
		warns int
	}{
		"too short":   {Config{TakeoverTime: 20 * time.Second}, 1},
		"long enough": {Config{TakeoverTime: 31 * time.Second}, 0},
		"derived":     {Config{}, 0},
		"off":         {Config{TakeoverTime: time.Second, Resolver: node.Resolver{Strategy: ResolverOff}}, 0},
	} {
		var log bytes.Buffer
		d := &Driver{cfg: c.cfg.WithDefaults(), log: slog.New(slog.NewTextHandler(&log, nil))}
		d.outgrown(view(5))
		require.Empty(t, log.String(), name)
		d.outgrown(view(20))
		d.outgrown(view(20))
		require.Equal(t, c.warns, strings.Count(log.String(), "needed=31s members=20"), name)
	}
}
