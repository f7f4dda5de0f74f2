// Handlers that take their time, and shards that move from under them.

package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/membership"
	"github.com/kith-io/kith/route"
	"github.com/kith-io/kith/shard"
	"github.com/kith-io/kith/sim/setup"
)

// toiler notes what befalls an entity, and takes its time for each message.
type toiler struct {
	life
	takes time.Duration
	w     **World
}

func (h toiler) Receive(c *entity.Context, b []byte) error {
	Toil((*h.w).Acting, h.takes)
	return h.life.Receive(c, b)
}

// toils returns a world with a first node that owns the one shard of a type, and a hundred messages for it from another
// node, with what its entity did under its first fence and its next.
func toils(t *testing.T, mode entity.Mode, takes time.Duration, cfg setup.DataConfig) (w *World, f route.Fence,
	log map[route.Fence][]int) {
	log = map[route.Fence][]int{}
	typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, Mode: mode,
		New: func(_ string, f route.Fence) entity.Handler { return toiler{life{f, log}, takes, &w} }}}
	w = formed(t, 3, setup.Config{Data: cfg}, typ)
	from := w.Hosts[1].Process.Region(route.TypeOf("t"))
	send := func(i int) {
		_, err := from.Send("x", []byte{byte(i)}, 0)
		require.NoError(t, err)
	}
	send(0)
	w.Advance(5 * time.Second)
	f = w.Hosts[0].Process.Region(route.TypeOf("t")).Slot(0).Fence()
	require.Equal(t, []int{0}, log[f], "the coordinator's node owns the shard")
	for i := 1; i <= 100; i++ {
		send(i)
	}
	return w, f, log
}

// inOrder demands that a hundred messages were handled, in order, so many of them under the first fence, before a stop.
func inOrder(t *testing.T, f route.Fence, log map[route.Fence][]int) (first int) {
	var all []int
	for _, n := range log[f] {
		if n != itsStop {
			all = append(all, n)
		}
	}
	first = len(all)
	require.Equal(t, itsStop, log[f][len(log[f])-1])
	for g, list := range log {
		if g != f {
			all = append(all, list...)
		}
	}
	want := make([]int, 101)
	for i := range want {
		want[i] = i
	}
	require.Equal(t, want, all)
	return first
}

// TestSlowWorkerHandsOver: what waits for a worker that is busy goes with the shard at the deadline of its move, in
// order, and what its sender could take back before that (SHD-9).
func TestSlowWorkerHandsOver(t *testing.T) { slowHandsOver(t, entity.Worker) }

// TestSlowLoopHandsOver: so does what waits for a loop with slow Inline handlers, for it reads on while the shard moves
// (SHD-9).
func TestSlowLoopHandsOver(t *testing.T) { slowHandsOver(t, entity.Inline) }

func slowHandsOver(t *testing.T, mode entity.Mode) {
	w, f, log := toils(t, mode, time.Second, setup.DataConfig{Window: 1 << 10})
	w.Advance(3500 * time.Millisecond)
	require.Equal(t, []int{0, 1, 2, 3, 4}, log[f], "one a second")
	owner, to := w.Hosts[0].Process, w.Hosts[2].Process
	require.NoError(t, owner.Command(shard.MoveCommand{Type: route.TypeOf("t"), To: to.ID}))
	moved := func() bool { return to.Region(route.TypeOf("t")).Lives(0) != nil }
	require.True(t, w.Until(5*time.Second, moved), "it need not work off a hundred messages")
	w.Advance(2 * time.Minute)
	require.Less(t, inOrder(t, f, log), 10)
	require.Empty(t, broken(w))
}

// TestSlowLoopReadsInTurn: a loop with a slow handler reads nothing meanwhile. A shard that moves handles what was on
// its way before it goes, as far as it comes to that before the deadline (SHD-9).
func TestSlowLoopReadsInTurn(t *testing.T) {
	w, f, log := toils(t, entity.Inline, 10*time.Millisecond, setup.DataConfig{})
	owner, to := w.Hosts[0].Process, w.Hosts[2].Process
	w.Advance(105 * time.Millisecond)
	require.InDelta(t, 10, len(log[f]), 2)
	require.NoError(t, owner.Command(shard.MoveCommand{Type: route.TypeOf("t"), To: to.ID}))
	w.Advance(10 * time.Second)
	require.NotNil(t, to.Region(route.TypeOf("t")).Lives(0))
	require.Equal(t, 101, inOrder(t, f, log))
	require.Empty(t, broken(w))
}

// TestUnreadIsLostWithItsConnection: what a loop has not read when its connection breaks was never taken.
func TestUnreadIsLostWithItsConnection(t *testing.T) {
	w, f, log := toils(t, entity.Inline, time.Second, setup.DataConfig{})
	w.Advance(1500 * time.Millisecond)
	w.Hosts[1].Process.BreakSome(func() bool { return true }, "reset")
	w.Advance(time.Minute)
	require.Equal(t, []int{0, 1, 2}, log[f])
	require.EqualValues(t, 98, w.Plane.InFlight)
	require.Empty(t, broken(w))
}

// TestStoppedBesideAStuckLoop: a shard that moves has stopped while the control loop stands still, and the node ends
// before that hears of it. What was not worked off is still the process's, so its senders get reports, as from a
// driver. Found by storm 1143000138 of heavy traffic.
func TestStoppedBesideAStuckLoop(t *testing.T) {
	for name, ends := range map[string]bool{"it ends": true, "it goes on": false} {
		var w *World
		handled := 0
		typ := &EntityType{Type: entity.Type{Name: "t", Shards: 1, Mode: entity.Worker,
			New: func(string, route.Fence) entity.Handler {
				return handlerFunc(func(_ *entity.Context, b []byte) error {
					Toil(w.Acting, time.Second)
					w.Delivered(w.Acting, route.TypeOf("t"), "x", b)
					handled++
					return nil
				})
			}}}
		w = formed(t, 3, setup.Config{Resolver: ResolverOff}, typ)
		from, owner, to := w.Hosts[1].Process, w.Hosts[0].Process, w.Hosts[2].Process
		r := from.Region(route.TypeOf("t"))
		for range 40 {
			tell, _ := w.Book.Write(from, r.ID, "x", 64)
			_, err := r.Send("x", tell, 0)
			require.NoError(t, err)
		}
		w.Advance(5 * time.Second)
		require.NoError(t, owner.Command(shard.MoveCommand{Type: r.ID, To: to.ID}))
		w.Advance(time.Second)
		owner.Stick(20 * time.Second)
		if ends {
			owner.Do(membership.IsolatedCommand{Why: "the test"})
		}
		w.Advance(15 * time.Second)
		require.Nil(t, owner.Region(r.ID).Lives(0), "%s: it has stopped", name)
		require.Less(t, handled, 20)
		w.Advance(2 * time.Minute)
		require.Equal(t, ends, owner.Ended != nil)
		require.Equal(t, !ends, handled == 40, name)
		_, lost := w.Audit()
		require.Zero(t, lost, name)
		require.Empty(t, broken(w), name)
	}
}
