// The coordinator's conformance scenarios of the reference, with their exact values, under the names that they have
// there (docs/contributing/conformance.md says where the others are).

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/wire"
)

var letters = Settings{Name: "letters", Shards: 4, Role: "r"}

// F-C1: a home is asked for while nobody hosts the type: no answer. When a region has registered: one allocation, one
// order to host, and the home is sent to the asker, in this order. Here the home is sent when the owner has confirmed
// the start, in place of when a write has succeeded (SHD-2, SHD-3).
func TestConformanceFirstRegion(t *testing.T) {
	w := startWorld(t, 2, "r")
	boss, r1 := w.nodes[0], w.nodes[1]
	asker := w.join()
	w.publish()
	w.promote()
	w.publish()
	asker.do(RegisterCommand{Settings: letters})
	asker.want(letters, 1)
	w.pass(5 * time.Second)
	require.Equal(t, RouteUnknown, asker.route(letters, 1).State)
	require.Zero(t, count(boss.events, ShardAllocated))
	require.Zero(t, w.mails[wire.KindHomes]+w.mails[wire.KindHomesSince]+w.mails[wire.KindHostShards])

	r1.do(RegisterCommand{Settings: letters})
	var order []wire.Kind
	for deadline := w.now + 5*time.Second; w.now < deadline; {
		for len(w.queue) > 0 {
			switch k := w.queue[0].kind; k {
			case wire.KindHostShards, wire.KindHostKept, wire.KindShardsStarted, wire.KindHomes, wire.KindHomesSince:
				order = append(order, k)
			}
			w.deliver(0)
		}
		w.tickAt(w.now + 10*time.Millisecond)
	}
	require.Equal(t, []wire.Kind{wire.KindHostShards, wire.KindShardsStarted, wire.KindHomes}, order)
	require.Equal(t, 1, count(boss.events, ShardAllocated))
	require.Contains(t, r1.hosted, key(letters.ID(), 1))
	require.Equal(t, RouteRemote, asker.route(letters, 1).State)
	require.Equal(t, r1.id, asker.route(letters, 1).Home)
}

// F-C2: with what a coordinator needs for an allocation blocked (there a write of its state, here the owner's word),
// the home of an allocated shard is sent at once, and that of a new one when it is there; two new ones asked for
// meanwhile need not wait for each other, as they do there (SHD-2).
func TestConformanceAllocationIsBlocked(t *testing.T) {
	w := startWorld(t, 2, "r")
	boss, r1 := w.nodes[0], w.nodes[1]
	w.registerAll(letters)
	boss.want(letters, 0, 1) // one each
	w.pass(time.Second)
	require.Len(t, r1.hosted, 1)
	asker := w.join()
	w.publish()
	w.promote()
	w.publish()
	asker.do(RegisterCommand{Settings: letters})
	w.pass(time.Second)
	boss.want(letters, 2, 3)
	blocked := w.hold(wire.KindHostShards)
	require.Len(t, blocked, 1, "the other one lives with the coordinator")
	asker.want(letters, all(letters)...)
	w.flow()
	known, waits := 0, 0
	for _, s := range all(letters) {
		if asker.route(letters, s).State == RouteRemote {
			known++
		} else {
			waits++
		}
	}
	require.Equal(t, []int{3, 1}, []int{known, waits})
	w.hand(blocked[0])
	r1.want(letters, all(letters)...)
	w.flow()
	w.agree(letters, all(letters)...)
}

// F-C7: there three nodes have to be members before shards get homes, and two are enough later. Here a node hosts, and
// coordinates, when it is Up, and the leader, which lets nodes become Up, waits for so many (TestConformanceMinimum,
// package sim). F-C8: the registration of a node that is not Up is kept, and the node gets shards when it is (SHD-1).
func TestConformanceOnlyWhoIsUpHosts(t *testing.T) {
	w := startWorld(t, 1, "r")
	boss := w.nodes[0]
	boss.do(RegisterCommand{Settings: letters})
	joining := w.join("r")
	w.publish()
	joining.do(RegisterCommand{Settings: letters})
	w.pass(time.Second)
	boss.want(letters, 0, 1)
	w.pass(time.Second)
	require.Len(t, boss.hosted, 2, "nobody else is Up")
	require.Empty(t, joining.hosted)
	w.set(joining.id, membership.Up)
	w.publish()
	w.pass(time.Second)
	boss.want(letters, 2, 3)
	w.pass(time.Second)
	require.Len(t, joining.hosted, 2)
	w.set(joining.id, membership.Leaving)
	w.publish()
	for _, n := range w.nodes {
		n.want(letters, all(letters)...)
	}
	w.pass(time.Second)
	w.agree(letters, all(letters)...)
}
