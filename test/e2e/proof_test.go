// A process that is not done with what it owned is not taken for dead (SHD-9), and of two clusters one ends (JOIN-1).

package e2e_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/internal/base/port"
)

// SHD-9: a node is closed while a handler of it does not return. As long as that one runs, nobody else gets its shard,
// for its port stays taken; when it has returned, the death of the node is proven at once, long before the takeover
// time.
func TestClosedNodeIsNotDeadWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}), make(chan struct{})
	regions := make([]*kith.Region, 2)
	nodes := cluster(t, 2, func(_ int, c *kith.Config) {
		c.Sharding.ProcessDeathIsProof, c.Sharding.TakeoverTime = true, time.Hour
	}, func(i int, n *kith.Node) {
		x := kith.EntityType{Name: "x", Shards: 8}
		regions[i] = register(t, n, x, actor{receive: func(c *kith.Context, b []byte) error {
			if string(b) == "block" {
				close(running)
				<-release
				return nil
			}
			return c.Reply([]byte(fmt.Sprintf("node %d", i)))
		}})
	})
	ctx := within(t)
	owner := func(id string) string {
		b, err := regions[0].Ask(ctx, id, nil)
		require.NoError(t, err)
		return string(b)
	}
	id := "0"
	for n := 0; owner(id) != "node 1"; n++ {
		require.Less(t, n, 50, "the second node owns something")
		id = fmt.Sprint(n)
	}
	require.NoError(t, regions[0].Tell(id, []byte("block")))
	<-running
	all := &kith.AbandonedError{}
	require.ErrorAs(t, nodes[1].Close(), &all)
	require.Equal(t, 1, all.Handlers)
	addr := nodes[1].Addr().String()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	require.NoError(t, err, "the port is not given back")
	require.NoError(t, conn.Close())
	eventually(t, func() bool { return len(nodes[0].View().Unreachable) == 1 }, "it has not been heard for long")
	_, err = regions[0].AskWithin(time.Second, id, nil, nil)
	require.Error(t, err, "the handler still runs")
	close(release)
	eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, "the port is given back")
	eventually(t, func() bool {
		b, err := regions[0].AskWithin(time.Second, id, nil, nil)
		return err == nil && strings.HasPrefix(string(b), "node 0")
	}, "the first node has it")
}

// JOIN-1: the younger of two clusters of one name, met by its only node at two addresses, ends; what it leaves in its
// directory makes its successor join the older one, though its own was born later and it is the first seed.
func TestYoungerTwinEndsAndJoinsTheOlder(t *testing.T) {
	t.Parallel()
	older := start(t, nil, kith.Config{})
	ctx := within(t)
	require.NoError(t, older.Ready(ctx))
	own, one, two := port.Keep(t), port.Keep(t), port.Keep(t)
	cfg := kith.Config{Listen: own, Name: "test", Seeds: []string{own, one, two},
		Sharding:  kith.Sharding{TakeoverTime: never},
		Logger:    slog.New(slog.NewTextHandler(logger(t), nil)),
		Directory: t.TempDir(), Membership: quick(), Resolver: kith.Resolver{Strategy: kith.ResolverOff}}
	cfg.Membership.SeedCheckInterval, cfg.Membership.SeedTimeout = 50*time.Millisecond, 200*time.Millisecond
	cfg.MinBirth = older.View().Birth // they may have started in one millisecond
	twin, err := kith.Start(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	require.NoError(t, twin.Ready(ctx))
	require.Greater(t, twin.View().Birth, older.View().Birth)
	for _, at := range []string{one, two} {
		n := start(t, nil, kith.Config{Listen: at, Seeds: []string{older.Addr().String()}})
		require.Equal(t, at, n.Addr().String())
	}
	select {
	case <-twin.Done():
	case <-ctx.Done():
		require.Fail(t, "it does not end")
	}
	var end *kith.EndedError
	require.ErrorAs(t, twin.Err(), &end)
	require.Equal(t, kith.EndDuplicate, end.Kind, end.Reason)
	cfg.MinBirth = 0
	next, err := kith.Start(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, next.Close()) })
	require.NoError(t, next.Ready(ctx))
	require.Equal(t, older.View().ClusterID, next.View().ClusterID)
}

// AVL-5: a process that starts again at its address has the lock of the one before it for proof that this one is dead.
// So what it owned answers at once, though the takeover time is an hour. A node that switches that off waits.
func TestNextProcessProvesTheLastOneDead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has such a lock")
	}
	for _, off := range []bool{false, true} {
		var second kith.Config
		regions := make([]*kith.Region, 2)
		x := kith.EntityType{Name: "x", Shards: 8}
		entity := actor{receive: func(c *kith.Context, _ []byte) error {
			return c.Reply(nil)
		}}
		nodes := cluster(t, 2, func(i int, c *kith.Config) {
			c.Sharding.TakeoverTime, c.Sharding.NoLockProof = time.Hour, off
			if c.Listen = port.Keep(t); i == 1 {
				c.Directory = t.TempDir()
				second = *c
			}
		}, func(i int, n *kith.Node) { regions[i] = register(t, n, x, entity) })
		var ids []string
		for n := range 64 {
			ids = append(ids, fmt.Sprint(n))
			_, err := regions[0].Ask(within(t), ids[n], nil)
			require.NoError(t, err)
		}
		require.NoError(t, nodes[1].Close())
		second.Name, second.Membership, second.Resolver.Strategy = "test", quick(), kith.ResolverOff
		next := start(t, nil, second)
		register(t, next, x, entity)
		require.NoError(t, next.Ready(within(t)))
		failed := 0
		for _, id := range ids {
			limit := 10 * time.Second
			if off {
				limit = 50 * time.Millisecond
			}
			if _, err := regions[0].AskWithin(limit, id, nil, nil); err != nil {
				failed++
			}
		}
		require.Equal(t, off, failed > 0, "%d of %d entities do not answer", failed, len(ids))
	}
}

// SHD-9: a node is closed while a handler of it does not return. Its lock is not given up before, so the next process
// at its address proves nothing, and its shard lives nowhere else.
func TestNodeIsNotProvenDeadWhileAHandlerRuns(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}), make(chan struct{})
	regions := make([]*kith.Region, 2)
	x := kith.EntityType{Name: "x", Shards: 8}
	entity := func(own string) actor {
		return actor{receive: func(c *kith.Context, b []byte) error {
			if string(b) == "block" {
				close(running)
				<-release
				return nil
			}
			return c.Reply([]byte(own))
		}}
	}
	var second kith.Config
	nodes := cluster(t, 2, func(i int, c *kith.Config) {
		c.Sharding.TakeoverTime = time.Hour
		if c.Listen = port.Keep(t); i == 1 {
			c.Directory = t.TempDir()
			second = *c
		}
	}, func(i int, n *kith.Node) { regions[i] = register(t, n, x, entity(fmt.Sprint("node ", i))) })
	id := ""
	for n := 0; ; n++ {
		require.Less(t, n, 50, "the second node owns something")
		id = fmt.Sprint(n)
		if b, err := regions[0].Ask(within(t), id, nil); err == nil && string(b) == "node 1" {
			break
		}
	}
	require.NoError(t, regions[0].Tell(id, []byte("block")))
	<-running
	require.ErrorIs(t, nodes[1].Close(), kith.ErrAbandoned)
	second.Name, second.Membership, second.Resolver.Strategy = "test", quick(), kith.ResolverOff
	next := start(t, nil, second)
	register(t, next, x, entity("next"))
	require.NoError(t, next.Ready(within(t)))
	_, err := regions[0].AskWithin(300*time.Millisecond, id, nil, nil)
	require.Error(t, err, "the handler still runs")
	close(release)
}
