// Leaving when shards cannot move now: they stay and are served, and stop only when nobody can be given them, or the
// time of the leave is over.

package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/wire"
)

// stopsOf counts the stops that a world orders from now on: in moves, and others.
func stopsOf(w *world) (moved, plain *int) {
	moved, plain = new(int), new(int)
	w.ordered = func(h HostOrder) {
		switch {
		case h.Stop && h.Moves:
			*moved++
		case h.Stop && !h.Abandon:
			*plain++
		}
	}
	return moved, plain
}

// What a leaver has stays and is served while it cannot move, whatever the reason, and moves when it can (SHD-9): the
// markers of a bystander that stands still do not come, a member is Down, or nobody is ready for it. That the leaver
// coordinates itself changes nothing.
func TestLeaverMovesWhenItCan(t *testing.T) {
	for name, play := range map[string]struct {
		begins, ends func(w *world, leaver, bystander *testNode)
	}{
		"markers are late": {
			func(_ *world, leaver, bystander *testNode) { bystander.cut = map[peer.ID]bool{leaver.id: true} },
			func(_ *world, _, bystander *testNode) { bystander.cut = nil },
		},
		"a member is Down": {
			func(w *world, _, _ *testNode) {
				ill := w.join()
				w.publish()
				w.set(ill.id, membership.Down)
				w.publish()
			},
			func(w *world, _, _ *testNode) {
				w.promote()
				w.publish()
			},
		},
		"nobody is ready": {
			func(w *world, leaver, _ *testNode) {
				for _, n := range w.nodes {
					if n != leaver {
						n.do(ReadyCommand{orders.ID(), false})
					}
				}
				w.flow()
			},
			func(_ *world, _, bystander *testNode) { bystander.do(ReadyCommand{orders.ID(), true}) },
		},
		"one drains, as the others do": {
			func(w *world, leaver, _ *testNode) {
				for _, n := range w.nodes {
					if n != leaver {
						require.NoError(w.t, n.drains(true))
					}
				}
				w.pass(5 * time.Second)
			},
			func(w *world, _, bystander *testNode) { require.NoError(w.t, bystander.drains(false)) },
		},
	} {
		for _, who := range []int{0, 1} {
			t.Run(name, func(t *testing.T) {
				w := movable(t, 3)
				leaver, bystander := w.nodes[who], w.nodes[2]
				play.begins(w, leaver, bystander)
				moved, plain := stopsOf(w)
				mine := len(leaver.hosted)
				require.Positive(t, mine)
				leaver.do(LeaveCommand{Within: time.Minute})
				w.pass(DefaultDrainPatience - time.Second)
				require.Len(t, leaver.hosted, mine)
				for s := range orders.Shards {
					require.NotEqual(t, RouteUnknown, bystander.route(orders, all(orders)[s]).State)
				}
				play.ends(w, leaver, bystander)
				w.pass(5 * time.Second)
				require.True(t, leaver.drained)
				require.Equal(t, mine, *moved)
				require.Zero(t, *plain)
				require.Zero(t, w.mails[wire.KindStopShards])
			})
		}
	}
}

// A leaver's entities may take long to stop, and to say their state: what moves is left alone until the leave is over.
func TestLeaverWaitsForItsEntities(t *testing.T) {
	w := movable(t, 3)
	leaver := w.nodes[1]
	w.nodes[0].m.cfg.MaxMoves = 4
	w.slowStop = true
	moved, plain := stopsOf(w)
	mine := len(leaver.hosted)
	leaver.do(LeaveCommand{Within: 2 * time.Minute})
	for n := 4; len(leaver.hosted) > 0; n += 4 {
		w.pass(2 * DefaultDrainPatience)
		require.Equal(t, min(n, mine), *moved)
		leaver.confirm()
		w.flow()
	}
	w.pass(time.Second)
	require.True(t, leaver.drained)
	require.Zero(t, *plain)
}

// When the time of a leave is over, what still lives there stops, and what is being handed over goes on.
func TestLeaveIsOver(t *testing.T) {
	for _, forced := range []bool{false, true} {
		w := movable(t, 3)
		leaver, bystander := w.nodes[1], w.nodes[2]
		w.nodes[0].m.cfg.MaxMoves = 1
		w.slowStop = true
		moved, plain := stopsOf(w)
		mine := len(leaver.hosted)
		leaver.do(LeaveCommand{Within: time.Minute})
		w.pass(time.Second)
		require.Equal(t, 1, *moved)
		bystander.cut = map[peer.ID]bool{leaver.id: true}
		w.pass(50 * time.Second)
		require.Len(t, leaver.hosted, mine)
		if forced {
			leaver.do(LeaveCommand{Now: true})
		} else {
			w.pass(10 * time.Second)
		}
		require.Equal(t, 1, *moved)
		require.Equal(t, mine-1, *plain)
		leaver.confirm()
		w.pass(3 * time.Second)
		require.True(t, leaver.drained)
		leaver.do(LeaveCommand{Now: true})
	}
}

// Nobody waits for what can never move: for members that leave as well, that have not registered the type or know
// nothing of moves, and in a full shutdown.
func TestLeaverThatNobodySucceeds(t *testing.T) {
	for name, play := range map[string]struct {
		begins func(w *world)
		after  time.Duration
	}{
		"both leave": {func(w *world) { w.nodes[1].do(LeaveCommand{Within: time.Minute}) }, 0},
		"a full shutdown": {func(w *world) {
			for _, n := range w.nodes {
				w.set(n.id, membership.PreparingForShutdown)
			}
			w.publish()
		}, 0},
		"the other one drains": {func(w *world) {
			require.NoError(w.t, w.nodes[1].drains(true)) // it may take that back
			w.pass(time.Second)
		}, DefaultDrainPatience},
		"no moves": {func(w *world) {
			w.nodes[0].m.cfg.Moves = func(peer.ID) bool { return false }
		}, DefaultDrainPatience},
	} {
		t.Run(name, func(t *testing.T) {
			w := movable(t, 2)
			play.begins(w)
			_, plain := stopsOf(w)
			w.nodes[0].do(LeaveCommand{Within: time.Minute})
			if play.after > 0 {
				w.pass(play.after - time.Second)
				require.False(t, w.nodes[0].drained)
				require.Zero(t, *plain)
				w.pass(DefaultRetryMax)
			}
			w.pass(2 * time.Second)
			require.True(t, w.nodes[0].drained)
			require.Positive(t, *plain)
		})
	}
}

// What a leaver has parked for a shard that it has handed over goes to its next home: the leaver waits until it knows
// that, but not for ever (SHD-9).
func TestLeaverWaitsForHomes(t *testing.T) {
	for name, never := range map[string]bool{"told": false, "never told": true} {
		t.Run(name, func(t *testing.T) {
			w := movable(t, 3)
			boss, leaver := w.nodes[0], w.nodes[1]
			leaver.do(LeaveCommand{Within: time.Minute})
			for !leaver.drained && len(w.queue) > 0 {
				for _, s := range all(orders) { // messages for each shard that moves
					if st := leaver.route(orders, s).State; st == RouteMoving || st == RouteUnknown {
						leaver.do(WantCommand{orders.ID(), []route.ShardID{s}})
					}
				}
				if never {
					w.queue = slices.DeleteFunc(w.queue, func(p segment) bool {
						return p.to == boss.id && p.kind == wire.KindShardsStarted
					})
				}
				if len(w.queue) == 0 {
					break
				}
				w.deliver(0)
				leaver.confirm()
			}
			if never {
				require.Empty(t, leaver.hosted)
				require.False(t, leaver.drained)
				w.pass(DefaultDrainPatience + DefaultRetryMax)
			} else {
				for _, s := range all(orders) {
					require.Equal(t, RouteRemote, leaver.route(orders, s).State, "shard %d", s)
				}
			}
			require.True(t, leaver.drained)
		})
	}
}

// TestLeaveIsNotDueForEver: a wait for homes that is over is no deadline any more while the leave goes on, for a move
// may have come back meanwhile: a node would step for ever (SHD-9).
func TestLeaveIsNotDueForEver(t *testing.T) {
	m := &Machine{now: time.Minute}
	l := leave{begun: true, by: 2 * time.Minute, homes: time.Minute + time.Second}
	require.Equal(t, l.homes, l.next(m))
	m.now = l.homes
	require.Equal(t, l.by, l.next(m))
}
