// The takeover time as the driver compares it at joins and watches it.

package driver

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/internal/core/plane"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// TestSettingsOfTheTakeover: nodes do not fit together if their detectors or resolvers make them stop at another time,
// and neither does a fixed time with a derived one (JOIN-1, MEM-10).
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
		"default": {Config{}, "17s 25s 31s 38s 43s 1m0s", "derived"},
		"detector": {Config{Membership: membership.Config{AcceptablePause: 5 * time.Second}}, "19s 27s 33s 40s 45s 1m2s",
			"derived"},
		"resolver": {Config{Resolver: node.Resolver{StableAfter: 4 * time.Second}}, "15s", "derived"},
		"off":      {Config{Resolver: node.Resolver{Strategy: node.ResolverOff}}, "never", "derived"},
		"fixed":    {Config{Sharding: Sharding{TakeoverTime: time.Minute}}, "17s 25s 31s 38s 43s 1m0s", "1m0s"},
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
		"too short":   {Config{Sharding: Sharding{TakeoverTime: 20 * time.Second}}, 1},
		"long enough": {Config{Sharding: Sharding{TakeoverTime: 31 * time.Second}}, 0},
		"derived":     {Config{}, 0},
		"off": {Config{Sharding: Sharding{TakeoverTime: time.Second},
			Resolver: node.Resolver{Strategy: node.ResolverOff}}, 0},
	} {
		var log bytes.Buffer
		cfg := c.cfg.WithDefaults()
		w := takeover{cfg: &cfg, log: slog.New(slog.NewTextHandler(&log, nil))}
		w.outgrow(view(5))
		require.Empty(t, log.String(), name)
		w.outgrow(view(20))
		w.outgrow(view(20))
		require.Equal(t, c.warns, strings.Count(log.String(), "needed=31s members=20"), name)
	}
}

// TestParkTimeFollowsTheTakeover: what waits for a home may wait for longer than the takeover time of the members that
// there are; one warning when a fixed time is shorter (SHD-4, MEM-10).
func TestParkTimeFollowsTheTakeover(t *testing.T) {
	of := func(c Config) (*takeover, *bytes.Buffer) {
		log, cfg := &bytes.Buffer{}, c.WithDefaults()
		return &takeover{cfg: &cfg, log: slog.New(slog.NewTextHandler(log, nil))}, log
	}
	w, log := of(Config{})
	for _, members := range []int{1, 5, 11, 101, 5} {
		takeover := w.cfg.node().Takeover(members)
		w.follow(takeover)
		require.Greater(t, w.parkTime(), takeover+5*time.Second)
		require.GreaterOrEqual(t, w.parkTime(), 30*time.Second)
	}
	require.Empty(t, log.String())
	w, log = of(Config{Sharding: Sharding{ParkTime: 30 * time.Second}})
	w.follow(w.cfg.node().Takeover(10))
	require.Empty(t, log.String())
	w.follow(w.cfg.node().Takeover(20))
	w.follow(w.cfg.node().Takeover(20))
	require.Equal(t, 1, strings.Count(log.String(), "park_time=30s takeover_time=31s"))
}

// TestExitTimeoutStaysBelowTheTakeover: one that leaves without having given everything back must have ended before its
// shards live elsewhere (MEM-8, MEM-10).
func TestExitTimeoutStaysBelowTheTakeover(t *testing.T) {
	with := func(exit time.Duration, r node.Resolver) Config {
		return Config{Membership: membership.Config{ExitTimeout: exit}, Resolver: r}.WithDefaults()
	}
	off, quick := node.Resolver{Strategy: node.ResolverOff}, node.Resolver{StableAfter: time.Second}
	require.NoError(t, with(15*time.Second, node.Resolver{}).Validate())
	err := with(16*time.Second, node.Resolver{}).Validate()
	require.ErrorIs(t, err, ErrBadConfig)
	require.ErrorContains(t, err, "ExitTimeout is 16s, must be at most 15s")
	require.NoError(t, with(time.Minute, off).Validate(), "nothing stops a node that is cut off")
	require.Equal(t, 10*time.Second, with(0, node.Resolver{}).members().ExitTimeout)
	short := with(0, quick)
	require.NoError(t, short.Validate())
	require.LessOrEqual(t, short.members().ExitTimeout, short.node().ExitLimit())
}

// TestHomesAreCounted: how many shards live at each node is known without a look at each, whatever routes do: they come
// to a node, go to the next one, are closed, lead here, or into a home that is gone (AVL-5).
func TestHomesAreCounted(t *testing.T) {
	const shards = 64
	r, link := sinkRegion(t, shards)
	d, nodes := r.d, []peer.ID{link.Peer()}
	for i := range uint64(2) {
		nodes = append(nodes, peer.ID{Addr: peer.MustAddr("127.0.0.1:1"), Inc: 8 + i})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 2_000 {
		ref := slotRef{r, route.ShardID(rng.IntN(shards))}
		onControl(d, func() {
			epoch := uint32(n + 2)
			remote := d.remote(nodes[rng.IntN(len(nodes))], ref.shard)
			e := &routeEntry{remote: remote, link: remote.link, term: 1, epoch: epoch, of: ref}
			home := plane.Home{At: remote.id, Fence: route.MakeFence(1, 1, epoch), Gone: rng.IntN(8) == 0}
			switch rng.IntN(6) {
			case 0:
				d.closeRoute(ref)
			case 1:
				if e := ref.slot().next; e != nil && e.remote != nil {
					d.nextHome(ref, e.remote.id, e.term, e.epoch)
				}
			case 2:
				d.moveRoute(ref, &routeEntry{term: 1, epoch: epoch, of: ref},
					plane.Home{At: d.self, Local: true, Fence: home.Fence})
			default:
				d.moveRoute(ref, e, home)
			}
		})
		if n%50 != 0 {
			continue
		}
		count := map[peer.ID]int{}
		for s := range route.ShardID(shards) {
			if at, ok := r.Home(s); ok && at != d.self {
				count[at]++
			}
		}
		for _, id := range nodes {
			require.Equal(t, count[id], d.peerTable.homesAt(id))
		}
	}
}
