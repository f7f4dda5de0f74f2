// Moves in random runs, among everything else that can happen.

package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// play performs a random event of the data plane.
func (x *traffic) play(t *rapid.T, s Settings) {
	w := x.w
	switch k := rapid.IntRange(0, 9).Draw(t, "play"); {
	case k < 4:
		if n := w.pick(t, (*testNode).well); n != nil && x.count.sent < 200 && n.m.view != nil {
			x.send(n, route.ShardID(rapid.IntRange(0, int(s.Shards)-1).Draw(t, "shard")))
		}
	case k < 7:
		if list := x.busy(); len(list) > 0 {
			x.carry(list[rapid.IntRange(0, len(list)-1).Draw(t, "wire")])
		}
	case k < 9:
		if n := w.pick(t, (*testNode).well); n != nil {
			k := key(s.ID(), route.ShardID(rapid.IntRange(0, int(s.Shards)-1).Draw(t, "box")))
			if n.hosted[k] != (route.Fence{}) {
				x.handle(n, k)
			}
		}
	default:
		n := w.pick(t, func(n *testNode) bool { return n.well() && n.stats(s).Leading != nil })
		to := w.pick(t, (*testNode).well)
		if n != nil && to != nil {
			_ = n.m.Do(w.now, MoveCommand{s.ID(), route.ShardID(rapid.IntRange(0, int(s.Shards)-1).Draw(t, "moves")), to.id})
			n.collect()
		}
	}
}

// Moves among everything else that can happen: without a crash nothing is lost but what a break or a plain stop took;
// with or without, nothing is handled twice or overtaken, there is one owner, and everything has a way out (SHD-9).
func TestChaosOfMoves(t *testing.T) {
	s := Settings{Name: "moves", Shards: 4, Role: "r"}
	total := map[EventKind]int{}
	handed, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := startWorld(t, rapid.IntRange(2, 4).Draw(t, "nodes"), "r")
		w.traffic = newTraffic(w, s)
		hosts := slices.Clone(w.nodes)
		if later := len(hosts) > 2 && rapid.Bool().Draw(t, "later"); later {
			w.join("other")
			w.publish()
			w.promote()
			w.publish()
		}
		w.balances(time.Duration(rapid.IntRange(1, 20).Draw(t, "balance")) * time.Second)
		x := w.traffic
		x.states.on = rapid.Bool().Draw(t, "states")
		crashes := rapid.Bool().Draw(t, "crashes")
		for _, n := range w.nodes {
			n.do(RegisterCommand{Settings: s})
		}
		for _, n := range hosts {
			n.want(s, all(s)...)
		}
		w.flow()
		if len(w.nodes) > len(hosts) { // the next coordinator has everybody mark, also a node that has sent nothing yet
			hosts[0].do(LeaveCommand{})
			for range 8 {
				w.heal1(s)
			}
		}
		for range rapid.IntRange(50, 500).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 19).Draw(t, "what"); {
			case k < 12:
				x.play(t, s)
			case k == 12:
				if list := x.busy(); len(list) > 0 {
					x.breaks(list[rapid.IntRange(0, len(list)-1).Draw(t, "broken")])
				}
			case crashes:
				w.act(t, s)
				x.faulty = x.faulty || slices.ContainsFunc(w.nodes, func(n *testNode) bool { return !n.well() })
			default:
				w.calm(t)
			}
		}
		for range 8 {
			w.heal1(s)
			x.pump()
		}
		w.heal(s)
		x.pump()
		x.settled()
		for _, n := range w.nodes {
			for _, e := range n.events {
				total[e.Kind]++
			}
			if h := n.m.types[s.ID()].region.hand; n.well() {
				require.Empty(t, h.out)
				if !x.faulty {
					require.Empty(t, h.kept)
				}
			}
		}
		handed += x.count.handedOver
		taken += x.states.taken
		if !crashes {
			require.Zero(t, x.count.untaken)
		}
	})
	for _, k := range []EventKind{MoveBegan, MoveMarked, MoveHandedOver, MoveDone, MoveAborted} {
		require.Positive(t, total[k], "%s", k)
	}
	require.Positive(t, handed)
	require.Positive(t, taken)
}

// calm performs a random event that is no crash and no leave.
func (w *world) calm(t *rapid.T) {
	switch k := rapid.IntRange(0, 10).Draw(t, "calm"); {
	case k < 6 && len(w.queue) > 0:
		w.deliver(rapid.IntRange(0, len(w.queue)-1).Draw(t, "mail"))
	case k == 6 && len(w.queue) > 0:
		i := rapid.IntRange(0, len(w.queue)-1).Draw(t, "lost")
		w.queue = slices.Delete(w.queue, i, i+1)
	case k == 7 && len(w.queue) > 0:
		w.hand(w.queue[rapid.IntRange(0, len(w.queue)-1).Draw(t, "doubled")])
	case k == 8:
		w.tickAt(w.now + time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms"))*time.Millisecond)
	case k == 9:
		if n := w.pick(t, (*testNode).well); n != nil {
			_ = n.m.Do(w.now, DrainCommand{On: rapid.Bool().Draw(t, "drains")})
			n.collect()
		}
	default:
		if n := w.pick(t, (*testNode).well); n != nil {
			n.confirm()
		}
	}
}

// heal1 lets a second pass without faults.
func (w *world) heal1(s Settings) {
	w.housekeep()
	w.publish()
	for w.promote() {
		w.publish()
	}
	w.traffic.pump()
	w.pass(time.Second)
}
