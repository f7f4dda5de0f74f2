// Tests of what handlers may do: tell, ask, detach, timers, passivate, and their stop when a node leaves.

package e2e_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// actor is a handler made of functions.
type actor struct {
	receive func(c *kith.Context, payload []byte) error
	stop    func(c *kith.Context)
}

func (a *actor) Receive(c *kith.Context, payload []byte) error { return a.receive(c, payload) }

func (a *actor) Stop(c *kith.Context) {
	if a.stop != nil {
		a.stop(c)
	}
}

func register(t *testing.T, n *kith.Node, typ kith.EntityType, a actor) *kith.Region {
	t.Helper()
	if typ.Open == nil {
		typ.New = func(string, kith.Fence) kith.Handler { return &a }
	}
	if typ.Shards == 0 {
		typ.Shards = 8
	}
	r, err := n.Register(typ)
	require.NoError(t, err)
	return r
}

// A Blocking handler asks another entity of its own shards and of another type; others get the error that it would
// block.
func TestHandlersAskAndTell(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			l := newLedger()
			var regions []*kith.Region
			cluster(t, 2, nil, func(i int, n *kith.Node) {
				register(t, n, kith.EntityType{Name: "back", Mode: mode}, actor{receive: func(c *kith.Context, b []byte) error {
					if !c.Asked() {
						l.got(c.ID, b, n.ID())
						return nil
					}
					return c.Reply(append([]byte("back "), b...))
				}})
				regions = append(regions, register(t, n, kith.EntityType{Name: "front", Mode: mode}, actor{
					receive: func(c *kith.Context, b []byte) error {
						if !c.Asked() {
							return c.Tell("back", c.ID, b)
						}
						reply, err := c.Ask(patience, "back", c.ID, b)
						if err != nil {
							return err
						}
						return c.Reply(append([]byte("front "), reply...))
					}}))
			})
			ctx := within(t)
			for e := range 20 {
				id := fmt.Sprintf("e%d", e)
				reply, err := regions[e%2].Ask(ctx, id, []byte("x"))
				if mode == kith.Blocking {
					require.NoError(t, err)
					require.Equal(t, "front back x", string(reply))
				} else {
					require.ErrorIs(t, err, kith.ErrHandler)
					require.ErrorContains(t, err, "would block")
				}
				for seq := range uint64(10) {
					require.NoError(t, regions[e%2].TellWait(ctx, id, numbered(0, seq)))
				}
			}
			l.await(t, 200)
		})
	}
}

// A detached ask is answered later, from another goroutine, once.
func TestDetach(t *testing.T) {
	t.Parallel()
	remote, local, tokens := map[kith.Mode]*kith.Region{}, map[kith.Mode]*kith.Region{}, make(chan kith.ReplyToken, 1)
	cluster(t, 2, func(i int, cfg *kith.Config) {
		if i == 1 {
			cfg.Roles = []string{"host"}
		}
	}, func(i int, n *kith.Node) {
		for _, m := range modes {
			r := register(t, n, kith.EntityType{Name: m.String(), Role: "host", Mode: m}, actor{
				receive: func(c *kith.Context, b []byte) error {
					tokens <- c.Detach()
					return nil
				}})
			if i == 0 {
				remote[m] = r
			} else {
				local[m] = r
			}
		}
	})
	each(t, remote, local, func(t *testing.T, r *kith.Region) {
		answer := func(f func(token kith.ReplyToken)) ([]byte, error) {
			go func() { f(<-tokens) }()
			return r.Ask(within(t), "a", nil)
		}
		reply, err := answer(func(token kith.ReplyToken) {
			if token.Reply([]byte("late")) != nil || token.Reply([]byte("twice")) == nil {
				t.Error("a token answers once")
			}
		})
		require.NoError(t, err)
		require.Equal(t, "late", string(reply))
		_, err = answer(func(token kith.ReplyToken) { _ = token.Fail(errors.New("no stock")) })
		require.ErrorIs(t, err, kith.ErrHandler)
		require.ErrorContains(t, err, "no stock")
	})
}

// Timers fire at the entity that set them, idle entities stop, and the next message makes them anew.
func TestTimersAndIdleEntities(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			var made, stopped atomic.Int64
			fired := make(chan string, 1)
			n := cluster(t, 1, nil, nil)[0]
			r, err := n.Register(kith.EntityType{Name: "x", Mode: mode, Shards: 2, IdleAfter: 50 * time.Millisecond,
				New: func(string, kith.Fence) kith.Handler {
					made.Add(1)
					return &actor{func(c *kith.Context, b []byte) error {
						if string(b) == "set" {
							return c.After(20*time.Millisecond, []byte("ring"))
						}
						fired <- c.ID + " " + string(b)
						return nil
					}, func(*kith.Context) { stopped.Add(1) }}
				}})
			require.NoError(t, err)
			require.NoError(t, r.Tell("a", []byte("set")))
			require.Equal(t, "a ring", <-fired)
			eventually(t, func() bool { return stopped.Load() == 1 }, "an idle entity stops")
			require.NoError(t, r.Tell("a", []byte("again")))
			require.Equal(t, "a again", <-fired)
			require.EqualValues(t, 2, made.Load())
		})
	}
}

// Leaving works off what lies in mailboxes and then stops every entity, once, under the fence it was made with.
// Pins SHD-7.
func TestLeaveStopsEntities(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			var mu sync.Mutex
			fences, handled, last := map[string]kith.Fence{}, 0, map[string]string{}
			n := cluster(t, 1, nil, nil)[0]
			typ := kith.EntityType{Name: "x", Mode: mode, Shards: 8, StopMessage: []byte("bye")}
			typ.New = func(id string, f kith.Fence) kith.Handler {
				mu.Lock()
				fences[id] = f
				mu.Unlock()
				return &actor{func(c *kith.Context, p []byte) error {
					mu.Lock()
					defer mu.Unlock()
					if c.StopReason() != kith.NotStopping {
						last[c.ID] += string(p) + " " + c.StopReason().String()
						return nil
					}
					handled++
					return nil
				}, func(c *kith.Context) {
					mu.Lock()
					defer mu.Unlock()
					if last[c.ID] != "bye leaving" {
						t.Errorf("entity %s stopped, and its last message was %q", c.ID, last[c.ID])
					}
					if f, there := fences[c.ID]; !there || f != c.Fence || f.IsZero() {
						t.Errorf("entity %s stopped twice or under another fence", c.ID)
					}
					delete(fences, c.ID)
				}}
			}
			r, err := n.Register(typ)
			require.NoError(t, err)
			ctx := within(t)
			for i := range 5000 {
				require.NoError(t, r.TellWait(ctx, fmt.Sprintf("e%d", i%500), nil))
			}
			eventually(t, func() bool { return n.Stats().Types[0].ParkedBytes == 0 }, "nothing is parked")
			require.NoError(t, n.Leave(ctx))
			require.Empty(t, fences, "every entity was stopped")
			require.Equal(t, 5000, handled)
			require.Len(t, last, 500, "each got its stop message")
		})
	}
}

// A node that is marked down while it lives ends itself, without calling its entities, and names the node that did it.
func TestDownedNodeEndsItself(t *testing.T) {
	t.Parallel()
	nodes, regions, _ := echoCluster(t, 3, nil)
	ctx := within(t)
	for e := range 30 {
		_, err := regions[kith.Blocking][0].Ask(ctx, fmt.Sprintf("e%d", e), nil)
		require.NoError(t, err)
	}
	require.NoError(t, nodes[0].Down(ctx, nodes[2].Addr().String()))
	<-nodes[2].Done()
	var ended *kith.EndedError
	require.ErrorAs(t, nodes[2].Err(), &ended)
	require.Equal(t, kith.EndDowned, ended.Kind)
	require.NotEmpty(t, ended.Error())
	_, err := regions[kith.Blocking][2].Ask(ctx, "e1", nil)
	require.ErrorIs(t, err, kith.ErrStopped)
}

// Close gives a running handler time, and does not wait for ever.
func TestCloseWaitsForRunningHandler(t *testing.T) {
	t.Parallel()
	n := cluster(t, 1, nil, nil)[0]
	begun, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := register(t, n, kith.EntityType{Name: "x"}, actor{receive: func(*kith.Context, []byte) error {
		close(begun)
		<-release
		close(done)
		return nil
	}})
	require.NoError(t, r.Tell("a", nil))
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- n.Close() }()
	eventually(t, func() bool { return errors.Is(r.Tell("b", nil), kith.ErrStopped) }, "the end begins")
	close(release)
	all := &kith.AbandonedError{}
	if err := <-closed; err != nil { // what was sent before the end began
		require.ErrorAs(t, err, &all)
	}
	require.Zero(t, all.Handlers)
	<-done
}

// meeting is an entity that waits, in each round, until all of them have come.
type meeting struct{ rounds []sync.WaitGroup }

func (m meeting) Receive(_ *kith.Context, round []byte) error {
	all := &m.rounds[round[0]]
	all.Done()
	all.Wait()
	return nil
}

func (meeting) Stop(*kith.Context) {}

// A Blocking handler holds up its own entity only: hundreds wait for each other inside Receive, twice over.
func TestBlockingHandlersHoldUpNobody(t *testing.T) {
	t.Parallel()
	const entities = 300
	rounds := make([]sync.WaitGroup, 2)
	node := cluster(t, 1, nil, nil)[0]
	region, err := node.Register(kith.EntityType{Name: "meeting", Shards: 7,
		New: func(string, kith.Fence) kith.Handler { return meeting{rounds} }})
	require.NoError(t, err)
	for r := range rounds {
		rounds[r].Add(entities)
		for i := range entities {
			require.NoError(t, region.TellWait(within(t), fmt.Sprint("m", i), []byte{byte(r)}))
		}
		met := make(chan struct{})
		go func() { rounds[r].Wait(); close(met) }()
		select {
		case <-met:
		case <-within(t).Done():
			require.FailNow(t, "they never met")
		}
	}
}
