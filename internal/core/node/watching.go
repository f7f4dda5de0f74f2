// Watching: what watches of entities need of the other machines of their node.

package node

import (
	"errors"

	"github.com/kith-io/kith/internal/core/courier"
	"github.com/kith-io/kith/internal/core/watch"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
)

// watching answers the machine of watches.
func watching(n *Node) watch.Config {
	return watch.Config{
		Home: func(t route.TypeID, s route.ShardID) (peer.ID, route.Fence, bool) { return shard.Where(n.shards, t, s) },
		Next: func(t route.TypeID, s route.ShardID) peer.ID { return shard.NextHome(n.shards, t, s) },
		Want: func(t route.TypeID, s route.ShardID) { // refused where the type is
			_ = n.shards.Do(n.now, shard.WantCommand{Type: t, Shards: []route.ShardID{s}})
		},
		Stale: func(t route.TypeID, s route.ShardID, f route.Fence) {
			_ = n.shards.Do(n.now, shard.RefusedCommand{Type: t, Shard: s, Term: f.Term(), Epoch: f.Epoch()})
		},
		Lost: n.lost,
		Post: func(m peer.Mail) error {
			err := n.courier.Do(n.now, courier.PostCommand{Mail: m, CanWait: true})
			if errors.Is(err, courier.ErrFull) {
				return watch.ErrNoRoom
			}
			return err
		},
	}
}

// lost reports whether nothing that this node sends to a peer will arrive: it is no member, is Down, or was given up.
func (n *Node) lost(id peer.ID) bool {
	if n.fed == nil {
		return false
	}
	switch n.roster(n.fed).Of.Of(id) {
	case courier.Absent, courier.Lost, courier.Condemned:
		return true
	}
	return false
}

// routed tells the machine of watches which homes are known since the last verb of sharding.
func (n *Node) routed() {
	if !n.watches.Seeks() {
		return
	}
	var c watch.KnownCommand
	for _, r := range n.shards.Peek().Routes {
		if r.State == shard.RouteLocal || r.State == shard.RouteRemote {
			c.Places = append(c.Places, watch.Place{Type: r.Type, Shard: r.Shard})
		}
	}
	if len(c.Places) > 0 {
		_ = n.watches.Do(n.now, c)
	}
}
