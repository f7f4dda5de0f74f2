// The reference's conformance scenario of a move, with its exact parties: two regions, a proxy, a coordinator beside
// them, and one that asks in the middle.

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// parties is a coordinator that hosts nothing, regions r1 and r2 of which r1 owns the shard, a proxy that knows so, and
// an asker that does not know the home yet.
type parties struct {
	*world
	boss, r1, r2, p, asker *testNode
	shard                  route.ShardID
}

func meet(t *testing.T) parties {
	w := startWorld(t, 3, "r")
	proxy := w.join()
	asker := w.join()
	w.publish()
	w.promote()
	w.publish()
	for _, n := range w.nodes[1:] {
		n.do(RegisterCommand{Settings: letters})
	}
	w.pass(time.Second)
	for _, n := range w.nodes[1:4] {
		n.want(letters, 1)
	}
	w.pass(time.Second)
	c := parties{w, w.nodes[0], w.nodes[1], w.nodes[2], proxy, asker, 1}
	require.Equal(t, RouteLocal, c.r1.route(letters, 1).State)
	require.Equal(t, RouteUnknown, asker.route(letters, 1).State)
	return c
}

func (c parties) begin(t *testing.T) {
	require.NoError(t, c.boss.m.Do(c.now, MoveCommand{letters.ID(), c.shard, c.r2.id}))
	c.boss.collect()
}

// homes counts the mail under way that tells a node a home.
func (c parties) homes(to *testNode) (n int) {
	for _, p := range c.queue {
		if p.to == to.id && (p.kind == wire.KindHomes || p.kind == wire.KindHomesSince) {
			n++
		}
	}
	return n
}

// F-C4: r1, r2 and the proxy are notified; the owner stops its entities when all the others have marked, and an asker
// in between gets no answer until the next owner has confirmed (SHD-7, SHD-12).
func TestConformanceMove(t *testing.T) {
	c := meet(t)
	c.slowStop = true
	c.begin(t)
	told := map[wire.Kind][]string{}
	for _, p := range c.queue {
		told[p.kind] = append(told[p.kind], p.to.String())
	}
	require.Equal(t, []string{c.r1.id.String()}, told[wire.KindMoveShard])
	require.ElementsMatch(t, []string{c.r2.id.String(), c.p.id.String()}, told[wire.KindMoveShards])
	marks := func() []segment {
		for len(c.queue) > 0 && c.queue[0].kind != wire.KindMarker {
			c.deliver(0)
		}
		return c.hold(wire.KindMarker)
	}
	var held []segment
	for range 4 {
		held = append(held, marks()...)
	}
	require.Len(t, held, 2, "of r2 and the proxy")
	c.asker.want(letters, 1)
	c.pass(time.Second)
	require.Equal(t, RouteUnknown, c.asker.route(letters, 1).State, "no answer while the shard moves")
	c.hand(held[0])
	c.flow()
	require.Empty(t, c.r1.stops, "one marker is missing")
	c.hand(held[1])
	c.flow()
	require.Len(t, c.r1.stops, 1)
	c.asker.want(letters, 1)
	c.pass(3 * time.Second)
	require.Equal(t, RouteUnknown, c.asker.route(letters, 1).State, "no answer before it has stopped")
	require.Empty(t, c.r2.hosted)
	c.r1.confirm()
	for c.r2.hosted[key(letters.ID(), 1)].IsZero() {
		require.Zero(t, c.homes(c.asker))
		require.NotEmpty(t, c.queue)
		c.deliver(0)
	}
	require.Equal(t, RouteUnknown, c.asker.route(letters, 1).State, "not before the next owner has confirmed")
	c.flow()
	require.Equal(t, RouteRemote, c.asker.route(letters, 1).State)
	require.Equal(t, c.r2.id, c.asker.route(letters, 1).Home)
	require.Equal(t, c.r2.id, c.p.route(letters, 1).Home)
}

// F-C4: the proxy ends: its removal counts as its marker.
func TestConformanceMoveWithoutItsProxy(t *testing.T) {
	c := meet(t)
	c.p.dead = true
	c.begin(t)
	c.flow()
	require.Contains(t, c.r1.hosted, key(letters.ID(), 1))
	c.set(c.p.id, membership.Down)
	c.publish()
	c.flow()
	require.Contains(t, c.r1.hosted, key(letters.ID(), 1), "Down is not removed")
	c.promote()
	c.publish()
	c.flow()
	require.Contains(t, c.r2.hosted, key(letters.ID(), 1))
	require.Empty(t, c.r1.hosted)
}

// F-C4: no marker of the proxy: after MarkTime, 3 s here in place of 60, the shard is still at r1, and an asker
// meanwhile gets that answer.
func TestConformanceMoveIsGivenUp(t *testing.T) {
	c := meet(t)
	c.p.dead = true
	c.begin(t)
	c.asker.want(letters, 1)
	c.pass(DefaultMarkTime - 100*time.Millisecond)
	require.Equal(t, RouteUnknown, c.asker.route(letters, 1).State)
	c.pass(3 * time.Second)
	require.Equal(t, RouteRemote, c.asker.route(letters, 1).State)
	require.Equal(t, c.r1.id, c.asker.route(letters, 1).Home)
	require.Equal(t, RouteLocal, c.r1.route(letters, 1).State)
	require.Empty(t, c.r2.hosted)
	require.Equal(t, 1, count(c.boss.events, MoveAborted))
}

// A coordinator that has no report of a member yet waits for its marker: the member may have heard of the home under
// the coordinator before. One that does not use the type has sent nothing, and marks. Found by storm 11700001502.
func TestMemberWithoutTheTypeMarks(t *testing.T) {
	c := meet(t)
	c.boss.dead = true
	c.set(c.boss.id, membership.Down)
	c.publish()
	c.promote()
	c.publish()
	c.pass(time.Minute)
	c.join()
	c.publish()
	c.promote()
	c.publish()
	c.hold(wire.KindReportWanted) // its report stays out
	require.NoError(t, c.r1.m.Do(c.now, MoveCommand{letters.ID(), c.shard, c.r2.id}))
	c.r1.collect()
	c.flow()
	require.Contains(t, c.r2.hosted, key(letters.ID(), 1))
	require.Empty(t, c.r1.hosted)
}

// F-C8: a member that is not Up gets no shard, whatever it says (SHD-1).
func TestConformanceNobodyElseHosts(t *testing.T) {
	for _, st := range []membership.Status{membership.Joining, membership.WeaklyUp, membership.Leaving,
		membership.Exiting} {
		w := startWorld(t, 1, "r")
		boss := w.nodes[0]
		other := w.join("r")
		if st >= membership.Leaving {
			w.set(other.id, membership.Up)
		}
		w.set(other.id, st)
		w.publish()
		boss.do(RegisterCommand{Settings: letters})
		other.do(RegisterCommand{Settings: letters})
		w.pass(time.Second)
		boss.want(letters, all(letters)...)
		w.pass(time.Second)
		require.Len(t, boss.hosted, 4, "%v", st)
		require.Empty(t, other.hosted)
	}
}
