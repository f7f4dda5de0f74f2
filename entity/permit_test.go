// Tests of permits: an entity that is not permitted to live is not called, and nothing that waits for it is lost.

package entity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

var keptSeven = &Keep{ID: func(s route.ShardID) string { return fmt.Sprint("k", s) }}

// TestWithheldEntity: it begins when that is permitted and no sooner; when the permission goes its instance goes too,
// with its timers, and no Stop is called; what waits for a Blocking one waits on, the other modes refuse (SHD-12).
func TestWithheldEntity(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(alive)
		blocking := r.Type().Mode == Blocking
		taken := route.Crashed
		if blocking {
			taken = route.OK
		}
		Withhold(r.Shard, r.f.now, keptSeven)
		r.keep(Keep{})
		require.Equal(t, taken, r.tell("k7", "early"))
		require.Empty(t, r.takeLog())
		Permit(r.Shard, r.f.now)
		r.runAll()
		if blocking {
			require.Equal(t, []string{"k7 new", "k7 got early"}, r.takeLog())
		} else {
			require.Equal(t, []string{"k7 new"}, r.takeLog())
		}
		r.f.receive = func(c *Context, _ []byte) error { return c.After(time.Second, []byte("timer")) }
		require.Equal(t, route.OK, r.tell("k7", "set"))
		r.takeLog()

		Withhold(r.Shard, r.f.now, keptSeven)
		Withhold(r.Shard, r.f.now, keptSeven)
		require.True(t, Withheld(r.Shard))
		require.Equal(t, taken, r.tell("k7", "1"))
		require.Equal(t, taken, r.tell("k7", "2"))
		r.tickTo(time.Minute)
		require.Empty(t, r.takeLog(), "no Stop, no timer, no message")
		require.Zero(t, r.Stats().Timers)
		r.f.receive = nil
		Permit(r.Shard, r.f.now)
		Permit(r.Shard, r.f.now)
		r.runAll()
		if blocking {
			require.Equal(t, []string{"k7 new", "k7 got 1", "k7 got 2"}, r.takeLog())
		} else {
			require.Equal(t, []string{"k7 new"}, r.takeLog())
		}
	})
}

// TestWithheldShardMoves: what waits for an entity that may not live, and what the last owner of its shard left, goes
// to the next owner in order; with it what comes behind (SHD-4).
func TestWithheldShardMoves(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := again(alive)
		Withhold(r.Shard, r.f.now, keptSeven)
		Resume(r.Shard, r.f.now, []Message{{ID: []byte("k7"), Payload: []byte("1")}, {ID: []byte("k7"),
			Payload: []byte("2")}}, []State{{"k7", []byte("s")}})
		r.keep(Keep{})
		r.tickTo(time.Minute)
		require.Equal(t, r.Type().Mode == Blocking, r.tell("k7", "3") == route.OK)
		r.Stop(r.f.now, StopMoved)
		r.runAll()
		require.True(t, r.Stopped())
		require.Empty(t, r.takeLog())
		var left []string
		for _, m := range TakeLeft(r.Shard) {
			left = append(left, string(m.Payload))
		}
		require.Equal(t, []string{"1", "2", "3"}[:len(left)], left)
		require.GreaterOrEqual(t, len(left), 2)
		require.Equal(t, []State{{"k7", []byte("s")}}, TakeStates(r.Shard, plenty))
	})
}

// TestWithheldInTheMiddle: a call that is being made ends by itself, and is the last of its instance, also when the
// permission is back before it returns.
func TestWithheldInTheMiddle(t *testing.T) {
	for _, back := range []bool{false, true} {
		r := newRig(t, Blocking, alive)
		r.keep(Keep{})
		r.f.receive = func(_ *Context, b []byte) error {
			if string(b) == "1" {
				Withhold(r.Shard, r.f.now, keptSeven)
				Permit(r.Shard, r.f.now)
				Withhold(r.Shard, r.f.now, keptSeven) // takes the permission back that waits
				if back {
					Permit(r.Shard, r.f.now)
					require.True(t, Withheld(r.Shard), "its last instance is being called")
				}
			}
			return nil
		}
		for _, m := range []string{"1", "2", "3"} {
			require.Equal(t, route.OK, r.deliver("k7", m, nil, 0))
		}
		r.takeLog()
		r.runAll()
		if !back {
			require.Equal(t, []string{"k7 got 1"}, r.takeLog())
			Permit(r.Shard, r.f.now)
			r.runAll()
			require.Equal(t, []string{"k7 new", "k7 got 2", "k7 got 3"}, r.takeLog())
			continue
		}
		require.Equal(t, []string{"k7 got 1", "k7 new", "k7 got 2", "k7 got 3"}, r.takeLog())
	}
}

// TestWithheldWhileItStops: a shard that loses its permission while it is worked off calls nothing any more.
func TestWithheldWhileItStops(t *testing.T) {
	r := newRig(t, Blocking, alive)
	r.keep(Keep{})
	r.takeLog()
	for _, m := range []string{"1", "2", "3"} {
		require.Equal(t, route.OK, r.deliver("k7", m, nil, 0))
	}
	r.f.receive = func(*Context, []byte) error { Withhold(r.Shard, r.f.now, keptSeven); return nil }
	r.Stop(r.f.now, StopMoved)
	r.runAll()
	require.Equal(t, []string{"k7 got 1"}, r.takeLog(), "and no Stop")
	require.True(t, r.Stopped())
	require.Len(t, TakeLeft(r.Shard), 2)
}

// TestWithheldDaemon: a daemon that loses its permission ends as its context does, and is called again when it is back.
func TestWithheldDaemon(t *testing.T) {
	r := newRig(t, Blocking, alive)
	runs := 0
	k := &Keep{ID: keptSeven.ID, Run: func(context.Context, *Context) error {
		if runs++; runs == 1 {
			Withhold(r.Shard, r.f.now, keptSeven)
		}
		return nil
	}}
	KeepAlive(r.Shard, 0, k, context.Background)
	r.runAll()
	r.tickTo(time.Hour)
	require.Equal(t, 1, runs)
	Permit(r.Shard, r.f.now)
	r.runAll()
	require.Equal(t, 2, runs)
	r.tickTo(time.Hour + 5*time.Second)
	require.Equal(t, 7, runs, "a rest after each")
}

// TestPermitLaws: whatever comes, in whatever order, nothing of the entity is called while it is not permitted to live,
// but the end of a call that was being made; each message that was accepted is handled once and in order, or left for
// the next owner.
func TestPermitLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, Blocking, alive)
		withheld, next := false, 0
		var handled []string
		called := func(what string) {
			require.False(t, Withheld(r.Shard), "%s while it is not permitted", what)
		}
		r.f.make = func(id string) Handler {
			called("New")
			return &handler{r.f, id}
		}
		r.f.stop = func(*Context) { called("Stop") }
		r.f.receive = func(c *Context, b []byte) error {
			called("Receive")
			handled = append(handled, string(b))
			switch rapid.IntRange(0, 9).Draw(t, "call") {
			case 0:
				Withhold(r.Shard, r.f.now, keptSeven)
				withheld = true
			case 1:
				Withhold(r.Shard, r.f.now, keptSeven)
				Permit(r.Shard, r.f.now)
				withheld = false
			case 2:
				c.Passivate()
			case 3:
				panic("as the dice fell")
			case 4:
				return errors.New("as the dice fell")
			}
			return nil
		}
		r.keep(Keep{})
		t.Repeat(map[string]func(*rapid.T){
			"tell": func(*rapid.T) {
				require.Equal(t, route.OK, r.deliver("k7", fmt.Sprint(next), nil, 0))
				next++
			},
			"run":      func(*rapid.T) { r.runAll() },
			"withhold": func(*rapid.T) { Withhold(r.Shard, r.f.now, keptSeven); withheld = true },
			"permit":   func(*rapid.T) { Permit(r.Shard, r.f.now); withheld = false },
			"time": func(*rapid.T) {
				r.tickTo(r.f.now + time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms"))*time.Millisecond)
			},
			"": func(t *rapid.T) { require.Equal(t, withheld, Withheld(r.Shard)) },
		})
		if rapid.Bool().Draw(t, "moves") {
			r.Stop(r.f.now, StopMoved)
			r.runAll()
			require.True(t, r.Stopped())
			for _, m := range TakeLeft(r.Shard) {
				handled = append(handled, string(m.Payload))
			}
		}
		for range 100 {
			Permit(r.Shard, r.f.now)
			r.runAll()
			r.tickTo(r.f.now + 10*time.Second)
		}
		var want []string
		for i := range next {
			want = append(want, fmt.Sprint(i))
		}
		require.True(t, slices.Equal(want, handled), "%v", handled)
	})
}
