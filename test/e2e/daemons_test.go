// Tests of daemons over real sockets.

package e2e_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/entity"
)

// roll says which daemon runs where, and holds that none runs twice, nor under a fence below one that it ran under.
type roll struct {
	mu      sync.Mutex
	t       *testing.T
	running map[int]kith.ID
	fences  map[int]kith.Fence
	causes  []error
}

func newRoll(t *testing.T) *roll {
	return &roll{t: t, running: map[int]kith.ID{}, fences: map[int]kith.Fence{}}
}

// on is a daemon's function on a node: it runs until its context ends.
func (r *roll) on(n *kith.Node) func(ctx context.Context, c *kith.Context, index int) error {
	return func(ctx context.Context, c *kith.Context, index int) error {
		f := c.Fence
		r.mu.Lock()
		if at, runs := r.running[index]; runs {
			r.t.Errorf("daemon %d begins at %v and runs at %v", index, n.ID(), at)
		}
		if f.Compare(r.fences[index]) < 0 {
			r.t.Errorf("daemon %d runs under %v after %v", index, f, r.fences[index])
		}
		r.running[index], r.fences[index] = n.ID(), f
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, index)
		r.causes = append(r.causes, context.Cause(ctx))
		return ctx.Err()
	}
}

// count returns how many run on a node, and in all.
func (r *roll) count(on kith.ID) (there, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.running {
		if at == on {
			there++
		}
	}
	return there, len(r.running)
}

// TestDaemonsLiveOnce: nine daemons on three nodes run from the start, three on each, each in one place. A node leaves,
// and one is lost: what it ran runs elsewhere, under higher fences, and not before it has ended (SHD-12).
func TestDaemonsLiveOnce(t *testing.T) {
	t.Parallel()
	const n = 9
	r := newRoll(t)
	refs := make([]*kith.DaemonsRef, 3)
	nodes := cluster(t, len(refs), func(_ int, cfg *kith.Config) {
		cfg.Sharding.ProcessDeathIsProof, cfg.Sharding.RebalanceInterval = true, 50*time.Millisecond
	},
		func(i int, node *kith.Node) {
			ref, err := node.Daemons(kith.Daemons{Name: "d", N: n, Run: r.on(node)})
			require.NoError(t, err)
			refs[i] = ref
		})
	all := func(on ...int) {
		t.Helper()
		eventually(t, func() bool {
			for _, i := range on {
				if there, all := r.count(nodes[i].ID()); all != n || there != n/len(on) && there != n/len(on)+1 {
					return false
				}
			}
			return true
		}, "all run, spread over nodes %v", on)
		for _, i := range on {
			eventually(t, func() bool {
				for _, s := range refs[i].Status() {
					if s.Home.IsZero() || s.Running != (s.Home == nodes[i].ID()) || s.Running && s.Failures > 0 {
						return false
					}
				}
				return true
			}, "node %d knows where they are", i)
		}
	}
	all(0, 1, 2)
	require.NoError(t, nodes[0].Leave(within(t)), "also the coordinator's")
	all(1, 2)
	closes(t, nodes[1])
	all(2)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cause := range r.causes {
		if !errors.Is(cause, kith.ErrShardStopping) && !errors.Is(cause, kith.ErrStopped) {
			require.Fail(t, "why it was told to end", "%v", cause)
		}
	}
	for _, f := range r.fences {
		require.False(t, f.IsZero())
	}
}

// TestDaemonsBeginAgain: after an error, a panic and a return, and the node says how often; errors and panics are
// reported.
func TestDaemonsBeginAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := map[kith.IncidentKind]string{}
	ends := make(chan func() error)
	n := start(t, logger(t), kith.Config{Incident: func(i kith.Incident) {
		mu.Lock()
		defer mu.Unlock()
		told[i.Kind] = i.Text
	}})
	ref, err := n.Daemons(kith.Daemons{Name: "d", N: 2, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond,
		Run: func(ctx context.Context, _ *kith.Context, index int) error {
			if index == 1 {
				<-ctx.Done()
				return nil
			}
			select {
			case end := <-ends:
				return end()
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
	require.NoError(t, err)
	ends <- func() error { return errors.New("the store does not answer") }
	ends <- func() error { panic("boom") }
	ends <- func() error { return nil }
	eventually(t, func() bool { s := ref.Status()[0]; return s.Running && s.Runs == 4 }, "it runs again")
	s := ref.Status()
	require.Equal(t, uint64(2), s[0].Failures)
	require.Equal(t, "panic", s[0].Err)
	require.Equal(t, n.ID(), s[0].Home)
	require.Equal(t, uint64(1), s[1].Runs)
	require.NoError(t, ref.Err())
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) == 2
	}, "both are told")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, "the store does not answer", told[kith.DaemonFailed])
	require.True(t, strings.HasPrefix(told[kith.Panicked], "boom"))
	require.Len(t, told, 2)
}

// TestDaemonsTakeNoMessages: a tell or ask to a daemon that runs is refused at once, here and on another node, where
// tells are reported as undelivered; nothing of it waits (SHD-4, SHD-12).
func TestDaemonsTakeNoMessages(t *testing.T) {
	t.Parallel()
	const tells = 20
	told := &reports{}
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) { cfg.Undelivered = told.take }, nil)
	refs := make([]*kith.DaemonsRef, len(nodes))
	for i, n := range nodes {
		var err error
		refs[i], err = n.Daemons(kith.Daemons{Name: "d", N: 1, Run: func(ctx context.Context, _ *kith.Context, _ int) error {
			<-ctx.Done()
			return nil
		}})
		require.NoError(t, err)
		eventually(t, func() bool { return refs[0].Status()[0].Running }, "it runs on the first")
	}
	eventually(t, func() bool { return refs[1].Status()[0].Home == nodes[0].ID() }, "that is known")
	for i, n := range nodes {
		region := n.Regions()[0]
		for _, id := range []string{"0", "another"} {
			for _, size := range []int{0, 2 << 20} {
				_, err := region.AskWithin(patience, id, make([]byte, size), nil)
				require.ErrorIs(t, err, kith.ErrBadID, "node %d, %q, %d bytes", i, id, size)
				require.False(t, kith.MayHaveRun(err))
			}
		}
	}
	for range tells {
		require.ErrorIs(t, nodes[0].Regions()[0].Tell("0", nil), kith.ErrBadID)
		require.NoError(t, nodes[1].Regions()[0].Tell("0", nil), "it is on its way")
	}
	eventually(t, func() bool { return told.of(kith.ErrBadID) == tells }, "each of them is reported")
	s := nodes[0].Stats().Types[0]
	require.LessOrEqual(t, s.MailboxBytes, uint64(entity.RecordOverhead), "nothing waits: that is its own call")
	require.Zero(t, s.Handled)
	require.Zero(t, s.Made, "a call is counted when it is over")
	require.True(t, refs[0].Status()[0].Running)
	require.EqualValues(t, 1, refs[0].Status()[0].Runs)
}

// TestDaemonsThatDiffer: a node that declares another number of them has none, and its error names both; those of the
// cluster run on where they were declared (SHD-12).
func TestDaemonsThatDiffer(t *testing.T) {
	t.Parallel()
	r := newRoll(t)
	nodes := cluster(t, 2, nil, nil)
	first, err := nodes[0].Daemons(kith.Daemons{Name: "d", N: 3, Run: r.on(nodes[0])})
	require.NoError(t, err)
	eventually(t, func() bool { _, all := r.count(nodes[0].ID()); return all == 3 }, "they run")
	second, err := nodes[1].Daemons(kith.Daemons{Name: "d", N: 4, Run: r.on(nodes[1])})
	if err == nil {
		eventually(t, func() bool { return second.Err() != nil }, "it is told later")
		err = second.Err()
	}
	require.ErrorIs(t, err, kith.ErrSettingsDiffer)
	require.ErrorContains(t, err, "N is the number of shards")
	require.ErrorContains(t, err, "3 shards")
	require.ErrorContains(t, err, "4 shards", "both values")
	require.NoError(t, first.Err())
	_, all := r.count(nodes[0].ID())
	require.Equal(t, 3, all, "those of the cluster run on")
}

func TestDaemonsBadInput(t *testing.T) {
	n := start(t, logger(t), kith.Config{})
	run := func(context.Context, *kith.Context, int) error { return nil }
	for _, d := range []kith.Daemons{
		{N: 1, Run: run}, {Name: "a", Run: run}, {Name: "a", N: -1, Run: run}, {Name: "a", N: kith.MaxDaemons + 1, Run: run},
		{Name: "a", N: 1}, {Name: "a", N: 1, Run: run, MinBackoff: -1}, {Name: "a", N: 1, Run: run, MaxBackoff: -1},
		{Name: "a", N: 1, Run: run, MinBackoff: 25 * time.Hour},
		{Name: "a", N: 1, Run: run, MinBackoff: time.Hour, MaxBackoff: time.Minute},
	} {
		_, err := n.Daemons(d)
		require.ErrorIs(t, err, kith.ErrBadConfig, "%+v", d)
	}
	_, err := n.Daemons(kith.Daemons{})
	for _, fault := range []string{"Name has 0 bytes", "N is 0", "Run is nil"} {
		require.ErrorContains(t, err, fault)
	}
	_, err = n.Daemons(kith.Daemons{Name: "a", N: 1, Run: run})
	require.NoError(t, err)
	_, err = n.Register(kith.EntityType{Name: "a", New: func(string, kith.Fence) kith.Handler { return &actor{} }})
	require.ErrorIs(t, err, kith.ErrTypeExists)
}

func (l *incidents) of(kind kith.IncidentKind) (list []kith.Incident) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.list {
		if i.Kind == kind {
			list = append(list, i)
		}
	}
	return list
}

// TestDaemonThatGoesOn: one that does not end though its context did is named when the time for its move is over, once,
// and counted; when it returns it begins on the next node. So is one that the end of its node leaves behind (SHD-12).
func TestDaemonThatGoesOn(t *testing.T) {
	t.Parallel()
	told := &incidents{}
	nodes := cluster(t, 2, func(_ int, cfg *kith.Config) {
		cfg.Incident = told.take
		cfg.Sharding.DrainTime, cfg.Sharding.RebalanceInterval = 10*time.Millisecond, -1
	}, nil)
	returns := make(chan struct{})
	refs := make([]*kith.DaemonsRef, len(nodes))
	for i, n := range nodes {
		var err error
		refs[i], err = n.Daemons(kith.Daemons{Name: "deaf", N: 1, Run: func(context.Context, *kith.Context, int) error {
			<-returns
			return nil
		}})
		require.NoError(t, err)
		eventually(t, func() bool { return refs[0].Status()[0].Running }, "it runs on the first")
	}
	eventually(t, func() bool { return refs[1].Status()[0].Home == nodes[0].ID() }, "that is known")
	region := nodes[0].Regions()[0]
	eventually(t, func() bool { return region.Move(within(t), 0, nodes[1].ID()) == nil }, "it is to move")
	hung := func(n *kith.Node) uint64 { return n.Stats().Types[0].StopsHung }
	eventually(t, func() bool { return hung(nodes[0]) == 1 && len(told.of(kith.StopHangs)) == 1 }, "it is told")
	i := told.of(kith.StopHangs)[0]
	require.Equal(t, []any{"deaf", "0", "run", true}, []any{i.Type, i.ID, i.Text, i.Running})
	require.Equal(t, refs[0].Status()[0].Fence, i.Fence)
	require.Zero(t, refs[1].Status()[0].Runs, "it begins nowhere else")
	returns <- struct{}{}
	eventually(t, func() bool { return refs[1].Status()[0].Running }, "it goes on elsewhere")
	require.Len(t, told.of(kith.StopHangs), 1)
	defer close(returns)
	require.ErrorIs(t, nodes[1].Close(), kith.ErrAbandoned)
	require.Len(t, told.of(kith.StopHangs), 2)
	require.EqualValues(t, 1, hung(nodes[1]))
}
