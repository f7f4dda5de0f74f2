// Tests of cancels: which context ends, when, and that no other does.

package lifetime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/peer"
	"github.com/kith-io/kith/route"
)

// TestCancelLaws: at every moment a context that was given has ended exactly if its own ask was cancelled, before it
// was asked for or later, and not answered before, or its parent has ended; its error and cause say which came first.
// What was answered, and what others have asked under the same number, is left alone.
func TestCancelLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cancels
		type call struct {
			ask               Asked
			ctx               context.Context
			endParent         context.CancelFunc
			ended, cause      error
			cancelled, answer bool
		}
		var all []*call
		var count atomic.Uint64
		wanted := uint64(0)
		for n := range rapid.IntRange(1, 8).Draw(t, "asks") {
			all = append(all, &call{ask: Asked{peer.ID{Inc: uint64(n % 2)}, uint64(n / 2)}})
		}
		one := rapid.SampledFrom(all)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, a := range all {
					if a.ctx != nil {
						require.Equal(t, a.ended, a.ctx.Err())
						require.Equal(t, a.cause, context.Cause(a.ctx))
					}
				}
				require.Equal(t, wanted, count.Load())
			},
			"call": func(t *rapid.T) {
				a := one.Draw(t, "ask")
				if a.answer {
					t.Skip("its handler has returned")
				}
				again := a.ctx
				a.ctx = c.Context(a.ask, 0, time.Hour, &count, func() context.Context {
					base, end := context.WithCancel(context.Background())
					ctx, stop := context.WithDeadlineCause(base, time.Now().Add(time.Hour), route.ErrTimeout)
					a.endParent = func() { end(); stop() }
					return ctx
				})
				switch {
				case again != nil && (a.ended == nil || a.cause == route.ErrAskCancelled):
					require.True(t, again == a.ctx, "nothing new is made")
				case a.cancelled:
					a.ended, a.cause = context.Canceled, route.ErrAskCancelled
					wanted++
				default:
					a.ended, a.cause = nil, nil
				}
			},
			"cancel": func(t *rapid.T) {
				a := one.Draw(t, "ask")
				live := a.ctx != nil && a.ended == nil && !a.answer
				require.Equal(t, live, c.Cancel(a.ask))
				if live {
					a.ended, a.cause = context.Canceled, route.ErrAskCancelled
					wanted++
				}
				if a.ctx == nil {
					a.cancelled = true // else what it has is over, and the next one is not: Cancel said so
				}
			},
			"parent": func(t *rapid.T) {
				a := one.Draw(t, "ask")
				if a.ctx == nil || a.ended != nil {
					t.Skip("it has none")
				}
				a.endParent()
				a.ended, a.cause = context.Canceled, context.Canceled
			},
			"answer": func(t *rapid.T) {
				a := one.Draw(t, "ask")
				if a.ctx == nil {
					t.Skip("it has none")
				}
				c.Answered(a.ask)
				a.answer = true
			},
		})
	})
}

// TestCancelledContextKeepsTheErrorOfItsParent: one that says of a deadline that it is one, in virtual time as well.
func TestCancelledContextKeepsTheErrorOfItsParent(t *testing.T) {
	var c Cancels
	at := time.Unix(9, 0)
	late := errors.New("late")
	parent, end := At(context.Background(), at, late)
	ctx := c.Context(Asked{}, 0, 1, nil, func() context.Context { return parent })
	got, ok := ctx.Deadline()
	require.True(t, ok)
	require.Equal(t, at, got)
	require.NoError(t, ctx.Err())
	end()
	<-ctx.Done()
	require.Equal(t, context.DeadlineExceeded, ctx.Err())
	require.Equal(t, late, context.Cause(ctx))
	require.False(t, c.Cancel(Asked{}), "it is over")
	require.Equal(t, context.DeadlineExceeded, ctx.Err())
}

// TestCancelsAreBounded: cancels that end nothing go, the oldest first; contexts that nobody answers go when their time
// is over, and those beyond the bound end with their time alone.
func TestCancelsAreBounded(t *testing.T) {
	var c Cancels
	background := func() context.Context { return context.Background() }
	for n := range uint64(3 * MaxEarly) {
		c.Cancel(Asked{Number: n})
		c.Cancel(Asked{Number: n})
	}
	require.Len(t, c.early, MaxEarly)
	require.Len(t, c.order, MaxEarly)
	require.Error(t, c.Context(Asked{Number: 3*MaxEarly - 1}, 0, 1, nil, background).Err())
	require.Error(t, c.Context(Asked{Number: 2 * MaxEarly}, 0, 1, nil, background).Err())
	require.NoError(t, c.Context(Asked{Number: 2*MaxEarly - 1}, 0, 1, nil, background).Err())

	c = Cancels{}
	for n := range uint64(1000) {
		c.Context(Asked{Number: n}, time.Duration(n), time.Duration(n+10), nil, background)
	}
	require.LessOrEqual(t, len(c.given), 130, "those whose time is over go")
	c = Cancels{}
	for n := range uint64(MaxGiven) {
		c.Context(Asked{Number: n}, 0, time.Hour, nil, background)
	}
	require.Equal(t, context.Background(), c.Context(Asked{Number: MaxGiven}, 0, time.Hour, nil, background))
	require.False(t, c.Cancel(Asked{Number: MaxGiven}))
	c.Answered(Asked{Number: 7})
	more := func(n uint64, now, limit time.Duration) bool {
		return c.Context(Asked{Number: MaxGiven + n}, now, limit, nil, background) != context.Background()
	}
	require.True(t, more(1, 0, 2*time.Hour))
	require.False(t, more(2, 0, 2*time.Hour))
	require.True(t, more(2, time.Hour, 2*time.Hour), "the others are over")
	require.Len(t, c.given, 2)
	require.False(t, more(3, 0, 0), "nobody knows when it is over")
}

// TestFullCancelsAreSweptSeldom: without room, and with a context that is over at each moment, all are looked at once
// a second, not for each ask.
func TestFullCancelsAreSweptSeldom(t *testing.T) {
	var c Cancels
	background := func() context.Context { return context.Background() }
	more := func(n uint64, now time.Duration) bool {
		return c.Context(Asked{Number: n}, now, time.Duration(n+1)*time.Millisecond, nil, background) != context.Background()
	}
	for n := range uint64(MaxGiven) {
		require.True(t, more(n, 0))
	}
	require.True(t, more(MaxGiven, time.Millisecond), "one is over")
	require.False(t, more(MaxGiven+1, 2*time.Millisecond), "the next one too, but they were looked at just now")
	for n := range uint64(1000) {
		require.True(t, more(MaxGiven+2+n, time.Millisecond+time.Second))
	}
	require.False(t, more(2*MaxGiven, time.Millisecond+time.Second))
}
