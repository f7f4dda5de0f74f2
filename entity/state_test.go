// State that moves with its entity: when it is asked for, when the next instance gets it, and what loses it.

package entity

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// counter is a handler with the number of messages that its entity got as its state.
type counter struct {
	*handler
	n      int
	passes bool // it lets itself go
}

func (h *counter) Receive(c *Context, payload []byte) error {
	h.n++
	h.f.log = append(h.f.log, fmt.Sprintf("%s %d", h.id, h.n))
	if h.f.receive != nil {
		return h.f.receive(c, payload)
	}
	return nil
}

func (h *counter) HandOver(c *Context) ([]byte, error) {
	h.f.log = append(h.f.log, fmt.Sprintf("%s hands over %d %v", h.id, h.n, c.StopReason()))
	if h.f.handOver != nil {
		return h.f.handOver(h.id)
	}
	return strconv.AppendInt(nil, int64(h.n), 10), nil
}

func (h *counter) TakeUp(c *Context, state []byte) error {
	h.f.log = append(h.f.log, fmt.Sprintf("%s takes up %s %v", h.id, state, c.Asked()))
	if h.f.takeUp != nil {
		if err := h.f.takeUp(c); err != nil {
			return err
		}
	}
	var err error
	h.n, err = strconv.Atoi(string(state))
	return err
}

// counters is a rig with counters as its entities.
func counters(again func(...func(*Type)) *rig, change ...func(*Type)) *rig {
	r := again(change...)
	r.f.make = func(id string) Handler {
		r.f.log = append(r.f.log, id+" new")
		return &counter{handler: &handler{r.f, id}}
	}
	return r
}

// ends stops the shard and works everything off.
func (r *rig) ends(why StopReason) {
	r.Stop(r.f.now, why)
	for r.runAll(); !r.Stopped(); r.runAll() {
		r.Tick(r.f.now)
	}
	require.Zero(r.t, r.halting)
}

// moves has the shard end in a move, and returns what it hands over.
func (r *rig) moves(room int) []State {
	AskForState(r.Shard, room)
	r.ends(StopMoved)
	states := TakeStates(r.Shard, room)
	require.Zero(r.t, r.pool.Used())
	require.Empty(r.t, TakeStates(r.Shard, room))
	return states
}

// lost returns why states were lost, by entity.
func (r *rig) lost() map[string]error {
	m := map[string]error{}
	for _, i := range r.f.incidents {
		if i.Kind == StateLost {
			m[i.ID] = i.Err
			require.Equal(r.t, i.Err.Error(), i.Text)
		}
	}
	return m
}

const plenty = 1 << 20

// The next instance gets what the last one handed over, behind New and before its first message; an entity that gets no
// message begins all the same. HandOver comes before Stop, after the last message (SHD-9, SHD-11).
func TestStateMovesWithItsEntity(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := counters(again)
		for range 3 {
			require.Equal(t, route.OK, r.tell("a", ""))
		}
		require.Equal(t, route.OK, r.tell("b", ""))
		require.Equal(t, route.OK, r.deliver("a", "", nil, 0)) // a Blocking one waits, and is counted too
		states := r.moves(plenty)
		require.ElementsMatch(t, []State{{"a", []byte("4")}, {"b", []byte("1")}}, states)
		require.Equal(t, uint64(2), r.Stats().HandedOver)
		log := r.takeLog()
		require.Subset(t, log, []string{"a hands over 4 moved", "a stop", "b hands over 1 moved", "b stop"})
		require.Equal(t, "stop", log[len(log)-1][2:])

		next := counters(again)
		o := &origin{}
		left := []Message{{ID: []byte("a"), Payload: []byte("x"), From: o, Corr: 1}}
		Resume(next.Shard, next.f.now, left, states)
		require.Equal(t, route.OK, next.deliver("a", "", nil, 0))
		next.runAll()
		next.tickTo(next.f.now)
		require.ElementsMatch(t, []string{"a new", "a takes up 4 false", "a 5", "a 6", "b new", "b takes up 1 false"},
			next.takeLog())
		require.Len(t, o.answers, 1)
		require.Equal(t, uint64(2), next.Stats().TakenUp)
		require.Zero(t, next.pool.Used())
		require.Nil(t, next.moving.in)
		require.Equal(t, route.OK, next.tell("b", ""))
		require.Equal(t, []string{"b 2"}, next.takeLog())
		require.Empty(t, next.lost())
		_, ok := next.Next()
		require.False(t, ok, "nothing is left to do")
	})
}

// One that goes for another reason than a move is not asked: its Stop is all there is. Nor is one of a lost shard.
func TestStateIsAskedForOnlyInAMove(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for _, why := range []StopReason{StopPassivated, StopIdle, StopEvicted, StopMoved, StopLeaving, NotStopping} {
			r := counters(again, func(t *Type) {
				switch why {
				case StopIdle:
					t.IdleAfter = time.Second
				case StopEvicted:
					t.MaxActive = 1
				}
			})
			r.f.receive = func(c *Context, _ []byte) error {
				if why == StopPassivated {
					c.Passivate()
				}
				return nil
			}
			r.tell("a", "")
			switch why {
			case StopIdle:
				r.tickTo(time.Minute)
			case StopEvicted:
				r.tell("b", "")
			case StopMoved, StopLeaving: // no move, but a plain stop
				r.ends(why)
			case NotStopping:
				r.Abandon()
			}
			r.runAll()
			log := r.takeLog()
			require.Equal(t, why != NotStopping, log[len(log)-1] == "a stop" || why == StopEvicted, "%v", why)
			require.NotContains(t, fmt.Sprint(log), "hands over", "%v", why)
			require.Empty(t, r.lost(), "%v", why)
			require.Empty(t, TakeStates(r.Shard, plenty))
		}
	})
}

// A shard that is stopped though nobody takes it, and one that is lost before all of its entities were asked, lose what
// they have, each by its name, and once (SHD-9).
func TestStatesThatNobodyIsGivenAreTold(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for name, play := range map[string]struct {
			ends func(r *rig)
			why  error
		}{
			"stopped": {func(r *rig) {
				LoseStates(r.Shard)
				r.ends(StopLeaving)
			}, ErrStateNotMoved},
			"lost in a move": {func(r *rig) {
				AskForState(r.Shard, plenty)
				r.Abandon()
			}, ErrStateLeftBehind},
			"lost before its stop": {func(r *rig) {
				LoseStates(r.Shard)
				r.Abandon()
			}, ErrStateLeftBehind},
			"lost behind its stop": {func(r *rig) {
				LoseStates(r.Shard)
				r.ends(StopLeaving)
				r.Abandon()
			}, ErrStateNotMoved},
			"a move that goes on": {func(r *rig) {
				AskForState(r.Shard, plenty)
				LoseStates(r.Shard)
				r.ends(StopLeaving)
			}, nil},
		} {
			r := counters(again)
			r.tell("a", "")
			r.tell("b", "")
			r.runAll()
			play.ends(r)
			r.runAll()
			if play.why == nil {
				require.Empty(t, r.lost(), name)
				continue
			}
			require.Len(t, r.lost(), 2, name)
			for id, why := range r.lost() {
				require.ErrorIs(t, why, play.why, "%s: %s", name, id)
			}
			require.Len(t, r.f.incidents, 2, name)
			require.NotContains(t, fmt.Sprint(r.takeLog()), "hands over", name)
		}
	})
}

// What loses a state where it is handed over loses no other, and every instance gets its stop call.
func TestStateThatIsNotHandedOver(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := counters(again, func(t *Type) { t.MaxState = 100 })
		r.f.handOver = func(id string) ([]byte, error) {
			switch id {
			case "large":
				return make([]byte, 101), nil
			case "fails":
				return nil, errTest
			case "panics":
				panic("no")
			case "none":
				return nil, nil
			}
			return make([]byte, 100-len(id)-StateOverhead), nil
		}
		for _, id := range []string{"a", "large", "fails", "panics", "none", "b", "c"} {
			r.tell(id, "")
		}
		r.takeLog()
		states := r.moves(200)
		require.Len(t, states, 2, "three have no room")
		require.Len(t, r.lost(), 4)
		require.ErrorIs(t, r.lost()["large"], ErrStateTooLarge)
		require.ErrorIs(t, r.lost()["fails"], ErrHandOverFailed)
		require.ErrorContains(t, r.lost()["fails"], errTest.Error())
		require.ErrorIs(t, r.lost()["panics"], ErrHandOverFailed)
		full := 0
		for id, err := range r.lost() {
			if errors.Is(err, ErrHandOverFull) {
				full++
				require.Contains(t, []string{"a", "b", "c"}, id)
			}
		}
		require.Equal(t, 1, full)
		require.Equal(t, uint64(1), r.Stats().Panics)
		require.Equal(t, uint64(7), r.Stats().Stopped)
		require.Equal(t, uint64(2), r.Stats().HandedOver)
	})
}

// What messages have used up of the bound is not there for states. A next owner that speaks an earlier version gets
// none: HandOver is not called, each is reported, and Stop has its say.
func TestStateWithoutRoom(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := counters(again)
		r.tell("a", "")
		r.tell("b", "")
		AskForState(r.Shard, plenty)
		r.ends(StopLeaving)
		require.Len(t, TakeStates(r.Shard, 2+1+StateOverhead), 1)
		require.Len(t, r.lost(), 1)
		require.Zero(t, r.pool.Used())

		r = counters(again)
		Resume(r.Shard, r.f.now, nil, []State{{"b", []byte("7")}})
		r.tell("a", "")
		r.takeLog()
		AskForState(r.Shard, 0)
		r.ends(StopLeaving)
		require.ElementsMatch(t, []string{"a stop", "b new", "b takes up 7 false", "b stop"}, r.takeLog())
		require.ErrorIs(t, r.lost()["a"], ErrStateNotSpoken)
		require.ErrorIs(t, r.lost()["b"], ErrStateNotSpoken)
		require.Empty(t, TakeStates(r.Shard, plenty))
	})
}

// A state that the next instance refuses is lost, once: the message ends as when New fails, the crash policy holds, and
// the instance after it begins with nothing. A handler that takes none lives on without it.
func TestStateThatIsRefused(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for _, panics := range []bool{false, true} {
			r := counters(again, func(t *Type) { t.RestartBackoff = time.Second })
			r.f.takeUp = func(*Context) error {
				if panics {
					panic("no")
				}
				return errTest
			}
			var ended []string
			r.f.unhandled = func(id string, why route.Reason, ask bool, _ string) {
				ended = append(ended, fmt.Sprint(id, " ", why, " ", ask))
			}
			Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}, {"b", []byte("8")}})
			a := r.ask("a", "")
			require.Equal(t, route.NewFailed, a.reason)
			require.Contains(t, a.payload, map[bool]string{true: "no", false: errTest.Error()}[panics])
			require.Equal(t, []string{fmt.Sprint("a ", route.NewFailed, " true")}, ended)
			r.Tick(r.f.now)
			r.runAll()
			require.ErrorIs(t, r.lost()["a"], ErrStateRefused)
			require.ErrorIs(t, r.lost()["b"], ErrStateRefused)
			require.Zero(t, r.pool.Used())
			require.Equal(t, 2, r.Stats().Crashed, "both rest")
			require.Equal(t, uint64(2), r.Stats().Crashes)
			require.Zero(t, r.Stats().TakenUp)
			r.takeLog()
			r.tickTo(2 * time.Second)
			require.Equal(t, route.OK, r.tell("a", ""))
			require.Equal(t, []string{"a new", "a 1"}, r.takeLog())
		}
		r := again()
		Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}})
		require.Equal(t, route.OK, r.tell("a", "x"))
		require.Equal(t, []string{"a new", "a got x"}, r.takeLog())
		require.ErrorIs(t, r.lost()["a"], ErrStateRefused)
		require.Zero(t, r.pool.Used())
	})
}

// A state waits for an instance that cannot be made yet, and goes on with the shard when that moves again first; also
// without ever having been one. In a plain stop an instance is made for it, so that it has its stop call.
func TestStateThatWaits(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		fails := true
		opens := func(t *Type) {
			make := t.New
			t.New = nil
			t.Open = func(c *Context) (Handler, error) {
				if fails {
					return nil, errTest
				}
				return make(c.ID, c.Fence), nil
			}
		}
		r := counters(again, opens)
		Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}, {"b", []byte("8")}})
		require.Positive(t, r.pool.Used(), "what waits counts")
		r.tickTo(r.f.now)
		require.Equal(t, route.OK, r.tell("a", ""))
		require.Equal(t, uint64(3), r.Stats().Crashes)
		require.Empty(t, r.lost())
		fails = false
		require.Equal(t, route.OK, r.tell("a", ""))
		require.Equal(t, []string{"a new", "a takes up 7 false", "a 8"}, r.takeLog())
		require.ElementsMatch(t, []State{{"b", []byte("8")}, {"a", []byte("8")}}, r.moves(plenty))

		for _, cutFirst := range []bool{false, true} {
			r = counters(again)
			Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}})
			if cutFirst {
				AskForState(r.Shard, plenty)
				Cut(r.Shard, r.f.now)
				r.Tick(r.f.now)
			}
			require.Equal(t, []State{{"a", []byte("7")}}, r.moves(plenty))
			require.Empty(t, r.takeLog())
		}
		r = counters(again)
		Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}})
		r.ends(StopLeaving)
		require.Equal(t, []string{"a new", "a takes up 7 false", "a stop"}, r.takeLog())
	})
}

// An entity with one message, an ask that has expired when its turn comes, begins with its state all the same: the
// message came first, and no handler got it (SHD-9).
func TestStateBehindAnExpiredAsk(t *testing.T) {
	r := counters(func(change ...func(*Type)) *rig { return newRig(t, Blocking, change...) })
	Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}})
	m := Message{From: &origin{}, ID: []byte("a"), Limit: time.Second}
	require.Equal(t, route.OK, r.Deliver(r.f.now, &m))
	r.Tick(r.f.now)
	r.f.now = 2 * time.Second
	r.runAll()
	r.tickTo(r.f.now)
	require.Equal(t, uint64(1), r.Stats().Expired)
	require.Equal(t, []string{"a new", "a takes up 7 false"}, r.takeLog())
}

// What a state counts until its entity was tried to be made is the shard's, and comes back once, with the failure, also
// where that is repeated, or with the end of the shard (SHD-9).
func TestStateThatWaitsIsGivenBack(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		states := []State{{"a", []byte("7")}, {"b", []byte("8")}}
		size := states[0].Size() + states[1].Size()
		for range 3 {
			r := counters(again, func(t *Type) {
				t.New, t.Open = nil, func(*Context) (Handler, error) { return nil, errTest }
			})
			Resume(r.Shard, r.f.now, nil, states)
			all, waits := Claimed(r.Shard)
			require.Equal(t, size, waits)
			require.Equal(t, size, r.Stats().QueuedBytes)
			require.Equal(t, size, all)
			require.Equal(t, size, r.pool.Used())
			for range 3 {
				r.tickTo(r.f.now)
				require.Equal(t, route.OK, r.tell("a", ""))
				r.runAll()
				all, waits = Claimed(r.Shard)
				require.Zero(t, all+waits+r.Stats().QueuedBytes+r.pool.Used())
			}
			lost := counters(again)
			Resume(lost.Shard, lost.f.now, nil, states)
			lost.Abandon()
			require.Zero(t, lost.pool.Used())
			states = r.moves(plenty)
			all, waits = Claimed(r.Shard)
			require.Zero(t, all+waits)
			require.Len(t, states, 2)
		}
	})
}

// A shard that is lost loses what waits, and what was handed over and not taken yet; each is reported.
func TestStateOfALostShard(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := counters(again)
		Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}})
		r.Abandon()
		require.ErrorIs(t, r.lost()["a"], ErrStateLeftBehind)
		require.Zero(t, r.pool.Used())
		r = counters(again)
		r.tell("a", "")
		AskForState(r.Shard, plenty)
		r.ends(StopMoved)
		r.Abandon()
		require.ErrorIs(t, r.lost()["a"], ErrStateLeftBehind)
		require.Zero(t, r.pool.Used())
	})
}

// A timer that is set in TakeUp runs: an entity that nobody writes to goes on (SHD-11).
func TestTakeUpSetsTimers(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		r := counters(again)
		r.f.takeUp = func(c *Context) error { return c.SetTimer("tick", time.Second, nil) }
		Resume(r.Shard, r.f.now, nil, []State{{"a", []byte("7")}})
		r.tickTo(2 * time.Second)
		require.Equal(t, []string{"a new", "a takes up 7 false", "a 8"}, r.takeLog())
	})
}

// Instances for states are made a bounded number at a time, and messages to others go on meanwhile.
func TestStatesBeginInBoundedSteps(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, again func(...func(*Type)) *rig) {
		r = counters(again)
		many := make([]State, 5000)
		for i := range many {
			many[i] = State{fmt.Sprint("e", i), []byte("1")}
		}
		Resume(r.Shard, r.f.now, nil, many)
		r.Tick(r.f.now)
		most := stopAtOnce
		if r.Type().Mode == Blocking {
			most = haltingMost
		}
		require.Equal(t, most, r.Stats().Live)
		require.Equal(t, route.OK, r.deliver("x", "", nil, 0))
		r.tickTo(time.Second)
		require.Equal(t, 5001, r.Stats().Live)
		require.Equal(t, uint64(5000), r.Stats().TakenUp)
		require.Zero(t, r.pool.Used())
	})
}

// A run that ends between HandOver and Stop, as when the node is suspended there, goes on with Stop, and what was
// handed over is not asked for again.
func TestRunEndsBehindHandOver(t *testing.T) {
	r := counters(func(f ...func(*Type)) *rig { return newRig(t, Blocking, f...) })
	r.tell("a", "")
	r.takeLog()
	AskForState(r.Shard, plenty)
	r.Stop(r.f.now, StopMoved)
	a := r.Ready()
	require.True(t, a.Begin(r.f.now))
	require.True(t, a.Work())
	Cut(r.Shard, r.f.now)
	require.True(t, a.End(r.f.now))
	require.True(t, a.Begin(r.f.now))
	require.False(t, a.Work())
	require.False(t, a.End(r.f.now))
	require.True(t, r.Stopped())
	require.Equal(t, []string{"a hands over 1 moved", "a stop"}, r.takeLog())
	require.Equal(t, []State{{"a", []byte("1")}}, TakeStates(r.Shard, plenty))
}

// A state holds nothing of the budget if its entity cannot be made, now or for as long as it rests: it may wait for
// ever for a message, and what others send must have room meanwhile. An entity that is made gets it all the same. Found
// by storm 761126001101 (SHD-9, ACC-5).
func TestStateThatNobodyTakesHoldsNoBudget(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for _, first := range []string{"", "a"} { // the first message, before the shard begins instances by itself
			fails := true
			r := counters(again, func(t *Type) { t.Restart, t.RestartBackoff = RestartFresh, time.Minute })
			makes := r.f.make
			r.f.make = func(id string) Handler {
				if fails && id == "a" {
					return nil
				}
				return makes(id)
			}
			r.pool.Limit = 4 * RecordOverhead
			state := fmt.Sprintf("%0*d", 2*r.pool.Limit, 7)
			Resume(r.Shard, r.f.now, nil, []State{{"a", []byte(state)}})
			require.Greater(t, r.pool.Used(), r.pool.Limit)
			if first != "" {
				r.deliver(first, "", nil, 0)
			}
			for range 3 {
				r.tickTo(r.f.now)
				r.runAll()
			}
			all, waits := Claimed(r.Shard)
			require.Zero(t, all+waits+r.pool.Used()+r.Stats().QueuedBytes)
			require.Equal(t, route.OK, r.tell("b", ""))
			require.Equal(t, []string{"b new", "b 1"}, r.takeLog())
			fails = false
			r.tickTo(r.f.now + time.Hour)
			require.Equal(t, route.OK, r.tell("a", ""))
			require.Equal(t, []string{"a new", "a takes up " + state + " false", "a 8"}, r.takeLog())
			require.Empty(t, r.lost())
			require.Zero(t, r.pool.Used())
		}
	})
}
