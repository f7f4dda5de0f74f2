// The stop message: which entity gets it, when, and what it does not count as (SHD-7).

package entity

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// lasting has entities with handlers that note why they are called, and get "bye" as their last message.
func lasting(again func(...func(*Type)) *rig, change ...func(*Type)) *rig {
	r := counters(again, append(change, func(t *Type) { t.StopMessage = []byte("bye") })...)
	note := func(c *Context, what string) {
		r.f.log[len(r.f.log)-1] = fmt.Sprintf("%s %s %v", c.ID, what, c.StopReason())
	}
	r.f.receive = func(c *Context, payload []byte) error {
		note(c, string(payload))
		if c.StopReason() != NotStopping {
			require.False(r.t, c.Asked())
			require.Empty(r.t, c.Headers())
			require.ErrorIs(r.t, c.SetTimer("t", time.Second, nil), route.ErrShardStopping)
			payload[0] = '!' // it is the instance's own
			c.Passivate()    // changes nothing
		}
		if string(payload) == "pass" {
			c.Passivate()
		}
		return nil
	}
	r.f.stop = func(c *Context) { note(c, "stop") }
	return r
}

// Where an instance stops it gets the message once: behind what waited, and before HandOver and Stop. One that does not
// live gets none. It is no message of a sender: it is not among those that were delivered.
func TestStopMessage(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := lasting(again)
		require.Equal(t, route.OK, r.tell("p", "pass"))
		require.Equal(t, []string{"p new", "p pass not-stopping", "p bye passivated", "p stop passivated"}, r.takeLog())

		require.Equal(t, route.OK, r.deliver("a", "1", nil, 0))
		require.Equal(t, route.OK, r.deliver("a", "2", nil, 0))
		states := r.moves(1 << 20)
		require.Equal(t, []string{"a new", "a 1 not-stopping", "a 2 not-stopping", "a bye moved", "a hands over 3 moved",
			"a stop moved"}, r.takeLog())
		require.Equal(t, []State{{"a", []byte("3")}}, states, "what it does with the message belongs to its state")
		st := r.Stats()
		require.Equal(t, []uint64{3, 0, 2, 2}, []uint64{st.Delivered, st.Failed, st.Made, st.Stopped})
		for _, s := range r.f.stops {
			require.True(t, strings.HasPrefix(s, "calling ") || strings.HasPrefix(s, "returned "))
		}
		require.Equal(t, []string{"calling stop a", "returned stop a", "calling hand-over a", "returned hand-over a",
			"calling stop a", "returned stop a"}, r.f.stops[4:], "one that hangs is named")

		r = lasting(again, func(t *Type) { t.IdleAfter = time.Second })
		require.Equal(t, route.OK, r.tell("i", "1"))
		r.tickTo(10 * time.Second)
		require.Equal(t, []string{"i new", "i 1 not-stopping", "i bye idle", "i stop idle"}, r.takeLog())

		r = lasting(again, func(t *Type) { t.MaxActive = 1 })
		require.Equal(t, route.OK, r.tell("i", "1"))
		require.Equal(t, route.OK, r.tell("j", "1"))
		require.Contains(t, r.takeLog(), "i bye evicted")
		r.ends(StopLeaving)
		require.Equal(t, []string{"j bye leaving", "j stop leaving"}, r.takeLog()[:2])

		r = lasting(again)
		require.Equal(t, route.OK, r.tell("a", "1"))
		r.takeLog()
		r.Abandon()
		require.Empty(t, r.takeLog(), "a shard that is lost calls nobody")
	})
}

// A panic in it ends the instance, and neither HandOver nor Stop is called: its state is lost by name. Under
// RestartResume both are. An error is counted.
func TestStopMessageFails(t *testing.T) {
	for name, fail := range failures {
		everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
			for _, policy := range []Restart{RestartFresh, RestartResume} {
				r := lasting(again, func(t *Type) { t.Restart = policy })
				if r.apart = true; r.Type().Mode != Blocking && name != "panic" {
					return // it takes the goroutine with it that steps the shard
				}
				receive := r.f.receive
				r.f.receive = func(c *Context, payload []byte) error {
					if c.StopReason() != NotStopping {
						fail()
					}
					return receive(c, payload)
				}
				require.Equal(t, route.OK, r.tell("p", "pass"))
				require.Equal(t, route.OK, r.tell("a", "1"))
				r.takeLog()
				states := r.moves(1 << 20)
				st := r.Stats()
				require.Equal(t, []uint64{2, 2, 2}, []uint64{st.Delivered, st.Made, st.Panics})
				if policy == RestartResume {
					require.Equal(t, []string{"a 2", "a hands over 2 moved", "a stop moved"}, r.takeLog())
					require.Len(t, states, 1)
					require.EqualValues(t, []uint64{0, 2}, []uint64{st.Crashes, st.Stopped})
					continue
				}
				require.Equal(t, []string{"a 2"}, r.takeLog())
				require.Empty(t, states)
				require.EqualValues(t, []uint64{2, 0}, []uint64{st.Crashes, st.Stopped})
			}
		})
	}
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := lasting(again)
		require.Equal(t, route.OK, r.tell("a", "1"))
		r.f.receive = func(*Context, []byte) error { return errors.New("no") }
		r.ends(StopMoved)
		st := r.Stats()
		require.Equal(t, []uint64{1, 1, 1}, []uint64{st.Delivered, st.Failed, st.Stopped})
	})
}

// Each call is a step of its own, between which the node may be suspended. What comes after the stop message finds the
// next instance, also when the run ends in between, and a state is handed over once.
func TestStopMessageIsTheLast(t *testing.T) {
	r := lasting(func(change ...func(*Type)) *rig { return newRig(t, Blocking, change...) },
		func(t *Type) { t.IdleAfter = time.Second })
	require.Equal(t, route.OK, r.tell("a", "1"))
	r.f.now = 5 * time.Second
	r.Tick(r.f.now)
	e := r.Ready()
	require.True(t, e.Begin(r.f.now))
	r.takeLog()
	require.True(t, e.Work())
	require.Equal(t, []string{"a bye idle"}, r.takeLog())
	require.Equal(t, route.OK, r.deliver("a", "2", nil, 0))
	require.True(t, e.End(r.f.now))
	AskForState(r.Shard, 1<<20)
	r.Stop(r.f.now, StopMoved)
	for ok := e.Begin(r.f.now); ok; ok = e.End(r.f.now) && e.Begin(r.f.now) {
		for e.Work() {
		}
	}
	require.Equal(t, []string{"a stop idle", "a new", "a 2 not-stopping", "a bye moved", "a hands over 2 moved",
		"a stop moved"}, r.takeLog())
	require.True(t, r.Stopped())
	require.Len(t, TakeStates(r.Shard, 1<<20), 1)

	// Passivation: what is behind in the same batch waits for the next instance.
	r = lasting(func(change ...func(*Type)) *rig { return newRig(t, Blocking, change...) })
	require.Equal(t, route.OK, r.deliver("a", "pass", nil, 0))
	require.Equal(t, route.OK, r.deliver("a", "2", nil, 0))
	e = r.Ready()
	for ok := e.Begin(r.f.now); ok; ok = e.End(r.f.now) && e.Begin(r.f.now) {
		e.Work() // a run of one call each
	}
	require.Equal(t, []string{"a new", "a pass not-stopping", "a bye passivated", "a stop passivated", "a new",
		"a 2 not-stopping"}, r.takeLog())
}

// A shard that is lost between the stop message and HandOver tells that the state is lost.
func TestLostBehindTheStopMessage(t *testing.T) {
	r := lasting(func(change ...func(*Type)) *rig { return newRig(t, Blocking, change...) })
	require.Equal(t, route.OK, r.tell("a", "1"))
	AskForState(r.Shard, 1<<20)
	r.Stop(r.f.now, StopMoved)
	e := r.Ready()
	require.True(t, e.Begin(r.f.now))
	require.True(t, e.Work())
	r.Abandon()
	require.Equal(t, 1, r.LeaveBehind())
	require.Len(t, r.f.incidents, 1)
	require.ErrorIs(t, r.f.incidents[0].Err, ErrStateLeftBehind)
	require.False(t, e.End(r.f.now))
	require.Len(t, r.f.incidents, 1, "it is told once")
}

func TestStopMessageHasABound(t *testing.T) {
	typ := Type{Name: "t", New: (&fake{}).newHandler, StopMessage: make([]byte, MaxStopMessage)}.WithDefaults()
	require.NoError(t, typ.Validate())
	typ.StopMessage = make([]byte, MaxStopMessage+1)
	require.ErrorContains(t, typ.Validate(), "StopMessage has 65537 bytes, must have at most 65536")
}
