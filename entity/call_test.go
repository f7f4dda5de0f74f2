// Tests of calls into handlers: what a Context can do, what asks are answered, what panics and slowness lead to.

package entity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/internal/base/invariant"
	"github.com/kith-io/kith/route"
)

func TestFirstMessageMakesTheEntityOnce(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(c *Context, _ []byte) error {
			require.Equal(t, []any{"a", testFence, route.ShardID(7), "book", false},
				[]any{c.ID, c.Fence, c.Shard, c.Type(), c.Asked()})
			return nil
		}
		require.Equal(t, route.OK, r.tell("a", "1"))
		require.Equal(t, route.OK, r.tell("a", "2"))
		require.Equal(t, []string{"a new", "a got 1", "a got 2"}, r.takeLog())
		require.Equal(t, Stats{Tally: Tally{Delivered: 2, Made: 1}, Live: 1}, r.Stats())
	})
}

func TestBadIDsAreRefused(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		require.Equal(t, route.BadID, r.tell("", "x"))
		require.Equal(t, route.BadID, r.tell(strings.Repeat("x", 1025), "x"))
		require.Equal(t, route.OK, r.tell(strings.Repeat("x", 1024), "x"))
		require.Equal(t, uint64(2), r.Stats().Refused[route.BadID])
	})
}

func TestAnswers(t *testing.T) {
	long := strings.Repeat("e", 5000)
	for name, c := range map[string]struct {
		receive func(c *Context, payload []byte) error
		reason  route.Reason
		payload string
	}{
		"reply":       {func(c *Context, p []byte) error { return c.Reply(append([]byte("re "), p...)) }, route.OK, "re q"},
		"empty reply": {func(c *Context, _ []byte) error { return c.Reply(nil) }, route.OK, ""},
		"none":        {func(*Context, []byte) error { return nil }, route.NoReply, ""},
		"error":       {func(*Context, []byte) error { return errTest }, route.HandlerFailed, "test error"},
		"an error of ours": {func(*Context, []byte) error { return route.ErrTimeout }, route.HandlerNamed,
			"\x00\x01\x06\x00\x00" + route.ErrTimeout.Error()},
		"an error with a code": {func(*Context, []byte) error { return route.NewError("c", route.KindDenied, "text") },
			route.HandlerNamed, "\x04\x01\x00\x00\x01ctext"},
		"long error": {func(*Context, []byte) error { return errors.New(long) }, route.HandlerFailed,
			long[:MaxErrorText]},
		"error that panics": {func(*Context, []byte) error { return badError{} }, route.HandlerFailed, "entity.badError"},
		"panic":             {func(*Context, []byte) error { panic("ouch") }, route.HandlerPanic, "ouch"},
		"reply, then error": {func(c *Context, _ []byte) error { _ = c.Reply([]byte("1st")); return errTest }, route.OK,
			"1st"},
		"reply, then panic": {func(c *Context, _ []byte) error { _ = c.Reply([]byte("1st")); panic(1) }, route.OK, "1st"},
		"second reply": {func(c *Context, _ []byte) error {
			_ = c.Reply([]byte("1st"))
			if !errors.Is(c.Reply([]byte("2nd")), ErrReplied) {
				panic("second reply was taken")
			}
			return nil
		}, route.OK, "1st"},
		"detached, then panic": {func(c *Context, _ []byte) error { c.Detach(); panic("ouch") }, route.HandlerPanic, "ouch"},
		"detached, then error": {func(c *Context, _ []byte) error { c.Detach(); return errTest }, route.HandlerFailed,
			"test error"},
	} {
		t.Run(name, func(t *testing.T) {
			everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
				r.f.receive = c.receive
				require.Equal(t, answer{42, c.reason, c.payload}, r.ask("a", "q"))
			})
		})
	}
}

type badError struct{}

func (badError) Error() string { panic("even this") }

func TestReplyToATell(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var kept *Context
		r.f.receive = func(c *Context, _ []byte) error {
			kept = c
			require.ErrorIs(t, c.Reply(nil), ErrNoAsk)
			token := c.Detach()
			require.ErrorIs(t, token.Reply(nil), ErrNoAsk)
			require.ErrorIs(t, token.Fail(errTest), ErrNoAsk)
			return nil
		}
		r.tell("a", "1")
		r.f.receive = nil
		r.ask("a", "2")
		require.ErrorIs(t, kept.Reply(nil), ErrContextKept, "a context kept too long answers nobody")
	})
}

func TestReplyWithoutRoomMayBeTriedAgain(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		o := &origin{err: route.ErrLinkFull}
		r.f.receive = func(c *Context, _ []byte) error {
			require.ErrorIs(t, c.Reply([]byte("x")), route.ErrLinkFull)
			o.err = nil
			return c.Reply([]byte("y"))
		}
		require.Equal(t, route.OK, r.deliver("a", "q", o, 1))
		r.runAll()
		require.Equal(t, []answer{{1, route.OK, "y"}}, o.answers)
	})
}

func TestReplyThatNeverWentOutIsAnsweredWithItsReason(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		o := &origin{err: fmt.Errorf("%w: 9 bytes", route.ErrTooLarge)}
		r.f.receive = func(c *Context, _ []byte) error {
			require.ErrorIs(t, c.Reply([]byte("too large")), route.ErrTooLarge)
			o.err = nil
			return nil
		}
		require.Equal(t, route.OK, r.deliver("a", "q", o, 1))
		r.runAll()
		require.Equal(t, []answer{{1, route.TooLarge, "the reply: kith: payload too large: 9 bytes"}},
			o.answers, "not the question")
		require.Zero(t, r.Stats().NoReply)
		// And when not even that goes out it is counted.
		r.f.receive = func(*Context, []byte) error { return errTest }
		o.err = route.ErrPeerLost
		require.Equal(t, route.OK, r.deliver("a", "q", o, 2))
		r.runAll()
		require.Equal(t, uint64(1), r.Stats().AnswersLost)
	})
}

func TestDetachAnswersLater(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var token, second ReplyToken
		r.f.receive = func(c *Context, _ []byte) error {
			token, second = c.Detach(), c.Detach()
			require.ErrorIs(t, c.Reply(nil), ErrReplied, "the token has the duty")
			return nil
		}
		o := &origin{}
		require.Equal(t, route.OK, r.deliver("a", "q", o, 5))
		r.runAll()
		require.Empty(t, o.answers)
		require.ErrorIs(t, second.Reply(nil), ErrReplied)
		o.err = route.ErrLinkFull
		require.ErrorIs(t, token.Reply([]byte("later")), route.ErrLinkFull)
		o.err = nil
		require.NoError(t, token.Reply([]byte("later")))
		require.ErrorIs(t, token.Reply([]byte("again")), ErrReplied)
		require.ErrorIs(t, token.Fail(errTest), ErrReplied)
		require.Equal(t, []answer{{5, route.OK, "later"}}, o.answers)

		require.Equal(t, route.OK, r.deliver("a", "q", o, 6))
		r.runAll()
		require.NoError(t, token.Fail(errTest))
		require.Equal(t, answer{6, route.HandlerFailed, "test error"}, o.answers[1])
	})
}

func TestContextTellsAndAsks(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(c *Context, _ []byte) error {
			require.NoError(t, c.Tell("", "b", []byte("own")))
			require.NoError(t, c.Tell("other", "c", []byte("else")))
			b, err := c.Ask(time.Second, "", "b", []byte("q"))
			_, self := c.Ask(time.Second, "", "a", nil)
			require.ErrorIs(t, self, ErrWouldBlock, "an entity that asks itself waits for itself")
			_, other := c.Ask(time.Second, "other", "a", nil)
			if r.Type().Mode == Blocking {
				require.NoError(t, err)
				require.NoError(t, other)
				require.Equal(t, "answer", string(b))
			} else {
				require.ErrorIs(t, err, ErrWouldBlock)
			}
			return nil
		}
		r.tell("a", "1")
		require.Equal(t, []string{"book/b:own", "other/c:else"}, r.f.told)
		if r.Type().Mode == Blocking {
			require.Equal(t, []string{"book/b:q within 1s", "other/a: within 1s"}, r.f.asked)
		} else {
			require.Empty(t, r.f.asked)
		}
	})
}

func TestPanicFollowsTheRestartPolicy(t *testing.T) {
	everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
		for _, policy := range []Restart{RestartFresh, RestartResume} {
			r := again(func(typ *Type) { typ.Restart = policy })
			r.f.receive = func(_ *Context, p []byte) error {
				if string(p) == "bad" {
					panic("ouch")
				}
				return nil
			}
			require.Equal(t, route.OK, r.tell("a", "1"))
			require.Equal(t, route.OK, r.tell("a", "bad"))
			require.Equal(t, route.OK, r.tell("a", "2"))
			if policy == RestartFresh {
				require.Equal(t, []string{"a new", "a got 1", "a got bad", "a new", "a got 2"}, r.takeLog())
			} else {
				require.Equal(t, []string{"a new", "a got 1", "a got bad", "a got 2"}, r.takeLog())
			}
			require.Equal(t, uint64(1), r.Stats().Panics)
			require.Equal(t, 1, r.Stats().Live)
			require.Len(t, r.f.incidents, 1)
			i := r.f.incidents[0]
			require.Equal(t, []any{"book", "a", route.ShardID(7), Panicked}, []any{i.Type, i.ID, i.Shard, i.Kind})
			require.Contains(t, i.Text, "ouch\n")
			require.Contains(t, i.Text, "TestPanicFollowsTheRestartPolicy", "the stack leads to the user's code")
			require.LessOrEqual(t, len(i.Text), MaxIncidentText)
		}
	})
}

func TestPanickedEntityLeavesNothingBehind(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(*Context, []byte) error { panic(strings.Repeat("x", 1<<20)) }
		require.Equal(t, answer{42, route.HandlerPanic, strings.Repeat("x", MaxErrorText)}, r.ask("a", "1"))
		require.Len(t, r.f.incidents[0].Text, MaxIncidentText)
		require.Zero(t, r.Stats().Live)
		require.Zero(t, r.pool.Used())
	})
}

// A message for which no handler comes of New or Open is over, and no handler has seen it: an ask gets the reason as an
// error of its own, a tell is given back to be reported. The next message tries again.
func TestNewThatFailsIsTriedAgain(t *testing.T) {
	for _, opens := range []bool{false, true} {
		everyMode(t, func(t *testing.T, _ *rig, again func(...func(*Type)) *rig) {
			fail, made := "", 0
			r := again(func(typ *Type) {
				if opens {
					f := typ.New
					typ.New, typ.Open = nil, func(c *Context) (Handler, error) {
						require.False(t, c.Asked())
						require.ErrorIs(t, c.Reply(nil), ErrNoAsk)
						c.Passivate()
						require.NoError(t, c.After(time.Second, []byte("set by Open")))
						if fail == "error" {
							return &handler{}, errors.New("no store")
						}
						return f(c.ID, c.Fence), nil
					}
				}
			})
			r.f.make = func(id string) Handler {
				switch fail {
				case "panic":
					panic("no state")
				case "nil":
					return nil
				}
				made++
				return &handler{r.f, id}
			}
			var lost []string
			r.f.unhandled = func(id string, why route.Reason, ask bool, payload string) {
				lost = append(lost, fmt.Sprintf("%s %v %t %s", id, why, ask, payload))
			}
			fails := map[string]string{"panic": "no state", "nil": "New returned no handler"}
			if opens {
				fails["nil"], fails["error"] = "Open returned no handler", "no store"
			}
			for _, fail = range slices.Sorted(maps.Keys(fails)) {
				r.f.incidents, lost = nil, nil
				require.Equal(t, answer{42, route.NewFailed, fails[fail]}, r.ask("a", "1"))
				require.Equal(t, route.OK, r.tell("a", "2"))
				require.Equal(t, []string{"a new-failed true 1", "a new-failed false 2"}, lost)
				require.Len(t, r.f.incidents, 2)
				want := Incident{Type: "book", ID: "a", Shard: 7, Mode: r.Type().Mode, Kind: NewFailed, Text: fails[fail]}
				if fail == "panic" {
					require.Equal(t, Panicked, r.f.incidents[0].Kind)
				} else {
					require.Equal(t, want, r.f.incidents[0])
				}
				require.Zero(t, r.Stats().Live)
				require.Zero(t, r.pool.Used(), "a timer of an Open that failed is none")
			}
			st := r.Stats()
			require.Equal(t, uint64(2*len(fails)), st.NotMade)
			require.Equal(t, st.NotMade, st.Crashes)
			require.Zero(t, st.Delivered)
			fail = ""
			r.f.receive = func(c *Context, p []byte) error { return c.Reply(p) }
			require.Equal(t, answer{42, route.OK, "3"}, r.ask("a", "3"))
			require.Equal(t, 1, made)
			require.Equal(t, 1, r.Stats().Live, "Passivate in Open is nothing: the message came after it")
			r.takeLog()
			r.f.now += time.Second
			r.Tick(r.f.now)
			r.runAll()
			require.Equal(t, opens, slices.Equal([]string{"a got set by Open"}, r.takeLog()))
		})
	}
}

// What could not be made rests as what has panicked does, and what waits for it is handled when it can be made again.
func TestFailedOpenRests(t *testing.T) {
	fail := true
	r := newRig(t, Blocking, func(typ *Type) {
		typ.RestartBackoff, typ.MaxRestarts, typ.RestartWindow = time.Second, 2, time.Minute
		f := typ.New
		typ.New, typ.Open = nil, func(c *Context) (Handler, error) {
			if fail {
				return nil, errors.New("no store")
			}
			return f(c.ID, c.Fence), nil
		}
	})
	r.tell("a", "1")
	r.tell("a", "2")
	require.Equal(t, uint64(1), r.Stats().NotMade)
	fail = false
	r.tickTo(time.Second - 1)
	require.Empty(t, r.takeLog())
	r.tickTo(time.Second)
	require.Equal(t, []string{"a new", "a got 2"}, r.takeLog())

	fail = true
	for range 3 {
		r.deliver("b", "1", nil, 0)
	}
	r.runAll()
	r.tickTo(10 * time.Second)
	last := r.f.incidents[len(r.f.incidents)-1]
	require.Equal(t, GaveUp, last.Kind, "three times within the window")
	require.Equal(t, uint64(4), r.Stats().NotMade)
	require.Equal(t, route.Crashed, r.tell("b", "2"))
}

func TestPanicInStopStillStops(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.stop = func(*Context) { panic("in stop") }
		r.tell("a", "1")
		r.Stop(r.f.now, StopMoved)
		r.runAll()
		require.True(t, r.Stopped())
		require.Equal(t, uint64(1), r.Stats().Panics)
		require.Equal(t, Panicked, r.f.incidents[0].Kind)
	})
}

func TestBrokenInvariantIsNotTakenForTheHandlersFault(t *testing.T) {
	r := newRig(t, Worker)
	r.f.receive = func(*Context, []byte) error { invariant.Check(false, "ours"); return nil }
	require.PanicsWithError(t, "kith: broken invariant: ours", func() { r.tell("a", "1") })
}

func TestSteppingAShardFromItsOwnHandlerIsStopped(t *testing.T) {
	r := newRig(t, Inline)
	r.f.receive = func(*Context, []byte) error { r.deliver("b", "2", nil, 0); return nil }
	require.Panics(t, func() { r.tell("a", "1") })
}

func TestSlowCallsAreReported(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		r.f.receive = func(_ *Context, p []byte) error {
			if string(p) == "slow" {
				r.f.now += SlowAfter + 1
			} else {
				r.f.now += SlowAfter
			}
			return nil
		}
		r.tell("a", "quick")
		require.Empty(t, r.f.incidents)
		r.tell("a", "slow")
		if r.Type().Mode == Blocking {
			require.Empty(t, r.f.incidents, "Blocking handlers may take their time")
			return
		}
		require.Equal(t, []Incident{{Type: "book", ID: "a", Shard: 7, Mode: r.Type().Mode, Kind: Slow, Took: SlowAfter + 1}},
			r.f.incidents)
		require.Equal(t, uint64(1), r.Stats().Slow)
	})
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		type quiet struct{ Handler }
		reply := []byte("reply")
		r.f.make = func(string) Handler {
			return quiet{replyHandler{reply}}
		}
		o := &silent{}
		tell := &Message{ID: []byte("entity-1"), Payload: make([]byte, 64)}
		ask := &Message{From: o, Corr: 3, ID: []byte("entity-2"), Payload: make([]byte, 64)}
		round := func() {
			for range 10 {
				if r.Deliver(r.f.now, tell) != route.OK || r.Deliver(r.f.now, ask) != route.OK {
					t.Fatal("refused")
				}
				r.f.now++
			}
			r.runAll()
		}
		round()
		require.Zero(t, testing.AllocsPerRun(100, round))
		require.NotZero(t, o.n)
	})
}

type silent struct{ n int }

func (o *silent) Reply(uint64, route.Reason, []byte) error { o.n++; return nil }

type replyHandler struct{ reply []byte }

func (h replyHandler) Receive(c *Context, _ []byte) error {
	if c.Asked() {
		return c.Reply(h.reply)
	}
	return nil
}

func (replyHandler) Stop(*Context) {}

// TestBadPayload: a message that Receive could not read was not executed, as its asker knows; an error that wraps that
// of another message says nothing of this one.
func TestBadPayload(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var err error
		r.f.receive = func(*Context, []byte) error { return err }
		err = BadPayload(errTest)
		require.ErrorIs(t, err, route.ErrBadPayload)
		require.ErrorIs(t, err, errTest)
		require.Equal(t, answer{42, route.BadPayload, "test error"}, r.ask("a", "?"))
		err = fmt.Errorf("of another: %w", err)
		require.Equal(t, answer{42, route.HandlerFailed, "of another: test error"}, r.ask("a", "?"))
		require.Equal(t, uint64(2), r.Stats().Failed)
	})
}

// TestContextOfAnAskIsGivenBack: the runtime hears when a handler has returned that asked for its context, however it
// returns, once; not of one that has detached: its context goes on; nor of one that never asked.
func TestContextOfAnAskIsGivenBack(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var token ReplyToken
		r.f.receive = func(c *Context, p []byte) error {
			if string(p) != "none" {
				c.Context()
				c.Context()
			}
			switch string(p) {
			case "error":
				return errTest
			case "panic":
				panic("oops")
			case "detach":
				token = c.Detach()
				return nil
			}
			if c.Asked() {
				return c.Reply(nil)
			}
			return nil
		}
		for i, p := range []string{"reply", "error", "panic"} {
			r.ask("e", p)
			require.Len(t, r.f.given, 2*(i+1), p)
			require.Len(t, r.f.answered, i+1, p)
		}
		require.Equal(t, route.OK, r.tell("e", "tell"))
		r.ask("e", "none")
		require.Equal(t, route.OK, r.deliver("e", "detach", &origin{}, 7))
		r.runAll()
		require.NoError(t, token.Reply(nil))
		require.Len(t, r.f.answered, 3)
		require.Equal(t, []uint64{7, 7}, r.f.given[6:])
		r.ask("e", "none")
		require.Len(t, r.f.answered, 3)
	})
}
