// Tests of handlers that end their goroutine, as t.FailNow does in a test of an embedder.

package entity

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// failures are the ways in which a call does not return.
var failures = map[string]func(){
	"panic":           func() { panic("boom") },
	"exit":            runtime.Goexit,
	"exit, and panic": func() { defer panic("boom"); runtime.Goexit() },
}

// brittle is a counter that fails where its test wants.
type brittle struct {
	*counter
	at func(where string)
}

func (h *brittle) Receive(c *Context, payload []byte) error {
	err := h.counter.Receive(c, payload)
	h.at("receive " + h.id)
	if c.Asked() {
		return c.Reply(payload)
	}
	return err
}

func (h *brittle) HandOver(c *Context) ([]byte, error) {
	h.at("hand-over " + h.id)
	return h.counter.HandOver(c)
}

func (h *brittle) TakeUp(c *Context, state []byte) error {
	h.at("take-up " + h.id)
	return h.counter.TakeUp(c, state)
}

func (h *brittle) Stop(c *Context) {
	h.counter.Stop(c)
	h.at("stop " + h.id)
}

// course is all that can be seen of a shard's life.
type course struct {
	stats      Stats
	log, stops []string
	reasons    []route.Reason
	kinds      []IncidentKind
	left       []State
}

// lives is the life of a shard in which a call fails once, at a place: an entity with a state that came with the shard,
// and one without, get asks and tells, and move.
func lives(t *testing.T, policy Restart, place string, fail func()) (c course, said []string) {
	r := newRig(t, Blocking, func(typ *Type) {
		typ.Restart, typ.SlowAfter = policy, time.Hour
		if policy == RestartFresh {
			typ.RestartBackoff = time.Second
		}
	})
	r.apart = true
	failed := false
	at := func(where string) {
		if where == place && !failed {
			failed = true
			fail()
		}
	}
	r.f.make = func(id string) Handler {
		r.f.log = append(r.f.log, id+" new")
		at("new " + id)
		return &brittle{&counter{handler: &handler{r.f, id}}, at}
	}
	o := &origin{}
	Resume(r.Shard, 0, nil, []State{{"a", []byte("7")}})
	r.tickTo(time.Millisecond)
	for _, id := range []string{"a", "b"} {
		require.Equal(t, route.OK, r.deliver(id, "1", o, 1))
		require.Equal(t, route.OK, r.deliver(id, "2", nil, 0))
		require.Equal(t, route.OK, r.deliver(id, "3", o, 3))
		r.runAll()
	}
	r.tickTo(10 * time.Second)
	r.deliver("a", "4", o, 4)
	r.runAll()
	c.left = r.moves(plenty)
	require.True(t, failed)
	require.Len(t, o.answers, 5, "each ask gets one answer")
	for _, a := range o.answers {
		if c.reasons = append(c.reasons, a.reason); a.reason != route.OK && a.payload != "" {
			said = append(said, a.payload)
		}
	}
	for _, i := range r.f.incidents {
		if c.kinds = append(c.kinds, i.Kind); i.Kind == Panicked {
			said = append(said, strings.SplitN(i.Text, "\n", 2)[0])
		}
	}
	c.stats, c.log, c.stops = r.Stats(), r.f.log, r.f.stops
	return c, said
}

// TestExitCountsAsAPanic: a handler that ends its goroutine, wherever it does, leaves what one leaves that panics:
// answers, incidents, counts, rests, states, and what is called next (SHD-5).
func TestExitCountsAsAPanic(t *testing.T) {
	for _, policy := range []Restart{RestartFresh, RestartResume, RestartStop} {
		for _, place := range []string{"new a", "new b", "take-up a", "receive a", "receive b", "hand-over a", "stop a"} {
			want, _ := lives(t, policy, place, failures["panic"])
			require.Contains(t, want.kinds, Panicked)
			for name, fail := range failures {
				got, said := lives(t, policy, place, fail)
				require.Equal(t, want, got, "%v, %s: %s", policy, place, name)
				require.NotEmpty(t, said)
				if name != "exit" {
					continue
				}
				require.False(t, slices.ContainsFunc(said, func(s string) bool {
					return s != exited && !strings.HasPrefix(s, "the reply")
				}), "%q", said)
			}
		}
	}
}

// TestDaemonThatExits: a Run that ends its goroutine has failed as one that panics: its rests double, and it is called
// again (SHD-12).
func TestDaemonThatExits(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Blocking, alive)
			r.apart = true
			var began []time.Duration
			r.keep(Keep{Run: func(context.Context, *Context) error {
				if began = append(began, r.f.now); len(began) < 4 {
					fail()
				}
				return nil
			}})
			r.tickTo(8*time.Second - 1)
			require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}, began)
			st := r.Stats()
			require.Equal(t, []uint64{3, 3, 1}, []uint64{st.Panics, st.Crashes, st.Stopped})
			require.Equal(t, slices.Repeat([]string{"calling run k7", "returned run k7"}, len(began)), r.f.stops)
			require.Len(t, r.f.incidents, 3)
			for _, i := range r.f.incidents {
				require.Equal(t, Panicked, i.Kind)
				require.Equal(t, name == "exit", strings.HasPrefix(i.Text, exited))
			}
		})
	}
}
