// Tests of what a handler learns of its end, on real sockets: its context, and why and how long it stops.

package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// The contexts of waiting handlers end when their node leaves: the leave does not wait for what they wait for. Stop
// learns that it is a leave, and its context has the deadline of the leave.
func TestContextEndsWithALeave(t *testing.T) {
	t.Parallel()
	type end struct {
		why  kith.StopReason
		left time.Duration
		err  error
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			begun, causes, ends := make(chan context.Context, 1), make(chan error, 1), make(chan end, 1)
			far, owner, _, _, _ := owned(t, kith.EntityType{Mode: mode}, actor{
				receive: func(c *kith.Context, _ []byte) error {
					ctx := c.Context()
					begun <- ctx
					if mode != kith.Blocking {
						return nil
					}
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return nil
				},
				stop: func(c *kith.Context) {
					by, ok := c.Context().Deadline()
					require.True(t, ok)
					ends <- end{c.StopReason(), by.Sub(c.Now()), c.Context().Err()}
				},
			})
			require.NoError(t, far.TellWait(within(t), "a", nil))
			ctx := <-begun
			require.NoError(t, ctx.Err())
			require.NoError(t, owner.Leave(within(t)))
			require.ErrorIs(t, context.Cause(ctx), kith.ErrShardStopping)
			if mode == kith.Blocking {
				require.ErrorIs(t, <-causes, kith.ErrShardStopping)
			}
			last := <-ends
			require.NoError(t, last.err)
			require.Equal(t, kith.StopLeaving, last.why)
			require.Positive(t, last.left)
			require.LessOrEqual(t, last.left, time.Minute)
		})
	}
}

// A node that is closed calls no Stop; the handler that runs learns it by its context.
func TestContextEndsWithAClose(t *testing.T) {
	t.Parallel()
	begun, causes := make(chan bool, 1), make(chan error, 1)
	far, owner, _, _, _ := owned(t, kith.EntityType{}, actor{
		receive: func(c *kith.Context, _ []byte) error {
			begun <- true
			<-c.Context().Done()
			causes <- context.Cause(c.Context())
			return nil
		},
		stop: func(*kith.Context) { t.Error("stopped") },
	})
	require.NoError(t, far.TellWait(within(t), "a", nil))
	<-begun
	require.NoError(t, owner.Close())
	require.ErrorIs(t, <-causes, kith.ErrStopped)
}

// The context of an ask ends when its asker waits no more: a handler that waits on it goes on then (API-2).
func TestContextOfAnAskHasItsLimit(t *testing.T) {
	t.Parallel()
	causes, second := make(chan error, 8), make(chan bool, 8)
	far, _, _, _, _ := owned(t, kith.EntityType{}, actor{
		receive: func(c *kith.Context, b []byte) error {
			if len(b) > 0 {
				return c.Reply(b)
			}
			ctx := c.Context()
			if _, ok := ctx.Deadline(); !ok {
				return nil
			}
			c.Detach() // nobody is to answer before the asker's own clock does
			<-ctx.Done()
			causes <- context.Cause(ctx)
			second <- ctx.Err() == context.DeadlineExceeded
			return nil
		},
	})
	_, err := far.Ask(within(t), "a", []byte("its home is known"))
	require.NoError(t, err)
	_, err = far.AskWithin(200*time.Millisecond, "a", nil, nil)
	require.ErrorIs(t, err, kith.ErrTimeout)
	require.ErrorIs(t, <-causes, kith.ErrTimeout)
	require.True(t, <-second)
}
