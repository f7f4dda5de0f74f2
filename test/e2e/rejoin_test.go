// A process goes on under a new incarnation after the cluster has ended its node (PRT-6).

package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// downed makes an operator of another node down n, and waits until n knows.
func downed(t *testing.T, by, n *kith.Node) {
	t.Helper()
	require.NoError(t, by.Down(within(t), n.Addr().String()))
	select {
	case <-n.Done():
	case <-within(t).Done():
		t.Fatal("the node does not hear that it is down")
	}
}

// TestRejoin: the first seed, which has nothing but its own address as a seed and no directory, is marked down. The
// next node of its process asks the members that the last one knew, and is in their cluster.
func TestRejoin(t *testing.T) {
	t.Parallel()
	typ := echoType("echo", kith.Worker, newLedger(), nil)
	nodes := cluster(t, 3, nil, nil)
	ctx, first := within(t), nodes[0]
	was, err := first.Register(typ)
	require.NoError(t, err)
	cluster := first.View().ClusterID
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = kith.Rejoin(ended, first)
	require.ErrorIs(t, err, context.Canceled, "it lives")

	downed(t, nodes[1], first)
	next, err := kith.Rejoin(ctx, first)
	require.NoError(t, err)
	t.Cleanup(func() { closes(t, next) })
	again, err := kith.Rejoin(ctx, first)
	require.NoError(t, err)
	require.Same(t, next, again)
	require.NoError(t, next.Ready(ctx))
	require.Equal(t, first.Addr(), next.Addr())
	require.NotEqual(t, first.ID(), next.ID())
	require.Equal(t, cluster, next.View().ClusterID, "no second cluster")
	for _, n := range []*kith.Node{nodes[1], nodes[2], next} {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 3 })
	}
	require.ErrorIs(t, was.Tell("a", nil), kith.ErrStopped)
	_, err = next.Register(typ)
	require.NoError(t, err)
}

// TestRejoinOfNoUse: nodes that somebody wanted to end do not come back.
func TestRejoinOfNoUse(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	require.NoError(t, nodes[1].Leave(within(t)))
	closes(t, nodes[0])
	refused := start(t, nil, kith.Config{Seeds: []string{cluster(t, 1, nil, nil)[0].Addr().String()},
		Sharding: kith.Sharding{TakeoverTime: never / 2}})
	for kind, n := range map[kith.EndKind]*kith.Node{kith.EndLeft: nodes[1], kith.EndClosed: nodes[0],
		kith.EndJoinRefused: refused} {
		_, err := kith.Rejoin(within(t), n)
		var e *kith.EndedError
		require.ErrorIs(t, err, kith.ErrNoRejoin)
		require.ErrorAs(t, err, &e)
		require.Equal(t, kind, e.Kind)
	}
}

// alone is the configuration of a node that joins by those seeds, or forms a cluster of its own.
func alone(t *testing.T, seeds ...string) kith.Config {
	return kith.Config{Name: "test", Listen: port.Keep(t), Seeds: seeds, Membership: quick(),
		Resolver: kith.Resolver{Strategy: kith.ResolverOff}, Sharding: kith.Sharding{TakeoverTime: never}}
}

// TestSupervise: each node of a supervised process is given to the function, the last one leaves.
func TestSupervise(t *testing.T) {
	t.Parallel()
	nodes := cluster(t, 2, nil, nil)
	cfg := alone(t, nodes[0].Addr().String())
	begun, err := kith.Start(within(t), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(within(t))
	lives, over := make(chan *kith.Node), make(chan error, 1)
	go func() {
		over <- kith.Supervise(ctx, begun, func(ctx context.Context, n *kith.Node) error {
			lives <- n
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	first := <-lives
	require.NoError(t, first.Ready(ctx))
	downed(t, nodes[0], first)
	second := <-lives
	require.NotEqual(t, first.ID(), second.ID())
	require.NoError(t, second.Ready(ctx))
	for _, n := range nodes {
		awaitView(t, n, func(v *kith.View) bool { return v.CountUp() == 3 })
	}
	cancel()
	require.NoError(t, <-over)
	var e *kith.EndedError
	require.ErrorAs(t, second.Err(), &e)
	require.Equal(t, kith.EndLeft, e.Kind)
}

// TestSuperviseGivesUp: what the function returns ends the node, and so does an end that somebody wanted.
func TestSuperviseGivesUp(t *testing.T) {
	t.Parallel()
	mine := errors.New("no database")
	var node *kith.Node
	begin := func(life func(n *kith.Node) error) error {
		n, err := kith.Start(within(t), alone(t))
		require.NoError(t, err)
		return kith.Supervise(within(t), n, func(_ context.Context, n *kith.Node) error {
			node = n
			return life(n)
		})
	}
	require.ErrorIs(t, begin(func(*kith.Node) error { return mine }), mine)
	<-node.Done()
	require.NoError(t, begin(func(n *kith.Node) error { return n.Leave(within(t)) }))
	require.ErrorIs(t, begin(func(n *kith.Node) error { return n.Close() }), kith.ErrNoRejoin)
}

// TestSuperviseFollowsJoinCluster: a node that goes over to another cluster is followed by the one that does.
func TestSuperviseFollowsJoinCluster(t *testing.T) {
	t.Parallel()
	other := cluster(t, 1, nil, nil)[0]
	begun, err := kith.Start(within(t), alone(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(within(t))
	lives, over := make(chan *kith.Node), make(chan error, 1)
	go func() {
		over <- kith.Supervise(ctx, begun, func(_ context.Context, n *kith.Node) error {
			lives <- n
			return nil
		})
	}()
	first := <-lives
	require.NoError(t, first.Ready(ctx))
	next, err := first.JoinCluster(ctx, []string{other.Addr().String()})
	require.NoError(t, err)
	require.Same(t, next, <-lives)
	require.NoError(t, next.Ready(ctx))
	require.Equal(t, other.View().ClusterID, next.View().ClusterID)
	cancel()
	require.NoError(t, <-over)
}

// TestLeaveAndJoin: two clusters become one, node by node: what lives on the nodes that go over moves to those that
// have not gone yet, and the directory of a node that has gone does not lead it back.
func TestLeaveAndJoin(t *testing.T) {
	t.Parallel()
	to := cluster(t, 1, nil, nil)[0]
	from := cluster(t, 2, func(i int, cfg *kith.Config) { cfg.Directory = t.TempDir() }, nil)
	ctx, seeds := within(t), []string{to.Addr().String()}
	_, err := from[1].LeaveAndJoin(ctx, nil)
	require.ErrorIs(t, err, kith.ErrBadConfig)
	_, err = from[1].LeaveAndJoin(ctx, []string{"nowhere"})
	require.ErrorIs(t, err, kith.ErrBadConfig)
	lost := start(t, nil, kith.Config{Seeds: []string{port.Keep(t)}, NeverForm: true})
	_, err = lost.LeaveAndJoin(ctx, seeds)
	require.ErrorIs(t, err, kith.ErrNotMember)
	require.NoError(t, from[1].Err())

	for _, n := range []*kith.Node{from[1], from[0]} {
		next, err := n.LeaveAndJoin(ctx, seeds)
		require.NoError(t, err)
		t.Cleanup(func() { closes(t, next) })
		require.NoError(t, next.Ready(ctx))
		require.Equal(t, n.Addr(), next.Addr())
		require.Equal(t, to.View().ClusterID, next.View().ClusterID)
		require.Equal(t, kith.ReasonRejoin, n.ShutdownReason())
		again, err := n.LeaveAndJoin(ctx, seeds)
		require.NoError(t, err)
		require.Same(t, next, again)
	}
	awaitView(t, to, func(v *kith.View) bool { return v.CountUp() == 3 })
	closed := cluster(t, 1, nil, nil)[0]
	closes(t, closed)
	_, err = closed.LeaveAndJoin(ctx, seeds)
	var e *kith.EndedError
	require.ErrorAs(t, err, &e)
	require.Equal(t, kith.EndClosed, e.Kind)
}

// TestSuperviseOfAFunctionThatHearsOfTheEnd: a function that returns why its node has ended, which it heard from it
// before its context ended, ends nothing.
func TestSuperviseOfAFunctionThatHearsOfTheEnd(t *testing.T) {
	t.Parallel()
	cfg := alone(t, port.Keep(t))
	cfg.JoinTimeout = 300 * time.Millisecond
	begun, err := kith.Start(within(t), cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(within(t))
	lives, over := make(chan *kith.Node, 10), make(chan error, 1)
	go func() {
		over <- kith.Supervise(ctx, begun, func(_ context.Context, n *kith.Node) error {
			lives <- n
			return n.Ready(context.Background())
		})
	}()
	require.Same(t, begun, <-lives)
	select {
	case next := <-lives:
		require.NotSame(t, begun, next)
	case err := <-over:
		t.Fatal(err)
	}
	cancel()
	require.NoError(t, <-over)
}
