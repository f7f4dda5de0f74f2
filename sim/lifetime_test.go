// Scenarios of lifetimes: what the contexts of handlers say when a node is cut off, leaves or closes.

package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/entity"
	"github.com/kith-io/kith/route"
)

// watch is an entity that keeps the context of each call, by node.
type watch struct {
	given map[int][]context.Context
	stops map[int][]entity.StopReason
	left  []time.Duration // of stops with a deadline
}

func watches(c *Cluster, mode entity.Mode) (*watch, entity.Type) {
	k := &watch{given: map[int][]context.Context{}, stops: map[int][]entity.StopReason{}}
	return k, entity.Type{Name: "watched", Shards: 6, Mode: mode, New: func(id string, _ route.Fence) entity.Handler {
		return &watched{k, c}
	}}
}

type watched struct {
	k *watch
	c *Cluster
}

func (h *watched) Receive(c *entity.Context, b []byte) error {
	n := h.c.Owner("watched", c.ID)
	h.k.given[n] = append(h.k.given[n], c.Context())
	return c.Reply(b)
}

func (h *watched) Stop(c *entity.Context) {
	n := h.c.w.Acting.Index
	h.k.stops[n] = append(h.k.stops[n], c.StopReason())
	if by, ok := c.Context().Deadline(); ok {
		h.k.left = append(h.k.left, by.Sub(c.Now()))
	}
}

// A node that is cut off suspends itself: the contexts of all its handlers end for that, in every mode, and those of
// others do not. A leave ends them for the stop of their shards; Stop gets that, and how long it has (API-2).
func TestContextsEnd(t *testing.T) {
	for mode := entity.Blocking; mode <= entity.Inline; mode++ {
		t.Run(mode.String(), func(t *testing.T) {
			c := New(t, 5, 31)
			k, typ := watches(c, mode)
			c.Register(typ)
			c.AwaitUp()
			for id := range 12 {
				_, err := c.Ask(0, "watched", string(rune('a'+id)), nil)
				require.NoError(t, err)
			}
			cut, leaver, other := -1, -1, -1
			for n := range 5 {
				switch {
				case len(k.given[n]) == 0:
				case cut < 0:
					cut = n
				case leaver < 0:
					leaver = n
				default:
					other = n
				}
			}
			require.GreaterOrEqual(t, other, 0)
			for _, list := range k.given {
				for _, ctx := range list {
					require.NoError(t, ctx.Err())
				}
			}
			c.Leave(leaver)
			require.True(t, c.Until(patience, func() bool { return !c.Running(leaver) }))
			for _, ctx := range k.given[leaver] {
				require.ErrorIs(t, context.Cause(ctx), route.ErrShardStopping)
				require.ErrorIs(t, ctx.Err(), context.Canceled)
			}
			require.NotEmpty(t, k.stops[leaver])
			require.NotEmpty(t, k.left)
			for i, why := range k.stops[leaver] {
				require.Equal(t, entity.StopLeaving, why)
				require.Greater(t, k.left[i], time.Duration(0))
				require.LessOrEqual(t, k.left[i], 30*time.Second)
			}
			var rest []int
			for n := range 5 {
				if n != cut && n != leaver {
					rest = append(rest, n)
				}
			}
			c.Partition([]int{cut}, rest)
			require.True(t, c.Until(patience, func() bool { return c.proc(cut).Held() }))
			for _, ctx := range k.given[cut] {
				require.ErrorIs(t, context.Cause(ctx), route.ErrSuspended)
			}
			for _, ctx := range k.given[other] {
				require.NoError(t, ctx.Err())
			}
			c.Advance(time.Minute)
			require.Empty(t, k.stops[cut], "no handler is called any more")
			for _, ctx := range k.given[other] {
				require.NoError(t, ctx.Err())
			}
		})
	}
}

// The context of an ask ends when its asker waits no more, on virtual time.
func TestContextOfAnAskHasItsLimit(t *testing.T) {
	for mode := entity.Blocking; mode <= entity.Inline; mode++ {
		t.Run(mode.String(), func(t *testing.T) {
			c := New(t, 3, 32)
			var ctx context.Context
			var left time.Duration
			c.Register(entity.Type{Name: "late", Mode: mode, New: func(string, route.Fence) entity.Handler {
				return handlerFunc(func(c *entity.Context, _ []byte) error {
					ctx = c.Context()
					by, ok := ctx.Deadline()
					require.True(t, ok)
					left = by.Sub(c.Now())
					c.Detach()
					return nil
				})
			}})
			c.AwaitUp()
			_, err := c.AskWithin(3*time.Second, 0, "late", "a", nil) // while the home is looked for
			require.ErrorIs(t, err, route.ErrTimeout)
			begun := c.Now()
			_, err = c.AskWithin(3*time.Second, 0, "late", "a", nil)
			require.ErrorIs(t, err, route.ErrTimeout)
			require.Greater(t, left, 2*time.Second)
			require.LessOrEqual(t, left, 3*time.Second+100*time.Millisecond)
			require.True(t, c.Until(time.Second, func() bool { return ctx.Err() != nil }))
			require.GreaterOrEqual(t, c.Now()-begun, left, "not before")
			require.ErrorIs(t, context.Cause(ctx), route.ErrTimeout)
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		})
	}
}
