// Tests of code that must not block and would: it gets a typed error, or is reported while it stands still.

package e2e_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// Region.Ask looks where it is called: handlers of Worker and Inline types, their Stop, functions of AskFunc and hooks
// get ErrWouldBlock at once; everybody else may wait.
func TestAskWhereNobodyMayWait(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			ctx, errs := within(t), make(chan error, 8)
			var echo, r *kith.Region
			ask := func() {
				_, err := echo.Ask(ctx, "b", nil)
				errs <- err
			}
			n := cluster(t, 1, func(_ int, cfg *kith.Config) {
				cfg.Incident = func(i kith.Incident) {
					if i.Kind == kith.GaveUp {
						ask()
					}
				}
			}, func(_ int, n *kith.Node) {
				echo = register(t, n, kith.EntityType{Name: "echo"}, actor{
					receive: func(c *kith.Context, b []byte) error { return c.Reply(b) }})
				r = register(t, n, kith.EntityType{Name: "x", Mode: mode, Restart: kith.RestartStop}, actor{
					receive: func(c *kith.Context, b []byte) error {
						switch string(b) {
						case "ask":
							ask()
						case "reply":
							return c.Reply(nil)
						case "panic":
							panic("told to")
						}
						return nil
					},
					stop: func(*kith.Context) { ask() },
				})
			})[0]
			check := func(what string, refused bool) {
				if err := <-errs; refused {
					require.ErrorIs(t, err, kith.ErrWouldBlock, what)
				} else {
					require.NoError(t, err, what)
				}
			}
			must := mode != kith.Blocking
			for range 2 { // the first makes the entity, which takes another way
				require.NoError(t, r.TellWait(ctx, "a", []byte("ask")))
				check("Receive", must)
			}
			require.NoError(t, r.AskFunc(patience, "a", []byte("reply"), func([]byte, error) { ask() }))
			check("a function of AskFunc", true)
			require.NoError(t, r.TellWait(ctx, "p", []byte("panic")))
			check("a hook", true)
			ask()
			check("anybody", false)
			if must { // a Blocking one would wait: for a type that may have been given back already
				require.NoError(t, n.Leave(ctx))
				check("Stop", true)
			}
		})
	}
}

// TellWait may be called by any handler while there is room; when it would have to wait it says so instead.
func TestTellWaitInHandlers(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	var back *kith.Region
	hold := make(chan struct{})
	defer close(hold)
	n := cluster(t, 1, nil, nil)[0]
	back = register(t, n, kith.EntityType{Name: "back", MailboxBytes: 1 << 10}, actor{
		receive: func(*kith.Context, []byte) error { <-hold; return nil }})
	front := register(t, n, kith.EntityType{Name: "front", Mode: kith.Worker}, actor{
		receive: func(*kith.Context, []byte) error {
			for {
				if err := back.TellWait(context.Background(), "slow", make([]byte, 100)); err != nil {
					errs <- err
					return nil
				}
			}
		}})
	// Its home must be known: what is parked fills the parking queue instead.
	require.NoError(t, back.TellWait(within(t), "slow", nil))
	eventually(t, func() bool { return n.Stats().BusyEntities == 1 }, "the home is known")
	require.NoError(t, front.TellWait(within(t), "a", nil))
	err := <-errs
	require.ErrorIs(t, err, kith.ErrWouldBlock)
}

// A worker or loop that stands still is reported with the stack that shows where, also in a process of a thousand
// goroutines.
func TestStalledLoopIsReported(t *testing.T) {
	over := make(chan struct{})
	var others sync.WaitGroup
	for range 1000 {
		others.Go(func() { <-over })
	}
	t.Cleanup(func() { close(over); others.Wait() })
	for _, mode := range []kith.Mode{kith.Worker, kith.Inline} {
		t.Run(mode.String(), func(t *testing.T) {
			release := make(chan struct{})
			far, _, seen, _, _ := owned(t, kith.EntityType{Mode: mode}, actor{
				receive: func(*kith.Context, []byte) error { standStill(release); return nil }})
			require.NoError(t, far.TellWait(within(t), "a", nil))
			eventually(t, func() bool {
				return seen.some(func(i kith.Incident) bool {
					return i.Kind == kith.Stalled && i.Mode == mode && i.Running && i.Took >= time.Second
				})
			}, "reported")
			require.True(t, seen.some(func(i kith.Incident) bool {
				return i.Kind == kith.Stalled && strings.Contains(i.Text, "standStill")
			}), "the stack shows where")
			close(release)
			eventually(t, func() bool {
				return seen.some(func(i kith.Incident) bool { return i.Kind == kith.Slow && i.ID == "a" })
			}, "named when it returned")
		})
	}
}

// An Inline handler that its asker calls stands still as one on a loop does, and so does the loop, which waits for it:
// the reported stack is the asker's.
func TestStalledAskerIsReported(t *testing.T) {
	release, seen := make(chan struct{}), &incidents{}
	var near *kith.Region
	cluster(t, 1, func(_ int, cfg *kith.Config) { cfg.Incident = seen.take }, func(_ int, n *kith.Node) {
		x := kith.EntityType{Name: "x", Mode: kith.Inline}
		near = register(t, n, x, actor{receive: func(c *kith.Context, b []byte) error {
			if len(b) > 0 {
				standStill(release)
			}
			if c.Asked() {
				return c.Reply(b)
			}
			return nil
		}})
	})
	_, err := near.Ask(within(t), "a", nil)
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		_, err := near.AskWithin(time.Hour, "a", []byte("wait"), nil)
		answered <- err
	}()
	eventually(t, func() bool {
		return seen.some(func(i kith.Incident) bool {
			return i.Kind == kith.Stalled && i.Running && strings.Contains(i.Text, "standStill")
		})
	}, "reported, with its stack")
	require.NoError(t, near.Tell("b", nil)) // the loop waits
	close(release)
	require.NoError(t, <-answered)
	eventually(t, func() bool {
		return seen.some(func(i kith.Incident) bool { return i.Kind == kith.Slow && i.ID == "a" })
	}, "named when it returned")
}

//go:noinline
func standStill(release chan struct{}) { <-release }
