// Pools over real sockets: which worker handles a message, what happens without room, and when a node goes (SHD-12).

package e2e_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// crew counts what the workers of a pool do, on each node.
type crew struct {
	mu         sync.Mutex
	handled    map[kith.ID]int
	busy, most map[kith.ID]int
	block      map[kith.ID]chan struct{} // a worker there waits for it
}

func newCrew() *crew {
	return &crew{handled: map[kith.ID]int{}, busy: map[kith.ID]int{}, most: map[kith.ID]int{},
		block: map[kith.ID]chan struct{}{}}
}

// worker is a worker of a node. It answers with the node's id.
type worker struct {
	c  *crew
	at *kith.Node
}

func (w *worker) Receive(c *kith.Context, _ []byte) error {
	id := w.at.ID()
	w.c.mu.Lock()
	w.c.handled[id]++
	w.c.busy[id]++
	w.c.most[id] = max(w.c.most[id], w.c.busy[id])
	wait := w.c.block[id]
	w.c.mu.Unlock()
	if wait != nil {
		<-wait
	}
	w.c.mu.Lock()
	w.c.busy[id]--
	w.c.mu.Unlock()
	if !c.Asked() {
		return nil
	}
	return c.Reply([]byte(id.String()))
}

func (w *worker) Stop(*kith.Context) {}

func (c *crew) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.handled {
		n += k
	}
	return n
}

// pool declares the pool on a node.
func (c *crew) pool(t *testing.T, n *kith.Node, p kith.Pool) *kith.PoolRef {
	p.Name, p.New = "crew", func() kith.Handler { return &worker{c, n} }
	ref, err := p.Register(n)
	require.NoError(t, err)
	return ref
}

// staffed waits until a node knows the workers of all nodes of the list and no others.
func staffed(t *testing.T, ref *kith.PoolRef, perNode int, nodes ...*kith.Node) {
	t.Helper()
	eventually(t, func() bool {
		all := ref.Workers()
		for _, n := range nodes {
			if all[n.ID()] != perNode {
				return false
			}
		}
		return len(all) == len(nodes)
	}, "the workers are known: %v", ref.Workers())
}

// TestPool: members with the role have workers; a node with the role asks its own, one without asks them in turn. No
// node has more calls at a time than workers.
func TestPool(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			c, ctx := newCrew(), within(t)
			refs := make([]*kith.PoolRef, 4)
			nodes := cluster(t, 4, func(i int, cfg *kith.Config) {
				cfg.Sharding.RebalanceInterval = 50 * time.Millisecond
				if i > 0 {
					cfg.Roles = []string{"work"}
				}
			}, nil)
			for i, n := range nodes {
				refs[i] = c.pool(t, n, kith.Pool{Role: "work", PerNode: 3, Mode: mode})
			}
			for _, ref := range refs {
				staffed(t, ref, 3, nodes[1:]...)
			}
			for range 100 {
				b, err := refs[1].Ask(ctx, []byte("x"))
				require.NoError(t, err)
				require.Equal(t, nodes[1].ID().String(), string(b), "a worker here has room")
				require.NoError(t, refs[2].Tell([]byte("x")))
				_, err = refs[0].AskWithin(patience, []byte("x"), nil)
				require.NoError(t, err)
			}
			eventually(t, func() bool { return c.total() == 300 }, "all are handled")
			c.mu.Lock()
			defer c.mu.Unlock()
			require.Zero(t, c.handled[nodes[0].ID()])
			require.GreaterOrEqual(t, c.handled[nodes[1].ID()], 100)
			require.GreaterOrEqual(t, c.handled[nodes[2].ID()], 100)
			require.Positive(t, c.handled[nodes[3].ID()], "of the node without the role")
			for id, n := range c.most {
				require.LessOrEqual(t, n, 3, "%v", id)
			}
		})
	}
}

// TestPoolWithoutRoom: what the workers here have no room for goes to another node; where none has room the error says
// so, and an ask finds the one that has.
func TestPoolWithoutRoom(t *testing.T) {
	t.Parallel()
	c, ctx, refused := newCrew(), within(t), atomic.Int64{}
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
		cfg.Sharding.RebalanceInterval = 50 * time.Millisecond
		cfg.Undelivered = func(u kith.Undelivered) { refused.Add(int64(u.Count)) }
	}, nil)
	refs := []*kith.PoolRef{}
	for _, n := range nodes {
		refs = append(refs, c.pool(t, n, kith.Pool{PerNode: 2, MailboxBytes: 1 << 10}))
	}
	staffed(t, refs[0], 2, nodes...)
	gate := make(chan struct{})
	c.block[nodes[0].ID()] = gate
	payload, sent := make([]byte, 400), 0
	eventually(t, func() bool {
		require.NoError(t, refs[0].Tell(payload))
		sent++
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.handled[nodes[1].ID()] >= 5
	}, "the other node has room")
	b, err := refs[1].Ask(ctx, payload)
	require.NoError(t, err)
	require.Equal(t, nodes[1].ID().String(), string(b))
	close(gate)
	eventually(t, func() bool { return c.total()+int(refused.Load()) == sent+1 }, "all are handled, or reported")

	c.mu.Lock()
	gate = make(chan struct{})
	c.block = map[kith.ID]chan struct{}{nodes[0].ID(): gate, nodes[1].ID(): gate}
	c.mu.Unlock()
	eventually(t, func() bool {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := refs[0].Ask(short, payload)
		return errors.Is(err, kith.ErrMailboxFull) && !kith.MayHaveRun(err)
	}, "no worker has room")
	close(gate)
}

// TestPoolWhenANodeLeaves: no tell is lost when a node leaves, also those that wait there, and the others do its work.
func TestPoolWhenANodeLeaves(t *testing.T) {
	t.Parallel()
	c, ctx := newCrew(), within(t)
	nodes := cluster(t, 3, func(_ int, cfg *kith.Config) { cfg.Sharding.RebalanceInterval = 50 * time.Millisecond }, nil)
	var refs []*kith.PoolRef
	for _, n := range nodes {
		refs = append(refs, c.pool(t, n, kith.Pool{PerNode: 2}))
	}
	for _, ref := range refs {
		staffed(t, ref, 2, nodes...)
	}
	const each = 400
	var all sync.WaitGroup
	left := make(chan error, 1)
	for _, ref := range refs[:2] {
		all.Go(func() {
			for range each {
				if err := ref.TellWait(ctx, make([]byte, 100)); err != nil {
					t.Errorf("a tell: %v", err)
				}
			}
		})
	}
	for range each {
		require.NoError(t, refs[2].TellWait(ctx, make([]byte, 100)))
	}
	go func() { left <- nodes[2].Leave(ctx) }()
	all.Wait()
	require.NoError(t, <-left)
	eventually(t, func() bool { return c.total() == 3*each }, "all are handled: %d", c.total())
	staffed(t, refs[0], 2, nodes[:2]...)
}

// TestPoolWhenANodeDies: asks go on at the others as soon as a node is known to be unreachable.
func TestPoolWhenANodeDies(t *testing.T) {
	t.Parallel()
	c, ctx := newCrew(), within(t)
	nodes := cluster(t, 3, func(i int, cfg *kith.Config) {
		if cfg.Sharding.RebalanceInterval = 50 * time.Millisecond; i > 0 {
			cfg.Roles = []string{"work"}
		}
	}, nil)
	var refs []*kith.PoolRef
	for _, n := range nodes {
		refs = append(refs, c.pool(t, n, kith.Pool{Role: "work", PerNode: 2}))
	}
	staffed(t, refs[0], 2, nodes[1:]...)
	closes(t, nodes[2])
	staffed(t, refs[0], 2, nodes[1])
	for range 50 {
		b, err := refs[0].Ask(ctx, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, nodes[1].ID().String(), string(b))
	}
}

// TestPoolBadInput: faults are all named, and change nothing; without a member of the role there is a typed error.
func TestPoolBadInput(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	_, err := kith.Pool{PerNode: -1, MaxNodes: 1 << 20, MailboxBytes: 1, Mode: 9}.Register(nodes[0])
	require.ErrorIs(t, err, kith.ErrBadConfig)
	for _, part := range []string{"PerNode is -1", "MaxNodes is 1048576", "New is nil", "Name has 0 bytes",
		"MailboxBytes is 1", "Mode is 9"} {
		require.ErrorContains(t, err, part)
	}
	c := newCrew()
	ref := c.pool(t, nodes[0], kith.Pool{Role: "nobody"})
	eventually(t, func() bool { return errors.Is(ref.Tell(nil), kith.ErrNoHost) }, "a tell has no host")
	_, err = ref.Ask(within(t), nil)
	require.ErrorIs(t, err, kith.ErrNoHost)
	require.False(t, kith.MayHaveRun(err))
	require.Empty(t, ref.Workers())
	_, err = kith.Pool{Name: "crew", New: func() kith.Handler { return nil }}.Register(nodes[0])
	require.ErrorIs(t, err, kith.ErrTypeExists)
	var faults []func() error // the second may know of the first at once
	for i, n := range nodes {
		p := kith.Pool{Name: "differs", MaxNodes: 3 + i, New: func() kith.Handler { return &worker{c, n} }}
		ref, err := p.Register(n)
		if err == nil {
			faults = append(faults, ref.Err)
			continue
		}
		faults = append(faults, func() error { return err })
	}
	eventually(t, func() bool {
		return errors.Is(faults[0](), kith.ErrSettingsDiffer) || errors.Is(faults[1](), kith.ErrSettingsDiffer)
	}, "MaxNodes differs")
}

// painter is a worker that takes values.
type painter struct{ done chan string }

func (p painter) paint(_ *kith.Context, m *string) (int, error) {
	if *m == "" {
		return 0, kith.NewError("nothing", kith.KindInvalid, "nothing to paint")
	}
	p.done <- *m
	return len(*m), nil
}

func (painter) Stop(*kith.Context) {}

// TestPoolOfValues: workers take messages as values and answer so; what a codec refuses is sent nowhere, and an error
// keeps its identity.
func TestPoolOfValues(t *testing.T) {
	t.Parallel()
	paint := kith.Message[string, int]{Type: "painters", Name: "paint"}
	done := make(chan string, 8)
	var pools []*kith.TypedPool[string, int]
	for _, n := range cluster(t, 2, nil, nil) {
		ref, err := kith.Pool{Name: "painters", Typed: kith.Methods(
			func(*kith.Context) (painter, error) { return painter{done}, nil }, kith.On(paint, painter.paint))}.Register(n)
		require.NoError(t, err)
		pools = append(pools, paint.InPool(ref))
	}
	for _, p := range pools {
		n, err := p.Ask(within(t), word("door"))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		require.Equal(t, "door", <-done)
		require.NoError(t, p.Tell(word("wall")))
		require.Equal(t, "wall", <-done)
		require.NoError(t, p.With([]byte("h")).TellWait(within(t), word("roof")))
		require.Equal(t, "roof", <-done)
		_, err = p.Ask(within(t), word(""))
		var named *kith.Error
		require.ErrorAs(t, err, &named)
		require.Equal(t, "nothing", named.Code)
		called := make(chan int, 1)
		require.NoError(t, p.AskFunc(time.Minute, word("fence"), func(n int, err error) {
			if err != nil {
				n = -1
			}
			called <- n
		}))
		require.Equal(t, 5, <-called)
		require.Equal(t, "fence", <-done)
		require.ErrorIs(t, p.Tell(nil), kith.ErrBadPayload)
		require.NoError(t, p.Pool().Err())
	}
	both := kith.Pool{Name: "both", New: func() kith.Handler { return nil },
		Typed: kith.Methods(func(*kith.Context) (painter, error) { return painter{}, nil })}
	_, err := both.Register(cluster(t, 1, nil, nil)[0])
	require.ErrorIs(t, err, kith.ErrBadConfig)
}

func word(s string) *string { return &s }

// client is an entity that asks painters by name, as it would in the simulator.
type client struct{}

func (client) order(c *kith.Context, m *string) (int, error) {
	paint := kith.Message[string, int]{Type: "painters", Name: "paint"}
	if err := paint.Tell(c.With([]byte("h")), "", m); err != nil {
		return 0, err
	}
	return paint.Ask(c, "", m)
}

func (client) Stop(*kith.Context) {}

// selfish is a worker that asks its own pool.
type selfish struct{}

func (selfish) Receive(c *kith.Context, _ []byte) error {
	_, err := c.Ask(patience, c.Type(), "", nil)
	return err
}

func (selfish) Stop(*kith.Context) {}

// TestPoolByName: what is sent to a pool by its name, with no id, goes to any worker: from a handler, and from outside.
// A worker does not ask its own pool, which may be itself (SHD-12).
func TestPoolByName(t *testing.T) {
	t.Parallel()
	paint := kith.Message[string, int]{Type: "painters", Name: "paint"}
	order := kith.Message[string, int]{Type: "client"}
	done := make(chan string, 8)
	for _, n := range cluster(t, 2, nil, nil) {
		_, err := kith.Pool{Name: "painters", Typed: kith.Methods(
			func(*kith.Context) (painter, error) { return painter{done}, nil }, kith.On(paint, painter.paint))}.Register(n)
		require.NoError(t, err)
		_, err = n.Register(kith.EntityType{Name: "client", Typed: kith.Methods(
			func(*kith.Context) (client, error) { return client{}, nil }, kith.On(order, client.order))})
		require.NoError(t, err)
		_, err = kith.Pool{Name: "selfish", New: func() kith.Handler { return selfish{} }}.Register(n)
		require.NoError(t, err)
		from := kith.From(within(t), n)
		k, err := paint.Ask(from, "", word("door"))
		require.NoError(t, err)
		require.Equal(t, 4, k)
		require.Equal(t, "door", <-done)
		require.NoError(t, paint.Tell(from.With([]byte("h")), "", word("wall")))
		require.Equal(t, "wall", <-done)
		k, err = order.Ask(from, "house", word("roof"))
		require.NoError(t, err)
		require.Equal(t, 4, k)
		require.Equal(t, []string{"roof", "roof"}, []string{<-done, <-done})
		_, err = from.Ask(patience, "selfish", "", nil)
		require.ErrorContains(t, err, "its own pool")
		require.ErrorIs(t, from.Tell("client", "", nil), kith.ErrBadID)
	}
}
