//go:build linux

// Durable entities on this engine, while its server is killed and starts again.

package etcd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
	"github.com/kith-io/kith/durable"
)

type purse struct{ Coins int64 }

// TestDurable: what was answered is there for the next node, a key has its effect once, also where the server was away
// between the two, and the node goes on by itself when it is back.
func TestDurable(t *testing.T) {
	s, ctx := need(t), within2min(t)
	st := open(t, s)
	begin := func() (*kith.Node, *durable.Entities[int64, int64]) {
		node, err := kith.Start(ctx, kith.Config{})
		require.NoError(t, err)
		e, err := durable.Register(node, durable.Type[purse, int64, int64]{Name: "purse", Store: st, Shards: 4,
			Handle: func(tx *durable.Tx[purse], add *int64) (int64, error) {
				tx.State.Coins += *add
				return tx.State.Coins, nil
			}})
		require.NoError(t, err)
		require.NoError(t, node.Ready(ctx))
		return node, e
	}
	once := func(e *durable.Entities[int64, int64], want int64) {
		five := int64(5)
		for {
			got, err := e.AskOnce(ctx, "payment", "anna", &five)
			if err != nil && ctx.Err() == nil { // the store may be away: the key makes it safe to ask again
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
			return
		}
	}
	node, e := begin()
	one := int64(1)
	got, err := e.Ask(ctx, "anna", &one)
	require.NoError(t, err)
	require.Equal(t, int64(1), got)
	once(e, 6)
	s.crash(t)
	once(e, 6)
	require.NoError(t, node.Close())
	node, e = begin()
	defer func() { require.NoError(t, node.Close()) }()
	once(e, 6)
	got, err = e.Ask(ctx, "anna", &one)
	require.NoError(t, err)
	require.Equal(t, int64(7), got)
}
