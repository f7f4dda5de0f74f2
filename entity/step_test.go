// Tests of the calls of a run: between any two of them the runtime may find that no handler may be called.

package entity

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// begin delivers messages to a and returns its run, which has begun.
func (r *rig) begin(payloads ...string) *Entity {
	for _, p := range payloads {
		require.Equal(r.t, route.OK, r.deliver("a", p, nil, 0))
	}
	e := r.Ready()
	require.True(r.t, e.Begin(r.f.now))
	return e
}

func passivating(t *testing.T) *rig {
	r := newRig(t, Blocking)
	r.f.receive = func(c *Context, p []byte) error {
		if string(p) == "go" {
			c.Passivate()
		}
		return nil
	}
	return r
}

// TestEveryCallOfARunIsAStep: New, Receive and the Stop of a passivation may each take long enough for the node to
// suspend itself, so the runtime looks before each (MEM-10). A run that it ends in between goes on there.
func TestEveryCallOfARunIsAStep(t *testing.T) {
	want := []string{"a new", "a got go", "a stop", "a new", "a got 1", "a got go", "a stop"}
	for _, ends := range []bool{false, true} {
		r := passivating(t)
		e := r.begin("go", "1", "go")
		var log []string
		for i := range want {
			require.Equal(t, i < len(want)-1, e.Work(), want[i])
			log = append(log, r.takeLog()...)
			require.Equal(t, want[:i+1], log, "one call at a time")
			if ends && i < len(want)-1 {
				require.True(t, e.End(0), want[i])
				require.True(t, e.Begin(0), want[i])
			}
		}
		require.False(t, e.End(0))
		require.Equal(t, Tally{Delivered: 3, Made: 2, Passivated: 2, Stopped: 2}, r.Stats().Tally)
		require.Zero(t, r.Stats().Live)
		require.Zero(t, r.pool.Used())
	}
}

// TestLossBetweenTheCallsOfARun: a node that has lost the shard calls nothing more, and what New was called for is
// reported as what waits behind it, once, also when the runtime has given the run up before.
func TestLossBetweenTheCallsOfARun(t *testing.T) {
	for _, behind := range []bool{false, true} {
		for calls, want := range [][]string{{"go", "1"}, {"go", "1"}, {"1"}, {"1"}} {
			r := passivating(t)
			var told []string
			r.f.unhandled = func(_ string, why route.Reason, _ bool, payload string) {
				require.Equal(t, route.Abandoned, why)
				told = append(told, payload)
			}
			e := r.begin("go", "1")
			for range calls {
				require.True(t, e.Work())
			}
			r.Abandon()
			if behind {
				require.Equal(t, 1, r.LeaveBehind())
				require.Equal(t, want, told)
			}
			r.takeLog()
			require.False(t, e.End(0))
			require.Equal(t, want, told)
			require.Empty(t, r.takeLog())
			require.True(t, r.Stopped())
			require.Equal(t, uint64(len(want)), r.Stats().Abandoned)
			require.Zero(t, r.pool.Used())
		}
	}
}

// TestRunGivenUpDuringNew: New that returns when its run was given up leaves a message that nobody has counted yet.
func TestRunGivenUpDuringNew(t *testing.T) {
	r := newRig(t, Blocking)
	var told []string
	r.f.unhandled = func(_ string, _ route.Reason, _ bool, payload string) { told = append(told, payload) }
	r.f.make = func(id string) Handler {
		r.Abandon()
		require.Equal(t, 1, r.LeaveBehind())
		return &handler{r.f, id}
	}
	e := r.begin("1", "2")
	require.True(t, e.Work())
	require.Equal(t, []string{"2"}, told)
	require.False(t, e.End(0))
	require.Equal(t, []string{"2", "1"}, told)
	require.Empty(t, r.takeLog())
	require.Zero(t, r.pool.Used())
}
