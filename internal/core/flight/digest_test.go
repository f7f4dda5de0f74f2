// Tests of the digest: a replay that goes another way is noticed by what the node does otherwise.

package flight

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/core/node"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/wire"
)

// Whatever a node sends, hosts, routes, sees and decides shows in the digest, and so does how its verb ended.
func TestDigest(t *testing.T) {
	a, b := id(t, "10.0.0.1:7355", 7), id(t, "10.0.0.2:7355", 9)
	begin := func() (*digest, *node.Effects) {
		return &digest{}, &node.Effects{View: &membership.View{Leader: a, Members: []membership.Member{{ID: a}}},
			Mail:   []peer.Mail{{To: a, Kind: wire.KindHeartbeat, Body: []byte{1}}},
			Hosts:  []shard.HostOrder{{Type: 1, Shard: 2, Fence: route.MakeFence(1, 1, 1)}},
			Routes: []shard.RouteChange{{Type: 1, Shard: 2, State: shard.RouteMoving, Home: a}},
			Events: []membership.Event{{Kind: membership.FormingHeld}}}
	}
	plain, e := begin()
	want := plain.sum(e)
	require.Equal(t, want, plain.sum(e), "the next one begins anew")
	for name, change := range map[string]func(d *digest, e *node.Effects){
		"an error":       func(d *digest, _ *node.Effects) { d.failed(errors.New("no")) },
		"no view":        func(_ *digest, e *node.Effects) { e.View = nil },
		"a leader":       func(_ *digest, e *node.Effects) { e.View.Leader = b },
		"a status":       func(_ *digest, e *node.Effects) { e.View.Members[0].Status = membership.Down },
		"a receiver":     func(_ *digest, e *node.Effects) { e.Mail[0].To = b },
		"a kind":         func(_ *digest, e *node.Effects) { e.Mail[0].Kind = wire.KindStatus },
		"a body":         func(_ *digest, e *node.Effects) { e.Mail[0].Body = []byte{2} },
		"no mail":        func(_ *digest, e *node.Effects) { e.Mail = nil },
		"what is untold": func(_ *digest, e *node.Effects) { e.Mail, e.Untold = nil, e.Mail },
		"a fence":        func(_ *digest, e *node.Effects) { e.Hosts[0].Fence = route.MakeFence(1, 1, 2) },
		"a stop":         func(_ *digest, e *node.Effects) { e.Hosts[0].Stop = true },
		"what is left":   func(_ *digest, e *node.Effects) { e.Hosts[0].Left = []byte{1} },
		"a shard":        func(_ *digest, e *node.Effects) { e.Routes[0].Shard = 3 },
		"a home":         func(_ *digest, e *node.Effects) { e.Routes[0].Home = b },
		"an event":       func(_ *digest, e *node.Effects) { e.Events = nil },
		"an end":         func(_ *digest, e *node.Effects) { e.Ended = &membership.Ended{Kind: membership.EndLeft} },
		"a suspension":   func(_ *digest, e *node.Effects) { e.Suspend = &node.Suspend{On: true} },
		"an answer":      func(_ *digest, e *node.Effects) { e.Answers = []shard.MoveAnswer{{Nonce: 1}} },
		"a lease":        func(_ *digest, e *node.Effects) { e.Lease = []node.LeaseOp{{Op: 1}} },
	} {
		d, e := begin()
		change(d, e)
		require.NotEqual(t, want, d.sum(e), name)
	}
}
