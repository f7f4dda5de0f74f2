// A process that is not done with what it owned is not taken for dead (SHD-9), and of two clusters one ends (JOIN-1).

package e2e_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	require.Equal(t, kith.EndTwin, end.Kind, end.Reason)
	cfg.MinBirth = 0
	next, err := kith.Start(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, next.Close()) })
	require.NoError(t, next.Ready(ctx))
	require.Equal(t, older.View().ClusterID, next.View().ClusterID)
}
