// Shard functions: entities that the application puts together share a shard, and what is wrong with a function is said
// to every sender (SHD-1).

package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kith-io/kith"
)

// customers maps "customer/order" to the shard of the customer, "out/..." to none, and panics for "panic/...".
func customers(shards uint32) kith.ShardBy {
	return kith.ShardBy{Name: "customer", Of: func(id string) kith.ShardID {
		customer, _, _ := strings.Cut(id, "/")
		switch customer {
		case "out":
			return kith.ShardID(shards)
		case "panic":
			panic("no customer")
		}
		return kith.ShardOf(customer, shards)
	}}
}

// Seed 001: "The ShardRegion is created with two application specific functions to extract the entity identifier and
// the shard identifier from incoming messages. A Shard is a group of entities that will be managed together" (SHD-1).
// Every form of sending goes by the function, from both nodes and from a handler; its faults are ErrBadShard, and no
// handler has run.
func TestShardFunction(t *testing.T) {
	t.Parallel()
	const shards = 8
	large := make([]byte, 2<<20) // in no frame
	regions := make([]*kith.Region, 2)
	cluster(t, 2, nil, func(i int, n *kith.Node) {
		regions[i] = register(t, n, kith.EntityType{Name: "order", Shards: shards, ShardBy: customers(shards)},
			actor{receive: func(c *kith.Context, b []byte) error {
				var err error
				if to, ok := strings.CutPrefix(string(b), "tell "); ok {
					err = c.Tell("order", to, nil)
				} else if to, ok := strings.CutPrefix(string(b), "ask "); ok {
					_, err = c.Ask(patience, "order", to, nil)
				}
				if err != nil {
					return err
				}
				return c.Reply([]byte(n.ID().String()))
			}})
	})
	for from, r := range regions {
		for c := range 10 {
			customer := fmt.Sprint("c", c)
			homes := map[string]bool{}
			for o := range 10 {
				id := fmt.Sprint(customer, "/", o)
				require.Equal(t, kith.ShardOf(customer, shards), r.Shard(id))
				b, err := r.Ask(within(t), id, nil)
				require.NoError(t, err)
				homes[string(b)] = true
				require.NoError(t, r.Tell(id, nil))
				require.NoError(t, r.TellWait(within(t), id, nil))
				if b, err = r.AskWithin(patience, id, nil, b[:0]); o == 0 {
					require.NoError(t, err)
					require.NoError(t, r.TellBulk(within(t), id, large, nil))
				}
				homes[string(b)] = true
			}
			require.Len(t, homes, 1, "all orders of %s, from node %d", customer, from)
		}
		for id, says := range map[string]string{"out/1": "customer says 8, of 8 shards", "panic/1": "no customer"} {
			refused := func(err error) {
				require.ErrorIs(t, err, kith.ErrBadShard)
				require.ErrorContains(t, err, says)
				require.False(t, kith.MayHaveRun(err))
			}
			_, asked := r.Ask(within(t), id, nil)
			_, askedWithin := r.AskWithin(patience, id, nil, nil)
			for _, err := range []error{asked, askedWithin, r.Tell(id, nil), r.Tell(id, large), r.TellWait(within(t), id, nil),
				r.TellBulk(within(t), id, nil, nil), r.TellBulk(within(t), id, large, nil),
				r.With([]byte("k=v")).Tell(id, nil), r.AskFunc(patience, id, nil, func([]byte, error) { t.Error("called") })} {
				refused(err)
			}
			require.EqualValues(t, 1<<32-1, r.Shard(id), "none")
			for _, how := range []string{"tell ", "ask "} {
				_, err := r.Ask(within(t), "c1/1", []byte(how+id))
				require.ErrorContains(t, err, says, "from a handler")
			}
		}
		for _, id := range []string{"", strings.Repeat("x", 1025)} {
			require.ErrorIs(t, r.Tell(id, nil), kith.ErrBadID, "the function is not asked")
		}
	}
}

// A node with another shard function, or none, is refused as one with another number of shards is (SHD-1).
func TestShardFunctionDiffers(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]kith.ShardBy{"none": {}, "another": {Name: "region", Of: customers(8).Of}} {
		regions := make([]*kith.Region, 2)
		var refused error // by Register, where the cluster has answered by then
		cluster(t, 2, nil, func(i int, n *kith.Node) {
			typ := kith.EntityType{Name: "order", ShardBy: customers(8)}
			a := actor{receive: func(c *kith.Context, b []byte) error { return c.Reply(b) }}
			if i == 0 {
				regions[i] = register(t, n, typ, a)
				return
			}
			typ.ShardBy, typ.Shards = by, 8
			typ.New = func(string, kith.Fence) kith.Handler { return &a }
			regions[i], refused = n.Register(typ)
		})
		_, err := regions[0].Ask(within(t), "a", nil)
		require.NoError(t, err)
		err = refused
		eventually(t, func() bool {
			if refused == nil {
				_, err = regions[1].Ask(within(t), "a", nil)
			}
			return errors.Is(err, kith.ErrSettingsDiffer)
		}, "the refusal of the cluster, %s", name)
		require.ErrorContains(t, err, `shard function "customer"`)
		require.ErrorContains(t, err, map[string]string{"none": "no shard function", "another": `"region"`}[name])
	}
}
