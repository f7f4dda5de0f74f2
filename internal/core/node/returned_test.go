// A node that slept for longer than tombstones are kept: it ends before it looks at what lay in its sockets (MEM-1).

package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// TestRemovedIncarnationDoesNotReturn: an owner, and the coordinator, slept through their removal and the time for
// which others remember it. Whether a timer or an old frame comes first, they never serve again, and nobody takes them
// for members (MEM-1, SHD-9).
func TestRemovedIncarnationDoesNotReturn(t *testing.T) {
	for _, sleeper := range []int{0, 2} {
		for _, first := range []string{"timer", "frame"} {
			const retention = time.Minute
			w := &wires{t: t, now: time.Second}
			for i, host := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
				cfg := Config{Self: id(host), Seed: uint64(i + 1),
					Membership: membership.Config{TombstoneRetention: retention}}
				w.nodes = append(w.nodes, &end{id: cfg.Self, n: New(cfg)})
			}
			for _, e := range w.nodes {
				require.NoError(t, e.n.Do(w.now, membership.JoinCommand{Seeds: seedsOf(w), WallMillis: 1}))
				w.drain(e)
			}
			w.run(20*time.Second, func() bool { return up(w.nodes[0].view, 3) && up(w.nodes[2].view, 3) })
			for _, e := range w.nodes {
				require.NoError(t, e.n.Do(w.now, shard.RegisterCommand{Settings: books}))
				w.drain(e)
			}
			s := w.nodes[sleeper]
			others := []*end{w.nodes[(sleeper+1)%3], w.nodes[(sleeper+2)%3]}
			require.NoError(t, s.n.Do(w.now, shard.WantCommand{Type: books.ID(), Shards: []route.ShardID{0, 1, 2}}))
			w.drain(s)
			// It has made a change of its own at some time, so the clock that it knows has an entry of it.
			require.NoError(t, s.n.Do(w.now, membership.SetMetadataCommand{Key: "k", Value: []byte("v")}))
			w.drain(s)
			w.run(10*time.Second, func() bool { return false })
			s.asleep = true
			w.run(2*retention, func() bool { return false })
			require.True(t, up(others[0].view, 2) && up(others[1].view, 2), "downed by the resolver and removed")
			if first == "frame" {
				beat := s.queue[0]
				for _, m := range s.queue {
					if m.Kind == wire.KindHeartbeat {
						beat = m
						break
					}
				}
				require.NoError(t, s.n.Handle(w.now, w.now, beat.To, beat.Kind, beat.Body))
			} else {
				s.n.Tick(w.now)
			}
			var out Effects
			s.n.Drain(&out)
			require.NotNil(t, out.Ended, "%s first", first)
			require.Equal(t, membership.EndIsolated, out.Ended.Kind)
			for _, o := range out.Hosts {
				require.True(t, o.Abandon)
			}
			w.run(5*time.Second, func() bool { return false })
			require.True(t, up(others[0].view, 2) && up(others[1].view, 2))
		}
	}
}
