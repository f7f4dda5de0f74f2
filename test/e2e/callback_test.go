// Functions of the embedder that panic, or call back into their node, or end it.

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/shard/strategy"
)

// bad is a strategy that does something when it is asked.
type bad struct {
	strategy.Strategy
	does func()
}

func (b bad) Allocate(v *strategy.View, s kith.ShardID) (kith.ID, error) {
	b.does()
	return b.Strategy.Allocate(v, s)
}

func (b bad) Rebalance(v *strategy.View) ([]strategy.Move, error) {
	b.does()
	return b.Strategy.Rebalance(v)
}

// where a function of the embedder is called, and what calls it: each is given what it does.
var callbacks = map[string]func(cfg *kith.Config, typ *kith.EntityType, does func()) (provoke func(r *kith.Region)){
	"Incident": func(cfg *kith.Config, _ *kith.EntityType, does func()) func(r *kith.Region) {
		cfg.Incident = func(kith.Incident) { does() }
		return func(r *kith.Region) { _ = r.Tell("panics", nil) }
	},
	"Undelivered": func(cfg *kith.Config, typ *kith.EntityType, does func()) func(r *kith.Region) {
		cfg.Undelivered = func(kith.Undelivered) { does() }
		make := typ.New
		typ.New, typ.Open = nil, func(c *kith.Context) (kith.Handler, error) {
			if c.ID == "panics" {
				return nil, errors.New("there is none")
			}
			return make(c.ID, c.Fence), nil
		}
		return func(r *kith.Region) { _ = r.Tell("panics", nil) }
	},
	"Latency": func(cfg *kith.Config, _ *kith.EntityType, does func()) func(r *kith.Region) {
		cfg.LatencyEvery = 1
		cfg.Latency = func(kith.Measure, string, time.Duration) { does() }
		return func(r *kith.Region) { _ = r.Tell("x", nil) }
	},
	"AskFunc": func(_ *kith.Config, _ *kith.EntityType, does func()) func(r *kith.Region) {
		return func(r *kith.Region) { _ = r.AskFunc(patience, "x", nil, func([]byte, error) { does() }) }
	},
	"Strategy": func(_ *kith.Config, typ *kith.EntityType, does func()) func(r *kith.Region) {
		typ.Strategy = bad{strategy.LeastShards{}, does}
		return func(r *kith.Region) { _ = r.Tell("y", nil) }
	},
	"Handler": func(_ *kith.Config, typ *kith.EntityType, does func()) func(r *kith.Region) {
		typ.New = func(string, kith.Fence) kith.Handler {
			return &actor{receive: func(*kith.Context, []byte) error { does(); return nil }}
		}
		return func(r *kith.Region) { _ = r.Tell("z", nil) }
	},
}

// called starts a node with a function that does something, causes its call, and returns the node.
func called(t *testing.T, name string, mode kith.Mode, does func(n *kith.Node, r *kith.Region)) (*kith.Node,
	*kith.Region, func(r *kith.Region)) {
	var n atomic.Pointer[kith.Node]
	var region atomic.Pointer[kith.Region]
	cfg := kith.Config{}
	typ := kith.EntityType{Name: "x", Mode: mode, Shards: 4, New: func(id string, _ kith.Fence) kith.Handler {
		return &actor{receive: func(c *kith.Context, _ []byte) error {
			if id == "panics" {
				panic("as it should")
			}
			if c.Asked() {
				return c.Reply(nil)
			}
			return nil
		}}
	}}
	provoke := callbacks[name](&cfg, &typ, func() {
		if r := region.Load(); r != nil {
			does(n.Load(), r)
		}
	})
	node := start(t, logger(t), cfg)
	require.NoError(t, node.Ready(within(t)))
	n.Store(node)
	r, err := node.Register(typ)
	require.NoError(t, err)
	region.Store(r)
	return node, r, provoke
}

// A function of the embedder that panics is counted and reported, and the node goes on (OPS-1).
func TestCallbacksThatPanic(t *testing.T) {
	t.Parallel()
	for name := range callbacks {
		for _, mode := range modes {
			t.Run(fmt.Sprint(name, "/", mode), func(t *testing.T) {
				var calls atomic.Int64
				node, r, provoke := called(t, name, mode, func(*kith.Node, *kith.Region) {
					calls.Add(1)
					panic("the embedder's")
				})
				for want := range int64(3) {
					provoke(r)
					eventually(t, func() bool { return calls.Load() > want }, "a call of %s", name)
					if name == "Strategy" { // one that fails is not asked again at once, the default takes its place
						break
					}
				}
				require.NoError(t, node.Err())
				require.NoError(t, r.TellWait(within(t), "more", nil))
				switch name {
				case "Strategy", "Handler": // have counters of their own
				default:
					eventually(t, func() bool { return node.Stats().CallbackPanics >= 3 }, "counted")
				}
			})
		}
	}
}

// Hooks that end their goroutine are called on another one.
func TestHooksThatExit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Incident", "Undelivered"} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			node, r, provoke := called(t, name, kith.Blocking, func(*kith.Node, *kith.Region) {
				calls.Add(1)
				runtime.Goexit()
			})
			for want := range int64(3) {
				provoke(r)
				eventually(t, func() bool { return calls.Load() > want }, "a call of %s", name)
			}
			require.NoError(t, node.Err())
		})
	}
}

// A shutdown task that ends its goroutine has failed; nobody waits for it.
func TestShutdownTaskThatExits(t *testing.T) {
	t.Parallel()
	node := start(t, logger(t), kith.Config{})
	require.NoError(t, node.OnShutdown(kith.PhaseBeforeServiceUnbind, "exits", func(context.Context) error {
		runtime.Goexit()
		return nil
	}))
	require.NoError(t, node.Ready(within(t)))
	require.NoError(t, node.Leave(within(t)))
}

// reentries are what functions of the embedder may do to their node: it works, or says why not.
var reentries = map[string]func(ctx context.Context, n *kith.Node, r *kith.Region) error{
	"Close":       func(_ context.Context, n *kith.Node, _ *kith.Region) error { return n.Close() },
	"Leave":       func(ctx context.Context, n *kith.Node, _ *kith.Region) error { return n.Leave(ctx) },
	"Drain":       func(ctx context.Context, n *kith.Node, _ *kith.Region) error { return n.Drain(ctx) },
	"Ready":       func(ctx context.Context, n *kith.Node, _ *kith.Region) error { return n.Ready(ctx) },
	"Down":        func(ctx context.Context, n *kith.Node, _ *kith.Region) error { return n.Down(ctx, "127.0.0.1:1") },
	"SetMetadata": func(ctx context.Context, n *kith.Node, _ *kith.Region) error { return n.SetMetadata(ctx, "a", nil) },
	"Convergence": func(ctx context.Context, n *kith.Node, _ *kith.Region) error {
		_, err := n.Convergence(ctx)
		return err
	},
	"Report": func(ctx context.Context, _ *kith.Node, r *kith.Region) error { _, err := r.Report(ctx); return err },
	"Move":   func(ctx context.Context, n *kith.Node, r *kith.Region) error { return r.Move(ctx, 0, n.ID()) },
	"Ask": func(ctx context.Context, _ *kith.Node, r *kith.Region) error {
		_, err := r.Ask(ctx, "a", nil)
		return err
	},
	"AskWithin": func(_ context.Context, _ *kith.Node, r *kith.Region) error {
		_, err := r.AskWithin(time.Second, "b", nil, nil)
		return err
	},
	"Tell": func(_ context.Context, _ *kith.Node, r *kith.Region) error { return r.Tell("c", nil) },
	"Stats": func(_ context.Context, n *kith.Node, _ *kith.Region) error {
		n.Stats()
		n.Health()
		n.View()
		return nil
	},
}

// Whatever a strategy calls of its own node returns, also where it would wait for the goroutine that it runs on, and
// the node can be closed behind it (OPS-1).
func TestStrategyThatCallsItsNode(t *testing.T) {
	t.Parallel()
	works := map[string]bool{"Tell": true, "Stats": true}
	for name, verb := range reentries {
		t.Run(name, func(t *testing.T) {
			returned := make(chan error, 1)
			node, r, provoke := called(t, "Strategy", kith.Blocking, func(n *kith.Node, r *kith.Region) {
				err := verb(context.Background(), n, r) // without an end: it must not wait for one
				select {
				case returned <- err:
				default:
				}
			})
			provoke(r)
			err := <-returned
			if works[name] {
				require.NotErrorIs(t, err, kith.ErrWouldBlock)
			} else {
				require.ErrorIs(t, err, kith.ErrWouldBlock)
			}
			if name == "Close" || name == "Leave" {
				<-node.Done() // the order is carried out all the same
				require.Error(t, node.Err())
			}
			closes(t, node)
		})
	}
}

// Hooks, handlers and functions of AskFunc may close their node, which waits for them no longer than for a handler.
func TestCallbackThatClosesItsNode(t *testing.T) {
	t.Parallel()
	for name := range callbacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			returned := make(chan error, 1)
			node, r, provoke := called(t, name, kith.Blocking, func(n *kith.Node, _ *kith.Region) {
				err := n.Close()
				select {
				case returned <- err:
				default:
				}
			})
			provoke(r)
			<-node.Done()
			<-returned
			closes(t, node)
		})
	}
}
