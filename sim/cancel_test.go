// Tests of asks that are given up, on a simulated cluster and of an entity alone.

package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/sim"
)

// patient answers after a while, unless its context says that nobody waits.
type patient struct {
	wait func(time.Duration)
	ends *[]error
}

func (p patient) Receive(c *kith.Context, payload []byte) error {
	ctx := c.Context()
	for range 100 {
		if ctx.Err() != nil {
			*p.ends = append(*p.ends, context.Cause(ctx))
			return context.Cause(ctx)
		}
		p.wait(100 * time.Millisecond)
	}
	return c.Reply(payload)
}

func (patient) Stop(*kith.Context) {}

// TestAskGivenUp: the handler of an ask that is given up hears of it wherever it lives, in one way's time; those of
// others go on. What is given up again, or too late, or lost with a node, harms nobody.
func TestAskGivenUp(t *testing.T) {
	for _, old := range []bool{false, true} {
		c := sim.New(t, 3, 5, sim.With(func(cfg *sim.Config) { cfg.Data.OldCredit = old }))
		var ends []error
		c.Register(kith.EntityType{Name: "patient", Shards: 8,
			New: func(string, kith.Fence) kith.Handler { return patient{c.Wait, &ends} }})
		c.AwaitUp()
		for n := range 3 {
			_, err := c.AskGivenUp(time.Second, n, "patient", "e", []byte("x"))
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, kith.MayHaveRun(err))
			at := c.Now()
			if old && c.Owner("patient", "e") != n { // nodes of wire version 1 are sent nothing
				c.Advance(2 * time.Minute)
				require.Empty(t, ends)
				continue
			}
			require.True(t, c.Until(time.Second, func() bool { return len(ends) == 1 }))
			require.Less(t, c.Now()-at, time.Second)
			require.Equal(t, kith.ErrAskCancelled, ends[0])
			ends = nil
			reply, err := c.Ask(n, "patient", "e", []byte("y"))
			require.NoError(t, err, "it has its time")
			require.Equal(t, "y", string(reply))
			reply, err = c.AskGivenUp(time.Minute, n, "patient", "e", []byte("z"))
			require.NoError(t, err, "it was answered before")
			require.Equal(t, "z", string(reply))
		}
		owner := c.Owner("patient", "e")
		_, err := c.AskGivenUp(time.Second, (owner+1)%3, "patient", "e", []byte("x"))
		require.ErrorIs(t, err, context.Canceled)
		c.Crash(owner)
		c.Advance(time.Minute)
		c.AtMostOne("patient")
	}
}

// TestAskGivenUpIsRepeatable: one seed, one course.
func TestAskGivenUpIsRepeatable(t *testing.T) {
	run := func() (at []time.Duration) {
		c := sim.New(t, 4, 9)
		var ends []error
		c.Register(kith.EntityType{Name: "patient", Shards: 8,
			New: func(string, kith.Fence) kith.Handler { return patient{c.Wait, &ends} }})
		c.AwaitUp()
		for n := range 20 {
			_, err := c.AskGivenUp(time.Duration(n)*50*time.Millisecond, n%4, "patient", string(rune('a'+n%5)), nil)
			require.ErrorIs(t, err, context.Canceled)
			before := len(ends)
			c.Until(time.Second, func() bool { return len(ends) > before })
			at = append(at, c.Now())
		}
		require.NotEmpty(t, ends)
		return at
	}
	require.Equal(t, run(), run())
}

// asking asks for its context, and another entity.
type asking struct{ errs []error }

func (a *asking) Receive(c *kith.Context, _ []byte) error {
	ctx := c.Context()
	_, err := c.Ask(time.Second, "other", "o", nil)
	a.errs = append(a.errs, context.Cause(ctx))
	return err
}

func (*asking) Stop(*kith.Context) {}

// TestEntityGivenUp: an entity alone, with an asker that gives up in the middle of a call.
func TestEntityGivenUp(t *testing.T) {
	var e *sim.Entity
	h, gives := &asking{}, true
	e = sim.NewEntity(t, kith.EntityType{Name: "asking", New: func(string, kith.Fence) kith.Handler { return h }}, "e",
		sim.EntityConfig{Answer: func(sim.Sent) ([]byte, error) {
			if gives {
				e.GiveUp()
			}
			return nil, nil
		}})
	e.Do(sim.Message{Ask: true, Within: time.Second})
	gives = false
	e.Do(sim.Message{Ask: true, Within: time.Second})
	e.Do(sim.Message{})
	require.Equal(t, []error{kith.ErrAskCancelled, nil, nil}, h.errs)
}
