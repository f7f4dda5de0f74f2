// Tests of lifetimes: what ends a context, by which cause, and what the next one is.

package lifetime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kith-io/kith/route"
)

// made is a context with a limit as a test sees it: nothing ends it but its parent, or the test.
type made struct {
	context.Context
	at    time.Duration
	end   context.CancelCauseFunc
	cause error
}

// TestLifetimeLaws: at every moment a context that was handed out has ended exactly if, since then, the node was
// suspended, the shard stopped or lost, or its limit has come, and its cause is the first of these; without a limit all
// calls between two ends get the same one.
func TestLifetimeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Shard
		now, suspended := time.Duration(0), false
		var limits []*made
		limited := func(parent context.Context, d time.Duration, cause error) context.Context {
			ctx, end := context.WithCancelCause(parent)
			m := &made{ctx, now + d, end, cause}
			limits = append(limits, m)
			if d <= 0 {
				end(cause)
			}
			return m
		}
		type given struct {
			ctx   context.Context
			cause error // why it has ended, nil: it lives
			limit time.Duration
		}
		var all []*given
		var shared context.Context // of calls without a limit, since the last end
		stopBy, stopped, lost := time.Duration(0), false, false
		over := func(cause error) {
			for _, g := range all {
				if g.cause == nil {
					g.cause = cause
				}
			}
			shared = nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for _, g := range all {
					require.Equal(t, g.cause != nil, g.ctx.Err() != nil)
					if g.cause != nil {
						require.ErrorIs(t, context.Cause(g.ctx), g.cause)
					}
				}
			},
			"call": func(t *rapid.T) {
				limit := time.Duration(0)
				if rapid.Bool().Draw(t, "limited") {
					limit = now + time.Duration(rapid.IntRange(-1, 5).Draw(t, "in"))
					limit = max(limit, 1)
				}
				g := &given{limit: limit, ctx: s.Context(now, limit, func() bool { return suspended }, limited)}
				switch {
				case lost:
					g.cause = route.ErrStopped
				case suspended:
					g.cause = route.ErrSuspended
				case stopped && stopBy != 0 && stopBy <= now, limit != 0 && limit <= now:
					g.cause = route.ErrTimeout
				case limit == 0 && shared == nil:
					shared = g.ctx
				case limit == 0:
					require.True(t, shared == g.ctx, "nothing new is made")
				}
				if stopped && stopBy != 0 && (limit == 0 || stopBy < limit) {
					g.limit = stopBy
				}
				all = append(all, g)
			},
			"serve": func(*rapid.T) {
				g := &given{ctx: s.Serving(func() bool { return suspended })}
				switch {
				case lost:
					g.cause = route.ErrStopped
				case stopped:
					g.cause = route.ErrShardStopping
				case suspended:
					g.cause = route.ErrSuspended
				case shared == nil:
					shared = g.ctx
				default:
					require.True(t, shared == g.ctx, "nothing new is made")
				}
				all = append(all, g)
			},
			"time": func(t *rapid.T) {
				now += time.Duration(rapid.IntRange(0, 3).Draw(t, "d"))
				for _, m := range limits {
					if m.at <= now {
						m.end(m.cause)
					}
				}
				for _, g := range all {
					if g.cause == nil && g.limit != 0 && g.limit <= now {
						g.cause = route.ErrTimeout
					}
				}
				if stopped && stopBy != 0 && stopBy <= now {
					shared = nil // it has ended; so will the next
				}
			},
			"suspend":  func(*rapid.T) { suspended = true; s.Suspend(); over(route.ErrSuspended) },
			"withhold": func(*rapid.T) { s.Withhold(); over(errLease) },
			"resume":   func(*rapid.T) { suspended = false },
			"stop": func(t *rapid.T) {
				if stopped {
					t.Skip("once")
				}
				stopped = true
				if rapid.Bool().Draw(t, "bounded") {
					stopBy = now + time.Duration(rapid.IntRange(1, 9).Draw(t, "by"))
				}
				s.Stop(stopBy)
				over(route.ErrShardStopping)
			},
			"lose": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					lost = true
					s.Lose()
					over(route.ErrStopped)
				}
			},
		})
	})
}

// TestContextIsMadeOnce: what is there costs the next call nothing.
func TestContextIsMadeOnce(t *testing.T) {
	var s Shard
	open := func() bool { return false }
	first := s.Context(0, 0, open, nil)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if s.Context(1, 0, open, nil) != first {
			t.Error("made anew")
		}
	}))
}
