// Tests of watches where the watched ones live, and where the watchers do (SHD-12).

package entity

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// watchman is a fake with entities that watch: it keeps what it is called for.
type watchman struct {
	*fake
	asked, back, over []string
	told              []string
	gone              map[uint64]bool // watches that were taken back
	room              int
}

func (w *watchman) Watch(e *Entity, instance uint32, typ, id string) error {
	w.asked = append(w.asked, fmt.Sprintf("%s.%d watches %s/%s", e.ID(), instance, typ, id))
	return nil
}

func (w *watchman) Unwatch(e *Entity, instance uint32, typ, id string) {
	w.back = append(w.back, fmt.Sprintf("%s.%d %s/%s", e.ID(), instance, typ, id))
}

func (w *watchman) Due(number uint64) bool { return !w.gone[number] }

func (w *watchman) Over(e *Entity, living uint32) {
	w.over = append(w.over, fmt.Sprintf("%s but %d", e.ID(), living))
}

func (w *watchman) Room(n int) bool {
	if w.room < n {
		return false
	}
	w.room -= n
	return true
}

func (w *watchman) Watched(e *Entity, by []Watcher, instance uint64, why EndCause) {
	for _, b := range by {
		w.told = append(w.told, fmt.Sprintf("%d: %s.%d %v", b.Number, e.ID(), instance, why))
	}
}

// takes returns what watchers heard since the last call.
func (w *watchman) takes() (list []string) {
	list, w.told = w.told, nil
	return list
}

const watchRoom = 100

// watchRig is a rig with a watchman as its runtime.
func watchRig(t *testing.T, mode Mode, edit ...func(*Type)) (*rig, *watchman) {
	r := newRig(t, mode, edit...)
	w := &watchman{fake: r.f, room: watchRoom, gone: map[uint64]bool{}}
	r.Shard.runtime = w
	return r, w
}

func eachMode(t *testing.T, f func(t *testing.T, mode Mode)) {
	for _, m := range []Mode{Blocking, Worker, Inline} {
		t.Run(m.String(), func(t *testing.T) { f(t, m) })
	}
}

func by(n uint64) Watcher { return Watcher{peer.ID{Inc: 7}, n} }

// obeys has handlers do what a message says.
func obeys(c *Context, payload []byte) error {
	switch string(payload) {
	case "go":
		c.Passivate()
	case "panic":
		panic("as the test wants")
	}
	return nil
}

// Each end is reported once to all that watch by then, with its cause and the instance's number; a watch of nobody is
// answered at once, and makes nobody live.
func TestWatchedEnds(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r, w := watchRig(t, mode, func(typ *Type) { typ.IdleAfter = time.Minute })
		r.f.receive = obeys
		say := func(id, what string) {
			require.Equal(t, route.OK, r.deliver(id, what, nil, 0))
			r.runAll()
		}
		require.True(t, Watch(r.Shard, "nobody", by(1)))
		require.Equal(t, []string{"1: nobody.0 none"}, w.takes())
		require.Zero(t, r.Stats().Live)

		say("a", "x")
		Watch(r.Shard, "a", by(3))
		Watch(r.Shard, "a", by(2))
		Watch(r.Shard, "a", by(4))
		Unwatch(r.Shard, "a", by(4))
		require.Equal(t, watchRoom-2, w.room)
		say("a", "x")
		require.Empty(t, w.takes())
		say("a", "go")
		require.Equal(t, []string{"2: a.1 passivated", "3: a.1 passivated"}, w.takes())
		require.Equal(t, watchRoom, w.room)

		say("a", "x")
		say("b", "x")
		Watch(r.Shard, "b", by(5))
		Watch(r.Shard, "a", by(6))
		say("a", "panic")
		require.Equal(t, []string{"6: a.3 panicked"}, w.takes())
		r.Tick(2 * time.Minute)
		r.runAll()
		require.Equal(t, []string{"5: b.2 passivated"}, w.takes(), "it was idle")

		say("c", "x")
		Watch(r.Shard, "c", by(8))
		Watch(r.Shard, "c", Watcher{peer.ID{Inc: 8}, 9})
		Forget(r.Shard, peer.ID{Inc: 8})
		r.Shard.Stop(2*time.Minute, StopMoved)
		r.runAll()
		require.True(t, r.Stopped())
		require.Equal(t, []string{"8: c.4 moved"}, w.takes())
		require.Equal(t, watchRoom, w.room)
		require.Zero(t, Watchers(r.Shard))
	})
}

// A shard that is lost tells so of all that live, and later watches go elsewhere.
func TestWatchedAreLost(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r, w := watchRig(t, mode)
		r.deliver("a", "x", nil, 0)
		r.runAll()
		Watch(r.Shard, "a", by(1))
		r.Abandon()
		require.Equal(t, []string{"1: a.1 lost"}, w.takes())
		require.False(t, Watch(r.Shard, "a", by(2)))
		require.Equal(t, watchRoom, w.room)
	})
}

// A watch that comes while a run goes on hears of what that makes of the instance: it lives on, has ended, or another
// one lives.
func TestWatchComesDuringARun(t *testing.T) {
	const gone = "1: a.1 passivated"
	for messages, want := range map[string]string{"x": "", "go": gone, "go x": "", "": gone} {
		t.Run(messages, func(t *testing.T) {
			r, w := watchRig(t, Blocking)
			r.f.receive = func(c *Context, payload []byte) error {
				if string(payload) == "go x" || string(payload) == "go" {
					c.Passivate()
				}
				return nil
			}
			r.deliver("a", "first", nil, 0)
			r.runAll()
			if messages == "" {
				r.Shard.haltLater(r.Shard.table.dense[0], StopIdle)
			} else {
				r.deliver("a", messages, nil, 0)
			}
			if messages == "go x" {
				r.deliver("a", "x", nil, 0)
			}
			e := r.Ready()
			require.True(t, Watch(r.Shard, "a", by(1)), "it waits for its run")
			require.True(t, e.Begin(0))
			for e.Work() {
			}
			require.Empty(t, w.takes())
			for e.End(0) && e.Begin(0) {
				for e.Work() {
				}
			}
			if want == "" {
				require.Empty(t, w.takes())
				require.Equal(t, 1, Watchers(r.Shard))
				r.Abandon()
				require.Equal(t, []string{"1: a.1 lost"}, w.takes())
			} else {
				require.Equal(t, []string{want}, w.takes())
			}
			require.Equal(t, watchRoom, w.room)
		})
	}
}

// A run that goes on may end more than one instance: earlier watchers hear of the first, those that came during the run
// of the last, under a number of its own. Found by storm 1142002095, in which a watcher heard of a panic before its
// watch.
func TestWatchComesBetweenTwoEnds(t *testing.T) {
	for last, want := range map[string][]string{
		"go": {"1: a.1 panicked", "2: a.2 passivated"}, "panic": {"1: a.1 panicked", "2: a.2 panicked"},
		"x": {"1: a.1 panicked"},
	} {
		r, w := watchRig(t, Blocking)
		r.f.receive = obeys
		r.deliver("a", "first", nil, 0)
		r.runAll()
		Watch(r.Shard, "a", by(1))
		for _, m := range []string{"panic", "x", last} {
			r.deliver("a", m, nil, 0)
		}
		e := r.Ready()
		require.True(t, e.Begin(0))
		require.True(t, e.Work())
		require.True(t, Watch(r.Shard, "a", by(2)))
		for e.Work() {
		}
		for e.End(0) && e.Begin(0) {
			for e.Work() {
			}
		}
		require.Equal(t, want, w.takes(), last)
		living := 0
		if last == "x" {
			living = 1
		}
		require.Equal(t, living, Watchers(r.Shard))
		require.Equal(t, watchRoom-living, w.room)
	}
}

// The bound of watchers, and that of the node, are answers.
func TestWatchersBound(t *testing.T) {
	r, w := watchRig(t, Worker)
	r.deliver("a", "x", nil, 0)
	w.room = 1
	Watch(r.Shard, "a", by(1))
	Watch(r.Shard, "a", by(2))
	require.Equal(t, []string{"2: a.0 full"}, w.takes())
	w.room = 2 * MaxWatchers
	for n := range uint64(MaxWatchers) {
		Watch(r.Shard, "a", by(10+n))
	}
	require.Equal(t, []string{fmt.Sprintf("%d: a.0 full", 10+MaxWatchers-1)}, w.takes())
	require.Equal(t, MaxWatchers, Watchers(r.Shard))
}

// What an entity hears comes as a message of its own, once, and to the instance that watches: not to a later one, and
// not when it was taken back meanwhile.
func TestEndIsTold(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r, w := watchRig(t, mode)
		var heard []string
		r.f.receive = func(c *Context, payload []byte) error {
			if end, ok := c.Ended(); ok {
				_, timer := c.Timer()
				require.False(t, timer || c.Asked() || len(payload) > 0)
				heard = append(heard, end.ID)
				return nil
			}
			switch string(payload) {
			case "watch":
				require.NoError(t, c.Watch("", "b"))
				require.NoError(t, c.Watch("other", "b"))
				c.Unwatch("other", "b")
				require.ErrorIs(t, c.Watch("", ""), route.ErrBadID)
			case "go":
				c.Passivate()
			}
			return nil
		}
		r.f.stop = func(c *Context) { require.ErrorIs(t, c.Watch("", "b"), route.ErrShardStopping) }
		say := func(what string) {
			r.deliver("a", what, nil, 0)
			r.runAll()
		}
		var e *Entity
		tell := func(number uint64, instance uint32, id string) {
			TellEnd(r.Shard, e, instance, number, Ended{ID: id})
			at, ok := r.Next()
			require.True(t, ok)
			r.Tick(at)
			r.runAll()
		}
		say("watch")
		require.Equal(t, []string{"a.1 watches book/b", "a.1 watches other/b"}, w.asked)
		require.Equal(t, []string{"a.1 other/b"}, w.back)
		e, w.over = r.Shard.table.find(HashID([]byte("a")), []byte("a")), nil
		w.gone[2] = true
		tell(1, 1, "one")
		tell(2, 1, "taken back")
		tell(3, 2, "another instance")
		require.Equal(t, []string{"one"}, heard)
		require.EqualValues(t, 1, r.Stats().EndsHandled)
		require.Zero(t, r.Stats().TimersHandled)
		require.Empty(t, w.over)
		say("go")
		require.Contains(t, w.over, "a but 0")
		say("x")
		tell(4, 1, "of the last instance")
		require.Equal(t, []string{"one"}, heard)
		say("watch")
		r.Shard.Stop(0, StopLeaving)
		r.runAll()
		require.True(t, r.Stopped())
	})
}

// Timers of a batch that is not done, all of them handled, and as many new ones do not count as something else.
func TestTimersOfACutBatch(t *testing.T) {
	r, _ := watchRig(t, Blocking)
	r.f.receive = func(c *Context, _ []byte) error {
		for c.After(0, nil) == nil {
		}
		return nil
	}
	r.deliver("a", "x", nil, 0)
	r.runAll()
	r.Tick(0)
	r.deliver("a", "behind them", nil, 0)
	e := r.Ready()
	require.True(t, e.Begin(0))
	for range MaxTimers {
		require.True(t, e.Work())
	}
	require.True(t, e.End(0))
	require.Equal(t, MaxTimers, e.running())
	require.Zero(t, e.place&seen)
	require.True(t, e.Begin(0))
	for e.Work() {
	}
	e.End(0)
	require.Equal(t, MaxTimers, r.Stats().Timers)
}
