// Contexts that handlers keep: they answer nobody, from whichever goroutine and however late.

package entity

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith/route"
)

// misuses are all methods of Context, called by a goroutine that it was not given to. Those that return an error return
// it, of others is said what they return.
var misuses = map[string]func(c *Context) (any, error){
	"Type":       func(c *Context) (any, error) { return c.Type(), nil },
	"Asked":      func(c *Context) (any, error) { return c.Asked(), nil },
	"Headers":    func(c *Context) (any, error) { return string(c.Headers()), nil },
	"StopReason": func(c *Context) (any, error) { return c.StopReason(), nil },
	"Now":        func(c *Context) (any, error) { return c.Now(), nil },
	"Timer":      func(c *Context) (any, error) { _, ok := c.Timer(); return ok, nil },
	"CancelTimer": func(c *Context) (any, error) {
		return c.CancelTimer("x"), nil
	},
	"CancelTimers": func(c *Context) (any, error) { c.CancelTimers(); return nil, nil },
	"Ended":        func(c *Context) (any, error) { _, ok := c.Ended(); return ok, nil },
	"Watch":        func(c *Context) (any, error) { return nil, c.Watch("t", "b") },
	"Unwatch":      func(c *Context) (any, error) { c.Unwatch("t", "b"); return nil, nil },
	"Passivate":    func(c *Context) (any, error) { c.Passivate(); return nil, nil },
	"Suspended":    func(c *Context) (any, error) { return !c.Suspended(), nil },
	"Tell":         func(c *Context) (any, error) { return nil, c.Tell("", "b", nil) },
	"Ask":          func(c *Context) (any, error) { b, err := c.Ask(time.Hour, "", "b", nil); return string(b), err },
	"SetHeaders":   func(c *Context) (any, error) { return string(c.SetHeaders([]byte("x"))), nil },
	"With": func(c *Context) (any, error) {
		if _, err := c.With(nil).Ask(1, "t", "b", nil); !errors.Is(err, ErrContextKept) {
			return nil, err
		}
		return nil, c.With(nil).Tell("t", "b", nil)
	},
	"Reply":    func(c *Context) (any, error) { return nil, c.Reply([]byte("mine")) },
	"After":    func(c *Context) (any, error) { return nil, c.After(0, nil) },
	"SetTimer": func(c *Context) (any, error) { return nil, c.SetTimer("x", 0, nil) },
	"Detach":   func(c *Context) (any, error) { token := c.Detach(); return nil, token.Reply([]byte("mine")) },
	"Context": func(c *Context) (any, error) {
		ctx := c.Context()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	},
}

// wordless are the methods that return no error.
var wordless = map[string]bool{"Type": true, "Asked": true, "Headers": true, "StopReason": true, "Now": true,
	"Ended": true, "Unwatch": true, "SetHeaders": true,
	"Timer": true, "CancelTimer": true, "CancelTimers": true, "Passivate": true, "Suspended": true}

// misuse calls every method of c, which does not belong to the calling goroutine, and demands that none does anything.
func misuse(t *testing.T, c *Context, entity string) {
	t.Helper()
	all := reflect.TypeFor[*Context]()
	require.Len(t, misuses, all.NumMethod())
	for i := range all.NumMethod() {
		name := all.Method(i).Name
		require.Contains(t, misuses, name)
		value, err := misuses[name](c)
		if value != nil {
			require.True(t, reflect.ValueOf(value).IsZero(), "%s returned %v", name, value)
		}
		if wordless[name] {
			continue
		}
		require.ErrorIs(t, err, ErrContextKept, name)
		require.ErrorContains(t, err, "Detach", name)
		if entity != "" {
			require.ErrorContains(t, err, fmt.Sprintf("%q", entity), name)
		}
	}
}

// elsewhere calls f on another goroutine, and waits for it.
func elsewhere(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestKeptContextIsRefused(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var kept *Context
		r.f.receive = func(c *Context, _ []byte) error {
			kept = c
			elsewhere(func() { misuse(t, c, "a") })
			require.True(t, c.Asked(), "it is the handler's own all the same")
			return nil
		}
		require.Equal(t, route.NoReply, r.ask("a", "first").reason)
		first := kept
		misuse(t, first, "a")
		r.f.receive = func(c *Context, _ []byte) error {
			require.NotSame(t, first, c, "it was kept to answer later")
			misuse(t, first, "a")
			elsewhere(func() { misuse(t, first, "a") })
			kept = c
			return c.Reply([]byte("second"))
		}
		require.Equal(t, answer{42, route.OK, "second"}, r.ask("b", "second"))
		misuse(t, kept, "b")
		r.f.receive = func(c *Context, _ []byte) error {
			elsewhere(func() { misuse(t, kept, "") })
			return c.Reply([]byte("third"))
		}
		require.Equal(t, answer{42, route.OK, "third"}, r.ask("c", "third"))
		require.Empty(t, r.f.told)
		require.Empty(t, r.f.asked)
		require.Zero(t, r.Stats().Timers)
	})
}

// Whatever ends the call of an ask that is owed an answer, its Context is no other call's.
func TestContextOfAnUnansweredAskIsLeftBehind(t *testing.T) {
	ends := map[string]func() error{
		"nothing":  func() error { return nil },
		"an error": func() error { return errTest },
		"a panic":  func() error { panic("x") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
				seen := map[*Context]bool{}
				for range 100 {
					r.f.receive = func(c *Context, _ []byte) error {
						require.False(t, seen[c])
						seen[c] = true
						for kept := range seen {
							require.Equal(t, kept == c, kept.Asked())
						}
						return end()
					}
					r.ask("a", "q")
				}
			})
		})
	}
}

// Stop, HandOver, TakeUp and Open have a Context as Receive has.
func TestContextOfEveryCall(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		var kept *Context
		r.f.receive = func(c *Context, _ []byte) error {
			c.Passivate()
			return nil
		}
		r.f.stop = func(c *Context) {
			require.Equal(t, StopPassivated, c.StopReason())
			require.NoError(t, c.Tell("", "b", nil))
			kept = c
		}
		require.Equal(t, route.OK, r.tell("a", "go"))
		require.Len(t, r.f.told, 1)
		misuse(t, kept, "a")
	})
}

func TestPoisonedContexts(t *testing.T) {
	everyMode(t, func(t *testing.T, r *rig, _ func(...func(*Type)) *rig) {
		PoisonContexts(r.Shard)
		seen := map[*Context]bool{}
		r.f.receive = func(c *Context, _ []byte) error {
			require.False(t, seen[c], "each call has its own")
			require.Equal(t, "a", c.ID)
			require.Equal(t, testFence, c.Fence)
			for kept := range seen {
				require.Contains(t, kept.ID, "kept")
				require.Zero(t, kept.Fence)
				require.ErrorIs(t, kept.Tell("", "b", nil), ErrContextKept)
			}
			seen[c] = true
			return c.Reply(nil)
		}
		for range 10 {
			require.Equal(t, route.OK, r.ask("a", "q").reason)
		}
		require.Len(t, seen, 10)
	})
}
