// Tests of entities that begin without a message, since the application remembers them.

package entity

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// remembers makes the entities of a type begin again after failures; the rig's runtime does not ask for the list.
func remembers(typ *Type) {
	alive(typ)
	typ.Remembered = func(context.Context, route.ShardID, route.Fence) iter.Seq2[string, error] { return nil }
}

// recall has entities begin and returns how often that was reported as done.
func (r *rig) recall(ids ...string) (done *int) {
	done = new(int)
	Recall(r.Shard, r.f.now, ids, func() { *done++ })
	r.tickTo(r.f.now)
	return done
}

// TestRecalledEntitiesBegin: each is made once, without a message to any handler; one that lives goes on living, and
// the caller that gave the list hears when it is done (SHD-12, F-R6: twenty starts, then twenty stops).
func TestRecalledEntitiesBegin(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(remembers)
		require.Equal(t, route.OK, r.tell("e3", "1"))
		require.Equal(t, []string{"e3 new", "e3 got 1"}, r.takeLog())
		ids, want := []string{}, []string{}
		for i := range 20 {
			id := fmt.Sprint("e", i)
			if ids = append(ids, id); i != 3 {
				want = append(want, id+" new")
			}
		}
		done := r.recall(ids...)
		require.Equal(t, want, r.takeLog())
		require.Equal(t, 1, *done)
		require.Equal(t, 20, r.Stats().Live)
		require.Equal(t, uint64(1), r.Stats().Delivered, "no handler got anything for it")

		r.f.receive = func(c *Context, _ []byte) error { c.Passivate(); return nil }
		for _, id := range ids {
			require.Equal(t, route.OK, r.tell(id, "go"))
		}
		r.takeLog()
		r.tickTo(r.f.now + time.Hour)
		require.Empty(t, r.takeLog(), "who has let itself go does not begin again")
		require.Zero(t, r.Stats().Live)
		require.Zero(t, r.Stats().QueuedBytes)
	})
}

// TestRecalledEntityBeginsAgain: after a panic, and after a New that failed, when its rest is over, without a message;
// after more than MaxRestarts when it is not given up any more.
func TestRecalledEntityBeginsAgain(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(remembers, func(typ *Type) { typ.MaxRestarts = 2 }))
		r.recall("a")
		require.Equal(t, route.OK, r.tell("a", "bad"))
		require.Equal(t, []string{"a new", "a got bad"}, r.takeLog())
		r.tickTo(time.Second - 1)
		require.Empty(t, r.takeLog(), "it rests")
		fails := 2
		r.f.make = func(id string) Handler {
			if fails--; fails >= 0 {
				return nil
			}
			r.f.log = append(r.f.log, "made "+id)
			return &handler{r.f, id}
		}
		r.tickTo(3*time.Second - 1)
		require.Equal(t, 1, fails, "after one second; then it rests for two")
		r.tickTo(11*time.Second - 1)
		require.Empty(t, r.takeLog(), "it has failed three times, and is given up for the window")
		require.Zero(t, fails)
		r.tickTo(11 * time.Second)
		require.Equal(t, []string{"made a"}, r.takeLog())
		require.Equal(t, 1, r.Stats().Live)
		require.Zero(t, r.Stats().NotMade, "no message was dropped")
	})
}

// TestRecallBehindTimersOfTheDead: an entity begins again after its instance has failed while messages of its timers
// wait all the same, and one that lets itself go soon after a failure does not.
func TestRecallBehindTimersOfTheDead(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(remembers)
		r.f.receive = func(c *Context, p []byte) error {
			switch string(p) {
			case "set":
				require.NoError(t, c.SetTimer("a", time.Second, []byte("bad")))
				require.NoError(t, c.SetTimer("b", time.Second, []byte("good")))
			case "bad":
				panic("bad")
			case "go":
				c.Passivate()
			}
			return nil
		}
		r.recall("a")
		require.Equal(t, route.OK, r.tell("a", "set"))
		r.f.now = time.Second
		r.Tick(r.f.now)
		r.Tick(r.f.now)
		r.runAll()
		r.takeLog()
		r.tickTo(2*time.Second - 1)
		require.Empty(t, r.takeLog())
		r.tickTo(2 * time.Second)
		require.Equal(t, []string{"a new"}, r.takeLog())
		require.Equal(t, route.OK, r.tell("a", "go"))
		r.takeLog()
		r.tickTo(time.Hour)
		require.Empty(t, r.takeLog())
		require.Zero(t, r.Stats().Live)
	})
}

// TestLateRecall: a node that was paused for longer than the rest and the window after it has the entity begin all the
// same.
func TestLateRecall(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := crashing(again(remembers))
		r.recall("a")
		require.Equal(t, route.OK, r.tell("a", "bad"))
		r.takeLog()
		r.f.now = time.Hour
		r.tickTo(time.Hour)
		require.Equal(t, []string{"a new"}, r.takeLog())
	})
}

// TestUnknownIDIsNotRecalled: an id for which New has never made anything, and that no list has named, is tried for
// messages alone: anybody may send to any id.
func TestUnknownIDIsNotRecalled(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(remembers)
		made := 0
		r.f.make = func(string) Handler { made++; return nil }
		require.Equal(t, route.OK, r.tell("nobody", "1"))
		require.Equal(t, 1, made)
		r.tickTo(time.Hour)
		require.Equal(t, 1, made)
		require.Zero(t, r.Stats().Live)
	})
}

// TestRecallIsPaced: of Blocking entities no more begin at a time than stop at a time, and all of them do.
func TestRecallIsPaced(t *testing.T) {
	const n = 1000
	r := newRig(t, Blocking, remembers)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	done := false
	Recall(r.Shard, 0, slices.Clone(ids), func() { done = true })
	for range n {
		r.Tick(0)
	}
	require.False(t, done)
	require.Len(t, r.table.dense, haltingMost)
	r.tickTo(time.Hour)
	require.True(t, done)
	require.Equal(t, n, r.Stats().Live)
	require.Zero(t, r.Stats().QueuedBytes)
}

// TestRecallEndsWithItsShard: what has not begun when the shard is stopped, or lost, does not begin, and its end is not
// held up.
func TestRecallEndsWithItsShard(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for name, end := range map[string]func(*rig){
			"stopped": func(r *rig) { r.Stop(0, StopMoved) }, "lost": func(r *rig) { r.Abandon() }} {
			r := again(remembers)
			Recall(r.Shard, 0, []string{"a"}, func() { require.Fail(t, "done, though nothing has begun") })
			end(r)
			r.tickTo(time.Hour)
			require.True(t, r.Stopped(), name)
			Recall(r.Shard, 0, []string{"b"}, func() { require.Fail(t, "done, though nothing has begun") })
			r.tickTo(time.Hour)
			require.Empty(t, r.takeLog())
		}
	})
}

// TestRememberedTypeIsValidated: settings by which entities would end while they are remembered are refused.
func TestRememberedTypeIsValidated(t *testing.T) {
	list := func(context.Context, route.ShardID, route.Fence) iter.Seq2[string, error] { return nil }
	ok := Type{Name: "t", New: func(string, route.Fence) Handler { return nil }, Remembered: list}
	require.NoError(t, ok.WithDefaults().Validate())
	require.Equal(t, DefaultRecallBackoff, ok.WithDefaults().RestartBackoff)
	for _, change := range []func(*Type){func(t *Type) { t.IdleAfter = time.Second }, func(t *Type) { t.MaxActive = 1 },
		func(t *Type) { t.Restart = RestartStop }} {
		bad := ok
		change(&bad)
		require.ErrorContains(t, errors.Join(bad.WithDefaults().Validate()), "Remembered needs RestartFresh")
	}
}
